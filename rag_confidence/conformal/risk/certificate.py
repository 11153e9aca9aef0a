"""Tests of "at most this share of the accepted is insufficient" on labelled rows, threshold by threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from rag_confidence._types import FloatArray, IntArray, Mask
from rag_confidence.conformal.binomial import tails_at_most, tails_within
from rag_confidence.conformal.risk.rank_grid import RankGrid, RiskMethod, rank_grid
from rag_confidence.conformal.rows import Rows


@dataclass(frozen=True)
class Trial:
    """One threshold under test.

    Attributes
    ----------
    rank : int
        Rank of the grid that it stands for.
    threshold : float
        A calibration score; ``-inf`` where all rows are above it.
    accepted, errors : int
        Rows with a score above the threshold, and the insufficient ones among them. Ties with the
        threshold are out. Without ties `accepted` is `rank`.
    level : Fraction
        What the p-value is compared with.
    """

    rank: int
    threshold: float
    accepted: int
    errors: int
    level: Fraction


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
    "bonferroni" tries for each rank r the (r + 1)-th highest score. So does "sequence" without ties; with
    ties `_worth_trying` picks thresholds by the numbers of rows above them, never by labels. Cost O(n)
    beside the sort.
    """
    grid = rank_grid(len(rows.scores0) + len(rows.scores1), target, delta, method)
    if not grid.ranks:
        return Certificate(None, None)
    trials = _trials(rows, grid)
    passing = tails_within(trials.errors, trials.accepted, target, trials.levels)
    if grid.stops:
        passing = np.logical_and.accumulate(passing)
    good = np.flatnonzero(passing)
    if len(good):
        return Certificate(trials.pick(int(good[-1])), None)
    return Certificate(None, trials.pick(0 if grid.stops else trials.nearest(float(target))))


@dataclass(frozen=True, eq=False)
class _Trials:
    """Columns of trials, strict to lenient."""

    ranks: IntArray
    thresholds: FloatArray
    accepted: IntArray
    errors: IntArray
    levels: list[Fraction]

    def pick(self, at: int) -> Trial:
        """One of them."""
        return Trial(
            rank=int(self.ranks[at]),
            threshold=float(self.thresholds[at]),
            accepted=int(self.accepted[at]),
            errors=int(self.errors[at]),
            level=self.levels[at],
        )

    def nearest(self, target: float) -> int:
        """The one whose p-value is the smallest multiple of its level."""
        levels = np.array([float(level) for level in self.levels])
        return int(np.argmin(tails_at_most(self.errors, self.accepted, target) / levels))


def _trials(rows: Rows, grid: RankGrid) -> _Trials:
    ascending = np.sort(np.concatenate([rows.scores0, rows.scores1]), kind="stable")
    n, ranks = len(ascending), np.array(grid.ranks, dtype=np.intp)
    # Row -1 is below all: the threshold with all n rows above it.
    values = np.concatenate([[-np.inf], ascending])
    above, at = ranks, np.arange(len(ranks))
    if grid.stops:
        above = n - np.flatnonzero(np.append(values[1:] != values[:-1], True))[::-1]
        above = above[_worth_trying(above, ranks)]
        at = np.searchsorted(ranks, above, side="right") - 1
    thresholds = values[n - above]
    return _Trials(
        ranks=ranks[at],
        thresholds=thresholds,
        accepted=n - np.searchsorted(ascending, thresholds, side="right"),
        errors=len(rows.scores0) - np.searchsorted(rows.scores0, thresholds, side="right"),
        levels=[grid.levels[i] for i in at.tolist()],
    )


def _worth_trying(above: IntArray, ranks: IntArray) -> Mask:
    """Which of the thresholds with `above` rows above them, ascending up to n, a sequence tries.

    A threshold tolerates as many errors as the last rank that it reaches, so the fewer rows it has beyond
    that rank the better. One is left out if the next rank is reached with fewer rows beyond. That looks at
    more lenient thresholds only, on which the argument in `fit_risk_gate` rests. Without ties exactly the
    ranks are tried.
    """
    at = np.searchsorted(ranks, above, side="right") - 1
    beyond_first = above[np.searchsorted(above, ranks)] - ranks
    following = np.append(beyond_first, above[-1])[at + 1]
    return np.asarray((at >= 0) & (above - ranks[at] <= following))
