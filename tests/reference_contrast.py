"""Resemblance, contrast and the KPI with a profile in plain Python, one list at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import reference as ref
import reference_profile as background
from numpy.typing import NDArray

Array = NDArray[np.floating]
Numbers = dict[str, float]


def residual(vector: Sequence[float], query: Sequence[float]) -> list[float]:
    """What is left of a unit vector without its part along the unit query."""
    along = math.fsum(x * y for x, y in zip(vector, query, strict=True))
    return [x - along * y for x, y in zip(vector, query, strict=True)]


def partial_cosine(a: Sequence[float], b: Sequence[float], query: Sequence[float]) -> float:
    """Cosine of two unit vectors with the unit query projected out; 0 where nothing is left of one."""
    left, right = residual(a, query), residual(b, query)
    lengths = math.sqrt(math.fsum(x * x for x in left) * math.fsum(x * x for x in right))
    return math.fsum(x * y for x, y in zip(left, right, strict=True)) / lengths if lengths > 1e-6 else 0.0


def coherence(query: Array, passages: Array) -> Numbers:
    """Resemblance around the best of distinct passages that are in the order of their cosine."""
    q, rows = ref.unit(query), [ref.unit(row) for row in passages]
    n = len(rows)
    like = {(i, j): background.cosine(rows[i], rows[j]) for i in range(n) for j in range(n) if i != j}
    if n == 1:
        return {}
    head = [like[i, j] for i in range(3) for j in range(i + 1, 3) if j < n]
    listed = range(1, min(n, 10))
    found = {
        "head_coherence": sum(head) / len(head),
        "best_pair": like[0, 1],
        "best_nearest": max(like[0, j] for j in listed),
        "best_partial": sum(partial_cosine(rows[0], rows[j], q) for j in listed) / len(listed),
    }
    if n < 6:
        return found
    far = [like[i, j] for i in range(3) for j in range(5, min(n, 10))]
    tail = sum(far) / len(far)
    above = [min(max((like[0, j] - tail) / (1.0 - tail), 0.0), 1.0) for j in (1, 2)]
    return found | {"tail_coherence": tail, "companionship": sum(above) / 2}


def contrast(best: float, reference: float) -> float:
    """How many times farther in squared distance the reference is than the best, as a logarithm."""
    ratio = (2.0 - 2.0 * reference) / max(2.0 - 2.0 * best, 0.01)
    return math.log(ratio) if ratio > 1.0 else 0.0


def reference(tail: float, cosines: Sequence[float]) -> float:
    """What the best is held against, from the background tail and all cosines that are known."""
    ranked: list[float] = []
    last = 2.0
    for c in sorted((c for c in cosines if not math.isnan(c)), reverse=True):
        # Equal cosines are those of copies.
        if last - c > 1e-12:
            ranked.append(c)
        last = c
    if len(ranked) >= 20:
        return max((tail + sum(ranked[10:20]) / 10) / 2, tail)
    if len(ranked) >= 6:
        near = ranked[5:10]
        return max(0.75 * tail + 0.25 * sum(near) / len(near), tail)
    return tail


def saturated(value: float, cap: float) -> float:
    """-s log(exp(-value/s) + exp(-cap/s)) with s = .05, at least 0."""
    low = min(value, cap)
    total = math.exp(-(value - low) / 0.05) + math.exp(-(cap - low) / 0.05)
    return max(low - 0.05 * math.log(total), 0.0)


def cap(typical: float | None) -> float:
    """Where the contrast levels off."""
    return 0.8 if typical is None else min(max(0.175 / max(typical, 1e-6), 0.4), 2.0)


def logistic(x: float) -> float:
    """The logistic function, without overflow."""
    return (
        1.0 / (1.0 + math.exp(-x)) if x > 0 else math.exp(max(x, -700.0)) / (1.0 + math.exp(max(x, -700.0)))
    )


def against(
    sample: Array,
    query: Array,
    passages: Array,
    *,
    level: float,
    scale: float,
    typical: float | None,
    deeper: Sequence[float] = (),
    limit: float = 0.995,
) -> Numbers:
    """Signals of one list against the background of a corpus sample."""
    cosines = [background.cosine(query.tolist(), row) for row in passages.tolist()]
    kept = background.remaining(sample, query, passages, limit=limit, deeper=deeper)
    seen = background.background(kept)
    best, head = max(cosines), sorted(cosines)[-3:]
    value = contrast(best, reference(seen["tail"], [*cosines, *deeper]))
    return {
        "contrast": value,
        "saturated_contrast": saturated(value, cap(typical)),
        "best_excess": best - seen["tail"],
        "head_excess": sum(head) / len(head) - seen["tail"],
        "level_excess": (best - level) / scale,
        "background_mean": seen["mean"],
        "background_std": seen["std"],
        "background_tail": seen["tail"],
    }


def kpi(signals: Numbers, units: tuple[float, float]) -> float:
    """The KPI with a profile under the default policy."""
    gate = logistic((signals["level_excess"] + 0.25) / 0.15)
    shape = logistic((signals["saturated_contrast"] - units[0]) / units[1])
    if "companionship" in signals:
        together = signals["companionship"]
        shape = 0.96 * shape + 0.04 * together / (together + 0.25)
    return gate * shape
