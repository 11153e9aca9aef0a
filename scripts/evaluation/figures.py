"""The pictures of the pages: small PNG files, the same bytes for the same results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from evaluation.ours import best_label_free
from evaluation.plan import MAIN_K
from evaluation.results import Results, difference, mean, scores_of
from evaluation.tables import label_of

BUDGETS_FILE, STRATA_FILE = "labels.png", "strata.png"
_SIZE, _DPI = (6.4, 3.6), 110
_LEARNED = ("sorted", "model", "model_text")


def draw(results: Results, folder: Path) -> list[str]:
    """Draw every picture that the results allow into `folder`; the names of the files."""
    folder.mkdir(parents=True, exist_ok=True)
    return [*_budgets(results, folder / BUDGETS_FILE), *_strata(results, folder / STRATA_FILE)]


def _budgets(results: Results, path: Path) -> list[str]:
    """What scores gain over the maximum cosine by number of labels: differences, since the pairs change."""
    stratum = results.main_stratum()
    budgets = [b for b in results.budgets() if results.at(k=MAIN_K, stratum=stratum, labels=b)]
    if not budgets:
        return []
    figure, axes = _canvas()
    by_budget = {b: results.at(k=MAIN_K, stratum=stratum, labels=b) for b in budgets}
    free = best_label_free(scores_of(by_budget[budgets[0]]))
    for name, style in ((free, "--"), *((one, "o-") for one in _LEARNED)):
        found = [difference(by_budget[b], name, "max").difference for b in budgets]
        if np.isfinite(found).any():
            axes.plot(range(len(budgets)), found, style, label=label_of(name), markersize=4)
    axes.axhline(0.0, color="0.5", linewidth=0.8)
    axes.set_xticks(range(len(budgets)), [f"{b}\n({len(by_budget[b])})" for b in budgets])
    axes.set(xlabel="labels (pairs that have enough rows)", ylabel="mean AUROC minus that of max cosine")
    axes.legend(fontsize=8, frameon=False)
    return [_saved(figure, path)]


def _strata(results: Results, path: Path) -> list[str]:
    """AUROC of three scores by the kind of negatives."""
    strata = [one for one in results.strata() if one != "natural"]
    names = dict.fromkeys(
        ("seed", "max", best_label_free(scores_of(results.at(k=MAIN_K, stratum=results.main_stratum()))))
    )
    if not strata:
        return []
    figure, axes = _canvas()
    width = 0.8 / len(names)
    for at, name in enumerate(names):
        heights = [mean(results.at(k=MAIN_K, stratum=one), name, "auroc") for one in strata]
        places = np.arange(len(strata)) + (at - (len(names) - 1) / 2) * width
        axes.bar(places, np.nan_to_num(heights), width, label=label_of(name))
    axes.set_xticks(range(len(strata)), strata)
    axes.set(ylim=(0.4, 1.0), ylabel="mean AUROC")
    axes.axhline(0.5, color="0.5", linewidth=0.8)
    axes.legend(fontsize=8, frameon=False, ncols=len(names))
    return [_saved(figure, path)]


def _canvas() -> tuple[Any, Any]:
    """A figure without the state of pyplot, and its axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=_SIZE, dpi=_DPI, layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _saved(figure: Any, path: Path) -> str:
    figure.savefig(path, metadata={"Software": None})
    return path.name
