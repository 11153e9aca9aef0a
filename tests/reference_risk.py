"""The slow risk gate: fractions, sorted lists and loops; imports nothing from the package."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import comb, inf


def tail(k: int, n: int, p: Fraction) -> Fraction:
    """P(Binomial(n, p) <= k), term by term."""
    return sum((comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(min(k, n) + 1)), Fraction(0))


def most_errors(rank: int, target: Fraction, level: Fraction) -> int:
    """Largest number of errors with a tail of at most `level`; -1 for none."""
    errors = -1
    while errors + 1 <= rank and tail(errors + 1, rank, target) <= level:
        errors += 1
    return errors


def above(scores: Sequence[float], labels: Sequence[int], rank: int) -> tuple[float, int, int]:
    """Threshold of a rank, rows strictly above it, and insufficient ones among them."""
    ordered = sorted(scores, reverse=True)
    threshold = ordered[rank] if rank < len(ordered) else -inf
    kept = [label for score, label in zip(scores, labels, strict=True) if score > threshold]
    return threshold, len(kept), kept.count(0)


def certified(
    scores: Sequence[float],
    labels: Sequence[int],
    grid: Sequence[tuple[int, Fraction]],
    target: Fraction,
    *,
    stops: bool,
) -> tuple[float, int, int] | None:
    """Threshold, accepted and errors of the most lenient certified rank of a grid of (rank, level)."""
    best = None
    for rank, level in grid:
        threshold, accepted, errors = above(scores, labels, rank)
        if tail(0, accepted, target) > level:
            continue
        if tail(errors, accepted, target) <= level:
            best = (threshold, accepted, errors)
        elif stops:
            break
    return best
