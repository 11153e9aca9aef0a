"""Bets on sequential ranks: that they will be high, low, extreme or central."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Literal, TypeAlias

Change: TypeAlias = Literal["higher", "lower", "wider", "narrower"]

# Mean and spread that each bet expects of the normal scores of the ranks, and what it stands for.
# Chosen in simulations: the steep bets see large changes within a few scores, the flat ones see small
# changes at all, and bets on the spread see mixtures that leave the middle where it was.
BETS: tuple[tuple[float, float, Change], ...] = (
    (1.0, 1.0, "higher"),
    (0.4, 1.0, "higher"),
    (-1.0, 1.0, "lower"),
    (-0.4, 1.0, "lower"),
    (0.0, 1.6, "wider"),
    (0.0, 1.25, "wider"),
    (0.0, 0.8, "narrower"),
    (0.0, 0.6, "narrower"),
)
_BELOW_ONE = 1.0 - 2.0**-53
_normal_score = NormalDist().inv_cdf


def _exponent(mean: float, spread: float) -> tuple[float, float, float]:
    """Coefficients in z of log N(z; mean, spread^2) / N(z; 0, 1)."""
    precision = spread**-2
    return (1.0 - precision) / 2.0, mean * precision, -(mean**2) * precision / 2.0 - math.log(spread)


_EXPONENTS = [_exponent(mean, spread) for mean, spread, _ in BETS]


def bet_factors(p_value: float) -> list[float]:
    """What each bet pays on a p-value in (0, 1]: densities on [0, 1], so of mean 1 when it is uniform."""
    # Rounding may reach 1, where the normal score is infinite.
    z = -_normal_score(min(p_value, _BELOW_ONE))
    return [math.exp((a * z + b) * z + c) for a, b, c in _EXPONENTS]


def leading_change(stakes: Sequence[float]) -> Change:
    """What the bets that hold the most money are on."""
    gains: dict[Change, float] = {}
    for (_, _, change), stake in zip(BETS, stakes, strict=True):
        gains[change] = gains.get(change, 0.0) + stake
    return max(gains, key=lambda change: gains[change])
