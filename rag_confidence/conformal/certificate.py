"""Tests of "at most this share of the accepted is insufficient" on labelled rows, threshold by threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from rag_confidence.conformal.binomial import binomial_tail_at_most, tail_within
from rag_confidence.conformal.rank_grid import RankGrid, RiskMethod, rank_grid
from rag_confidence.conformal.rows import Rows


@dataclass(frozen=True)
class Trial:
    """One threshold under test.

    Attributes
    ----------
    rank : int
        Rank of the grid that it stands for.
    threshold : float
        The calibration score of rank + 1, counted from the highest; ``-inf`` for the rank n.
    accepted, errors : int
        Rows with a score above the threshold, and the insufficient ones among them. Ties with the
        threshold are out, so `accepted` may be less than `rank`.
    level : Fraction
        What the p-value is compared with.
    """

    rank: int
    threshold: float
    accepted: int
    errors: int
    level: Fraction

    def possible(self, target: Fraction) -> bool:
        """Whether this many rows certify `target` at least without an error."""
        return tail_within(0, self.accepted, target, self.level)

    def passes(self, target: Fraction) -> bool:
        """Whether the p-value P(Binomial(accepted, target) <= errors) is at most the level."""
        return tail_within(self.errors, self.accepted, target, self.level)

    def misses_by(self, target: Fraction) -> float:
        """The p-value over the level: above 1 where the trial fails."""
        return binomial_tail_at_most(self.errors, self.accepted, float(target)) / float(self.level)


@dataclass(frozen=True)
class Certificate:
    """What the trials came to.

    Attributes
    ----------
    passed : Trial or None
        The most lenient threshold that is certified; None for nothing.
    missed : Trial or None
        Where nothing is certified although rows would suffice: the trial that came nearest, of a sequence
        the one that ended it.
    """

    passed: Trial | None
    missed: Trial | None

    @property
    def threshold(self) -> float:
        """ACCEPT above this; ``inf`` where nothing is certified."""
        return math.inf if self.passed is None else self.passed.threshold


def certify(rows: Rows, target: Fraction, delta: Fraction, method: RiskMethod) -> Certificate:
    """The most lenient threshold whose test, and in a sequence every test before it, passes.

    Parameters
    ----------
    rows : Rows
        Labelled scores.
    target, delta : Fraction
        Selective risk to certify, and the probability of a wrong certificate.
    method : {"sequence", "bonferroni"}
        See `rank_grid`, which fixes the candidates from these three and the number of rows.

    Returns
    -------
    Certificate

    Notes
    -----
    A threshold with too few rows above it to pass even without an error is left out of the sequence, not
    counted as its failure: with ties at the top the strict ranks accept nothing. Which are left out depends
    on scores, not on labels. Cost O(n) beside the sort.
    """
    grid = rank_grid(len(rows.scores0) + len(rows.scores1), target, delta, method)
    tried = [trial for trial in _trials(rows, grid) if trial.possible(target)]
    passing = [trial.passes(target) for trial in tried]
    if grid.stops and not all(passing):
        end = passing.index(False)
        return Certificate(tried[end - 1] if end else None, None if end else tried[0])
    good = [trial for trial, passed in zip(tried, passing, strict=True) if passed]
    if good:
        return Certificate(good[-1], None)
    return Certificate(None, min(tried, key=lambda trial: trial.misses_by(target), default=None))


def _trials(rows: Rows, grid: RankGrid) -> list[Trial]:
    """The trial of every rank, strict to lenient."""
    ascending = np.sort(np.concatenate([rows.scores0, rows.scores1]), kind="stable")
    n, ranks = len(ascending), np.array(grid.ranks, dtype=np.intp)
    # Position -1 stands for a threshold below all rows: the rank n accepts everything.
    thresholds = np.concatenate([[-np.inf], ascending])[n - ranks]
    accepted = n - np.searchsorted(ascending, thresholds, side="right")
    errors = len(rows.scores0) - np.searchsorted(rows.scores0, thresholds, side="right")
    columns = (grid.ranks, thresholds.tolist(), accepted.tolist(), errors.tolist(), grid.levels)
    return [Trial(*row) for row in zip(*columns, strict=True)]
