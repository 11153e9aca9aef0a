"""One row of the columns becomes one JSON record: the only place that writes 0..100."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from rag_confidence._predictions import GatePrediction, Model, ModelPrediction
from rag_confidence._types import Backend, FloatArray
from rag_confidence.engine.signals import MOST_MATCHED, Signals
from rag_confidence.product.drivers import Drivers
from rag_confidence.product.gating import final_verdict
from rag_confidence.product.narrative import ACTIONS, gate_reason, reason
from rag_confidence.product.policy import MetricPolicy
from rag_confidence.product.record import GATE_KEYS, KEY_NAMES, SCHEMA_VERSION
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
_Value = TypeVar("_Value", float, float | None)
_PREFIX, _CONTRADICTION = "signals.", "signals.contradiction"
_MEASURED_SIGNALS = [
    (key, key.removeprefix(_PREFIX))
    for key in KEY_NAMES
    if key.startswith(_PREFIX) and key not in (*_SIGNAL_KEYS, _CONTRADICTION)
]


@dataclass(frozen=True)
class Call:
    """What one call of `score` or `score_many` was told about all of its retrievals.

    `policy` is as it is read: with a profile, `MetricPolicy.profiled` of the one that was given.
    """

    policy: MetricPolicy
    backend: Backend
    embedder: str | None
    gate_fingerprint: str | None = None
    profile_fingerprint: str | None = None
    model: Model | None = None
    score_used: str = "kpi"


@dataclass(frozen=True)
class Row:
    """One assessed retrieval in plain numbers; nan marks what was not assessed.

    `values` are the five signals in [0, 1], `weights` those of the four drivers as used, `code` and
    `risk` indices into `CODES` and `SIGNALS` (-1 for none), `gated` the decision of the gate and `predicted`
    what the model says, if there are such.
    """

    measured: Mapping[str, float]
    values: Sequence[float]
    weights: Sequence[float]
    kpi: float
    code: int
    risk: int
    k_requested: int | None
    k_returned: int
    n_dropped: int
    contradiction: float
    p_sufficient: float
    warnings: list[str]
    gated: GatePrediction | None = None
    predicted: ModelPrediction | None = None


def build_record(row: Row, call: Call) -> dict[str, Any]:
    """The record of one retrieval; see `record.KEYS` for what each key means."""
    policy, code = call.policy, CODES[row.code]
    measured = {name: _plain(value) for name, value in row.measured.items()}
    values = dict(zip(_NAMES, map(_plain, row.values), strict=True))
    risk = "none" if row.risk < 0 else _NAMES[row.risk]
    contradiction = _plain(row.contradiction)
    percent = 100.0 * row.kpi
    verdict, final_code = final_verdict(code, row.gated)
    display = _displayed(values, policy)
    confidence = shown(percent, policy.display_cuts["kpi"])
    facts = {**display, "kpi": confidence, "contradiction": contradiction, "loop_life": measured["loop_life"]}
    if row.gated is None or final_code is code:
        sentence = reason(code, facts, risk, policy)
    else:
        sentence = gate_reason(row.gated)
    return {
        "schema_version": SCHEMA_VERSION,
        "verdict": verdict.value,
        "policy_verdict": VERDICT_OF[code].value,
        "verdict_action": ACTIONS[verdict],
        "verdict_reason": sentence,
        "reason_code": final_code.value,
        "primary_risk": risk,
        "retrieval_confidence": confidence,
        "confidence_band": band(percent, policy.confidence_cuts, CONFIDENCE_BANDS),
        "retrieval_confidence_band": band(percent, policy.kpi_cuts, KPI_BANDS),
        "kpi": row.kpi,
        "p_sufficient": _plain(row.p_sufficient),
        **(_NO_GATE if row.gated is None else _gate(row.gated, call)),
        **display,
        "grounding_assessed": values["topical_grounding"] is not None,
        "contradiction_assessed": contradiction is not None,
        "k_requested": row.k_requested,
        "k_returned": row.k_returned,
        "effective_k": _count(measured["effective_k"]) or 0,
        "embedder": call.embedder,
        "policy_fingerprint": policy.fingerprint,
        "profile_fingerprint": call.profile_fingerprint,
        **_model(row.predicted, call),
        "warnings": list(row.warnings),
        **dict(zip(_WEIGHT_KEYS, row.weights, strict=True)),
        **signal_values(measured, [*values.values()], contradiction),
        **_evidence(measured, call, row.n_dropped),
    }


_NO_GATE: dict[str, Any] = dict.fromkeys(GATE_KEYS)


def _gate(gated: GatePrediction, call: Call) -> dict[str, Any]:
    kept = gated.prediction_set
    return {
        "decision": gated.decision.name,
        "prediction_set": None if kept is None else [*kept],
        "p_value_0": gated.p_value_0,
        "p_value_1": gated.p_value_1,
        "margin_to_threshold": gated.margin_to_threshold,
        "score_used": call.score_used,
        "group": None if gated.group is None else str(gated.group),
        "gate_fingerprint": call.gate_fingerprint,
        "guarantee": gated.guarantee.to_dict(),
    }


def _model(predicted: ModelPrediction | None, call: Call) -> dict[str, Any]:
    return {
        "model_fingerprint": None if call.model is None else call.model.fingerprint,
        "model_contributions": None if predicted is None else {**predicted.contributions},
        "model_out_of_range": None if predicted is None else [*predicted.out_of_range],
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


def signal_columns(signals: Signals, drivers: Drivers, contradiction: FloatArray) -> dict[str, FloatArray]:
    """Every `signals.*` of the record as a column of shape (Q,); nan where it was not assessed."""
    found = {key: drivers.of(signal) for key, signal in zip(_SIGNAL_KEYS, SIGNALS, strict=True)}
    found |= {key: signals[name] for key, name in _MEASURED_SIGNALS}
    return found | {_CONTRADICTION: contradiction}


def signal_values(
    measured: Mapping[str, _Value], values: Sequence[_Value], contradiction: _Value
) -> dict[str, _Value]:
    """`signal_columns` of one retrieval, from numbers, or from numbers and None."""
    found = dict(zip(_SIGNAL_KEYS, values, strict=True))
    found |= {key: measured[name] for key, name in _MEASURED_SIGNALS}
    return found | {_CONTRADICTION: contradiction}


def _evidence(measured: Mapping[str, float | None], call: Call, n_dropped: int) -> dict[str, Any]:
    energy, moved = measured["dirichlet_energy"], measured["stability_move"]
    return {
        "evidence.topical_match_cosine": measured[call.policy.match_signal],
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
        "evidence.stability_move_kind": None if moved is None else _move_kind(measured, call.policy),
        "evidence.embedding_backend": call.backend,
        "evidence.n_nodes": _count(measured["n_nodes"]),
        "evidence.n_shape": _count(measured["n_shape"]) or 0,
        "evidence.n_dropped_rows": n_dropped,
    }


def _move_kind(measured: Mapping[str, float | None], policy: MetricPolicy) -> str:
    on_tree = measured["focus_depth"] is not None or policy.definitions == "seed"
    return "bottleneck" if on_tree and (measured["n_nodes"] or 0) <= MOST_MATCHED else "bound"
