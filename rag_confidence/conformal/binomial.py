"""Exact binomial tails, and the confidence limits that follow from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from rag_confidence._types import FloatArray, IntArray, Mask

_NEAR = 1e-9
"""Relative distance to a level below which a float tail is not trusted to fall on one side of it."""

_NEAR_LOG = 1e-12
"""The same for the logarithm of a tail that is one power."""

_MANY = 10**10
"""Trials from which on the rounding of p alone may show in the ninth digit of a tail."""

_MOST_EXACT = 4000
_MOST_BITS = 200_000


def binomial_tail_at_most(k: int, n: int, p: float) -> float:
    """Probability that a binomial count is at most k.

    High means that a count as low as `k` is unremarkable at error rate `p`; low is evidence that the rate is
    below `p`.

    Parameters
    ----------
    k : int
        The count; below 0 the tail is 0, from `n` on it is 1.
    n : int
        Number of trials, >= 0.
    p : float
        Probability of one trial, in [0, 1].

    Returns
    -------
    float
        P(Binomial(n, p) <= k), in [0, 1].

    Notes
    -----
    P(X <= k) = 1 - I_p(k + 1, n - k), the regularised incomplete beta function; O(1). The relative error is
    near 1e-13, so a comparison with a level may go wrong only where both agree to that many digits;
    `tail_within` decides those exactly.

    Examples
    --------
    >>> round(binomial_tail_at_most(0, 22, 0.1), 4)
    0.0985
    """
    if k < 0:
        return 0.0
    if k >= n:
        return 1.0
    from scipy.special import betaincc

    return float(betaincc(k + 1, n - k, p))


def tail_within(k: int, n: int, p: Fraction, level: Fraction) -> bool:
    """Whether P(Binomial(n, p) <= k) is at most `level`, decided exactly for up to 4000 trials.

    Parameters
    ----------
    k, n : int
        Count and number of trials, n >= 0.
    p, level : Fraction
        Probability of one trial and the level, both in [0, 1].

    Returns
    -------
    bool
        True where the tail is at most `level`, equality included. A true answer is never wrong.

    Notes
    -----
    Floats decide unless they agree with `level` to nine digits; then integers do, in O(k) products of numbers
    with O(n log q) bits for p = h/q. Beyond 4000 trials, or 200,000 bits, such a near tie counts as not
    within: a rank may then be one higher than it had to be, for 10**15
    trials a few, and what it promises holds. O(1) there.

    Examples
    --------
    >>> tail_within(0, 2, Fraction(9, 10), Fraction(1, 100))
    True
    """
    if k == 0 < n and 0 < p < 1 and 0 < level < 1:
        log_tail, log_limit = n * _log(1 - p), _log(level)
        far = abs(log_tail - log_limit) > -_NEAR_LOG * log_limit + _NEAR_LOG
        return log_tail < log_limit if far else _exactly_within(k, n, p, level)
    tail, limit = _tail(k, n, p), float(level)
    if abs(tail - limit) > float(_nearness(n)) * limit:
        return tail < limit
    return _exactly_within(k, n, p, level)


def _log(x: Fraction) -> float:
    """The logarithm of a number in (0, 1), accurate also where a float would be 0 or 1."""
    if 2 * x > 1:
        return math.log1p(-float(1 - x))
    return math.log(float(x)) if x * 10**300 > 1 else math.log(x.numerator) - math.log(x.denominator)


def _nearness(n: IntArray | int) -> FloatArray:
    return np.asarray(_NEAR * np.sqrt(np.maximum(np.asarray(n, dtype=np.float64) / _MANY, 1.0)))


def _tail(k: int, n: int, p: Fraction) -> float:
    if not 0 <= k < n:
        return float(k >= n)
    return float(_inner_tails(float(k), float(n - k), p))


def _inner_tails(k: IntArray | float, left: IntArray | float, p: Fraction) -> FloatArray:
    """Tails at k of k + left trials; the smaller of p and 1 - p keeps its digits as a float."""
    from scipy.special import betainc, betaincc

    above = k + 1
    return np.asarray(betaincc(above, left, float(p)) if 2 * p <= 1 else betainc(left, above, float(1 - p)))


def _exactly_within(k: int, n: int, p: Fraction, level: Fraction) -> bool:
    """In integers, or False where they would be too long."""
    if n > _MOST_EXACT or n * p.denominator.bit_length() > _MOST_BITS:
        return False
    k, hit, miss = min(max(k, -1), n), p.numerator, p.denominator - p.numerator
    ways = _ways_at_most(k, n, hit, miss) * miss ** (n - k) if k >= 0 else 0
    return bool(ways * level.denominator <= level.numerator * p.denominator**n)


def tails_at_most(k: IntArray, n: IntArray, p: float) -> FloatArray:
    """`binomial_tail_at_most` for columns of counts 0 <= k <= n, shape (m,)."""
    from scipy.special import betaincc

    return np.where(k < n, betaincc(k + 1, np.maximum(n - k, 1), p), 1.0)


def tails_within(k: IntArray, n: IntArray, p: Fraction, levels: Sequence[Fraction]) -> Mask:
    """`tail_within` for columns of counts 0 <= k <= n with a level each, shape (m,)."""
    tails = np.where(k < n, _inner_tails(k, np.maximum(n - k, 1), p), 1.0)
    limits = np.array([float(level) for level in levels])
    within = np.asarray(tails < limits)
    for at in np.flatnonzero(np.abs(tails - limits) <= _nearness(n) * limits).tolist():
        within[at] = tail_within(int(k[at]), int(n[at]), p, levels[at])
    return within


def _ways_at_most(k: int, n: int, hit: int, miss: int) -> int:
    """Sum over i <= k of C(n, i) hit^i miss^(k - i), by Horner's rule."""
    term = total = 1
    for i in range(1, k + 1):
        term = term * (n - i + 1) * hit // i
        total = total * miss + term
    return total


def clopper_pearson(k: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Two-sided Clopper-Pearson interval of a probability.

    It covers the true probability at least as often as claimed, whatever that probability is; near 0 and 1
    and for few trials it covers more often and is wide.

    Parameters
    ----------
    k : int
        Number of hits, 0..n.
    n : int
        Number of trials; with 0 the interval is (0, 1).
    confidence : float
        Coverage of the interval, in (0, 1).

    Returns
    -------
    tuple of float
        (low, high), both in [0, 1], around k/n.

    References
    ----------
    Clopper and Pearson (1934), Biometrika 26.

    Examples
    --------
    >>> low, high = clopper_pearson(0, 22, confidence=0.9)
    >>> low, round(high, 3)
    (0.0, 0.127)
    """
    from scipy.special import betaincinv

    tail = (1.0 - confidence) / 2.0
    low = float(betaincinv(k, n - k + 1, tail)) if k > 0 else 0.0
    return low, binomial_upper(k, n, tail)


def binomial_upper(k: int, n: int, delta: float) -> float:
    """One-sided upper limit of a probability: the largest p at which a count of at most k is no surprise.

    Parameters
    ----------
    k : int
        Number of hits, 0..n.
    n : int
        Number of trials, >= 0.
    delta : float
        Probability that the limit is too low, in (0, 1).

    Returns
    -------
    float
        The p with P(Binomial(n, p) <= k) = delta; 1 when every trial is a hit or there is none.

    Examples
    --------
    >>> round(binomial_upper(0, 22, 0.1), 4)
    0.0994
    """
    if k >= n:
        return 1.0
    from scipy.special import betainccinv

    return float(betainccinv(k + 1, n - k, delta))
