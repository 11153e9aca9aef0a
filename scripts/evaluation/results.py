"""The results of all parts: numbers of one pair of set and embedder, means over pairs, paired differences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from _data import FloatArray

from evaluation.arrays import unpacked
from evaluation.bootstrap import Interval, compared, holm
from evaluation.strata import FAMILIES

FREE = 0
"""The budget of scores that need no labels."""


@dataclass(frozen=True)
class Cell:
    """Scores on the same rows: of one set, embedder, k and stratum, at one number of labels.

    Attributes
    ----------
    labels : int
        `FREE` for scores measured on all rows; else means over draws of so many labels.
    values : mapping of str to mapping of str to float or None
        Metric by score.
    """

    set: str
    embedder: str
    k: int
    stratum: str
    labels: int
    n: int
    n_sufficient: int
    values: Mapping[str, Mapping[str, float | None]]
    spread: Mapping[str, float | None]
    rounds: Mapping[str, Mapping[str, str]]

    @property
    def pair(self) -> str:
        """Name for tables."""
        return f"{self.set} / {self.embedder}"

    def value(self, score: str, metric: str) -> float:
        """One number; nan where the score or the metric was not measured."""
        found = self.values.get(score, {}).get(metric)
        return float("nan") if found is None else found

    def round_values(self, score: str, metric: str) -> FloatArray | None:
        """Bootstrap rounds, or None where there are none."""
        text = self.rounds.get(score, {}).get(metric)
        return None if text is None else unpacked(text)


@dataclass(frozen=True)
class Results:
    """Every cell of a run."""

    cells: tuple[Cell, ...]

    def at(self, *, k: int, stratum: str, labels: int = FREE) -> list[Cell]:
        """Cells of one k, stratum and number of labels, in the order of the sets."""
        return [c for c in self.cells if (c.k, c.stratum, c.labels) == (k, stratum, labels)]

    def strata(self) -> list[str]:
        """Names of the strata that have a cell, in the order of their families."""
        found = {cell.stratum for cell in self.cells}
        return [name for family in FAMILIES for name in family.strata if name in found]

    def main_stratum(self) -> str:
        """The stratum that the first page is about: the natural one, or the first that has enough rows."""
        return next(iter(self.strata()))

    def ks(self) -> list[int]:
        """Every k, ascending."""
        return sorted({cell.k for cell in self.cells})

    def budgets(self) -> list[int]:
        """Every number of labels, ascending."""
        return sorted({cell.labels for cell in self.cells} - {FREE})


def collected(parts: Sequence[Mapping[str, Any]]) -> Results:
    """Cells from the results of the parts."""
    cells = []
    for part in parts:
        for stratum, found in part["strata"].items():
            cells.append(_cell(part, stratum, FREE, found))
            cells += [_cell(part, stratum, int(b), found | one) for b, one in found["budgets"].items()]
    return Results(tuple(cells))


def mean(cells: Sequence[Cell], score: str, metric: str) -> float:
    """Mean over the cells that have it; nan if none has."""
    found = [v for v in (cell.value(score, metric) for cell in cells) if v == v]
    return float(np.mean(found)) if found else float("nan")


def measured_by(cells: Sequence[Cell], score: str) -> list[Cell]:
    """The cells in which a score was measured."""
    return [cell for cell in cells if score in cell.values]


def difference(cells: Sequence[Cell], score: str, reference: str, metric: str = "auroc") -> Interval:
    """Mean over the cells that have both of score minus reference, with its paired bootstrap interval.

    A round is one draw of the queries of every set, the same under all embedders, so the interval knows that
    embedders share their queries.
    """
    both = measured_by(measured_by(cells, score), reference)
    if not both:
        return Interval(*[float("nan")] * 4)
    point = mean(both, score, metric) - mean(both, reference, metric)
    ours, theirs = (_mean_rounds(both, name, metric) for name in (score, reference))
    if ours is None or theirs is None:
        return Interval(point, *[float("nan")] * 3)
    return compared(point, ours, theirs)


def differences(
    cells: Sequence[Cell], scores: Iterable[str], reference: str, metric: str = "auroc"
) -> dict[str, tuple[Interval, float]]:
    """The difference of each score to the reference, and its p-value adjusted over these scores (Holm)."""
    found = {score: difference(cells, score, reference, metric) for score in scores if score != reference}
    adjusted = holm({score: one.p for score, one in found.items()})
    return {score: (one, adjusted[score]) for score, one in found.items()}


def scores_of(cells: Sequence[Cell]) -> list[str]:
    """Names of the scores that occur, in order."""
    return _unique(score for cell in cells for score in cell.values)


def where(cells: Sequence[Cell], holds: Callable[[Cell], bool]) -> list[str]:
    """The pairs for which something holds."""
    return [cell.pair for cell in cells if holds(cell)]


def _cell(part: Mapping[str, Any], stratum: str, labels: int, found: Mapping[str, Any]) -> Cell:
    return Cell(
        set=part["set"],
        embedder=part["embedder"],
        k=part["k"],
        stratum=stratum,
        labels=labels,
        n=found["n"],
        n_sufficient=found["n_sufficient"],
        values=found["values"],
        spread=found.get("spread", {}),
        rounds=found["rounds"],
    )


def _mean_rounds(cells: Sequence[Cell], score: str, metric: str) -> FloatArray | None:
    """Mean over cells of the bootstrap rounds; None if a cell has none."""
    found = [cell.round_values(score, metric) for cell in cells]
    rounds = [one for one in found if one is not None]
    return np.mean(rounds, axis=0) if rounds and len(rounds) == len(found) else None


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
