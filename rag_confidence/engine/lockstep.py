"""Signals of many flat retrievals in lock-step: a fixed number of array calls for a whole block."""

from __future__ import annotations

import math
from dataclasses import fields, replace

import numpy as np

from rag_confidence._types import FloatArray, IntArray, Mask
from rag_confidence.engine import sheaf, stability
from rag_confidence.engine.coherence import coherence
from rag_confidence.engine.joint import joint_deaths, summarise
from rag_confidence.engine.relevance import (
    EXACT_DUPLICATE,
    Geometry,
    canonical,
    distinct,
    gram_of_stack,
    stack,
    unit_rows,
)
from rag_confidence.engine.signals import N_LEADERS, SHAPE_LIMIT, Measured, Signals, scatter

_CHUNK_ENTRIES = 2**18
_SALT = 0xC0B1E5
_DIGITS = 12
_DEGREES = 180.0 / math.pi
_TINY = float(np.finfo(np.float64).tiny)


def measure_many(
    queries: FloatArray,
    passages: FloatArray,
    *,
    duplicate_cosine: float,
    directions: FloatArray | None = None,
) -> Measured:
    """`measure.measure` for any number of queries (Q, d) and passages (Q, k, d)."""
    geometry, move = block_geometry(queries, passages, directions)
    keep = distinct(geometry.gram, duplicate_cosine)
    signals = _by_length(geometry, keep, move)
    if not keep.all():
        signals = signals.with_values({"mean_top3_cosine": _mean_top3(geometry)})
    return Measured(signals, *_leaders(geometry, keep))


