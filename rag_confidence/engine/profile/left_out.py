"""Which sampled vectors were retrieved for a query and so are no background of it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from rag_confidence._types import FloatArray, IntArray, Mask
from rag_confidence.engine.profile.sample import SCREEN, Sample

Pairs: TypeAlias = tuple[IntArray, IntArray]
"""Rows of queries, and the rows of the sample that go with them."""

LeftOut: TypeAlias = Sequence[Sequence[Hashable] | None]

SAME_COSINE = 1e-6
"""Cosines without vectors that are this close belong to the same passage."""

# Below this many products the whole vectors are multiplied at once; above it they are screened first.
_FEW = 2**12


@dataclass(frozen=True, eq=False)
class Retrieved:
    """Queries (Q, d), their passages (Q, k, d), cosines (Q, k) and deeper cosines (Q, D) or None."""

    queries: FloatArray
    passages: FloatArray
    cosines: FloatArray
    deeper: FloatArray | None

    def part(self, start: int, stop: int) -> Retrieved:
        """The retrievals from `start` to before `stop`."""
        deeper = None if self.deeper is None else self.deeper[start:stop]
        cut = slice(start, stop)
        return Retrieved(self.queries[cut], self.passages[cut], self.cosines[cut], deeper)


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
    rows, columns = np.nonzero(background >= _lowest(sample, retrieved)[:, None])
    values = background[rows, columns]
    gone = _copies(sample, rows, columns, values, retrieved)
    if retrieved.deeper is not None:
        gone |= (np.abs(retrieved.deeper[rows] - values[:, None]) <= SAME_COSINE).any(axis=1)
    return rows[gone], columns[gone]


def _lowest(sample: Sample, retrieved: Retrieved) -> FloatArray:
    """The cosine below which no sampled vector can have been retrieved; infinite if nothing was."""
    low: FloatArray = np.fmin.reduce(retrieved.cosines, axis=1, initial=np.inf) - sample.reach
    if retrieved.deeper is None:
        return low
    deep: FloatArray = np.fmin.reduce(retrieved.deeper, axis=1, initial=np.inf) - SAME_COSINE
    return np.minimum(low, deep)


def _copies(
    sample: Sample, rows: IntArray, columns: IntArray, values: FloatArray, retrieved: Retrieved
) -> Mask:
    """Which of the pairs (rows, columns) hold a copy of any served passage."""
    gone = np.zeros(len(rows), dtype=bool)
    pair, place = np.nonzero(np.abs(retrieved.cosines[rows] - values[:, None]) <= sample.reach)
    if len(pair) == 0:
        return gone
    if len(pair) * sample.vectors.shape[1] > _FEW * SCREEN:
        near = _screened(sample, rows[pair], columns[pair], place, retrieved.passages)
        pair, place = pair[near], place[near]
    served = retrieved.passages[rows[pair], place].astype(np.float64)
    products = np.einsum("nd,nd->n", served, sample.vectors[columns[pair]])
    lengths = np.sqrt(np.einsum("nd,nd->n", served, served))
    gone[pair[products >= sample.limit * lengths]] = True
    return gone


def _screened(
    sample: Sample, rows: IntArray, columns: IntArray, places: IntArray, passages: FloatArray
) -> Mask:
    """Which of the triples are close enough on the first few axes to be copies."""
    lengths = np.sqrt(np.einsum("qkd,qkd->qk", passages, passages))
    axes = sample.axes[:SCREEN].T.astype(passages.dtype)
    seen = (passages @ axes / lengths[:, :, None]).astype(np.float32)
    apart = seen[rows, places]
    apart -= sample.screen[columns]
    return np.asarray(np.einsum("ns,ns->n", apart, apart) <= sample.reach**2)
