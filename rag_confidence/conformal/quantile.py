"""The exact level, the exact rank and the order statistic: the one copy that every gate calls."""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from rag_confidence._history import check_scores
from rag_confidence._options import check_integer
from rag_confidence._types import FloatArray
from rag_confidence.conformal.binomial import tail_within

Level: TypeAlias = float | str | Fraction | Decimal

_MOST_PARTS = 10**6
_ROUNDING = Fraction(1, 10**15)
_LONGEST_TEXT = 1000
_MOST_BITS = 4000
_LONGEST_SHOWN = 80
_MOST_COUNTED = 10**15
LEAST_LEVEL = Fraction(1, 10**12)
"""The smallest level that a user may ask for, and how far from 1 each must stay."""

LEAST_SHARE = Fraction(1, 10**250)
"""The smallest level that may be divided further: what is left is a number that floats hold."""

_CURE = "0.1, '0.1' and Fraction(1, 10) all mean one tenth."


def as_level(alpha: Level, name: str = "alpha", least: Fraction = LEAST_LEVEL) -> Fraction:
    """The exact level in [1e-12, 1 - 1e-12] that a user means.

    Parameters
    ----------
    alpha : float, str, Fraction or Decimal
        Strings, fractions and decimals are taken as they stand. A float is the fraction of denominator
        at most 10**6 within 1e-15 of it, if there is one, and else the decimal it is written as.
    name : str
        What errors call it.
    least : Fraction
        The smallest that is allowed; smaller for levels that were divided among attempts.

    Returns
    -------
    Fraction

    Raises
    ------
    TypeError, ValueError
        For what is not a number strictly between 0 and 1, for one nearer to 0 or 1 than 1e-12, and for a
        fraction of more than 4000 bits.

    Notes
    -----
    A level of 1e-12 already asks for 10**12 rows of a class.

    Examples
    --------
    >>> as_level(1 - 0.9), as_level(1 / 3)
    (Fraction(1, 10), Fraction(1, 3))
    """
    level = _fraction(name, alpha)
    if not 0 < level < 1:
        raise ValueError(f"`{name}` must be strictly between 0 and 1; got {_shown(alpha)}. {_CURE}")
    if not least <= level <= 1 - LEAST_LEVEL:
        raise ValueError(
            f"`{name}` must be between {float(least):g} and 1 - 1e-12; got {_shown(alpha)}. "
            "A level beyond asks for more rows than anyone has, or for none."
        )
    if level.denominator.bit_length() > _MOST_BITS:
        raise ValueError(
            f"`{name}` must be a fraction of at most {_MOST_BITS} bits; got {_shown(alpha)}. Round it."
        )
    return level


def check_count(name: str, value: Any, least: int) -> int:
    """`value` as an int from `least` to 10**15."""
    number = check_integer(name, value, least)
    if number > _MOST_COUNTED:
        raise ValueError(
            f"`{name}` must be an integer of at most 10**15; got {_shown(number)}. Pass a smaller one."
        )
    return number


def _shown(value: Any) -> str:
    try:
        text = str(value) if isinstance(value, (Fraction, Decimal)) else repr(value)
    except ValueError:
        # Python writes out no integer of more than some 4300 digits.
        return f"a number of thousands of digits ({type(value).__name__})"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def _fraction(name: str, value: Any) -> Fraction:
    try:
        if isinstance(value, (float, np.floating)):
            return _of_float(value)
        if isinstance(value, (str, Fraction, Decimal)):
            return Fraction(_of_bounded_size(value))
        if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
            return Fraction(int(value))
    except (ValueError, OverflowError, ZeroDivisionError):
        raise ValueError(f"`{name}` must be strictly between 0 and 1; got {_shown(value)}. {_CURE}") from None
    raise TypeError(
        f"`{name}` must be a float, str, Fraction or Decimal; got {type(value).__name__}. {_CURE}"
    )


def _of_bounded_size(value: str | Fraction | Decimal) -> str | Fraction | Decimal:
    """An exponent of a billion would be written out in as many digits."""
    if isinstance(value, str) and len(value) > _LONGEST_TEXT:
        raise ValueError
    if isinstance(value, Decimal) or (isinstance(value, str) and "/" not in value):
        try:
            far = abs(Decimal(value).adjusted()) > _LONGEST_TEXT
        except InvalidOperation:
            raise ValueError from None
        if far:
            raise ValueError
    return value


def _of_float(value: float | np.floating[Any]) -> Fraction:
    written = Fraction(str(value))
    # Fractions of denominators up to 10**6 lie 1e-12 apart: a double that is written as one means no other.
    if isinstance(value, float) and written.denominator <= _MOST_PARTS:
        return written
    exact = Fraction(float(value))
    simple = exact.limit_denominator(_MOST_PARTS)
    # A narrower float is meant as it is written: numpy.float32(0.1) is one tenth.
    meant = abs(simple - exact) <= _ROUNDING and 0 < simple < 1
    return simple if meant else written


