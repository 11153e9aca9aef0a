"""Deaths of the joint filtration for many queries in lock-step.

`barcode.joint_barcode` is the readable version for one query; this one computes the same deaths for
a whole block with a fixed number of array calls. SciPy's `minimum_spanning_tree` would drop the edges of
weight zero that duplicates produce, and takes one graph at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rag_confidence._types import FloatArray, IntArray
from rag_confidence.engine.barcode import ZERO_LENGTH

_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class BarSummary:
    """Read-outs of one barcode a row, each of shape (Q,); see `Barcode` for the definitions."""

    second_bar: FloatArray
    margin: FloatArray
    dominance: FloatArray
    fragmentation: FloatArray
    n_components: FloatArray


def joint_deaths(cosines: FloatArray, gram: FloatArray) -> FloatArray:
    """Death of every passage in the joint filtration of its query.

    Parameters
    ----------
    cosines : ndarray, shape (Q, n)
        Cosines to the query, in descending order.
    gram : ndarray, shape (Q, n, n)
        Mutual cosines.

    Returns
    -------
    ndarray, shape (Q, n)
        -inf in column 0, the essential class; equal to the birth where the bar has no length.

    Notes
    -----
    In Prim's order the filtration has the barcode of a path whose edges are the weights in that
    order, because the weakest edge between two vertices of the tree is the least weight between
    their places. A vertex dies at the strongest such bottleneck to any older one. Cost O(n^2).
    """
    edges = np.minimum(np.minimum(cosines[:, :, None], cosines[:, None, :]), gram)
    order, reached = prim_many(edges)
    along = _path_deaths(order, reached)
    deaths = np.empty_like(along)
    np.put_along_axis(deaths, order, along, axis=1)
    return deaths


def _path_deaths(order: IntArray, reached: FloatArray) -> FloatArray:
    """Deaths along the path: the canonical index in `order` is the age, the oldest being 0."""
    n = order.shape[1]
    deaths = np.full(order.shape, -np.inf)
    bottleneck = np.full((len(order), n), np.inf)
    for gap in range(1, n):
        bottleneck = np.minimum(bottleneck[:, :-1], reached[:, gap:])
        left_older = order[:, :-gap] < order[:, gap:]
        right, left = deaths[:, gap:], deaths[:, :-gap]
        np.maximum(right, np.where(left_older, bottleneck, -np.inf), out=right)
        np.maximum(left, np.where(left_older, -np.inf, bottleneck), out=left)
    return deaths


def prim_many(weights: FloatArray) -> tuple[IntArray, FloatArray]:
    """Order in which Prim's algorithm from vertex 0 reaches the vertices of many graphs.

    Parameters
    ----------
    weights : ndarray, shape (Q, n, n)
        Symmetric edge weights of Q complete graphs.

    Returns
    -------
    order : ndarray of int, shape (Q, n)
        Vertices in the order in which they are reached.
    reached : ndarray, shape (Q, n)
        Weight of the edge that reached each; +inf for the first.

    Notes
    -----
    The weakest edge between two vertices on the tree is the least of the weights that follow the
    earlier one up to the later one in this order. Cost O(n^2) a graph, in n steps for all.
    """
    count, n, _ = weights.shape
    rows = np.arange(count)
    order = np.zeros((count, n), dtype=np.intp)
    reached = np.full((count, n), np.inf)
    key = weights[:, 0].copy()
    key[:, 0] = -np.inf
    spent = np.zeros((count, n))
    spent[:, 0] = -np.inf
    for step in range(1, n):
        best = key.argmax(axis=1)
        order[:, step] = best
        reached[:, step] = key[rows, best]
        spent[rows, best] = -np.inf
        np.maximum(key, weights[rows, best], out=key)
        key += spent
    return order, reached


def summarise(cosines: FloatArray, deaths: FloatArray) -> BarSummary:
    """Read-outs of the barcodes with births `cosines` (Q, n), descending, and `deaths` (Q, n)."""
    if cosines.shape[1] == 1:
        nothing = np.zeros(len(cosines))
        return BarSummary(nothing, nothing, nothing + 1.0, nothing, nothing + 1.0)
    finite = cosines[:, 1:] - deaths[:, 1:]
    real = finite > ZERO_LENGTH
    finite *= real
    essential = cosines[:, 0] - np.minimum.reduce(deaths[:, 1:], axis=1)
    second, total = np.maximum.reduce(finite, axis=1), np.add.reduce(finite, axis=1)
    # The least number makes 0 / 0 one: no bar at all is a dominant one.
    share = (essential + _TINY) / (essential + total + _TINY)
    return BarSummary(second, essential - second, share, total, 1.0 + np.add.reduce(real, axis=1))
