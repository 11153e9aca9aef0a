"""Whether coverage over repeated trials is what it should be: the mean of many, and their spread.

One trial may miss its target by two points without fault. The mean of a hundred trials may not: its own
spread is ten times smaller, and a mean is tested against that, never against the band of one trial.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rag_confidence._history import check_scores
from rag_confidence._options import check_integer
from rag_confidence._types import FloatArray, IntArray
from rag_confidence.conformal.bands import (
    Trial,
    check_band_level,
    covered_mean,
    covered_pmf,
    covered_variance,
)
from rag_confidence.conformal.quantile import Level, conformal_rank

_SALT = 0x5B4EAD
_SIMULATED = 999
# Twice exp(-35) is below the rounding of a double: what lies further out cannot be told from zero.
_NEGLIGIBLE = 35.0


@dataclass(frozen=True)
class MeanTest:
    """The share covered over all trials, against its exact distribution.

    Attributes
    ----------
    trials, tested, covered : int
        Trials, test scores in all of them, and those covered.
    mean, expected : float
        Share covered, and what it is expected to be.
    low, high : float
        Band of the share at `level`.
    p_low, p_high : float
        Probability of a share at least as low, and at least as high; accurate to about 1e-12.
    level : float
        Probability of the band.
    """

    trials: int
    tested: int
    covered: int
    mean: float
    expected: float
    low: float
    high: float
    p_low: float
    p_high: float
    level: float

    @property
    def p_value(self) -> float:
        """Two-sided: twice the smaller tail, at most 1."""
        return min(1.0, 2.0 * min(self.p_low, self.p_high))

    @property
    def within(self) -> bool:
        """Whether the two-sided test at 1 - level does not reject."""
        return self.p_value > 1.0 - self.level


@dataclass(frozen=True)
class SpreadTest:
    """How much trials differ from each other, against what independent scores allow.

    Attributes
    ----------
    ratio : float or None
        Mean squared deviation in units of its expectation: 1 is right, above 1 means that rows repeat or
        depend on each other, below 1 that trials share their rows. None where no threshold is finite.
    p_value : float
        Two-sided, by simulation of 999 null runs; never below 1/500.
    level : float
    """

    ratio: float | None
    p_value: float
    level: float

    @property
    def within(self) -> bool:
        """Whether the test at 1 - level does not reject."""
        return self.p_value > 1.0 - self.level


def mean_coverage_test(
    coverages: ArrayLike, n: int, alpha: Level, *, n_test: int, level: float = 0.95
) -> MeanTest:
    """Test of the mean coverage over repeated independent trials of one size.

    Parameters
    ----------
    coverages : array_like, shape (R,)
        Share of the n_test scores that each trial covered, in [0, 1].
    n, n_test : int
        Calibration and test scores of each trial, at least 1.
    alpha : float, str, Fraction or Decimal
        Miscoverage level in (0, 1).
    level : float, default 0.95
        Probability of the band; 1 - level is the chance to reject sound coverage.

    Returns
    -------
    MeanTest
        With ties in the scores coverage can only be higher: then read `p_low` alone.

    Raises
    ------
    TypeError, ValueError
        For coverages that are no multiples of 1/n_test in [0, 1], and for levels and sizes out of range.

    Notes
    -----
    Exact, not a normal approximation: the number covered in R trials is a sum of R independent beta-binomial
    counts, and its distribution is their convolution, taken by one Fourier transform over the range outside
    of which the sum has probability below 1e-14. The standard deviation of the mean is
    sqrt(p (1 - p)(n + 1 + n_test) / (n_test (n + 2) R)) with p = k/(n + 1): at n = n_test = 1000,
    alpha = .1 and R = 100 it is .0013, where the band of one trial is .037 wide.

    References
    ----------
    Marchal and Arbel (2017), On the sub-Gaussianity of the beta and Dirichlet distributions (the range).

    Examples
    --------
    >>> found = mean_coverage_test([0.883] * 100, 1000, 0.1, n_test=1000)
    >>> round(found.low, 4), round(found.high, 4), found.within
    (0.8975, 0.9027, False)
    """
    rank = conformal_rank(check_integer("n", n, 1), alpha)
    trial = Trial(n, rank, check_integer("n_test", n_test, 1))
    covered = _counts(check_scores("coverages", coverages), n_test)
    return mean_test(covered, [trial] * len(covered), level)


def mean_test(covered: IntArray, trials: Sequence[Trial], level: float) -> MeanTest:
    """`mean_coverage_test` for counts `covered` (R,) of trials of any sizes."""
    tested, total = sum(t.n_test for t in trials), int(covered.sum())
    start, pmf = _total_pmf(Counter(trials))
    low, high = _band_of(start, pmf, level)
    expected = sum(t.n_test * covered_mean(t.n, t.rank) for t in trials)
    return MeanTest(
        trials=len(trials),
        tested=tested,
        covered=total,
        mean=total / tested,
        expected=expected / tested,
        low=low / tested,
        high=high / tested,
        p_low=_sum_up(pmf[: max(total - start + 1, 0)]),
        p_high=_sum_up(pmf[max(total - start, 0) :]),
        level=level,
    )


def total_band(trials: Sequence[Trial], level: float) -> tuple[int, int]:
    """Band of the number of test scores covered in all trials together."""
    return _band_of(*_total_pmf(Counter(trials)), level)


def _band_of(start: int, pmf: FloatArray, level: float) -> tuple[int, int]:
    tail = (1.0 - check_band_level(level)) / 2.0
    low, high = np.searchsorted(np.cumsum(pmf), [tail, 1.0 - tail])
    return start + int(low), start + int(min(high, len(pmf) - 1))


def spread_test(covered: IntArray, trials: Sequence[Trial], level: float, *, seed: int = 0) -> SpreadTest:
    """Whether counts `covered` (R,) of independent trials scatter as beta-binomial counts do.

    Repeated and dependent rows leave the mean where it is and widen the spread. Cost O(1000 R).
    """
    check_band_level(level)
    random = [(count, t) for count, t in zip(covered.tolist(), trials, strict=True) if not math.isinf(t.rank)]
    if not random:
        return SpreadTest(None, 1.0, level)
    rng = np.random.default_rng([_SALT, seed])
    found = sum(float(_squared(np.array(count), t)) for count, t in random)
    null = sum((_squared(_simulated(t, rng), t) for _, t in random), np.zeros(_SIMULATED))
    above, below = int((null >= found).sum()), int((null <= found).sum())
    p_value = min(1.0, 2.0 * (1 + min(above, below)) / (1 + _SIMULATED))
    return SpreadTest(found / len(random), p_value, level)


def _squared(count: FloatArray | IntArray, trial: Trial) -> FloatArray:
    n, rank, n_test = trial
    return np.asarray((count - n_test * covered_mean(n, rank)) ** 2 / covered_variance(n, rank, n_test))


def _simulated(trial: Trial, rng: np.random.Generator) -> IntArray:
    n, rank, n_test = trial
    return rng.binomial(n_test, rng.beta(rank, n - rank + 1, _SIMULATED))


def _counts(coverages: FloatArray, n_test: int) -> IntArray:
    counts = np.rint(coverages * n_test).astype(np.int64)
    whole = (np.abs(coverages * n_test - counts) <= 1e-6 * n_test) & (counts >= 0) & (counts <= n_test)
    if not whole.all():
        odd = float(coverages[~whole][0])
        raise ValueError(
            f"`coverages` must be counts of covered scores divided by `n_test` = {n_test}; got {odd}. "
            "Pass the share of test scores that each trial covered."
        )
    return counts


def _total_pmf(trials: Counter[Trial]) -> tuple[int, FloatArray]:
    """Least total and the probability of each from there on, all but a negligible part."""
    tested = sum(t.n_test * times for t, times in trials.items())
    mean = sum(t.n_test * covered_mean(t.n, t.rank) * times for t, times in trials.items())
    reach = math.sqrt(2.0 * _NEGLIGIBLE * sum(_proxy(t) * times for t, times in trials.items()))
    width = min(tested + 1, 2 * math.ceil(reach) + 1)
    start = min(max(0, math.floor(mean - reach)), tested + 1 - width)
    # The sum is known modulo the width; within the range that leaves one candidate.
    waves = np.ones(width // 2 + 1, dtype=np.complex128)
    for trial, times in trials.items():
        pmf = covered_pmf(*trial)
        folded = np.bincount(np.arange(len(pmf)) % width, weights=pmf, minlength=width)
        waves *= np.fft.rfft(folded) ** times
    # Rounding leaves values of about -1e-17 where the probability is 0.
    return start, np.maximum(np.roll(np.fft.irfft(waves, width), -start), 0.0)


def _proxy(trial: Trial) -> float:
    """Sub-Gaussian variance proxy of a beta-binomial count."""
    return trial.n_test**2 / (4.0 * (trial.n + 2)) + trial.n_test / 4.0


def _sum_up(pmf: FloatArray) -> float:
    return min(float(pmf.sum()), 1.0)
