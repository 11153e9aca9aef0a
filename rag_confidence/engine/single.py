"""Signals of one short list in plain Python.

Below some dozens of passages an array call costs more than the arithmetic it does. This is the same
mathematics as `lockstep`, which the tests hold against it, at a third of the price for one query.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rag_confidence._types import FloatArray
from rag_confidence.engine import stability
from rag_confidence.engine.barcode import ZERO_LENGTH, joint_edges, merge
from rag_confidence.engine.coherence import HEAD, LISTED, coherence_of_list
from rag_confidence.engine.relevance import EXACT_DUPLICATE, gram_of_stack, stack
from rag_confidence.engine.sheaf import algebraic_connectivity
from rag_confidence.engine.signals import N_LEADERS, SIGNAL_NAMES, Measured, Signals

LONGEST = 64
"""Lists longer than this are faster in lock-step, even alone."""

_TINY = sys.float_info.min
_UNASSESSED = dict.fromkeys(SIGNAL_NAMES, math.nan)


@dataclass(frozen=True)
class MeasuredList:
    """Signals of one list by name (nan where not assessed), and its best distinct passages.

    `leaders` holds (served position, cosine) pairs, at most `N_LEADERS`; `cosines` are those of all passages
    as served.
    """

    signals: dict[str, float]
    leaders: list[tuple[int, float]]
    cosines: list[float]


def measure_one(
    queries: FloatArray, passages: FloatArray, *, duplicate_cosine: float, directions: FloatArray | None
) -> Measured:
    """`lockstep.measure_many` for one query (1, d) and at most `LONGEST` passages (1, k, d)."""
    found = measure_list(queries, passages, duplicate_cosine=duplicate_cosine, directions=directions)
    places, cosines = zip(*found.leaders, strict=True)
    return Measured(Signals.of(1, found.signals), np.array([places]), np.array([cosines]))


def measure_list(
    queries: FloatArray, passages: FloatArray, *, duplicate_cosine: float, directions: FloatArray | None
) -> MeasuredList:
    """`measure_one` without arrays in the result."""
    block = stack(queries, passages)
    cosines, gram = gram_of_stack(block)
    served = cosines[0].tolist()
    ranked = _ranked(served)
    kept = _distinct(ranked, gram[0], min(duplicate_cosine, EXACT_DUPLICATE))
    values = [served[place] for place in kept]
    top = kept if len(kept) == len(served) else _distinct(ranked, gram[0], EXACT_DUPLICATE)
    mutual = gram[0] if kept == list(range(len(served))) else gram[0].take(kept, axis=0).take(kept, axis=1)
    found = _UNASSESSED | _shape(values, mutual) | {"n_shape": len(served)}
    found["mean_top3_cosine"] = _mean([served[place] for place in top[:3]])
    # On a line there is no direction to turn to.
    if directions is not None and block.shape[2] > 1:
        probed = stability.probe_cosines(block, cosines, directions)
        found["stability_move"] = float(stability.mean_largest_change(cosines, probed)[0])
    return MeasuredList(found, list(zip(kept[:N_LEADERS], values[:N_LEADERS], strict=True)), served)


def _ranked(served: list[float]) -> list[int]:
    places = list(range(len(served)))
    return places if served == sorted(served, reverse=True) else sorted(places, key=lambda i: -served[i])


def _distinct(ranked: list[int], gram: FloatArray, limit: float) -> list[int]:
    """See `relevance.distinct`: greedy in order of cosine."""
    close = gram > limit
    if np.count_nonzero(close) == len(ranked):
        return ranked
    rows, kept = close.tolist(), list[int]()
    for place in ranked:
        if not any(rows[place][earlier] for earlier in kept):
            kept.append(place)
    return kept


def _shape(values: list[float], gram: FloatArray) -> dict[str, float]:
    """Signals of distinct passages with descending cosines `values`."""
    n, best = len(values), values[0]
    energy = max(0.5 - 0.5 * (float(np.add.reduce(gram, axis=None)) - n) / max(n * (n - 1), 1), 0.0)
    found = {
        "max_cosine": best,
        "concentration": _concentration(values),
        "dirichlet_energy": min(energy, 1.0) if n > 1 else 0.0,
        "n_nodes": n,
        "effective_k": n,
    }
    found |= _bars(values, gram)
    if n == 1:
        return found | {"conditioned_energy": 0.0}
    variance = _variance(values)
    along_query = 0.5 * n / (n - 1) * variance
    found["conditioned_energy"] = max(found["dirichlet_energy"] - along_query, 0.0)
    found["top_gap"] = best - values[1]
    found["std_top10_cosine"] = math.sqrt(_variance(values[:10]) if n > 10 else variance)
    found["std_top20_cosine"] = math.sqrt(_variance(values[:20]) if n > 20 else variance)
    found |= coherence_of_list(values[:LISTED], gram[:HEAD, :LISTED].tolist())
    found["lambda_2"] = float(algebraic_connectivity(gram))
    found["flip_angle"] = _flip_angle(values, gram[0].tolist())
    if n >= 20:
        found["head_tail_gap"] = max(_mean(values[:3]) - _mean(values[10:20]), 0.0)
    return found


def _bars(values: list[float], gram: FloatArray) -> dict[str, float]:
    """See `joint.summarise`."""
    death, _ = merge(values, *joint_edges(np.array(values), gram))
    bars = [birth - end for birth, end in zip(values[1:], death[1:], strict=True)]
    finite = [bar for bar in bars if bar > ZERO_LENGTH]
    essential = values[0] - min(death[1:], default=values[0])
    second, total = max(finite, default=0.0), sum(finite)
    return {
        "second_bar": second,
        "persistence_margin": essential - second,
        "dominance": essential / (essential + total) if essential > 0.0 else 1.0,
        "fragmentation": total,
        "n_components": 1 + len(finite),
    }


def _flip_angle(values: list[float], to_best: list[float]) -> float:
    """See `stability.flip_angle`, in degrees."""
    best = values[0]
    rivals = zip(values[1:], to_best[1:], strict=True)
    ratio = min([(best - value) / math.sqrt(2.0 - 2.0 * mutual) for value, mutual in rivals])
    return math.degrees(math.asin(min(ratio, 1.0)))


def _concentration(values: list[float]) -> float:
    """See `lockstep.concentration`."""
    if len(values) == 1:
        return 0.0
    positive = [max(value, _TINY) for value in values]
    total = sum(positive)
    entropy = math.log(total) - sum([value * math.log(value) for value in positive]) / total
    return min(max(1.0 - entropy / math.log(len(values)), 0.0), 1.0)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _variance(values: Sequence[float]) -> float:
    middle = _mean(values)
    return sum([(value - middle) ** 2 for value in values]) / len(values)
