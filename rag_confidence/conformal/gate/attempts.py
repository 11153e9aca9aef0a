"""Levels for several tries at one question."""

from __future__ import annotations

from fractions import Fraction

from rag_confidence.conformal.quantile import LEAST_SHARE, Level, as_level, check_count


def alpha_for_attempt(alpha: Level, attempt: int, attempts: int | None = None) -> Fraction:
    """The level of one try, so that all tries at a question together stay within alpha.

    Parameters
    ----------
    alpha : float, str, Fraction or Decimal
        Level of the whole session, in (0, 1).
    attempt : int
        Which try it is, counted from 1, at most 10**15.
    attempts : int, optional
        How many tries there may be at most, if that is fixed in advance.

    Returns
    -------
    Fraction
        alpha / attempts, or alpha / (attempt (attempt + 1)) where the number of tries is open.

    Raises
    ------
    TypeError, ValueError
        For a try that is not among those planned.

    Notes
    -----
    The union bound: the levels of all tries sum to alpha (the open ones telescope), and no independence
    is assumed. The error bounded is that any try accepts insufficient evidence. The tries share one
    calibration set; each needs enough rows for its own level.

    Examples
    --------
    >>> alpha_for_attempt(0.1, 1), alpha_for_attempt(0.1, 2), alpha_for_attempt(0.1, 2, attempts=2)
    (Fraction(1, 20), Fraction(1, 60), Fraction(1, 20))
    """
    # A level that was divided before may be divided again.
    level = as_level(alpha, least=LEAST_SHARE)
    place = check_count("attempt", attempt, 1)
    if attempts is None:
        return level / (place * (place + 1))
    count = check_count("attempts", attempts, 1)
    if place > count:
        raise ValueError(f"`attempt` must be at most {count}; got {place}. Plan for more attempts.")
    return level / count