def conformal_rank(n: int, alpha: Level) -> int | float:
    """Rank of the order statistic that covers a new exchangeable score with probability 1 - alpha.

    Parameters
    ----------
    n : int
        Calibration scores, 0 to 10**15.
    alpha : float, str, Fraction or Decimal
        Miscoverage level in (0, 1).

    Returns
    -------
    int or float
        k = ceil((n + 1)(1 - alpha)), counted from 1; ``inf`` where k > n, because no calibration score
        is then large enough.

    Raises
    ------
    TypeError, ValueError
        For a level outside (0, 1), and for an `n` that is no count.

    Notes
    -----
    Integer arithmetic: no cell is off by the rounding of a product. The smallest n with a finite rank
    is ceil(1 / alpha) - 1.

    References
    ----------
    Vovk, Gammerman and Shafer (2005), Algorithmic Learning in a Random World, section 2.2; Lei, G'Sell,
    Rinaldo, Tibshirani and Wasserman (2018), Theorem 2.2.

    Examples
    --------
    >>> conformal_rank(9, 0.1), conformal_rank(8, 0.1)
    (9, inf)
    """
    count = check_count("n", n, 0)
    rank = least_rank(count, as_level(alpha))
    return rank if rank <= count else math.inf


def least_rank(n: int, level: Fraction) -> int:
    """`conformal_rank` before it is compared with n, for an exact level."""
    return n + 1 - (n + 1) * level.numerator // level.denominator


def conformal_quantile(scores: ArrayLike, alpha: Level) -> float:
    """The calibration score at the conformal rank.

    Parameters
    ----------
    scores : array_like, shape (n,)
        Nonconformity of calibration rows, higher is stranger; n >= 1.
    alpha : float, str, Fraction or Decimal
        Miscoverage level in (0, 1).

    Returns
    -------
    float
        The k-th smallest score; ``inf`` where n is too small for the level. A new exchangeable score is
        at most this with probability 1 - alpha or more, on average over calibration sets.

    Raises
    ------
    TypeError, ValueError
        For no scores, nan, infinities and what is not a number, and for a level outside (0, 1).

    Notes
    -----
    An order statistic, never an interpolated quantile. Cost O(n).

    Examples
    --------
    >>> conformal_quantile([0.3, 0.1, 0.2], 0.5), conformal_quantile([0.3, 0.1, 0.2], 0.1)
    (0.2, inf)
    """
    checked = check_scores("scores", scores)
    return kth_smallest(checked, conformal_rank(len(checked), alpha))


def kth_smallest(scores: FloatArray, rank: int | float) -> float:
    """The score of a rank counted from 1; ``inf`` for the rank ``inf``."""
    if math.isinf(rank):
        return math.inf
    place = int(rank) - 1
    return float(np.partition(scores, place)[place])


def pac_rank(n: int, alpha: Level, delta: Level) -> int | float:
    """Rank whose order statistic keeps the error below alpha for all but a share delta of calibration sets.

    Parameters
    ----------
    n : int
        Calibration scores, 0 to 10**15.
    alpha : float, str, Fraction or Decimal
        Miscoverage level in (0, 1).
    delta : float, str, Fraction or Decimal
        Probability in (0, 1) with which the calibration set may turn out unlucky.

    Returns
    -------
    int or float
        The smallest k with P(Binomial(n, 1 - alpha) >= k) <= delta; ``inf`` where no k <= n has it.

    Raises
    ------
    TypeError, ValueError
        For levels outside (0, 1), and for an `n` that is no count.

    Notes
    -----
    The coverage of the k-th smallest of n independent scores is stochastically at least
    Beta(k, n - k + 1), and P(Beta(k, n - k + 1) < 1 - alpha) = P(Binomial(n, 1 - alpha) >= k). Where
    rounding could decide, integers do for n <= 4000; for more scores a tail that agrees with delta to nine
    digits counts as above it, so that the rank may be one higher than needed, for 10**15 scores a few. Cost
    O(log n) tails.

    References
    ----------
    Wilks (1941), Determination of sample sizes for setting tolerance limits; Vovk (2012), Conditional
    validity of inductive conformal predictors, section 3.

    Examples
    --------
    >>> pac_rank(100, 0.1, 0.05), pac_rank(28, 0.1, 0.05)
    (96, inf)
    """
    return least_pac_rank(check_count("n", n, 0), as_level(alpha), as_level(delta, "delta"))


def least_pac_rank(n: int, level: Fraction, chance: Fraction) -> int | float:
    """`pac_rank` for exact levels, which may be smaller than those that a user may ask for."""
    # Binomial(n, 1 - alpha) reaches k exactly where its complement, Binomial(n, alpha), stays at n - k.
    if n == 0 or not tail_within(0, n, level, chance):
        return math.inf
    low, high = 0, n
    while high - low > 1:
        middle = (low + high) // 2
        within = tail_within(n - middle, n, level, chance)
        low, high = (low, middle) if within else (middle, high)
    return high
