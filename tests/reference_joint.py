"""Gates over several checks by loops over fractions. Imports nothing from the package."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypeAlias

INF = math.inf
Rows: TypeAlias = Sequence[Sequence[float]]


def doublings(distance: Fraction, span: Fraction) -> Fraction:
    """How often one span must double to hold distance and span, by repeated halving."""
    if span == 0:
        return Fraction(int(distance > 0))
    whole, count = 1 + distance / span, 0
    while whole >= 2:
        whole, count = whole / 2, count + 1
    return count + whole - 1


def rank(score: float, column: Sequence[float]) -> Fraction | float:
    """Rank of one score among one column of traffic, in fractions."""
    if score == INF:
        return INF
    s, finite = Fraction(score), sorted(Fraction(v) for v in column if v != INF)
    low, high = finite[0], finite[-1]
    below = [v for v in finite if v < s]
    if not below:
        return -doublings(low - s, high - low) / len(column)
    above = [v for v in finite if v >= s]
    part = (s - below[-1]) / (above[0] - below[-1]) if above else doublings(s - high, high - low)
    return (len(below) - 1 + part) / len(column)


def joint_decisions(scores: Rows, alpha: str, rows: Rows, reference: Rows | None) -> list[tuple[str, ...]]:
    """Per row: ("accept",), or "abstain" and the columns above the threshold, by loops over fractions."""
    columns = None if reference is None else [list(column) for column in zip(*reference, strict=True)]

    def ranks(row: Sequence[float]) -> list[Any]:
        return [s if columns is None else rank(s, columns[j]) for j, s in enumerate(row)]

    k = math.ceil((len(scores) + 1) * (1 - Fraction(alpha)))
    ordered = sorted(max(ranks(row)) for row in scores)
    threshold = ordered[k - 1] if k <= len(scores) else INF
    found = []
    for row in rows:
        strange = [f"check_{j}" for j, r in enumerate(ranks(row)) if r > threshold]
        accepted = threshold != INF and not strange
        found.append(("accept",) if accepted else ("abstain", *strange))
    return found


def per_check_decisions(scores: Rows, alphas: Sequence[Fraction], rows: Rows) -> list[tuple[str, ...]]:
    """The same with a threshold of its own, at a level of its own, for each check."""
    n, thresholds = len(scores), []
    for column, alpha in zip(zip(*scores, strict=True), alphas, strict=True):
        k = math.ceil((n + 1) * (1 - alpha))
        thresholds.append(sorted(column)[k - 1] if k <= n else INF)
    if INF in thresholds:
        return [("abstain",) for _ in rows]
    found = []
    for row in rows:
        strange = [f"check_{j}" for j, s in enumerate(row) if s > thresholds[j]]
        found.append(("abstain", *strange) if strange else ("accept",))
    return found
