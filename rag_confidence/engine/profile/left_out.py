"""Which sampled vectors were retrieved for a query and so are no background of it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from rag_confidence._types import FloatArray, IntArray, Mask
from rag_confidence.engine.profile.sample import Sample, with_lengths

Pairs: TypeAlias = tuple[IntArray, IntArray]
"""Rows of queries, and the rows of the sample that go with them."""

LeftOut: TypeAlias = Sequence[Sequence[Hashable] | None]

SAME_COSINE = 1e-6
"""Cosines without vectors that are this close belong to the same passage."""

# Cosines in float32 that are this close to the limit are taken again in float64.
_ROUNDING = 1e-5


@dataclass(frozen=True, eq=False)
class Retrieved:
    """Queries (Q, d), their passages (Q, k, d), cosines (Q, k) and deeper cosines (Q, D) or None.

    `same` (Q,) is how exact the deeper cosines are, where less than `SAME_COSINE`.
    """

    queries: FloatArray
    passages: FloatArray
    cosines: FloatArray
    deeper: FloatArray | None
    same: FloatArray | None = None

    @property
    def tolerance(self) -> FloatArray:
        """How close (Q,) a deeper cosine must be to that of a sampled vector to be the same passage's."""
        return np.full(len(self.queries), SAME_COSINE) if self.same is None else self.same

    def part(self, start: int, stop: int) -> Retrieved:
        """The retrievals from `start` to before `stop`."""
        deeper = None if self.deeper is None else self.deeper[start:stop]
        cut = slice(start, stop)
        same = None if self.same is None else self.same[cut]
        return Retrieved(self.queries[cut], self.passages[cut], self.cosines[cut], deeper, same)


def named_pairs(rows: Mapping[Hashable, int], left_out: LeftOut | None) -> Pairs:
    """The sampled vectors that `left_out` names, query by query."""
    if left_out is None or not rows:
        return np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp)
    found = [
        (query, rows[name]) for query, names in enumerate(left_out) for name in names or () if name in rows
    ]
    pairs = np.array(found, dtype=np.intp).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def retrieved_pairs(sample: Sample, background: FloatArray, retrieved: Retrieved) -> Pairs:
    """Sampled vectors that copy a served passage, or whose cosine is that of a deeper one.

    `background` (Q, m) holds the cosine of each query to each sampled vector.
    """
    found = np.flatnonzero(background >= _lowest(sample, retrieved)[:, None])
    rows, columns = np.divmod(found, len(sample.vectors))
    if len(rows) == 0:
        return rows, columns
    gone = _excess(sample, (rows, columns), retrieved) >= 0.0
    if retrieved.deeper is not None:
        apart = retrieved.deeper[rows] - background[rows, columns][:, None]
        gone |= (np.abs(apart) <= retrieved.tolerance[rows][:, None]).any(axis=1)
    return rows[gone], columns[gone]


def _lowest(sample: Sample, retrieved: Retrieved) -> FloatArray:
    """The cosine below which no sampled vector can have been retrieved; infinite if nothing was."""
    served = np.fmin.reduce(retrieved.cosines, axis=1, initial=2.0)
    low = np.where(served > 1.5, np.inf, sample.lowest_copies(np.minimum(served, 1.0)))
    if retrieved.deeper is None:
        return low
    deep: FloatArray = np.fmin.reduce(retrieved.deeper, axis=1, initial=np.inf) - retrieved.tolerance
    return np.minimum(low, deep)


def is_copy(sample: Sample, near: IntArray, passages: FloatArray) -> Mask:
    """Which of the sampled vectors `near` copy one of the `passages` (k, d) of one query; some of each."""
    passages, lengths = with_lengths(passages)
    products = sample.rows_like(passages).take(near, axis=0) @ passages.T
    excess = np.maximum.reduce(products / lengths, axis=1) - sample.limit
    if excess.max() < -_ROUNDING:
        return np.zeros(len(near), dtype=bool)
    if passages.dtype == np.float32 and (np.abs(excess) <= _ROUNDING).any():
        return is_copy(sample, near, passages.astype(np.float64))
    return np.asarray(excess >= 0.0)


def _excess(sample: Sample, pairs: Pairs, retrieved: Retrieved) -> FloatArray:
    """Largest cosine of the sampled vector of each pair to a served passage, minus the limit of copies."""
    rows, columns = pairs
    cosines = retrieved.cosines
    if cosines.shape[1] == 0:
        return np.full(len(rows), -np.inf)
    passages, lengths = with_lengths(retrieved.passages)
    lengths[np.isnan(cosines)] = np.inf
    products = _products(sample.rows_like(passages), pairs, passages)
    excess = np.maximum.reduce(products / lengths[rows], axis=1) - sample.limit
    close = np.flatnonzero(np.abs(excess) <= _ROUNDING)
    if passages.dtype == np.float32 and len(close):
        at = rows[close]
        wide = Retrieved(retrieved.queries, passages[at].astype(np.float64), cosines[at], None)
        excess[close] = _excess(sample, (np.arange(len(at)), columns[close]), wide)
    return np.asarray(excess)


def _products(vectors: FloatArray, pairs: Pairs, passages: FloatArray) -> FloatArray:
    """Product (n, k) of the sampled vector of each pair with the passages of its query; pairs by query."""
    rows, columns = pairs
    products = np.empty((len(rows), passages.shape[1]), dtype=passages.dtype)
    start = 0
    for end in [*(np.flatnonzero(rows[1:] != rows[:-1]) + 1).tolist(), len(rows)]:
        near = vectors.take(columns[start:end], axis=0)
        np.matmul(near, passages[rows[start]].T, out=products[start:end])
        start = end
    return products
