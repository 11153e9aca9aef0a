"""Backgrounds and word shares in plain Python, one query and one pair at a time; nothing from the package."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def unit(vector: Sequence[float]) -> list[float]:
    """A vector of length one, by an exact sum."""
    peak = max(abs(x) for x in vector)
    scaled = [x / peak for x in vector]
    length = math.sqrt(math.fsum(x * x for x in scaled))
    return [x / length for x in scaled]


def cosine(a: Sequence[float], b: Sequence[float]) -> float:
    """Cosine of two vectors, by exact sums."""
    return math.fsum(x * y for x, y in zip(unit(a), unit(b), strict=True))


def remaining(
    sample: Array, query: Array, passages: Array, *, limit: float, deeper: Sequence[float] = ()
) -> list[float]:
    """Cosines of the query to the sampled vectors that neither copy a passage nor match a deeper cosine."""
    kept = []
    for row in sample.tolist():
        value = cosine(query.tolist(), row)
        copies = any(cosine(passage, row) >= limit for passage in passages.tolist())
        if not copies and not any(abs(value - other) <= 1e-6 for other in deeper):
            kept.append(value)
    return kept


def background(kept: Sequence[float], least: int = 20) -> dict[str, float]:
    """Mean, deviation, quantiles, maximum, mean of the largest 5 %; nan for fewer than `least` values."""
    names = ("mean", "std", "q50", "q90", "q95", "q98", "highest", "tail")
    if len(kept) < least:
        return dict.fromkeys(names, math.nan)
    mean = math.fsum(kept) / len(kept)
    spread = math.sqrt(math.fsum((x - mean) ** 2 for x in kept) / len(kept))
    quantiles = [float(np.quantile(kept, level)) for level in (0.5, 0.9, 0.95, 0.98)]
    top = sorted(kept)[-max(1, round(0.05 * len(kept))) :]
    tail = math.fsum(top) / len(top)
    return dict(zip(names, (mean, spread, *quantiles, max(kept), tail), strict=True))


def participation_ratio(rows: Array) -> float:
    """(sum of eigenvalues)^2 / sum of squares of the covariance of unit rows."""
    apart = np.array([unit(row) for row in rows.tolist()])
    values = np.linalg.eigvalsh(np.cov(apart, rowvar=False))
    return float(values.sum() ** 2 / (values**2).sum())


def words(text: str) -> set[str]:
    """Maximal runs of letters and digits in lower case, read letter by letter."""
    spaced = "".join(letter if letter.isalnum() else " " for letter in text.lower())
    return set(spaced.split())


def idf_share(corpus: Sequence[str], query: str, texts: Sequence[str]) -> float | None:
    """Largest share of the query's IDF mass in one text; None where the mass is zero."""
    known = [words(text) for text in corpus]
    weight = {
        word: math.log((len(corpus) + 1) / (sum(word in text for text in known) + 1)) for word in words(query)
    }
    total = sum(weight.values())
    if total == 0:
        return None
    return max((sum(w for x, w in weight.items() if x in words(t)) / total for t in texts), default=0.0)