def block_geometry(
    queries: FloatArray, passages: FloatArray, directions: FloatArray | None = None
) -> tuple[Geometry, FloatArray]:
    """Geometry of the `SHAPE_LIMIT` best passages of each query, and the sampled movement (Q,)."""
    chosen = None
    if passages.shape[1] > SHAPE_LIMIT:
        chosen = np.stack([_best_rows(q, p) for q, p in zip(queries, passages, strict=True)])
        passages = np.take_along_axis(passages, chosen[:, :, None], axis=1)
    size = max(1, _CHUNK_ENTRIES // ((passages.shape[1] + 1) * passages.shape[2]))
    starts = range(0, len(queries), size)
    parts = [_geometry(queries[at : at + size], passages[at : at + size], directions) for at in starts]
    geometry = _joined([part for part, _ in parts])
    if chosen is not None:
        geometry = replace(geometry, order=np.take_along_axis(chosen, geometry.order, axis=1))
    return geometry, parts[0][1] if len(parts) == 1 else np.concatenate([move for _, move in parts])


def _best_rows(query: FloatArray, passages: FloatArray) -> IntArray:
    """Rows of the `SHAPE_LIMIT` passages of highest cosine to one query, exact copies coming last.

    Copies are told by their cosines to the query and to one random direction, which no two other
    passages share.
    """
    unit, _ = unit_rows(passages)
    probe = np.random.default_rng(_SALT).standard_normal((2, passages.shape[1]))
    probe[0] = query
    projected = np.round(unit @ unit_rows(probe)[0].T, _DIGITS)
    order = np.argsort(-projected[:, 0], kind="stable")
    _, first = np.unique(projected[order], axis=0, return_index=True)
    copies = np.ones(len(order), dtype=bool)
    copies[first] = False
    return np.concatenate([order[~copies], order[copies]])[:SHAPE_LIMIT]


def _geometry(
    queries: FloatArray, passages: FloatArray, directions: FloatArray | None
) -> tuple[Geometry, FloatArray]:
    block = stack(queries, passages)
    cosines, gram = gram_of_stack(block)
    # On a line there is no direction to turn to.
    if directions is None or block.shape[2] == 1:
        return canonical(cosines, gram), np.full(len(queries), np.nan)
    probed = stability.probe_cosines(block, cosines, directions)
    return canonical(cosines, gram), stability.mean_largest_change(cosines, probed)


def _joined(parts: list[Geometry]) -> Geometry:
    if len(parts) == 1:
        return parts[0]
    return Geometry(*(np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(Geometry)))


def _by_length(geometry: Geometry, keep: Mask, move: FloatArray) -> Signals:
    """Signals on the distinct passages: queries with equally many of them share a kernel call."""
    if keep.all():
        return shape_signals(geometry, move, keep.shape[1])
    lengths = np.add.reduce(keep, axis=1)
    result = Signals.of(len(lengths), {})
    for n in np.unique(lengths):
        rows = np.flatnonzero(lengths == n)
        columns = np.nonzero(keep[rows])[1].reshape(len(rows), n)
        scatter(result, rows, shape_signals(geometry.take(rows, columns), move[rows], keep.shape[1]))
    return result


def _mean_top3(geometry: Geometry) -> FloatArray:
    """Mean of the three best cosines, exact copies counted once.

    Near duplicates count each: which of a chain of them is kept may jump when a cosine moves, and grounding
    must not fall when a cosine rises.
    """
    keep = distinct(geometry.gram, EXACT_DUPLICATE)
    first = np.argsort(~keep, axis=1, kind="stable")[:, :3]
    real = np.take_along_axis(keep, first, axis=1)
    total = np.add.reduce(np.take_along_axis(geometry.cosines, first, axis=1), axis=1, where=real)
    return np.asarray(total / np.add.reduce(real, axis=1))


def _leaders(geometry: Geometry, keep: Mask) -> tuple[IntArray, FloatArray]:
    if keep[:, :N_LEADERS].all():
        return geometry.order[:, :N_LEADERS], geometry.cosines[:, :N_LEADERS]
    first = np.argsort(~keep, axis=1, kind="stable")[:, :N_LEADERS]
    real = np.take_along_axis(keep, first, axis=1)
    leaders = np.where(real, np.take_along_axis(geometry.order, first, axis=1), -1)
    return leaders, np.where(real, np.take_along_axis(geometry.cosines, first, axis=1), np.nan)


def shape_signals(geometry: Geometry, move: FloatArray, n_shape: int) -> Signals:
    """Signals of canonical lists of distinct passages, `n_shape` of them before duplicates went."""
    cosines, gram = geometry.cosines, geometry.gram
    count, n = cosines.shape
    bars = summarise(cosines, joint_deaths(cosines, gram))
    energy = sheaf.dirichlet_energy(gram)
    return Signals.of(
        count,
        {
            "max_cosine": cosines[:, 0],
            "mean_top3_cosine": _mean(cosines[:, :3]),
            "top_gap": cosines[:, 0] - cosines[:, 1] if n > 1 else np.nan,
            **spread_signals(cosines),
            **coherence(cosines, gram),
            "second_bar": bars.second_bar,
            "persistence_margin": bars.margin,
            "dominance": bars.dominance,
            "fragmentation": bars.fragmentation,
            "n_components": bars.n_components,
            "concentration": concentration(cosines),
            "lambda_2": sheaf.algebraic_connectivity(gram),
            "dirichlet_energy": energy,
            "conditioned_energy": sheaf.without_query(energy, cosines),
            "flip_angle": stability.flip_angle(cosines, gram) * _DEGREES,
            "stability_move": move,
            "n_nodes": n,
            "effective_k": n,
            "n_shape": n_shape,
        },
    )


def spread_signals(cosines: FloatArray) -> dict[str, FloatArray | float]:
    """Signals of the descending `cosines` (Q, n) alone: of the served list, or of the whole retrieved one."""
    return {
        "std_top10_cosine": spread(cosines, 10),
        "std_top20_cosine": spread(cosines, 20),
        "head_tail_gap": head_tail_gap(cosines),
    }


def spread(cosines: FloatArray, most: int) -> FloatArray | float:
    """Standard deviation of the `most` best of descending `cosines` (Q, n); nan for n = 1."""
    if cosines.shape[1] == 1:
        return np.nan
    best = cosines[:, :most]
    apart = best - _mean(best)[:, None]
    return np.sqrt(_mean(apart * apart))


def head_tail_gap(cosines: FloatArray) -> FloatArray | float:
    """Mean of ranks 1 to 3 minus mean of ranks 11 to 20 of descending `cosines` (Q, n); nan below 20."""
    if cosines.shape[1] < 20:
        return np.nan
    return np.maximum(_mean(cosines[:, :3]) - _mean(cosines[:, 10:20]), 0.0)


def concentration(values: FloatArray) -> FloatArray:
    """1 minus the entropy of the positive part of `values` (Q, n) over log n; 0 when undefined."""
    n = values.shape[1]
    if n == 1:
        return np.zeros(len(values))
    positive = np.maximum(values, _TINY)
    total = np.add.reduce(positive, axis=1)
    entropy = np.log(total) - np.add.reduce(positive * np.log(positive), axis=1) / total
    return np.asarray(np.minimum(np.maximum(1.0 - entropy / math.log(n), 0.0), 1.0))


def _mean(rows: FloatArray) -> FloatArray:
    """Row means; half the price of `ndarray.mean` on short rows."""
    return np.asarray(np.add.reduce(rows, axis=1) / rows.shape[1])
