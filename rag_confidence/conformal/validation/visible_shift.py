"""How small a shift the coverage check still sees: its power."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rag_confidence._history import check_scores
from rag_confidence._options import check_integer
from rag_confidence._types import FloatArray, IntArray
from rag_confidence.conformal.bands import Trial, check_band_level
from rag_confidence.conformal.quantile import Level, as_level, conformal_rank
from rag_confidence.conformal.validation.report import TESTS
from rag_confidence.conformal.validation.trials import total_band
from rag_confidence.synthetic import Nonconformity

_SALT = 0x5417F7
_SPREAD_DRAWS = 20_000
SHIFTS = (0.0, *(round(0.0025 * 1.2**step, 5) for step in range(36)))
"""From a four-hundredth of a standard deviation to one and a half of them, in steps of a fifth."""


@dataclass(frozen=True)
class PowerCurve:
    """Share of tries in which a coverage check flags a shift of the test scores.

    Attributes
    ----------
    shifts : tuple of float
        In standard deviations of the nonconformity score, ascending from 0.
    flagged : tuple of float
        Share of tries flagged at each; at shift 0 the rate of false alarms.
    coverage : tuple of float
        Mean coverage at each.
    smallest : float or None
        Least of the shifts from which on each is flagged in at least `power` of the tries.
    power : float
    tries : int
    """

    shifts: tuple[float, ...]
    flagged: tuple[float, ...]
    coverage: tuple[float, ...]
    smallest: float | None
    power: float
    tries: int

    @property
    def coverage_lost(self) -> float | None:
        """How much coverage the smallest visible shift costs."""
        if self.smallest is None:
            return None
        return self.coverage[0] - self.coverage[self.shifts.index(self.smallest)]

    def table(self) -> str:
        """A Markdown table with a line for each shift."""
        lines = ["| shift / sd | coverage | flagged |", "| --- | --- | --- |"]
        columns = zip(self.shifts, self.coverage, self.flagged, strict=True)
        return "\n".join([*lines, *(f"| {s:.4f} | {c:.4f} | {f:.3f} |" for s, c, f in columns)])


def smallest_visible_shift(
    nonconformity: Nonconformity,
    n: int,
    alpha: Level,
    *,
    n_test: int,
    repeats: int = 100,
    tries: int = 200,
    shifts: ArrayLike = SHIFTS,
    power: float = 0.95,
    level: float = 0.95,
    seed: int = 0,
) -> PowerCurve:
    """Power of `validate_coverage` against test scores that are all a little stranger.

    Parameters
    ----------
    nonconformity : callable
        (rng, n) -> n scores of one class, higher is stranger: `uniform_scores` and its like.
    n, n_test : int
        Calibration and test scores of the class in each trial, at least 1.
    alpha : float, str, Fraction or Decimal
        Miscoverage level in (0, 1).
    repeats : int, default 100
        Trials that one check looks at.
    tries : int, default 200
        Checks run at each shift.
    shifts : array_like, shape (m,)
        Ascending, not negative, in standard deviations; 0 comes first.
    power : float, default 0.95
        Share of tries that counts as seen, in (0, 1).
    level : float, default 0.95
        As in `validate_coverage`.
    seed : int, default 0

    Returns
    -------
    PowerCurve

    Raises
    ------
    TypeError, ValueError
        For sizes, levels and shifts out of range.

    Notes
    -----
    Counts only the test of the mean of one class, at the quarter of 1 - level that `validate_coverage` gives
    it; the other tests can only add to the power. All shifts are tried on the same draws, so the curve is
    smooth. Where the threshold lies in a density f (per standard deviation), a shift d costs about f d of
    coverage, and the check sees a loss of about 4.1 standard errors of the mean. Cost
    O(tries * repeats * (n + n_test)).
    """
    grid = _checked(shifts)
    trial = Trial(check_integer("n", n, 1), conformal_rank(n, alpha), check_integer("n_test", n_test, 1))
    check_integer("repeats", repeats, 1)
    rng = np.random.default_rng([_SALT, check_integer("seed", seed, 0)])
    steps = grid * float(np.std(nonconformity(rng, _SPREAD_DRAWS)))
    totals = np.array(
        [
            _covered(nonconformity, trial, steps, repeats=repeats, rng=rng)
            for _ in range(check_integer("tries", tries, 1))
        ]
    )
    each = 1.0 - (1.0 - check_band_level(level)) / TESTS
    low, high = total_band([trial] * repeats, each)
    flagged = ((totals < low) | (totals > high)).mean(axis=0)
    return PowerCurve(
        shifts=tuple(grid.tolist()),
        flagged=tuple(flagged.tolist()),
        coverage=tuple((totals.mean(axis=0) / (repeats * n_test)).tolist()),
        smallest=_seen_from(grid, flagged >= float(as_level(power, "power"))),
        power=power,
        tries=tries,
    )


def _checked(shifts: ArrayLike) -> FloatArray:
    grid = check_scores("shifts", shifts).astype(np.float64)
    if grid[0] != 0.0 or (np.diff(grid) <= 0.0).any():
        raise ValueError(
            f"`shifts` must ascend from 0; got {grid[:5].tolist()}. Put 0 first: it shows the false alarms."
        )
    return grid


def _covered(
    nonconformity: Nonconformity,
    trial: Trial,
    steps: FloatArray,
    *,
    repeats: int,
    rng: np.random.Generator,
) -> IntArray:
    """Test scores covered in all trials together, for each shift, shape (m,)."""
    n, rank, n_test = trial
    if rank > n:
        return np.full(len(steps), repeats * n_test)
    known = nonconformity(rng, repeats * n).reshape(repeats, n)
    threshold = np.partition(known, int(rank) - 1, axis=1)[:, int(rank) - 1]
    room = threshold[:, None] - nonconformity(rng, repeats * n_test).reshape(repeats, n_test)
    shifts_survived = np.searchsorted(steps, room.ravel(), side="right")
    at_most = np.cumsum(np.bincount(shifts_survived, minlength=len(steps) + 1))
    return np.asarray(repeats * n_test - at_most[:-1])


def _seen_from(grid: FloatArray, seen: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> float | None:
    """Least shift from which on all are seen."""
    if not seen[-1]:
        return None
    unseen = np.flatnonzero(~seen)
    return float(grid[unseen[-1] + 1 if unseen.size else 0])
