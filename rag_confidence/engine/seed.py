"""The source scorer's own measurements, for `MetricPolicy.seed()`.

They are reproduced so that a deployment can migrate and compare, flaws included: the star barcode is a
list of gaps, min-max relevance forgets how good the best passage is, and the jitter grows with the
dimension. Nothing in the default policy reads them.
"""

from __future__ import annotations

import numpy as np

from rag_confidence._types import FloatArray, IntArray
from rag_confidence.engine.barcode import (
    Barcode,
    dominance,
    fragmentation,
    margin,
    star_parents,
    tree_barcode,
)
from rag_confidence.engine.lockstep import concentration
from rag_confidence.engine.matching import bottleneck
from rag_confidence.engine.relevance import min_max
from rag_confidence.engine.signals import MOST_MATCHED, Signals
from rag_confidence.engine.stability import N_PROBES
from rag_confidence.engine.tree import focus_depth

_SHORTEST = 1e-6
_JITTER = 0.05
_FOCUS_AT = 0.6
_SALT = 0x5EED


def seed_signals(
    flat: Signals,
    query: FloatArray,
    passages: FloatArray,
    parents: IntArray | None,
    *,
    jitter_seed: int | None,
) -> Signals:
    """Signals of one retrieval as the source scorer defines them, one entry a column.

    Parameters
    ----------
    flat : Signals
        What `measure.measure` says; columns that the source does not have are kept.
    query : ndarray, shape (d,)
    passages : ndarray, shape (n, d)
    parents : ndarray of int, shape (n,), optional
        Of a tree; without it the passages hang off their mean.
    jitter_seed : int, optional
        Seed of the eight jittered queries; without it, and for more than `signals.MOST_MATCHED` nodes,
        `stability_move` is not assessed.

    Returns
    -------
    Signals
        Bars in min-max units with the survivor dying at 0. Duplicates are not merged.
    """
    nodes, parents = _nodes(passages, parents)
    unit = _unit(nodes)
    raw = np.clip(unit @ _unit(query[None])[0], -1.0, 1.0)
    relevance = min_max(raw)
    lengths = _lengths(tree_barcode(relevance, parents))
    child = np.flatnonzero(parents >= 0)
    tension = np.minimum(((unit[child] - unit[parents[child]]) ** 2).sum(axis=1) / 4.0, 1.0)
    focus = relevance >= _FOCUS_AT
    if not focus.any():
        focus[relevance.argmax()] = True
    served = -np.sort(-raw[len(nodes) - len(passages) :])
    move = np.nan
    if jitter_seed is not None and len(nodes) <= MOST_MATCHED:
        move = _jitter_move(unit, query, parents, relevance, jitter_seed)
    values = {
        "max_cosine": served[0],
        "mean_top3_cosine": served[:3].mean(),
        "second_bar": lengths[1] if len(lengths) > 1 else 0.0,
        "persistence_margin": margin(lengths),
        "dominance": dominance(lengths),
        "fragmentation": fragmentation(lengths),
        "n_components": len(lengths),
        "concentration": concentration(relevance[None])[0],
        "dirichlet_energy": tension.mean() if len(tension) else 0.0,
        "stability_move": move,
        "focus_depth": focus_depth(focus, parents),
        "n_nodes": len(nodes),
    }
    return flat.with_values(values)


def _nodes(passages: FloatArray, parents: IntArray | None) -> tuple[FloatArray, IntArray]:
    rows = np.asarray(passages, dtype=np.float64)
    if parents is not None:
        return rows, parents
    return np.concatenate([rows.mean(axis=0)[None], rows]), star_parents(len(rows) + 1)


def _unit(rows: FloatArray) -> FloatArray:
    """Unit rows; the centroid of opposite passages may be zero and stays zero."""
    norms = np.sqrt(np.einsum("nd,nd->n", rows, rows))
    return np.asarray(rows / np.where(norms > 0.0, norms, 1.0)[:, None])


def _lengths(barcode: Barcode) -> FloatArray:
    return barcode.lengths(essential_death=0.0, shortest=_SHORTEST)


def _closed_bars(barcode: Barcode) -> FloatArray:
    bars = np.column_stack([barcode.birth, np.where(barcode.elder < 0, 0.0, barcode.death)])
    return np.asarray(bars[bars[:, 0] - bars[:, 1] > _SHORTEST])


def _jitter_move(
    unit: FloatArray, query: FloatArray, parents: IntArray, relevance: FloatArray, seed: int
) -> float:
    rng = np.random.default_rng([_SALT, seed])
    scale = _JITTER * float(np.linalg.norm(query))
    jittered = query + scale * rng.standard_normal((N_PROBES, len(query)))
    before = _closed_bars(tree_barcode(relevance, parents))
    after = [_closed_bars(tree_barcode(min_max(row), parents)) for row in _unit(jittered) @ unit.T]
    return float(np.mean([bottleneck(before, bars) for bars in after]))
