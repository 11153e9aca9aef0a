"""What the coverage of one calibration set may be by chance: exact bands for one trial.

A trial calibrates a threshold on n scores and counts how many of n_test new scores it covers. Even a perfect
threshold covers a little more or less than it promises, because n and n_test are finite. These bands say how
much.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rag_confidence._options import check_integer
from rag_confidence._types import FloatArray
from rag_confidence.conformal.quantile import Level, as_level, conformal_rank


def coverage_band(n: int, alpha: Level, level: float = 0.95) -> tuple[float, float]:
    """Range of the true coverage that one calibration set has.

    Parameters
    ----------
    n : int
        Calibration scores of the class, at least 1.
    alpha : float, str, Fraction or Decimal
        Miscoverage level in (0, 1).
    level : float, default 0.95
        Probability of the band, in (0, 1); the rest lies half below and half above it.

    Returns
    -------
    tuple of float
        Lower and upper end, in [0, 1]. (1, 1) where the threshold is infinite.

    Raises
    ------
    TypeError, ValueError
        For a level outside (0, 1), and for an `n` that is no count.

    Notes
    -----
    Given the calibration set, the share of all future scores up to the k-th smallest of n independent
    scores is Beta(k, n - k + 1) distributed, k = `conformal_rank`, whatever the distribution of the scores,
    as long as it is continuous. With tied scores the coverage is at least that, and only the lower end
    binds. The band holds for one calibration set: a mean over many is held against `mean_coverage_test`.

    References
    ----------
    Vovk (2012), Conditional validity of inductive conformal predictors, section 3; Angelopoulos and Bates
    (2023), Conformal prediction: a gentle introduction, section 3.2.

    Examples
    --------
    >>> low, high = coverage_band(1000, 0.1)
    >>> round(low, 6), round(high, 6)
    (0.880792, 0.917895)
    """
    tail = (1.0 - check_band_level(level)) / 2.0
    rank = conformal_rank(check_integer("n", n, 1), alpha)
    if math.isinf(rank):
        return 1.0, 1.0
    from scipy.special import betaincinv

    a, b = rank, n - rank + 1
    return float(betaincinv(a, b, tail)), float(betaincinv(a, b, 1.0 - tail))


def covered_count_band(n: int, alpha: Level, n_test: int, *, level: float = 0.95) -> tuple[int, int]:
    """Range of the number of test scores that one calibration set covers.

    Parameters
    ----------
    n, n_test : int
        Calibration and test scores of the class, at least 1 each.
    alpha : float, str, Fraction or Decimal
        Miscoverage level in (0, 1).
    level : float, default 0.95
        Least probability of the band, in (0, 1).

    Returns
    -------
    tuple of int
        Least and greatest count, both within the band; at most (1 - level)/2 lies beyond either.

    Raises
    ------
    TypeError, ValueError
        For a level outside (0, 1), and for sizes that are no counts.

    Notes
    -----
    The count is beta-binomial: Binomial(n_test, C) with C from Beta(k, n - k + 1). The same holds for a
    random split of one finite pool without ties, given the pool: the rank of the threshold among n + n_test
    scores does not depend on their values. Cost O(n_test).

    Examples
    --------
    >>> covered_count_band(1000, 0.1, 1000)
    (873, 925)
    """
    check_band_level(level)
    rank = conformal_rank(check_integer("n", n, 1), alpha)
    return count_band(Trial(n, rank, check_integer("n_test", n_test, 1)), level)


class Trial(NamedTuple):
    """Sizes of one trial: calibration scores, rank of the threshold among them, test scores."""

    n: int
    rank: int | float
    n_test: int


def count_band(trial: Trial, level: float) -> tuple[int, int]:
    """`covered_count_band` for a rank of any kind."""
    tail = (1.0 - level) / 2.0
    low, high = np.searchsorted(np.cumsum(covered_pmf(*trial)), [tail, 1.0 - tail])
    return int(low), int(min(high, trial.n_test))


def covered_pmf(n: int, rank: int | float, n_test: int) -> FloatArray:
    """Probability of each count of covered test scores, shape (n_test + 1,).

    `rank` is that of the threshold among the n calibration scores; ``inf`` covers everything.
    """
    if math.isinf(rank):
        return np.asarray(np.eye(1, n_test + 1, n_test)[0])
    from scipy.special import betaln

    count = np.arange(n_test + 1)
    ways = -betaln(count + 1.0, n_test - count + 1.0) - math.log(n_test + 1.0)
    a, b = float(rank), float(n - rank + 1)
    return np.asarray(np.exp(ways + betaln(a + count, b + n_test - count) - betaln(a, b)))


def covered_mean(n: int, rank: int | float) -> float:
    """Expected share of covered test scores, rank / (n + 1)."""
    return 1.0 if math.isinf(rank) else rank / (n + 1)


def covered_variance(n: int, rank: int | float, n_test: int) -> float:
    """Variance of the count of covered test scores."""
    mean = covered_mean(n, rank)
    return n_test * mean * (1.0 - mean) * (n + 1 + n_test) / (n + 2)


def check_band_level(level: float) -> float:
    """The probability of a band, strictly between 0 and 1."""
    return float(as_level(level, "level"))
