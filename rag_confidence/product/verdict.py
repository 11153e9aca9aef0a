"""Bands, verdict and primary risk: one decision table, applied to a whole block at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rag_confidence._types import FloatArray, IntArray, Mask, ReasonCode, Signal, Verdict
from rag_confidence.product.drivers import Drivers
from rag_confidence.product.policy import MetricPolicy

VERDICT_OF: dict[ReasonCode, Verdict] = {
    ReasonCode.NO_PASSAGES: Verdict.ABSTAIN,
    ReasonCode.DEGENERATE_QUERY: Verdict.ABSTAIN,
    ReasonCode.OFF_TOPIC: Verdict.ABSTAIN,
    ReasonCode.CONFLICTING: Verdict.ESCALATE,
    ReasonCode.WEAK: Verdict.ABSTAIN,
    ReasonCode.AMBIGUOUS: Verdict.REVIEW,
    ReasonCode.DRIVER_FLOOR: Verdict.REVIEW,
    ReasonCode.SHAPE_ONLY: Verdict.REVIEW,
    ReasonCode.HEALTHY: Verdict.ANSWER,
}

CODES: tuple[ReasonCode, ...] = tuple(VERDICT_OF)
"""Rows of the policy's table, in the order in which the default table asks for them."""

SIGNALS: tuple[Signal, ...] = tuple(Signal)

KPI_BANDS = ("strong", "good", "mixed", "weak")
CONFIDENCE_BANDS = ("HIGH", "MEDIUM", "LOW")
SIGNAL_BANDS: dict[Signal, tuple[str, str, str]] = {
    Signal.TOPICAL_GROUNDING: ("on-topic", "loosely-related", "off-topic"),
    Signal.ANSWER_LOCALIZATION: ("sharp", "fuzzy", "diffuse"),
    Signal.SUPPORT_COHESION: ("compact", "split", "scattered"),
    Signal.EVIDENCE_CONSISTENCY: ("consistent", "minor-tension", "conflicting"),
    Signal.QUERY_ROBUSTNESS: ("stable", "phrasing-sensitive", "fragile"),
}


@dataclass(frozen=True)
class Situation:
    """What the table looks at beside the drivers, each of shape (Q,) or of one retrieval.

    `contradiction` is nan where nobody assessed it; `n_loops` is read by the seed's table alone.
    """

    no_passages: Mask | bool
    degenerate_query: Mask | bool
    contradiction: FloatArray | float
    n_loops: FloatArray | float


_PLAIN = Situation(no_passages=False, degenerate_query=False, contradiction=math.nan, n_loops=math.nan)


def decide(drivers: Drivers, situation: Situation, policy: MetricPolicy) -> IntArray:
    """Index into `CODES` of the first row of the verdict table that holds, shape (Q,).

    Parameters
    ----------
    drivers : Drivers
        Unrounded, in [0, 1].
    situation : Situation
    policy : MetricPolicy

    Returns
    -------
    ndarray of int, shape (Q,)

    Notes
    -----
    nan compares false with everything, so a driver that was not assessed fails no floor.
    """
    percent = 100.0 * drivers.values
    rows = _rows(100.0 * drivers.kpi, percent, situation, policy)
    table = np.empty((len(CODES), len(drivers.kpi)), dtype=bool)
    for place, row in enumerate(rows):
        table[place] = row
    if policy.definitions == "seed":
        table[2] = False
        table[3] |= _looped(drivers, situation, policy)
    return np.asarray(table.argmax(axis=0))


def decide_one(kpi: float, values: Sequence[float], policy: MetricPolicy) -> int:
    """`decide` for one retrieval with passages, a usable query and no contradiction score.

    `kpi` and the five `values` are in [0, 1]; nan where not assessed.
    """
    rows = _rows(100.0 * kpi, [100.0 * value for value in values], _PLAIN, policy)
    return next(place for place, row in enumerate(rows) if row)


def _rows(kpi: Any, percent: Any, situation: Situation, policy: MetricPolicy) -> tuple[Any, ...]:
    """The verdict table, a condition for each of `CODES`; floats and columns read alike."""
    floors, grounding = policy.floors, percent[0]
    below = (
        (percent[1] < floors.answer_localization)
        | (percent[2] < floors.support_cohesion)
        | (percent[3] < floors.evidence_consistency)
        | (percent[4] < floors.query_robustness)
    )
    return (
        situation.no_passages,
        situation.degenerate_query,
        grounding < policy.grounding_min,
        situation.contradiction >= policy.contradiction_at,
        kpi < policy.review_at,
        kpi < policy.answer_at,
        below,
        # Only nan, which marks what was not assessed, differs from itself.
        grounding != grounding,
        True,
    )


def _looped(drivers: Drivers, situation: Situation, policy: MetricPolicy) -> Mask:
    """The source escalates on a loop and low consistency, and asks for this before the topic."""
    inconsistent = 100.0 * drivers.of(Signal.EVIDENCE_CONSISTENCY) < policy.floors.evidence_consistency
    return np.asarray(inconsistent & (situation.n_loops >= 1.0))


def primary_risks(drivers: Drivers, policy: MetricPolicy) -> IntArray:
    """Index into `SIGNALS` of the signal that clears its floor by least, shape (Q,); -1 for none.

    Signals that were not assessed are left out, and drivers that hardly count; ties go to the earlier signal.
    """
    room = 100.0 * drivers.values - policy.floor_column
    # fmin passes over nan, and a query without any assessed signal keeps the sentinel.
    room = np.fmin(room, np.inf)
    weakest: IntArray = room.argmin(axis=0)
    weakest[np.isinf(np.minimum.reduce(room, axis=0))] = -1
    return weakest


def primary_risk_one(values: Sequence[float], policy: MetricPolicy) -> int:
    """`primary_risks` for the five `values` of one retrieval."""
    weakest, least = -1, math.inf
    for place, (value, floor) in enumerate(zip(values, policy.risk_floors, strict=True)):
        room = 100.0 * value - floor
        if room < least:
            weakest, least = place, room
    return weakest


def band(value: float | None, cuts: tuple[float, ...], words: tuple[str, ...]) -> str | None:
    """Word for an unrounded `value` in 0..100; None when it was not assessed."""
    if value is None:
        return None
    for cut, word in zip(cuts, words, strict=False):
        if value >= cut:
            return word
    return words[-1]


def shown(value: float | None, cuts: tuple[float, ...]) -> float | None:
    """`value` to one decimal, or to as many as keep it on its side of every one of `cuts`.

    Where rounding up would cross a cut, the number is rounded down instead.
    """
    if value is None:
        return None
    # Nearly always no cut is near; this runs six times a call.
    plain = round(value, 1)
    for cut in cuts:
        if (plain >= cut) != (value >= cut):
            break
    else:
        return plain
    for digits in range(1, 16):
        rounded = round(value, digits)
        for candidate in (rounded, round(rounded - 10.0**-digits, digits)):
            if all((candidate >= cut) == (value >= cut) for cut in cuts):
                return candidate
    return value
