"""The frozen sample of corpus vectors in the form that the kernels read."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np

from rag_confidence._types import FloatArray

# Copies in float32 differ by rounding, so a limit of 1 still has to find them.
_MOST_LIMIT = 1.0 - 1e-6
_SLACK = 1e-5
# Lengths that float32 can square with room to spare.
_SHORTEST, _LONGEST = 1e-15, 1e15


@dataclass(frozen=True, eq=False)
class Sample:
    """Unit vectors of a corpus, with what helps to find near duplicates of served passages among them.

    Attributes
    ----------
    vectors : ndarray, shape (m, d)
        Float64 rows of unit length.
    narrow : ndarray, shape (m, d)
        The same rows in float32.
    limit : float
        Cosine from which a sampled vector counts as a copy of a passage.
    rows : mapping of id to int
        Row of each passage id; empty without ids.
    query_direction : ndarray, shape (d,), or None
        Unit vector of the mean query.
    """

    vectors: FloatArray
    narrow: FloatArray
    limit: float
    rows: Mapping[Hashable, int]
    query_direction: FloatArray | None

    @classmethod
    def of(
        cls,
        vectors: FloatArray,
        *,
        duplicate_cosine: float,
        ids: tuple[Hashable, ...] | None = None,
        query_centroid: FloatArray | None = None,
    ) -> Sample:
        """The sample of unit `vectors` (m, d), which may have been rounded to float32."""
        wide = vectors.astype(np.float64)
        wide /= np.sqrt(np.einsum("md,md->m", wide, wide))[:, None]
        rows = {} if ids is None else {name: row for row, name in enumerate(ids)}
        limit = min(duplicate_cosine, _MOST_LIMIT)
        return cls(wide, wide.astype(np.float32), limit, rows, _direction(query_centroid))

    def rows_like(self, passages: FloatArray) -> FloatArray:
        """The vectors in the precision of `passages`."""
        return self.narrow if passages.dtype == np.float32 else self.vectors

    def lowest_copy(self, cosine: float) -> float:
        """Least cosine to a query that a copy can have of a passage with this `cosine`.

        On the sphere a copy is within the angle arccos(limit) of the passage, so its angle to the query is at
        most the sum of both; minus infinity where that sum passes the antipode.
        """
        near = self.limit - _SLACK
        if cosine <= -near:
            return -math.inf
        sine = math.sqrt(max(1.0 - cosine * cosine, 0.0))
        return near * cosine - math.sqrt(1.0 - near * near) * sine - _SLACK

    def lowest_copies(self, cosines: FloatArray) -> FloatArray:
        """`lowest_copy` of each of the `cosines`."""
        near = self.limit - _SLACK
        sine = np.sqrt(np.maximum(1.0 - cosines * cosines, 0.0))
        low = near * cosines - math.sqrt(1.0 - near * near) * sine - _SLACK
        return np.asarray(np.where(cosines > -near, low, -np.inf))


def _direction(mean: FloatArray | None) -> FloatArray | None:
    """The unit vector along `mean`, or None where there is no direction."""
    if mean is None:
        return None
    length = math.sqrt(float(mean @ mean))
    return mean / length if length > 0.0 else None


def with_lengths(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rows (..., d) and their lengths (...,); in float64 if float32 could not square them."""
    lengths = np.sqrt(np.einsum("...d,...d->...", rows, rows))
    low = np.minimum.reduce(lengths, axis=None, initial=1.0)
    high = np.maximum.reduce(lengths, axis=None, initial=1.0)
    if rows.dtype == np.float32 and not (low > _SHORTEST and high < _LONGEST):
        return with_lengths(rows.astype(np.float64))
    return rows, lengths
