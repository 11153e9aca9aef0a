"""Paired bootstrap over queries: the same draws for every score, so that differences compare like with like.

A draw is a column of weights: how often each query was drawn. Metrics are computed on weighted rows for all
draws at once, which is the metric of the rows repeated that often.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from _data import FloatArray, IntArray, Mask

from evaluation.metrics import FSR
from rag_confidence.learning import ranks

_SALT = 0xB007
_AT_ONCE = 100


@dataclass(frozen=True)
class Interval:
    """A difference with its 95 % percentile interval and the two-sided bootstrap p-value."""

    difference: float
    low: float
    high: float
    p: float


def draws(name: str, n_units: int, *, rounds: int, seed: int) -> FloatArray:
    """How often each of `n_units` queries of a set is drawn in each round, shape (n_units, rounds).

    The draws depend on the name of the set and not on the embedder: averages over embedders stay paired.
    """
    rng = np.random.default_rng([_SALT, zlib.crc32(name.encode()), seed])
    drawn = rng.multinomial(n_units, np.full(n_units, 1.0 / n_units), size=rounds)
    return np.ascontiguousarray(drawn.T, dtype=np.float32)


def replicates(scores: FloatArray, sufficient: Mask, weights: FloatArray) -> dict[str, FloatArray]:
    """AUROC, AURC and acceptance of the weighted rows in every round, shape (rounds,) each.

    `scores` and `sufficient` have shape (n,), `weights` (n, rounds). nan where a round drew one class only.
    """
    order = np.argsort(-scores, kind="stable")
    ordered = scores[order]
    ends = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True))
    good = sufficient[order, None].astype(np.float32)
    parts = [
        _of_block(weights[order, at : at + _AT_ONCE], good, ends)
        for at in range(0, weights.shape[1], _AT_ONCE)
    ]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def compared(point: float, ours: FloatArray, theirs: FloatArray) -> Interval:
    """The difference `point` with what the rounds of both scores say of it; rounds with nan are left out."""
    apart = (ours - theirs)[np.isfinite(ours) & np.isfinite(theirs)]
    if not apart.size:
        return Interval(point, float("nan"), float("nan"), float("nan"))
    low, high = np.quantile(apart, [0.025, 0.975])
    below, above = np.count_nonzero(apart <= 0.0), np.count_nonzero(apart >= 0.0)
    p = min(1.0, 2.0 * (min(below, above) + 1) / (len(apart) + 1))
    return Interval(point, float(low), float(high), p)


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Holm's adjusted p-values: each may be compared with the level of the whole family; nan stays nan."""
    known = {name: p for name, p in p_values.items() if p == p}
    return dict.fromkeys(p_values, float("nan")) | dict(
        zip(known, ranks.holm([*known.values()]), strict=True)
    )


def _of_block(weights: FloatArray, good: FloatArray, ends: IntArray) -> dict[str, FloatArray]:
    """Metrics of some rounds: weights (n, B) in descending order of score; runs of tied rows end at `ends`.

    Counts stay below 2**24, so that single precision holds them exactly; it halves the memory to pass over.
    """
    accepted, wrong_so_far = np.cumsum(weights, axis=0), np.cumsum(weights - weights * good, axis=0)
    if len(ends) < len(weights):
        accepted, wrong_so_far = accepted[ends], wrong_so_far[ends]
    n, n0 = accepted[-1], wrong_so_far[-1]
    n1 = n - n0
    total, wrong = (np.diff(one, axis=0, prepend=np.float32(0.0)) for one in (accepted, wrong_so_far))
    right = total - wrong
    undefined = (n0 == 0) | (n1 == 0)
    above = np.einsum("nb,nb->b", right, wrong_so_far) - 0.5 * np.einsum("nb,nb->b", right, wrong)
    risk = wrong_so_far / np.maximum(accepted, 1.0)
    allowed = (wrong_so_far <= FSR * n0 + 1e-3).sum(axis=0)
    taken = np.take_along_axis(accepted, np.maximum(allowed - 1, 0)[None], axis=0)[0] * (allowed > 0)
    return {
        "auroc": np.where(undefined, np.nan, 1.0 - above / np.maximum(n0 * n1, 1.0)),
        "aurc": np.where(n == 0, np.nan, np.einsum("nb,nb->b", total, risk) / np.maximum(n, 1.0)),
        "acceptance": np.where(undefined, np.nan, taken / np.maximum(n, 1.0)),
    }
