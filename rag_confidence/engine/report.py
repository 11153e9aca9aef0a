"""EngineReport: everything the engine knows about one retrieval, for exploration and plots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rag_confidence._types import FloatArray, IntArray
from rag_confidence.engine.barcode import Barcode
from rag_confidence.engine.curvature import forman_curvature, tree_curvature
from rag_confidence.engine.relevance import chords
from rag_confidence.engine.signals import SIGNAL_NAMES, Signals
from rag_confidence.engine.stability import movement_bound

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True, eq=False)
class EngineReport:
    """One retrieval in numbers, without thresholds and verdicts.

    Attributes
    ----------
    nodes : ndarray of int, shape (m,)
        Served position of each vertex of the filtration: the distinct passages in descending order of
        cosine for a flat list, all passages in served order for a tree.
    cosines : ndarray, shape (m,)
        Cosine of each node to the query.
    gram : ndarray, shape (m, m)
        Mutual cosines of the nodes.
    barcode : Barcode
        H0 of the joint filtration, or of the tree; indexed like `nodes`.
    parents : ndarray of int, shape (m,), or None
        Of the tree; -1 marks the root.
    signals : Signals
        One entry a column.
    dimension : int
        Length d of the vectors.
    """

    nodes: IntArray
    cosines: FloatArray
    gram: FloatArray
    barcode: Barcode
    parents: IntArray | None
    signals: Signals
    dimension: int

    @property
    def values(self) -> dict[str, float | None]:
        """Every signal by name; None where it was not assessed."""
        column = self.signals.table[:, 0].tolist()
        return {
            name: value if value == value else None for name, value in zip(SIGNAL_NAMES, column, strict=True)
        }

    @property
    def distances(self) -> FloatArray:
        """Chordal distances sqrt(2 - 2 G) between the nodes, shape (m, m)."""
        return chords(self.gram)

    @property
    def curvature(self) -> FloatArray:
        """Forman curvature: of every pair (m, m) for a flat list, of every edge (m - 1,) for a tree.

        Very negative on edges that bridge dense regions. Evidence only: nothing reads it.
        """
        return forman_curvature(self.distances) if self.parents is None else tree_curvature(self.parents)

    @property
    def movement_bound(self) -> float | None:
        """Analytic bound on the mean movement under the probe; None on a line, which has no direction."""
        return float(movement_bound(self.cosines[None], self.dimension)[0]) if self.dimension > 1 else None

    def betti_curve(self, levels: FloatArray) -> IntArray:
        """Number of components at each of `levels` (l,), shape (l,)."""
        return self.barcode.betti_curve(levels)

    def merge_tree(self) -> list[dict[str, Any]]:
        """The merges in descending order of level.

        Returns
        -------
        list of dict
            ``level``, ``younger`` and ``elder`` (served positions of the best passages of the two
            components) and ``persistence`` of the bar that ends; passages that join at once give none.
        """
        code = self.barcode
        merged = [v for v in code.representatives.tolist() if code.elder[v] >= 0]
        merged.sort(key=lambda v: -code.death[v])
        return [
            {
                "level": float(code.death[v]),
                "younger": int(self.nodes[v]),
                "elder": int(self.nodes[code.elder[v]]),
                "persistence": float(code.birth[v] - code.death[v]),
            }
            for v in merged
        ]

    def to_networkx(self) -> nx.Graph[int]:
        """The passage graph for exploration.

        Returns
        -------
        networkx.Graph
            Nodes are served positions with ``cosine``, ``birth`` and ``death`` (None for the essential
            class). Edges carry ``cosine``, the mutual cosine, and ``level``, at which they appear; a
            tree has its own edges, a flat list those of positive mutual cosine.
        """
        import networkx as nx

        graph: nx.Graph[int] = nx.Graph()
        for v, place in enumerate(self.nodes.tolist()):
            death = float(self.barcode.death[v]) if self.barcode.elder[v] >= 0 else None
            graph.add_node(
                place, cosine=float(self.cosines[v]), birth=float(self.barcode.birth[v]), death=death
            )
        for u, v in self._edges():
            mutual, lower = float(self.gram[u, v]), float(min(self.cosines[u], self.cosines[v]))
            level = lower if self.parents is not None else min(lower, mutual)
            graph.add_edge(int(self.nodes[u]), int(self.nodes[v]), cosine=mutual, level=level)
        return graph

    def _edges(self) -> list[tuple[int, int]]:
        if self.parents is not None:
            return [(v, int(p)) for v, p in enumerate(self.parents.tolist()) if p >= 0]
        tails, heads = np.nonzero(np.triu(self.gram > 0.0, k=1))
        return list(zip(tails.tolist(), heads.tolist(), strict=True))
