"""Maximum spanning trees of small dense graphs, one at a time or many in lock-step.

SciPy's `minimum_spanning_tree` drops edges of weight zero, which duplicates produce, and costs more
than a whole score at n = 10; hence two short versions of Prim's algorithm.
"""

from __future__ import annotations

import numpy as np

from rag_confidence._types import FloatArray, IntArray

_SMALL = 40


def spanning_tree(weights: FloatArray) -> tuple[list[int], list[int], FloatArray]:
    """Edges of a maximum spanning tree of a complete graph.

    Parameters
    ----------
    weights : ndarray, shape (n, n)
        Symmetric edge weights; the diagonal is not read.

    Returns
    -------
    tails, heads : list of int, length n - 1
        Each edge joins a vertex to one that was reached before it.
    weights : ndarray, shape (n - 1,)
        In the order in which Prim's algorithm from vertex 0 reaches them.

    Notes
    -----
    Cost O(n^2). Lists beat array calls up to about n = 40.

    References
    ----------
    R. C. Prim (1957), Shortest connection networks and some generalizations.
    """
    if len(weights) <= _SMALL:
        return _prim_lists(weights.tolist())
    order, reached = prim_many(weights[None])
    heads = _attachment(weights, order[0])
    return order[0, 1:].tolist(), heads, reached[0, 1:]


def _prim_lists(rows: list[list[float]]) -> tuple[list[int], list[int], FloatArray]:
    key, link = rows[0], [0] * len(rows)
    waiting = list(range(1, len(rows)))
    tails, heads, reached = [], [], []
    while waiting:
        best = max(waiting, key=key.__getitem__)
        waiting.remove(best)
        tails.append(best)
        heads.append(link[best])
        reached.append(key[best])
        row = rows[best]
        for vertex in waiting:
            if row[vertex] > key[vertex]:
                key[vertex], link[vertex] = row[vertex], best
    return tails, heads, np.array(reached)


def _attachment(weights: FloatArray, order: IntArray) -> list[int]:
    ranked = weights[np.ix_(order, order)]
    earlier = np.where(np.tri(len(order), k=-1, dtype=bool), ranked, -np.inf)
    return np.asarray(order[earlier.argmax(axis=1)[1:]]).tolist()


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
