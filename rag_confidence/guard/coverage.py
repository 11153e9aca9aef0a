"""Does a guard keep its promise on one pool of good calls? Random splits against exact bands."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rag_confidence._history import real_vector
from rag_confidence._options import check_integer
from rag_confidence._types import FloatArray, IntArray
from rag_confidence.conformal.bands import check_band_level, coverage_band, covered_count_band
from rag_confidence.conformal.quantile import Level, as_level, kth_smallest, least_rank
from rag_confidence.conformal.validation.trials import MeanTest, mean_coverage_test

_SALT = 0x60A2D
_ONE_TRIAL = 0.95
HEADER = (
    "scores",
    "alpha",
    "target",
    "mean coverage",
    "band of the mean",
    "band of one trial",
    "trials in it",
    "ok",
)


@dataclass(frozen=True)
class CoverageCheck:
    """What repeated splits of a pool of good calls say about the coverage of a threshold.

    Attributes
    ----------
    alpha : float
        The exact level as a float.
    n, n_test, trials, seed : int
        Calibration and held-out calls of each split, and the number of splits.
    mean : MeanTest
        Share of held-out good calls that are accepted, over all trials, against its exact distribution.
    one_trial : tuple of float
        Range of the true coverage of one calibration set, with probability .95. One trial may lie anywhere in
        it; the mean of many may not.
    in_one_trial : float
        Share of trials whose coverage lies in that range widened by the finite number of held-out calls.
    tied : bool
        Whether scores tie. Coverage can then only be higher, and one above its band is no fault.
    infinite : int
        Trials whose threshold is infinite. The guard abstains on every call there, which the bound counts as
        no error, and so does `mean`.
    bad_rejection : float or None
        Mean share of the bad calls that are not accepted; None without bad calls.
    """

    alpha: float
    n: int
    n_test: int
    trials: int
    seed: int
    mean: MeanTest
    one_trial: tuple[float, float]
    in_one_trial: float
    tied: bool
    infinite: int
    bad_rejection: float | None

    @property
    def target(self) -> float:
        """1 - alpha."""
        return 1.0 - self.alpha

    @property
    def fault(self) -> str | None:
        """What is wrong with the coverage, if anything."""
        tail = (1.0 - self.mean.level) / 2.0
        if self.mean.p_low <= tail:
            return "coverage too low"
        if self.mean.p_high <= tail and not self.tied:
            return "coverage too high"
        return None

    @property
    def flagged(self) -> bool:
        """Whether anything is wrong."""
        return self.fault is not None

    def row(self, name: str = "pool") -> tuple[str, ...]:
        """The cells under `HEADER`."""
        mean, (low, high) = self.mean, self.one_trial
        return (
            name,
            f"{self.alpha:g}",
            f"{self.target:.3f}",
            f"{mean.mean:.4f}",
            f"[{mean.low:.4f}, {mean.high:.4f}]",
            f"[{low:.4f}, {high:.4f}]",
            f"{self.in_one_trial:.2f}",
            self.fault or "yes",
        )

    def table(self, name: str = "pool") -> str:
        """A Markdown table of one line."""
        return "\n".join(f"| {' | '.join(cells)} |" for cells in (HEADER, ("---",) * 8, self.row(name)))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "alpha": self.alpha,
            "target": self.target,
            "calibration_size": self.n,
            "test_size": self.n_test,
            "trials": self.trials,
            "seed": self.seed,
            "mean_coverage": self.mean.mean,
            "expected_coverage": self.mean.expected,
            "band_of_the_mean": [self.mean.low, self.mean.high],
            "level": self.mean.level,
            "p_low": self.mean.p_low,
            "p_high": self.mean.p_high,
            "band_of_one_trial": [*self.one_trial],
            "trials_in_band_of_one": self.in_one_trial,
            "tied": self.tied,
            "infinite_thresholds": self.infinite,
            "bad_rejection": self.bad_rejection,
            "fault": self.fault,
        }


def coverage_check(
    scores: ArrayLike,
    alpha: Level,
    *,
    calibration_size: int,
    trials: int = 100,
    seed: int = 0,
    bad: ArrayLike | None = None,
    tested: ArrayLike | None = None,
    level: float = 0.99,
) -> CoverageCheck:
    """Coverage of a guard over random splits of one pool of good calls, held against what it must be.

    Parameters
    ----------
    scores : array_like, shape (N,)
        Statistics of good calls, higher is stranger: scores of one check, or `Calibrator.good`. +inf is a
        call on which a scorer failed.
    alpha : float, str, Fraction or Decimal
        Level in (0, 1).
    calibration_size : int
        Calls that set the threshold in each trial, fewer than N; the others are held out.
    trials : int, default 100
    seed : int, default 0
    bad : array_like, shape (m,), optional
        Statistics of bad calls: how many are not accepted is then reported.
    tested : array_like, shape (N,), optional
        What each held-out call scores in use, where that differs from `scores`: a control that a sound check
        must flag.
    level : float, default 0.99
        A sound guard is flagged with probability 1 - level at most.

    Returns
    -------
    CoverageCheck

    Raises
    ------
    TypeError, ValueError
        For scores with nan or -inf, a pool that is too small, and options out of range.

    Notes
    -----
    Given the pool, the number of held-out calls that a split covers is exactly beta-binomial, whatever the
    scores are, as long as they do not tie; splits are independent. So the mean of R trials is held against
    its own distribution, which is about sqrt(R) times as narrow as the band of one trial: that of 100 trials
    sees a loss of a point. Splits of one pool say nothing about calls that are unlike it. O(R N).

    References
    ----------
    Vovk (2012), Conditional validity of inductive conformal predictors, section 3.

    Examples
    --------
    >>> found = coverage_check([i / 500 for i in range(500)], 0.1, calibration_size=200)
    >>> found.flagged, [round(end, 3) for end in found.one_trial]
    (False, [0.856, 0.938])
    """
    pool = check_statistics("scores", scores)
    later = pool if tested is None else _aligned(check_statistics("tested", tested), pool)
    others = None if bad is None else check_statistics("bad", bad)
    exact, n = as_level(alpha), check_size(calibration_size, len(pool))
    check_band_level(level)
    count = check_integer("trials", trials, 1)
    n_test, covered, stopped, infinite = len(pool) - n, [], [], 0
    for first, rest in splits(len(pool), n, count, check_integer("seed", seed, 0)):
        threshold = threshold_of(pool[first], exact)
        infinite += math.isinf(threshold)
        covered.append(int(np.count_nonzero(later[rest] <= threshold)))
        if others is not None:
            stopped.append(float((~accepted(others, threshold)).mean()))
    mean = mean_coverage_test(np.array(covered) / n_test, n, exact, n_test=n_test, level=level)
    return CoverageCheck(
        alpha=float(exact),
        n=n,
        n_test=n_test,
        trials=count,
        seed=seed,
        mean=mean,
        one_trial=coverage_band(n, exact, _ONE_TRIAL),
        in_one_trial=_share_in_band(covered, n, exact, n_test),
        tied=len(np.unique(pool)) < len(pool),
        infinite=infinite,
        bad_rejection=float(np.mean(stopped)) if stopped else None,
    )


def splits(total: int, n: int, trials: int, seed: int) -> Iterator[tuple[IntArray, IntArray]]:
    """Random splits of `total` rows into n for calibration and the others."""
    for at in range(trials):
        order = np.random.default_rng([_SALT, seed, at]).permutation(total)
        yield order[:n], order[n:]


def threshold_of(statistics: FloatArray, level: Fraction) -> float:
    """The order statistic that a guard uses; infinite where the calls do not suffice."""
    rank = least_rank(len(statistics), level)
    return kth_smallest(statistics, rank if rank <= len(statistics) else math.inf)


def accepted(statistics: FloatArray, threshold: float) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Whether calls pass; none does where the threshold is infinite."""
    return np.asarray((statistics <= threshold) & math.isfinite(threshold))


