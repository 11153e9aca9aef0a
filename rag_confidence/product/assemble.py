"""One row of the columns becomes one JSON record: the only place that writes 0..100."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rag_confidence._types import Backend, FloatArray, IntArray
from rag_confidence.engine.signals import SIGNAL_NAMES, Signals
from rag_confidence.product.drivers import Drivers
from rag_confidence.product.narrative import ACTIONS, reason
from rag_confidence.product.policy import MetricPolicy
from rag_confidence.product.record import SCHEMA_VERSION
from rag_confidence.product.verdict import (
    CODES,
    CONFIDENCE_BANDS,
    KPI_BANDS,
    SIGNAL_BANDS,
    SIGNALS,
    VERDICT_OF,
    band,
    shown,
)

# Formatting an enum member costs more than the whole verdict table, so the keys are made once.
_NAMES = [signal.value for signal in SIGNALS]
_BAND_KEYS = [f"{name}_band" for name in _NAMES]
_SIGNAL_KEYS = [f"signals.{name}" for name in _NAMES]
_WEIGHT_KEYS = [f"weights.{name}" for name in _NAMES[1:]]
_BAND_WORDS = [SIGNAL_BANDS[signal] for signal in SIGNALS]
_MEASURED = (
    "max_cosine",
    "mean_top3_cosine",
    "top_gap",
    "std_top10_cosine",
    "head_tail_gap",
    "second_bar",
    "lambda_2",
    "dirichlet_energy",
    "conditioned_energy",
    "flip_angle",
)
_MEASURED_SIGNALS = [(f"signals.{name}", name) for name in _MEASURED]


@dataclass(frozen=True)
class Context:
    """What one call of `score` or `score_many` was told, and what it noticed on the way.

    Arrays have shape (Q,); the mappings hold only the queries they have something on.
    """

    policy: MetricPolicy
    backend: Backend
    embedder: str | None
    k_requested: Sequence[int | None]
    k_returned: IntArray
    n_dropped: IntArray
    contradiction: FloatArray
    p_sufficient: FloatArray
    warnings: Mapping[int, list[str]] = field(default_factory=dict)
    questions: Mapping[int, str] = field(default_factory=dict)
    texts: Mapping[int, tuple[str, ...]] = field(default_factory=dict)


def build_record(
    signals: Signals, drivers: Drivers, codes: IntArray, risks: IntArray, context: Context, row: int
) -> dict[str, Any]:
    """The record of one retrieval; see `record.KEYS` for what each key means."""
    policy = context.policy
    code, kpi = CODES[int(codes[row])], float(drivers.kpi[row])
    measured = dict(zip(SIGNAL_NAMES, map(_plain, signals.table[:, row].tolist()), strict=True))
    values = dict(zip(_NAMES, map(_plain, drivers.values[:, row].tolist()), strict=True))
    risk = "none" if risks[row] < 0 else _NAMES[int(risks[row])]
    contradiction = _plain(float(context.contradiction[row]))
    verdict, percent = VERDICT_OF[code], 100.0 * kpi
    display = _displayed(values, policy)
    confidence = shown(percent, policy.display_cuts["kpi"])
    facts = {**display, "kpi": confidence, "contradiction": contradiction, "loop_life": measured["loop_life"]}
    return {
        "schema_version": SCHEMA_VERSION,
        "verdict": verdict.value,
        "verdict_action": ACTIONS[verdict],
        "verdict_reason": reason(code, facts, risk, policy),
        "reason_code": code.value,
        "primary_risk": risk,
        "retrieval_confidence": confidence,
        "confidence_band": band(percent, policy.confidence_cuts, CONFIDENCE_BANDS),
        "retrieval_confidence_band": band(percent, policy.kpi_cuts, KPI_BANDS),
        "kpi": kpi,
        "p_sufficient": _plain(float(context.p_sufficient[row])),
        **display,
        "grounding_assessed": values["topical_grounding"] is not None,
        "contradiction_assessed": contradiction is not None,
        "k_requested": context.k_requested[row],
        "k_returned": int(context.k_returned[row]),
        "effective_k": _count(measured["effective_k"]) or 0,
        "embedder": context.embedder,
        "policy_fingerprint": policy.fingerprint,
        "warnings": context.warnings.get(row, []),
        **dict(zip(_WEIGHT_KEYS, drivers.weights[:, row].tolist(), strict=True)),
        **_signals(values, measured, contradiction),
        **_evidence(measured, context, row),
    }


def _plain(number: float) -> float | None:
    """nan, which marks what was not assessed, is the only number that differs from itself."""
    return number if number == number else None


def _count(value: float | None) -> int | None:
    return None if value is None else int(value)


def _displayed(values: Mapping[str, float | None], policy: MetricPolicy) -> dict[str, Any]:
    """Rounded values and bands of the five signals."""
    found: dict[str, Any] = {}
    for (name, value), band_key, words in zip(values.items(), _BAND_KEYS, _BAND_WORDS, strict=True):
        percent = None if value is None else 100.0 * value
        found[name] = shown(percent, policy.display_cuts[name])
        found[band_key] = band(percent, policy.signal_cuts[name], words)
    return found


def _signals(
    values: Mapping[str, float | None], measured: Mapping[str, float | None], contradiction: float | None
) -> dict[str, Any]:
    found: dict[str, Any] = dict(zip(_SIGNAL_KEYS, values.values(), strict=True))
    for key, name in _MEASURED_SIGNALS:
        found[key] = measured[name]
    found["signals.contradiction"] = contradiction
    return found


def _evidence(measured: Mapping[str, float | None], context: Context, row: int) -> dict[str, Any]:
    energy, moved = measured["dirichlet_energy"], measured["stability_move"]
    return {
        "evidence.topical_match_cosine": measured["mean_top3_cosine"],
        "evidence.n_relevance_clusters": _count(measured["n_components"]),
        "evidence.persistence_margin": measured["persistence_margin"],
        "evidence.dominance": measured["dominance"],
        "evidence.fragmentation": measured["fragmentation"],
        "evidence.focus_depth": measured["focus_depth"],
        "evidence.concentration": measured["concentration"],
        "evidence.sheaf_consistency": None if energy is None else 1.0 - energy,
        "evidence.contradiction_loops": _count(measured["n_loops"]),
        "evidence.minor_loops": _count(measured["n_minor_loops"]),
        "evidence.contradiction_loop_life": measured["loop_life"],
        "evidence.loop_ratio": measured["loop_ratio"],
        "evidence.loop_p_value": measured["loop_p_value"],
        "evidence.stability_move": moved,
        "evidence.stability_move_kind": None if moved is None else _move_kind(measured, context.policy),
        "evidence.embedding_backend": context.backend,
        "evidence.n_nodes": _count(measured["n_nodes"]),
        "evidence.n_shape": _count(measured["n_shape"]) or 0,
        "evidence.n_dropped_rows": int(context.n_dropped[row]),
    }


def _move_kind(measured: Mapping[str, float | None], policy: MetricPolicy) -> str:
    exact = measured["focus_depth"] is not None or policy.definitions == "seed"
    return "bottleneck" if exact else "bound"
