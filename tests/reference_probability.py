"""Slow, independent references for the probability maps, written from the definitions in Fractions.

Nothing here imports the package, and no regression is computed by pooling neighbours: isotonic regression is
its max-min formula over all blocks (Robertson, Wright and Dykstra 1988, Theorem 1.4.4), a Venn-Abers interval
is two such regressions with the new row among the others (Vovk and Petej 2014).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


def isotonic(scores: Sequence[float], labels: Sequence[int]) -> dict[Fraction, Fraction]:
    """Fitted value at each distinct score: the largest over starts of the least over ends of block means."""
    x = [Fraction(float(score)) for score in scores]
    distinct = sorted(set(x))
    rows = [sum(1 for value in x if value == d) for d in distinct]
    ones = [sum(y for value, y in zip(x, labels, strict=True) if value == d) for d in distinct]
    ends = range(len(distinct))

    def mean(a: int, b: int) -> Fraction:
        return Fraction(sum(ones[a : b + 1]), sum(rows[a : b + 1]))

    return {distinct[i]: max(min(mean(a, b) for b in ends if b >= i) for a in ends if a <= i) for i in ends}


def between(fitted: dict[Fraction, Fraction], score: float) -> Fraction:
    """The fit at any score: straight between neighbours, constant outside."""
    at, knots = Fraction(float(score)), sorted(fitted)
    below = [k for k in knots if k <= at]
    above = [k for k in knots if k >= at]
    if not below or not above or below[-1] == above[0]:
        return fitted[(below or above)[-1 if below else 0]]
    left, right = below[-1], above[0]
    return fitted[left] + (fitted[right] - fitted[left]) * (at - left) / (right - left)


def venn_abers(scores: Sequence[float], labels: Sequence[int], score: float) -> tuple[Fraction, Fraction]:
    """(p0, p1) at a new score: fit with it added as a 0, then as a 1, and read both fits there."""
    fits = [isotonic([*scores, score], [*labels, label]) for label in (0, 1)]
    at = Fraction(float(score))
    return fits[0][at], fits[1][at]


def targets(labels: Sequence[int]) -> list[Fraction]:
    """What Platt's curve is fitted to: (n1 + 1)/(n1 + 2) for a 1, 1/(n0 + 2) for a 0."""
    n1 = sum(labels)
    n0 = len(labels) - n1
    return [Fraction(n1 + 1, n1 + 2) if y else Fraction(1, n0 + 2) for y in labels]