def check_statistics(name: str, values: ArrayLike) -> FloatArray:
    """Statistics (n,) of at least one call, +inf for a failed one, in float64."""
    array = real_vector(name, values).astype(np.float64)
    if array.size == 0:
        raise ValueError(f"`{name}` must hold at least one call; got none. Collect some first.")
    # Negated: nan compares false with everything.
    odd = array[~(array > -np.inf)]
    if odd.size:
        raise ValueError(
            f"`{name}` must not hold nan or -inf; got {float(odd[0])!r} and {odd.size} bad in all. "
            "A check that failed to run counts as +inf."
        )
    return array


def check_size(calibration_size: int, total: int) -> int:
    """A calibration size that leaves something to test on."""
    n = check_integer("calibration_size", calibration_size, 1)
    if n >= total:
        raise ValueError(
            f"`calibration_size` must be below the {total} good calls of the pool; got {n}. "
            "Leave some calls to test on."
        )
    return n


def _aligned(tested: FloatArray, pool: FloatArray) -> FloatArray:
    if len(tested) != len(pool):
        raise ValueError(
            f"`tested` must have one entry for each of the {len(pool)} scores; got {len(tested)}. "
            "Pass what the same calls score in use."
        )
    return tested


def _share_in_band(covered: list[int], n: int, level: Fraction, n_test: int) -> float:
    low, high = covered_count_band(n, level, n_test, level=_ONE_TRIAL)
    return float(np.mean([low <= count <= high for count in covered]))
