"""The pages: words around the tables. Every number comes from the results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from _tables import Table

from evaluation import tables as make
from evaluation import words
from evaluation.bootstrap import Interval
from evaluation.ours import best_label_free
from evaluation.plan import MAIN_K, Effort
from evaluation.results import Results, difference, differences, mean, scores_of
from evaluation.targets import targets


def write(results: Results, folder: Path, run: Mapping[str, Any]) -> list[Path]:
    """Write the pages, the numbers as JSON, and the pictures if matplotlib is installed; the files."""
    folder.mkdir(parents=True, exist_ok=True)
    pictures: list[str] = []
    if find_spec("matplotlib"):
        from evaluation.figures import draw

        pictures = draw(results, folder / "figures")
    texts = {"index.md": index(results, run, pictures), "results.json": numbers(results, run)}
    for stratum in results.strata():
        texts[page_name(stratum)] = stratum_page(results, stratum)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in texts] + [folder / "figures" / name for name in pictures]


def index(results: Results, run: Mapping[str, Any], pictures: Sequence[str]) -> str:
    """The page to read first."""
    stratum = results.main_stratum()
    cells = results.at(k=MAIN_K, stratum=stratum)
    ours = best_label_free(scores_of(cells))
    few = list(dict.fromkeys(("max", "deviation", "excess", "seed", "plain", ours)))
    parts = [
        "# Evaluation on labelled retrievals",
        _lead(run),
        "## In one minute",
        "\n".join(_sentences(results, ours)),
        make.ladder_table(results, stratum).markdown(),
        *(f"![{words.CAPTIONS[name]}](figures/{name})" for name in pictures),
        "## Scores without labels",
        make.scores_table(cells, f"Stratum: {stratum}, k = {MAIN_K}").markdown(),
        make.strata_table(results, few).markdown(),
        make.ks_table(results, stratum, few).markdown(),
        "## Scores that learn from labels",
        *_markdown(make.budgets_table(results, MAIN_K, stratum)),
        "## What was aimed at",
        make.targets_table(results).markdown(),
        "## Pages",
        "\n".join(f"- [{one}]({page_name(one)}): {words.STRATA.get(one, '')}" for one in results.strata()),
        "## How it was measured",
        _method(run),
    ]
    return "\n\n".join(parts) + "\n"


def stratum_page(results: Results, stratum: str) -> str:
    """All tables of one kind of negatives."""
    parts = [f"# {stratum.capitalize()}", words.STRATA.get(stratum, ""), "[All kinds of negatives](index.md)"]
    for k in results.ks():
        cells = results.at(k=k, stratum=stratum)
        if not cells:
            continue
        parts += [f"## k = {k}", make.scores_table(cells, "Scores without labels").markdown()]
        parts += _markdown(make.budgets_table(results, k, stratum))
        parts += _markdown(make.budgets_table(results, k, stratum, "brier"))
        parts += _markdown(make.against_sorted(results, k, stratum))
        parts += [make.pairs_table(cells, make.free_scores(results, stratum, k)).markdown()]
    return "\n\n".join(parts) + "\n"


def numbers(results: Results, run: Mapping[str, Any]) -> str:
    """Every mean and every pair's numbers as JSON."""
    means = []
    for k in results.ks():
        for stratum in results.strata():
            for labels in (0, *results.budgets()):
                means += _mean_record(results, (k, stratum, labels))
    pairs = [
        {name: value for name, value in asdict(cell).items() if name not in ("rounds", "spread")}
        for cell in results.cells
    ]
    found = {
        "run": dict(run),
        "targets": [asdict(one) for one in targets(results)],
        "means": means,
        "pairs": pairs,
    }
    return json.dumps(found, indent=1) + "\n"


def page_name(stratum: str) -> str:
    """File of a stratum's page."""
    return stratum.replace(" ", "_") + ".md"


def _mean_record(results: Results, at: tuple[int, str, int]) -> list[dict[str, Any]]:
    k, stratum, labels = at
    cells = results.at(k=k, stratum=stratum, labels=labels)
    if not cells:
        return []
    apart = differences(cells, scores_of(cells), "max")
    return [
        {
            "k": k,
            "stratum": stratum,
            "labels": labels,
            "pairs": len(cells),
            "values": {
                score: {metric: _number(mean(cells, score, metric)) for metric in make.COLUMNS}
                for score in scores_of(cells)
            },
            "auroc_minus_max": {
                score: {name: _number(value) for name, value in asdict(one).items()} | {"holm": _number(p)}
                for score, (one, p) in apart.items()
            },
        }
    ]


def _number(value: float) -> float | None:
    return round(value, 6) if value == value else None


def _lead(run: Mapping[str, Any]) -> str:
    text = (
        f"What predicts that the passages of a retrieval hold the evidence? Sets: {', '.join(run['sets'])}. "
        f"Embedders: {', '.join(run['embedders'])}. k = {', '.join(map(str, run['k']))}. Every number on "
        "these pages is written by the command below; kinds of negatives are never pooled."
    )
    warning = " This is a quick run: fewer queries, draws and rounds." if run["quick"] else ""
    return text + warning + "\n\n" + words.AGAIN.format(quick=" --quick" if run["quick"] else "")


def _sentences(results: Results, ours: str) -> list[str]:
    lines = []
    for stratum in results.strata():
        cells = results.at(k=MAIN_K, stratum=stratum)
        apart = difference(cells, ours, "max")
        lines.append(
            f"- **{stratum}**: {make.label_of(ours)} has AUROC {mean(cells, ours, 'auroc'):.3f}, "
            f"{_word(apart)} the best cosine alone with {mean(cells, 'max', 'auroc'):.3f} "
            f"({make.interval_text(apart)})."
        )
    return lines + _shape_line(results) + _label_line(results, ours)


def _shape_line(results: Results) -> list[str]:
    cells = results.at(k=MAIN_K, stratum=results.main_stratum())
    apart = difference(cells, "plain", "max")
    if apart.difference != apart.difference:
        return []
    return [
        f"- **Shape without a profile**: the KPI of the default policy is {_word(apart)} the best "
        f"cosine alone ({make.interval_text(apart)})."
    ]


def _label_line(results: Results, ours: str) -> list[str]:
    """From how many labels on the learned score is better than the label-free one."""
    found = {}
    for budget in results.budgets():
        cells = results.at(k=MAIN_K, stratum=results.main_stratum(), labels=budget)
        found[budget] = difference(cells, "model", ours)
    if not any(one.difference == one.difference for one in found.values()):
        return []
    better = [budget for budget, one in found.items() if one.low > 0.0]
    shown = "; ".join(f"{budget}: {make.interval_text(one)}" for budget, one in found.items())
    start = f"from {better[0]} labels on" if better else "at no budget"
    return [f"- **Labels**: ConfidenceModel is better than the label-free KPI {start} ({shown})."]


def _word(apart: Interval) -> str:
    if apart.low > 0.0:
        return "better than"
    if apart.high < 0.0:
        return "worse than"
    return "not told apart from"


def _method(run: Mapping[str, Any]) -> str:
    effort = Effort(**run["effort"])
    queries = "all judged queries" if effort.limit is None else f"at most {effort.limit} judged queries a set"
    held_out = ", ".join(run["held_out_queries"]) or "none"
    numbers = {name: value for name, value in asdict(effort).items() if name != "limit"}
    return words.METHOD.format(queries=queries, held_out=held_out, **numbers)


def _markdown(table: Table | None) -> list[str]:
    return [table.markdown()] if table else []
