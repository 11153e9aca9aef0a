"""Do served passages come from the embedder of the corpus sample? A test on vectors, without names."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rag_confidence._types import FloatArray, IntArray
from rag_confidence.engine.profile.fitting import N_AXES, principal_axes
from rag_confidence.engine.profile.sample import with_lengths
from rag_confidence.engine.relevance import unit_rows

LEAST_PASSAGES = 5
"""Fewer distinct passages are too weak an evidence of another embedder."""

LEAST_SAMPLE = 200
"""So are smaller samples."""

# With more axes than this share of the dimension a random direction looks like any other.
_DIMENSIONS_AN_AXIS = 4
_ROWS_AN_AXIS = 4
_RARE = 0.01
_TOWARDS_OWN = 0.25
_SAME_PASSAGE = 0.995
# Vectors that lie nearly as random ones do cannot be told from random ones.
_LEAST_TIMES_CHANCE = 2.5
_NOBODY = np.zeros(0, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class EmbedderTest:
    """What vectors of an embedder have in common: the axes that hold most of their energy.

    Attributes
    ----------
    axes : ndarray, shape (r, d)
        Orthonormal principal axes of the corpus sample, float32.
    own_energy : float
        Median share of the energy of a corpus vector on axes that were found without it.
    floor : float
        Mean share over a list of passages below which it is said to come from elsewhere; 0, which no
        list falls below, with fewer than `LEAST_SAMPLE` rows or fewer than four dimensions, and where
        the vectors have hardly more energy there than random ones.
    """

    axes: FloatArray
    own_energy: float
    floor: float


def embedder_test(unit: FloatArray, order: IntArray) -> EmbedderTest:
    """Axes and floor from unit rows (m, d); `order` is a random permutation that splits them in halves.

    Notes
    -----
    A random direction has the share r / d of its energy on r axes, which is what vectors of an unrelated
    embedder show. Each half of the rows is seen on the axes of the other half. The floor is the smaller of
    the 1 % quantile of these shares and (r / d)^0.75 (median share)^0.25.
    """
    count = min(N_AXES, len(unit) // _ROWS_AN_AXIS, unit.shape[1] // _DIMENSIONS_AN_AXIS)
    halves = np.array_split(order, 2)
    unseen = [
        energy(unit[there], principal_axes(unit[here], count)) for here, there in (halves, halves[::-1])
    ]
    shares = np.concatenate(unseen)
    middle, rare = float(np.median(shares)), float(np.quantile(shares, _RARE))
    chance = count / unit.shape[1]
    between = chance ** (1.0 - _TOWARDS_OWN) * middle**_TOWARDS_OWN
    telling = len(unit) >= LEAST_SAMPLE and middle >= _LEAST_TIMES_CHANCE * chance
    axes = principal_axes(unit, count).astype(np.float32)
    return EmbedderTest(axes, middle, min(rare, between) if telling else 0.0)


def energy(vectors: FloatArray, axes: FloatArray) -> FloatArray:
    """Share (...,) of the squared length of `vectors` (..., d) that lies on orthonormal `axes` (r, d)."""
    vectors, lengths = with_lengths(vectors)
    seen = vectors @ axes.T.astype(vectors.dtype, copy=False)
    return np.asarray(np.einsum("...r,...r->...", seen, seen) / lengths**2)


def foreign_rows(test: EmbedderTest, passages: FloatArray) -> IntArray:
    """Rows of `passages` (Q, k, d) that hold at least five distinct passages with too little energy.

    Notes
    -----
    Lists that are shorter, or that repeat fewer than five passages, are never named. Cost O(k d r) a row.
    """
    k = passages.shape[1]
    if k < LEAST_PASSAGES or test.floor <= 0.0:
        return _NOBODY
    low = np.add.reduce(energy(passages, test.axes), axis=1) < k * test.floor
    if not np.logical_or.reduce(low):
        return _NOBODY
    rows = [row for row in np.flatnonzero(low) if _n_distinct(passages[row]) >= LEAST_PASSAGES]
    return np.array(rows, dtype=np.intp)


def _n_distinct(passages: FloatArray) -> int:
    """Number of passages (k, d) that are no near copy of an earlier one."""
    unit, _ = unit_rows(passages)
    close = unit @ unit.T > _SAME_PASSAGE
    return int(np.count_nonzero(~np.tril(close, -1).any(axis=1)))
