"""What was aimed at, and what was reached: means over the pairs of sets and embedders at k = 10."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evaluation.ours import best_label_free
from evaluation.plan import MAIN_BUDGET, MAIN_K
from evaluation.results import Cell, Results, difference, mean, measured_by, scores_of, where

STRATUM = "natural"
_SLACK, _RATIO, _WORST = 0.005, 1.2, 0.01


@dataclass(frozen=True)
class Target:
    """One target and the number it is held against.

    Attributes
    ----------
    what, aim, found : str
    reached : bool or None
        None where it was not measured.
    """

    what: str
    aim: str
    found: str
    reached: bool | None


def targets(results: Results) -> list[Target]:
    """Every target, in order; those of scores that this run lacks are not measured, and none without rows."""
    cells = results.at(k=MAIN_K, stratum=STRATUM)
    if not cells:
        return []
    return [*_label_free(cells), *_learned(results), *_use(cells, results)]


def _label_free(cells: Sequence[Cell]) -> list[Target]:
    ours = best_label_free(scores_of(cells))
    worst = [_apart(cell, ours, "max") for cell in measured_by(cells, ours)]
    below_seed = where(measured_by(cells, ours), lambda cell: _apart(cell, ours, "seed") <= 0.0)
    return [
        _at_least("label-free KPI, mean AUROC", 0.725, mean(cells, ours, "auroc")),
        Target(
            "label-free KPI on the pair where it loses most to max cosine",
            f"at least {-_WORST:+.3f}",
            _signed(min(worst, default=float("nan"))),
            min(worst) >= -_WORST if worst else None,
        ),
        Target(
            "label-free KPI above the seed's KPI",
            "on every pair",
            f"on {len(worst) - len(below_seed)} of {len(worst)}",
            not below_seed if worst else None,
        ),
    ]


def _learned(results: Results) -> list[Target]:
    few = results.at(k=MAIN_K, stratum=STRATUM, labels=25)
    free = best_label_free(scores_of(few) or ["plain"])
    apart = difference(few, "model", free).difference
    aims: tuple[tuple[str, int, str, float], ...] = (
        ("ConfidenceModel, 100 labels, mean AUROC", 100, "model", 0.740),
        ("ConfidenceModel, 200 labels, mean AUROC", 200, "model", 0.750),
        ("ConfidenceModel with texts, 200 labels, mean AUROC", 200, "model_text", 0.770),
    )
    return [
        Target(
            "ConfidenceModel with 25 labels against the label-free KPI",
            f"at least {-_SLACK:+.3f}",
            _signed(apart),
            _known(apart, lambda x: x >= -_SLACK),
        ),
        *(_at_least(what, aim, _mean_at(results, labels, score)) for what, labels, score, aim in aims),
    ]


def _use(cells: Sequence[Cell], results: Results) -> list[Target]:
    ours = best_label_free(scores_of(cells))
    ratio = mean(cells, ours, "acceptance") / mean(cells, "max", "acceptance")
    at = measured_by(results.at(k=MAIN_K, stratum=STRATUM, labels=MAIN_BUDGET), "model")
    found = {cell.pair: difference([cell], "model", "sorted", "aurc") for cell in at}
    better = [pair for pair, one in found.items() if one.high < 0.0]
    others = max((one.difference for pair, one in found.items() if pair not in better), default=0.0)
    return [
        Target(
            "label-free KPI, acceptance at FSR <= .10 over that of max cosine (ratio of means)",
            f"at least {_RATIO:.1f}",
            f"{ratio:.2f}",
            _known(ratio, lambda x: x >= _RATIO),
        ),
        Target(
            f"ConfidenceModel, {MAIN_BUDGET} labels: AURC below logistic on sorted scores, interval below 0",
            "on most pairs",
            f"on {len(better)} of {len(found)}",
            2 * len(better) > len(found) if found else None,
        ),
        Target(
            "the same on the other pairs, where it loses most",
            f"at most {_SLACK:+.3f}",
            _signed(others) if found else _signed(float("nan")),
            others <= _SLACK if found else None,
        ),
    ]


def _apart(cell: Cell, score: str, reference: str) -> float:
    return cell.value(score, "auroc") - cell.value(reference, "auroc")


def _mean_at(results: Results, labels: int, score: str) -> float:
    return mean(results.at(k=MAIN_K, stratum=STRATUM, labels=labels), score, "auroc")


def _at_least(what: str, aim: float, value: float) -> Target:
    found = "not measured" if value != value else f"{value:.3f}"
    return Target(what, f"at least {aim:.3f}", found, _known(value, lambda x: x >= aim))


def _known(value: float, holds: Callable[[float], bool]) -> bool | None:
    return None if value != value else holds(value)


def _signed(value: float) -> str:
    return "not measured" if value != value else f"{value:+.3f}"
