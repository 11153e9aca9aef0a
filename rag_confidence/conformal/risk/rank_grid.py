"""Which ranks a risk gate tries, and at which levels: fixed before any score or label is seen."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal, TypeAlias

from rag_confidence.conformal.binomial import tail_within

RiskMethod: TypeAlias = Literal["sequence", "bonferroni"]

_FINENESS = 50
_DEVIATIONS = 2.0
_SCALE = 10**9


@dataclass(frozen=True)
class RankGrid:
    """Ranks from strict to lenient, each with the level of its test.

    Attributes
    ----------
    ranks : tuple of int
        Ascending. Rank r stands for a threshold that r rows exceed; n accepts everything.
    levels : tuple of Fraction
        What the p-value of each rank is compared with.
    stops : bool
        Whether testing ends at the first failure; otherwise every rank is tested.
    """

    ranks: tuple[int, ...]
    levels: tuple[Fraction, ...]
    stops: bool


# A grid knows nothing of the rows: trials, bootstraps and parts of equal size all share one.
@lru_cache(maxsize=32)
def rank_grid(n: int, target: Fraction, delta: Fraction, method: RiskMethod) -> RankGrid:
    """The ranks that a method tries on n rows.

    Parameters
    ----------
    n : int
        Calibration rows, >= 1.
    target : Fraction
        Selective risk to certify, in (0, 1).
    delta : Fraction
        Probability in (0, 1) of a wrong certificate.
    method : {"sequence", "bonferroni"}
        "sequence" gives every rank the level delta and stops at the first failure; "bonferroni" divides
        delta among the ranks.

    Returns
    -------
    RankGrid
        Without ranks if n rows cannot certify the target even without an error among them.

    Notes
    -----
    The sequence consists of the ranks at which one more error is tolerated, in steps of at least 2 %, from
    rank 2 sqrt(n) on: the very first rows say little, and one bad row there would end it. The ranks of
    "bonferroni" lie two standard deviations of an observed risk apart, at least 2 %, down from n as far as
    they can be certified; levels are proportional to 1/sqrt(rank), because more rows need less leniency.
    Both were chosen for the acceptance they buy on synthetic scores; every fixed choice is valid. Cost
    O(log^2 n) binomial tails.
    """
    if not tail_within(0, n, target, delta):
        return RankGrid((), (), method == "sequence")
    if method == "sequence":
        ranks = _sequence(n, target, delta)
        return RankGrid(ranks, (delta,) * len(ranks), True)
    ranks, levels = _shared(n, target, delta)
    return RankGrid(ranks, levels, False)


def least_rank(errors: int, target: Fraction, level: Fraction) -> int:
    """Fewest rows that certify `target` at `level` with that many errors among them."""
    from scipy.special import bdtrin

    guess = float(bdtrin(errors, float(level), float(target)))
    return _first(lambda rank: tail_within(errors, rank, target, level), errors + 1, guess)


def tolerated(rank: int, target: Fraction, level: Fraction) -> int:
    """Most errors among `rank` rows that certify `target` at `level`; -1 where none certifies it."""
    from scipy.special import bdtrik

    guess = float(bdtrik(float(level), rank, float(target)))
    return _first(lambda errors: not tail_within(errors, rank, target, level), 0, guess) - 1


def _first(holds: Callable[[int], bool], least: int, guess: float) -> int:
    """Smallest number from `least` on from which on `holds`, searched in growing steps around a guess."""
    low = high = max(least, math.ceil(guess)) if math.isfinite(guess) else least
    step = 1
    while not holds(high):
        low, high, step = high + 1, high + step, 2 * step
    while low > least and holds(low - 1):
        low, high, step = max(least, low - step), low - 1, 2 * step
    return bisect_left(range(low, high), True, key=holds) + low


def _sequence(n: int, target: Fraction, delta: Fraction) -> tuple[int, ...]:
    errors = 1 + tolerated(max(1, math.isqrt(4 * n) - 1), target, delta)
    rank = least_rank(errors, target, delta)
    if rank > n:
        rank = least_rank(tolerated(n, target, delta), target, delta)
    ranks = []
    while rank < n:
        ranks.append(rank)
        errors = max(errors + 1, tolerated(rank + rank // _FINENESS, target, delta))
        rank = least_rank(errors, target, delta)
    return (*ranks, n)


def _shared(n: int, target: Fraction, delta: Fraction) -> tuple[tuple[int, ...], tuple[Fraction, ...]]:
    """Ranks down from n, as many as can still be certified at their own shares of delta."""
    ranks, total = [n], _weight(n)
    while ranks[-1] > 1:
        rank = _stricter(ranks[-1], float(target))
        share = Fraction(_weight(rank), total + _weight(rank))
        if not tail_within(0, rank, target, delta * share):
            break
        ranks.append(rank)
        total += _weight(rank)
    ascending = tuple(reversed(ranks))
    return ascending, tuple(delta * Fraction(_weight(rank), total) for rank in ascending)


def _stricter(rank: int, target: float) -> int:
    """The next rank of "bonferroni" below `rank` >= 2."""
    deviation = math.sqrt((1.0 - target) / (target * rank))
    step = max(1.0 / _FINENESS, _DEVIATIONS * deviation)
    return min(rank - 1, max(1, math.floor(rank / (1.0 + step))))


def _weight(rank: int) -> int:
    """What the level of a rank is proportional to: 1/sqrt(rank), as an integer."""
    return math.isqrt(_SCALE**2 // rank)
