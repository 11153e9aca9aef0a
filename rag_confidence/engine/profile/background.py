"""What the cosines of a query to the corpus are when nothing is special: one product with the sample."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from rag_confidence._types import FloatArray, IntArray
from rag_confidence.engine.profile.columns import LEAST_BACKGROUND, LEVELS, Background, joined, tail_size
from rag_confidence.engine.profile.left_out import LeftOut, Pairs, Retrieved, named_pairs, retrieved_pairs
from rag_confidence.engine.profile.one_query import summary_of_one
from rag_confidence.engine.profile.sample import Sample

_LEVELS = np.array(LEVELS)

_CHUNK_ENTRIES = 2**17
# Above every cosine; finite, because of some queries all of the sample was retrieved.
_BEYOND = 2.0


class Sampled(Protocol):
    """What holds a sample: a `CorpusProfile`."""

    @property
    def sample(self) -> Sample:
        """The vectors of the background."""


def background_of(
    profile: Sampled,
    queries: FloatArray,
    passages: FloatArray,
    cosines: FloatArray,
    *,
    deeper: FloatArray | None = None,
    same: FloatArray | None = None,
    left_out: LeftOut | None = None,
) -> Background:
    """Summary of each query's cosines to the corpus sample, its own passages left out.

    Parameters
    ----------
    profile : CorpusProfile
    queries : ndarray, shape (Q, d)
        Finite, no zero row; of any length whose square is a float.
    passages : ndarray, shape (Q, k, d)
        The served passages, likewise; where `cosines` is nan they are not looked at.
    cosines : ndarray, shape (Q, k)
        Cosine of each passage to its query; nan marks padding.
    deeper : ndarray, shape (Q, D), optional
        Cosines of the rest of the retrieved list, without vectors; nan pads.
    same : ndarray, shape (Q,), optional
        How exact `deeper` is: a sampled vector as close as that in cosine is taken for the same passage.
    left_out : sequence of (sequence of ids, or None), length Q, optional
        Ids of retrieved passages. Ids that the sample does not hold change nothing.

    Returns
    -------
    Background
        nan for a query with fewer than `LEAST_BACKGROUND` background vectors.

    Notes
    -----
    Left out are the sampled vectors named by id, those whose cosine to a served passage is at least the
    profile's `duplicate_cosine`, and those whose cosine to the query equals one of `deeper` to 1e-6. Copies
    are looked for only where they are possible: unit vectors with cosine t are sqrt(2 - 2t) apart, so their
    cosines to the query differ by no more. Float64 throughout, so that a query has the same background
    alone and in a batch, to rounding. Cost O(m d + m log m) a query, and O(k d) for each possible copy.
    """
    sample = profile.sample
    return summary(
        sample, Retrieved(queries, passages, cosines, deeper, same), named_pairs(sample.rows, left_out)
    )


def summary(sample: Sample, retrieved: Retrieved, named: Pairs) -> Background:
    """`background_of` for a sample, in blocks of queries."""
    count = len(retrieved.queries)
    size = max(1, _CHUNK_ENTRIES // len(sample.vectors))
    if count == 1:
        return summary_of_one(sample, retrieved, named[1])
    if count <= size:
        return summary_of_block(sample, retrieved, named)
    parts = []
    for start in range(0, count, size):
        stop = min(start + size, count)
        inside = (named[0] >= start) & (named[0] < stop)
        parts.append(
            summary_of_block(
                sample, retrieved.part(start, stop), (named[0][inside] - start, named[1][inside])
            )
        )
    return joined(parts)


def summary_of_block(sample: Sample, retrieved: Retrieved, named: Pairs) -> Background:
    """All queries in lock-step."""
    queries = retrieved.queries.astype(np.float64)
    queries /= np.sqrt(np.einsum("qd,qd->q", queries, queries))[:, None]
    cosines = queries @ sample.vectors.T
    gone = retrieved_pairs(sample, cosines, retrieved)
    if len(named[0]):
        gone = _united(named, gone, len(sample.vectors))
    n_left_out = np.bincount(gone[0], minlength=len(queries))
    n = len(sample.vectors) - n_left_out
    columns = _columns(cosines, gone, n)
    columns[:, n < LEAST_BACKGROUND] = np.nan
    typicality = _typicality(queries, sample.query_direction)
    mean, std, q50, q90, q95, q98, highest, tail = columns
    return Background(mean, std, q50, q90, q95, q98, highest, tail, n, n_left_out, typicality)


def _united(first: Pairs, second: Pairs, width: int) -> Pairs:
    """Pairs of either kind, each once."""
    keys = np.unique(np.concatenate([first[0] * width + first[1], second[0] * width + second[1]]))
    rows, columns = np.divmod(keys, width)
    return rows, columns


def _columns(cosines: FloatArray, gone: Pairs, n: IntArray) -> FloatArray:
    """Mean, deviation, quantiles, maximum and tail mean (8, Q) of rows of `cosines`, which are used up."""
    used = np.maximum(n, 1)
    cosines[gone] = 0.0
    mean = np.add.reduce(cosines, axis=1) / used
    apart = cosines - mean[:, None]
    apart[gone] = 0.0
    spread = np.sqrt(np.einsum("qm,qm->q", apart, apart) / used)
    cosines[gone] = _BEYOND
    cosines.sort(axis=1)
    return np.vstack([mean, spread, _quantiles(cosines, used - 1), _tail(cosines, used)])


def _quantiles(ascending: FloatArray, last: IntArray) -> FloatArray:
    """The quantiles `LEVELS` and the maximum (5, Q) of the entries up to `last` of each row."""
    place = _LEVELS[:, None] * last
    below = place.astype(np.intp)
    row = np.arange(len(last))
    low, high = ascending[row, below], ascending[row, np.minimum(below + 1, last)]
    return np.vstack([low + (high - low) * (place - below), ascending[row, last]])


def _tail(ascending: FloatArray, n: IntArray) -> FloatArray:
    """Mean of the upper tail (Q,) of the first `n` entries of each row."""
    sizes = np.array([tail_size(count) for count in n.tolist()], dtype=np.intp)
    back = np.arange(sizes.max(initial=1))
    inside = back < sizes[:, None]
    places = np.maximum(n[:, None] - 1 - back, 0)
    values = np.take_along_axis(ascending, places, axis=1)
    return np.asarray(np.add.reduce(values, axis=1, where=inside) / sizes)


def _typicality(queries: FloatArray, direction: FloatArray | None) -> FloatArray:
    if direction is None:
        return np.full(len(queries), np.nan)
    return np.clip(queries @ direction, -1.0, 1.0)
