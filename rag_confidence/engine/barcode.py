"""H0 barcodes of superlevel filtrations: where relevance appears and where it merges.

A threshold is swept downwards. A passage is born at its vertex value, an edge joins two components at
its edge value, and by the elder rule the component with the lower birth dies at a merge. Births
therefore exceed deaths, and the component of the best passage never dies.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from rag_confidence._types import FloatArray, IntArray

ZERO_LENGTH = 1e-9
"""Bars no longer than this are rounding."""

_CACHED = 64


@dataclass(frozen=True, eq=False)
class Barcode:
    """The merge tree of a superlevel filtration, one entry for each vertex.

    Attributes
    ----------
    birth : ndarray, shape (n,)
        Level at which the vertex appears.
    death : ndarray, shape (n,)
        Level at which its component is absorbed; -inf for the essential one. A vertex that joins an
        older component at once has ``death == birth``.
    elder : ndarray of int, shape (n,)
        Oldest vertex of the absorbing component; -1 for the essential one.
    """

    birth: FloatArray
    death: FloatArray
    elder: IntArray

    @property
    def floor(self) -> float:
        """Level at which every vertex is present and connected; the essential bar is measured to it."""
        finite = self.death[np.isfinite(self.death)]
        return float(min(self.birth.min(), finite.min(initial=np.inf)))

    @property
    def representatives(self) -> IntArray:
        """Vertices that own a bar, the longest bar first, the essential one leading."""
        lengths = self._closed(self.floor)
        lengths[self.elder < 0] = np.inf
        ranked = np.argsort(-lengths, kind="stable")
        return ranked[lengths[ranked] > ZERO_LENGTH]

    @property
    def bars(self) -> FloatArray:
        """(birth, death) of the bars, shape (b, 2), the essential one first and cut at `floor`."""
        owners = self.representatives
        return np.column_stack([self.birth[owners], np.maximum(self.death[owners], self.floor)])

    @property
    def finite_bars(self) -> FloatArray:
        """(birth, death) of the bars that die, shape (b, 2), the longest first."""
        return self.bars[1:]

    @property
    def second_bar(self) -> float:
        """Length of the longest bar that dies; 0 if there is none."""
        return float(self.lengths()[1:].max(initial=0.0))

    @property
    def margin(self) -> float:
        """Length of the essential bar minus that of the second: high when one region dominates."""
        return margin(self.lengths())

    @property
    def dominance(self) -> float:
        """Share of the essential bar in the total length, in (0, 1]; 1 when all lengths are 0."""
        return dominance(self.lengths())

    @property
    def fragmentation(self) -> float:
        """Total length of the bars that die."""
        return fragmentation(self.lengths())

    @property
    def n_components(self) -> int:
        """Number of bars, the essential one included."""
        return len(self.representatives)

    def lengths(self, essential_death: float | None = None, shortest: float = ZERO_LENGTH) -> FloatArray:
        """Bar lengths, shape (b,): the essential bar first, then the others in descending order."""
        floor = self.floor if essential_death is None else essential_death
        closed = self._closed(floor)
        finite = closed[self.elder >= 0]
        finite = -np.sort(-finite[finite > shortest])
        return np.concatenate([closed[self.elder < 0], finite])

    def betti_curve(self, levels: FloatArray) -> IntArray:
        """Number of components alive at each of `levels` (m,); shape (m,)."""
        level = np.asarray(levels, dtype=np.float64)[:, None]
        alive = (self.birth >= level) & (self.death < level)
        return np.asarray(alive.sum(axis=1))

    def _closed(self, floor: float) -> FloatArray:
        return self.birth - np.where(self.elder < 0, floor, self.death)


def margin(lengths: FloatArray) -> float:
    """Difference of the two longest of `lengths`; the only one if there is one."""
    ranked = -np.sort(-lengths)
    return float(ranked[0] - ranked[1]) if len(ranked) > 1 else float(ranked[0])


def dominance(lengths: FloatArray) -> float:
    """Share of the longest of `lengths` in their sum; 1 when the sum is 0."""
    total = float(lengths.sum())
    return float(lengths.max()) / total if total > 0.0 else 1.0


def fragmentation(lengths: FloatArray) -> float:
    """Sum of all of `lengths` but the longest."""
    return float(lengths.sum() - lengths.max())


def joint_barcode(cosines: FloatArray, gram: FloatArray) -> Barcode:
    """Barcode of the joint filtration of a flat list.

    A passage appears at its cosine to the query; two passages join once both are present and their
    mutual cosine is reached as well. A long second bar means that the query is answered from two
    places that do not resemble each other.

    Parameters
    ----------
    cosines : ndarray, shape (n,)
        Cosines to the query.
    gram : ndarray, shape (n, n)
        Mutual cosines.

    Returns
    -------
    Barcode
        Indexed like `cosines`. One passage gives one essential bar of length 0.

    Notes
    -----
    Vertex value :math:`c_i`, edge value :math:`\\min(c_i, c_j, G_{ij})`. H0 is read off a maximum
    spanning tree of the edge values. Every finite bar is at most :math:`\\sqrt{2 - 2 c_{max}}` long,
    and the barcode moves by no more than the largest change of any cosine. Cost O(n^2 log n).

    References
    ----------
    H. Edelsbrunner and J. Harer (2010), Computational Topology, section VII.1 (elder rule).

    Examples
    --------
    >>> import numpy as np
    >>> bars = joint_barcode(np.array([0.9, 0.8]), np.array([[1.0, 0.5], [0.5, 1.0]])).bars
    >>> bars.round(3).tolist()
    [[0.9, 0.5], [0.8, 0.5]]
    """
    values = np.asarray(cosines, dtype=np.float64)
    return elder_rule(values, *joint_edges(values, gram))


def joint_edges(cosines: FloatArray, gram: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
    """All edges of the joint filtration: tails, heads and weights, each of shape (n (n - 1) / 2,)."""
    n = len(cosines)
    tails, heads = _triangle(n) if n <= _CACHED else np.triu_indices(n, k=1)
    return tails, heads, np.minimum(gram[tails, heads], np.minimum(cosines[tails], cosines[heads]))


def tree_barcode(values: FloatArray, parents: IntArray) -> Barcode:
    """Barcode of a tree whose edges appear with the lower of their two ends.

    Parameters
    ----------
    values : ndarray, shape (n,)
        Vertex values.
    parents : ndarray of int, shape (n,)
        Parent of each vertex, before it in the list; -1 for the root.

    Returns
    -------
    Barcode
        Indexed like `values`.

    Notes
    -----
    Cost O(n log n).
    """
    vertices = np.asarray(values, dtype=np.float64)
    child = np.flatnonzero(np.asarray(parents) >= 0)
    parent = np.asarray(parents)[child]
    return elder_rule(vertices, child, parent, np.minimum(vertices[child], vertices[parent]))


def star_barcode(values: FloatArray, root_value: float) -> Barcode:
    """Barcode of a star: vertex 0 is the root, and every one of `values` (n,) hangs off it.

    Notes
    -----
    The finite bars are [c_i, root) for the values above the root's, except the best: a list of gaps.
    It is here for `MetricPolicy.seed()`, not because it carries information.
    """
    vertices = np.concatenate([[root_value], values])
    return tree_barcode(vertices, star_parents(len(vertices)))


def star_parents(n: int) -> IntArray:
    """Parents (n,) of a star: vertex 0 is the root of all others."""
    parents = np.zeros(n, dtype=np.intp)
    parents[0] = -1
    return parents


def elder_rule(values: FloatArray, tails: IntArray, heads: IntArray, weights: FloatArray) -> Barcode:
    """Barcode of a connected graph.

    Vertex `values` (n,), edges from `tails` to `heads` with `weights`, all of shape (m,), no edge above
    either of its ends. Of two components with equal births the lower index is older.
    """
    death, elder = merge(values.tolist(), tails, heads, weights)
    return Barcode(values, np.array(death), np.array(elder, dtype=np.intp))


def merge(
    level: list[float], tails: IntArray, heads: IntArray, weights: FloatArray
) -> tuple[list[float], list[int]]:
    """Death and elder of every vertex, as `elder_rule`, in plain lists.

    Edges are taken in descending order until all vertices are connected (Kruskal's algorithm), and the
    smaller component takes the label of the larger, so that looking one up is a list access.
    """
    order = np.argsort(-weights, kind="stable")
    edges = zip(tails[order].tolist(), heads[order].tolist(), weights[order].tolist(), strict=True)
    death, elder = [-np.inf] * len(level), [-1] * len(level)
    label, oldest = list(range(len(level))), list(range(len(level)))
    members = [[vertex] for vertex in label]
    for tail, head, weight in edges:
        big, small = label[tail], label[head]
        if big == small:
            continue
        old, young = oldest[big], oldest[small]
        if level[old] < level[young] or (level[old] == level[young] and old > young):
            old, young = young, old
        elder[young], death[young] = old, weight
        if len(members[big]) < len(members[small]):
            big, small = small, big
        for vertex in members[small]:
            label[vertex] = big
        members[big] += members[small]
        oldest[big] = old
        if len(members[big]) == len(level):
            break
    return death, elder


@lru_cache(maxsize=_CACHED)
def _triangle(n: int) -> tuple[IntArray, IntArray]:
    return np.triu_indices(n, k=1)
