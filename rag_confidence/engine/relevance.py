"""Cosines of passages to their query and to each other: the one Gram matrix that all else reads.

Everything after this module works on a *canonical* list: distinct passages in descending order of
cosine. Sorting and duplicate removal happen once, here, so that no later number can depend on the
order in which a retriever happened to list its passages.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rag_confidence._types import FloatArray, IntArray, Mask

DUPLICATE_COSINE = 0.995
"""Passages whose mutual cosine exceeds this say the same thing twice."""

EXACT_DUPLICATE = 1.0 - 1e-12
"""Equal passages are duplicates whatever the caller's limit."""

_FLAT_RANGE = 1e-9


@dataclass(frozen=True, eq=False)
class Geometry:
    """Cosines and Gram matrices of a block of equally long canonical lists.

    Attributes
    ----------
    cosines : ndarray, shape (Q, n)
        Cosine of each passage to its query, descending, in [-1, 1].
    gram : ndarray, shape (Q, n, n)
        Mutual cosines in the same order, in [-1, 1], with unit diagonal.
    order : ndarray of int, shape (Q, n)
        Position of each passage in the list as it was served.
    """

    cosines: FloatArray
    gram: FloatArray
    order: IntArray

    def take(self, rows: IntArray, columns: IntArray) -> Geometry:
        """Geometry of the queries `rows` (r,) restricted to passages `columns` (r, m) of each."""
        row = rows[:, None]
        return Geometry(
            cosines=self.cosines[row, columns],
            gram=self.gram[row[:, :, None], columns[:, :, None], columns[:, None, :]],
            order=self.order[row, columns],
        )


def unit_rows(vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rows scaled to unit length, and the lengths they had.

    Parameters
    ----------
    vectors : array_like, shape (..., n, d)
        Finite rows, none of them zero.

    Returns
    -------
    unit : ndarray, shape (..., n, d)
        Float64 rows of length one.
    norms : ndarray, shape (..., n)
        Original lengths, positive.

    Notes
    -----
    Rows are divided by their largest entry first, so lengths from 1e-150 to 1e150 neither overflow
    nor vanish. Cost O(nd).
    """
    rows = np.asarray(vectors, dtype=np.float64)
    peak = np.abs(rows).max(axis=-1)
    rows = rows / peak[..., None]
    length = np.sqrt(np.einsum("...d,...d->...", rows, rows))
    return rows / length[..., None], peak * length


def cosines_and_gram(queries: FloatArray, passages: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Cosines to the query, and mutual cosines, of the passages of each query.

    Parameters
    ----------
    queries : array_like, shape (Q, d)
        One query vector a row, finite, not zero, entries of a size that can be squared.
    passages : array_like, shape (Q, k, d)
        The passages of each query, likewise.

    Returns
    -------
    cosines : ndarray, shape (Q, k)
        In [-1, 1], in served order.
    gram : ndarray, shape (Q, k, k)
        In [-1, 1], unit diagonal.

    Notes
    -----
    Lengths are read from the diagonal of one product of the stacked rows, in float64. Rounding is
    clipped: a cosine of 1.0000000000000002 is 1. Cost O(k^2 d) a query.
    """
    return gram_of_stack(stack(queries, passages))


def stack(queries: FloatArray, passages: FloatArray) -> FloatArray:
    """Query and passages as one (Q, k + 1, d) float64 block, the query first."""
    count, k, d = passages.shape
    block = np.empty((count, k + 1, d))
    block[:, 0] = queries
    block[:, 1:] = passages
    return block


def gram_of_stack(block: FloatArray) -> tuple[FloatArray, FloatArray]:
    """`cosines_and_gram` of a block made by `stack`."""
    products = np.matmul(block, block.swapaxes(1, 2))
    inverse = 1.0 / np.sqrt(diagonal(products))
    products *= inverse[:, :, None]
    products *= inverse[:, None, :]
    np.minimum(products, 1.0, out=products)
    np.maximum(products, -1.0, out=products)
    diagonal(products)[...] = 1.0
    return products[:, 0, 1:], products[:, 1:, 1:]


def diagonal(matrices: FloatArray) -> FloatArray:
    """Writable view (Q, n) of the diagonals of contiguous `matrices` (Q, n, n)."""
    count, n, _ = matrices.shape
    return matrices.reshape(count, n * n)[:, :: n + 1]


def chords(gram: FloatArray) -> FloatArray:
    """Distances sqrt(2 - 2 G) between unit passages, from their mutual cosines."""
    return np.asarray(np.sqrt(np.maximum(2.0 - 2.0 * gram, 0.0)))


def canonical(cosines: FloatArray, gram: FloatArray) -> Geometry:
    """The same passages in descending order of cosine, ties in served order."""
    if (cosines[:, :-1] >= cosines[:, 1:]).all():
        served = np.arange(cosines.shape[1])[None]
        return Geometry(cosines, gram, served.repeat(len(cosines), axis=0))
    order = np.argsort(-cosines, axis=1, kind="stable")
    row = np.arange(len(cosines))[:, None]
    ranked = gram[row[:, :, None], order[:, :, None], order[:, None, :]]
    return Geometry(cosines[row, order], ranked, order)


def distinct(gram: FloatArray, duplicate_cosine: float = DUPLICATE_COSINE) -> Mask:
    """Which passages are not near duplicates of an earlier one that was kept.

    Parameters
    ----------
    gram : ndarray, shape (Q, n, n)
        Mutual cosines in canonical order.
    duplicate_cosine : float
        A passage is dropped when its cosine to a kept, better passage exceeds this. Exact
        duplicates are dropped even at 1.

    Returns
    -------
    ndarray of bool, shape (Q, n)
        The best passage is always kept.

    Notes
    -----
    Greedy in order of cosine, so a chain of near duplicates keeps both of its ends when they differ.
    Cost O(n^2) a query.
    """
    close = gram > min(duplicate_cosine, EXACT_DUPLICATE)
    keep = np.ones(gram.shape[:2], dtype=bool)
    if np.count_nonzero(close) == keep.size:
        return keep
    for j in range(1, gram.shape[1]):
        keep[:, j] = ~(close[:, j, :j] & keep[:, :j]).any(axis=1)
    return keep


def min_max(cosines: FloatArray) -> FloatArray:
    """Relevance: cosines stretched to [0, 1] by their own range.

    Notes
    -----
    Kept for `MetricPolicy.seed()` alone: it manufactures a most relevant passage for every query,
    however far off topic, and is not Lipschitz (factor 2 / range). All 0.5 when the range is below
    1e-9.
    """
    low, high = float(np.min(cosines)), float(np.max(cosines))
    if high - low < _FLAT_RANGE:
        return np.full(np.shape(cosines), 0.5)
    return (np.asarray(cosines, dtype=np.float64) - low) / (high - low)
