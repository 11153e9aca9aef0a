"""Signals of a retrieval whose passages form a tree, such as the sections of a document."""

from __future__ import annotations

import numpy as np

from rag_confidence._types import FloatArray, IntArray
from rag_confidence.engine.barcode import Barcode, tree_barcode
from rag_confidence.engine.lockstep import concentration
from rag_confidence.engine.matching import bottleneck
from rag_confidence.engine.relevance import unit_rows
from rag_confidence.engine.signals import MOST_MATCHED, Signals
from rag_confidence.engine.stability import mean_largest_change, probe_cosines

FOCUS_WINDOW = 0.1
"""Nodes within this cosine of the best one make up the focus."""


def on_tree(
    flat: Signals,
    query: FloatArray,
    passages: FloatArray,
    parents: IntArray,
    directions: FloatArray | None = None,
) -> Signals:
    """Signals of one retrieval, those that depend on the tree measured along its edges.

    Parameters
    ----------
    flat : Signals
        What `measure.measure` says of the same passages as a flat list, one entry a column.
    query : ndarray, shape (d,)
    passages : ndarray, shape (n, d)
        The nodes.
    parents : ndarray of int, shape (n,)
        Parent of each node, before it in the list; -1 for the root.
    directions : ndarray, shape (h, d), optional
        Of the sampled probe.

    Returns
    -------
    Signals
        The bars, the energies, the focus and the movement are those of the tree.
        Duplicates are nodes like any other.
    """
    unit, _ = unit_rows(passages)
    cosines = np.clip(unit @ unit_rows(query[None])[0][0], -1.0, 1.0)
    barcode = tree_barcode(cosines, parents)
    child = np.flatnonzero(parents >= 0)
    mutual = np.clip(np.einsum("ed,ed->e", unit[child], unit[parents[child]]), -1.0, 1.0)
    along = cosines[child] - cosines[parents[child]]
    move = np.nan
    # On a line there is no direction to turn to.
    if directions is not None and len(query) > 1:
        move = _movement(unit, query, cosines, barcode, parents, directions)
    values = {
        "second_bar": barcode.second_bar,
        "persistence_margin": barcode.margin,
        "dominance": barcode.dominance,
        "fragmentation": barcode.fragmentation,
        "n_components": barcode.n_components,
        "concentration": concentration(cosines[None])[0],
        "dirichlet_energy": _mean(0.5 * (1.0 - mutual)),
        "conditioned_energy": _mean(np.maximum(0.5 * (1.0 - mutual) - 0.25 * along**2, 0.0)),
        "stability_move": move,
        "focus_depth": focus_depth(cosines >= cosines.max() - FOCUS_WINDOW, parents),
        "n_nodes": len(parents),
    }
    return flat.with_values(values)


def focus_depth(focus: np.ndarray, parents: IntArray) -> float:
    """Depth of the lowest common ancestor of the `focus` nodes (n,) over the height of the tree.

    Returns
    -------
    float
        In [0, 1]; 0 when only the root holds the focus together, or when the tree is a root alone.

    Notes
    -----
    Cost O(n): subtree counts are summed from the leaves up.
    """
    inside = focus.astype(np.intp)
    depth = np.zeros(len(parents), dtype=np.intp)
    for node in range(len(parents) - 1, 0, -1):
        inside[parents[node]] += inside[node]
    for node in range(1, len(parents)):
        depth[node] = depth[parents[node]] + 1
    height = int(depth.max())
    return float(depth[inside == inside[0]].max()) / height if height else 0.0


def _movement(
    unit: FloatArray,
    query: FloatArray,
    cosines: FloatArray,
    barcode: Barcode,
    parents: IntArray,
    directions: FloatArray,
) -> float:
    block = np.concatenate([unit_rows(query[None])[0], unit])[None]
    probed = probe_cosines(block, cosines[None], directions)[0]
    if len(parents) > MOST_MATCHED:
        return float(mean_largest_change(cosines[None], probed[None])[0])
    return float(np.mean([_distance(barcode, tree_barcode(row, parents)) for row in probed]))


def _distance(first: Barcode, second: Barcode) -> float:
    essential = abs(float(first.birth.max()) - float(second.birth.max()))
    return max(essential, bottleneck(first.finite_bars, second.finite_bars))


def _mean(values: FloatArray) -> float:
    return float(values.mean()) if len(values) else 0.0
