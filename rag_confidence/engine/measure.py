"""Signals of flat retrievals, by whichever kernel is faster for so many of them."""

from __future__ import annotations

from rag_confidence._types import FloatArray
from rag_confidence.engine.lockstep import measure_many
from rag_confidence.engine.signals import Measured
from rag_confidence.engine.single import LONGEST, measure_one


def measure(
    queries: FloatArray,
    passages: FloatArray,
    *,
    duplicate_cosine: float,
    directions: FloatArray | None = None,
) -> Measured:
    """Signals of flat retrievals of equal length.

    Parameters
    ----------
    queries : ndarray, shape (Q, d)
        Finite, no zero row.
    passages : ndarray, shape (Q, k, d)
        Finite, no zero row, k at least 1.
    duplicate_cosine : float
        See `relevance.distinct`.
    directions : ndarray, shape (h + 1, d), optional
        Of the sampled probe; without them `stability_move` is not assessed.

    Returns
    -------
    Measured
        Q entries a column.

    Notes
    -----
    One float64 Gram matrix a query; cost O(k^2 d + k^3), with k at most `signals.SHAPE_LIMIT`. A call on
    one short list takes `single.measure_one`, all others `lockstep.measure_many`; the two agree to rounding.
    """
    if len(queries) == 1 and passages.shape[1] <= LONGEST:
        return measure_one(queries, passages, duplicate_cosine=duplicate_cosine, directions=directions)
    return measure_many(queries, passages, duplicate_cosine=duplicate_cosine, directions=directions)
