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


def rows_above(scores: Sequence[float], labels: Sequence[int], threshold: float) -> tuple[float, int, int]:
    """A threshold, rows strictly above it, and insufficient ones among them."""
    kept = [label for score, label in zip(scores, labels, strict=True) if score > threshold]
    return threshold, len(kept), kept.count(0)


def by_rank(scores: Sequence[float], labels: Sequence[int], rank: int) -> tuple[float, int, int]:
    """The threshold at the score of rank + 1 from the highest."""
    ordered = sorted(scores, reverse=True)
    return rows_above(scores, labels, ordered[rank] if rank < len(ordered) else -inf)


def in_sequence(
    scores: Sequence[float], labels: Sequence[int], ranks: Sequence[int]
) -> list[tuple[float, int, int]]:
    """Distinct thresholds, strict to lenient, without those that the next rank is reached more closely by."""
    cuts = [rows_above(scores, labels, t) for t in sorted({*scores, -inf}, reverse=True)]
    tried = []
    for cut in cuts:
        reached = [rank for rank in ranks if rank <= cut[1]]
        later = [rank for rank in ranks if rank > cut[1]]
        if not reached:
            continue
        if later:
            first = min(other[1] for other in cuts if other[1] >= later[0])
            if first - later[0] < cut[1] - reached[-1]:
                continue
        tried.append(cut)
    return tried


def certified(
    trials: Sequence[tuple[float, int, int]],
    levels: Sequence[Fraction],
    target: Fraction,
    *,
    stops: bool,
) -> tuple[float, int, int] | None:
    """The most lenient trial (threshold, accepted, errors) that passes, with all before it in a sequence."""
    best = None
    for trial, level in zip(trials, levels, strict=True):
        if tail(trial[2], trial[1], target) <= level:
            best = trial
        elif stops:
            break
    return best
