"""Sentences: what a verdict asks for, why it was reached, and the card that explains a record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_confidence._predictions import GatePrediction
from rag_confidence._types import ReasonCode, Signal, Verdict
from rag_confidence.product.policy import DEFAULT_POLICY, MetricPolicy

ACTIONS: dict[Verdict, str] = {
    Verdict.ANSWER: "serve the answer",
    Verdict.REVIEW: "serve with a caveat, or retrieve again before answering",
    Verdict.ABSTAIN: "withhold the answer; ask to rephrase, or say that nothing was found",
    Verdict.ESCALATE: "show the conflicting sources, or route to a person",
}

_SHOWN_PARTS = 4

_LABELS: dict[Signal, str] = {
    Signal.TOPICAL_GROUNDING: "topical grounding",
    Signal.ANSWER_LOCALIZATION: "answer localization",
    Signal.SUPPORT_COHESION: "support cohesion",
    Signal.EVIDENCE_CONSISTENCY: "evidence consistency",
    Signal.QUERY_ROBUSTNESS: "query robustness",
}

_MEANINGS: dict[str, str] = {
    "on-topic": "the question is about these passages",
    "loosely-related": "the passages touch the question's topic at best",
    "off-topic": "the passages are not about the question",
    "sharp": "the support sits in one region",
    "fuzzy": "a second region of support stands somewhat apart",
    "diffuse": "the support comes from places that do not resemble each other",
    "compact": "the passages hold together as one group",
    "split": "the passages begin to fall into groups",
    "scattered": "the passages fall into groups that share little",
    "consistent": "the passages resemble each other closely",
    "minor-tension": "the passages resemble each other in part",
    "conflicting": "the passages say unlike things",
    "stable": "the top passage survives small changes of the question's vector",
    "phrasing-sensitive": "a small change of the question's vector changes the top passage",
    "fragile": "the top passage is tied with another",
}


# What these bands mean when the signals are measured against the background of the corpus.
_PROFILED_MEANINGS: dict[str, str] = {
    "on-topic": "the corpus comes nearer to the question than it does to most by chance",
    "loosely-related": "the corpus comes about as near to the question as by chance",
    "off-topic": "the corpus comes no nearer to the question than by chance",
    "sharp": "the best passage stands far above what this corpus offers to any question",
    "fuzzy": "the best passage stands somewhat above what this corpus offers to any question",
    "diffuse": "the best passage hardly stands above what this corpus offers to any question",
    "compact": "the next passages are close companions of the best one",
    "split": "the next passages are loose companions of the best one",
    "scattered": "the next passages are hardly closer to the best one than the rest",
}


@dataclass(frozen=True)
class Contribution:
    """What one signal did to the KPI.

    Attributes
    ----------
    signal : str
    value : float or None
        On 0..100; None when not assessed.
    band : str or None
    weight : float
        Share in the weighted shape as used; 1 for topical grounding, which multiplies it.
    points_lost : float
        Points of KPI (0..100) that this signal costs against a value of 100, the rest unchanged.
    """

    signal: str
    value: float | None
    band: str | None
    weight: float
    points_lost: float


def contributions(record: Mapping[str, Any]) -> tuple[Contribution, ...]:
    """One `Contribution` a signal, the costliest first.

    Lost points of the shape drivers and of grounding are exact one at a time; they need not add up,
    because grounding multiplies.
    """
    gate = record["signals.topical_grounding"]
    factor = 1.0 if gate is None else float(gate)
    drivers = [(record[f"signals.{signal}"], record[f"weights.{signal}"]) for signal in tuple(Signal)[1:]]
    # The seed counts robustness that was not probed as 1; elsewhere what was not assessed has no weight.
    shape = min(sum(weight * (1.0 if value is None else value) for value, weight in drivers), 1.0)
    found = [
        _contribution(record, Signal.TOPICAL_GROUNDING, 1.0, 0.0 if gate is None else shape * (1.0 - factor))
    ]
    for signal in tuple(Signal)[1:]:
        value, weight = record[f"signals.{signal}"], float(record[f"weights.{signal}"])
        lost = 0.0 if value is None else factor * weight * (1.0 - value)
        found.append(_contribution(record, signal, weight, lost))
    return tuple(sorted(found, key=lambda c: -c.points_lost))


def _contribution(record: Mapping[str, Any], signal: Signal, weight: float, lost: float) -> Contribution:
    value = record[f"signals.{signal}"]
    percent = None if value is None else 100.0 * value
    return Contribution(str(signal), percent, record[f"{signal}_band"], weight, 100.0 * lost)


def reason(code: ReasonCode, facts: Mapping[str, Any], risk: str, policy: MetricPolicy) -> str:
    """One sentence for a user, with the value and the threshold that decided.

    Parameters
    ----------
    code : ReasonCode
        Row of the verdict table.
    facts : mapping
        Displayed values on 0..100 ("kpi" and the signals), "contradiction" in [0, 1] and "loop_life".
    risk : str
        The primary risk: where a driver is below its floor, the one that is so by most.
    policy : MetricPolicy
        Supplies the thresholds.
    """
    contradiction = facts["contradiction"]
    looped = contradiction is None or contradiction < policy.contradiction_at
    sentence = LOOP_REASON if code is ReasonCode.CONFLICTING and looped else _REASONS[code]
    floor = policy.signal_floors.get(risk)
    return sentence.format(f=facts, p=policy, risk=risk.replace("_", " "), value=facts.get(risk), floor=floor)


_REASONS: dict[ReasonCode, str] = {
    ReasonCode.NO_PASSAGES: "Nothing usable was found: there is no passage to answer from.",
    ReasonCode.DEGENERATE_QUERY: "The question could not be read: its embedding is zero.",
    ReasonCode.OFF_TOPIC: (
        "Nothing found is about this question: topical grounding {f[topical_grounding]:g} is below "
        "{p.grounding_min:g}."
    ),
    ReasonCode.CONFLICTING: (
        "The sources conflict: contradiction score {f[contradiction]:.6g} reaches {p.contradiction_at:g}."
    ),
    ReasonCode.WEAK: (
        "What was found supports an answer too weakly: confidence {f[kpi]:g} is below {p.review_at:g}; "
        "the weakest signal is {risk}."
    ),
    ReasonCode.AMBIGUOUS: (
        "What was found is ambiguous: confidence {f[kpi]:g} is below {p.answer_at:g}; "
        "the weakest signal is {risk}."
    ),
    ReasonCode.DRIVER_FLOOR: (
        "Confidence {f[kpi]:g} is high enough, but {risk} {value:g} is below its floor of {floor:g}."
    ),
    ReasonCode.SHAPE_ONLY: (
        "The passages look coherent (confidence {f[kpi]:g}), but whether they are about this question "
        "cannot be assessed."
    ),
    ReasonCode.HEALTHY: (
        "The passages support an answer: confidence {f[kpi]:g} reaches {p.answer_at:g} "
        "and no signal is below its floor."
    ),
}

LOOP_REASON = (
    "The sources may conflict: a loop of life {f[loop_life]:.2f}, and evidence consistency "
    "{f[evidence_consistency]:g} is below {p.floors.evidence_consistency:g}."
)


_GATE_REASONS: dict[ReasonCode, str] = {
    ReasonCode.GATE_ACCEPT: "The evidence passes the gate: score {p.score:.3f}{above}.",
    ReasonCode.GATE_REJECT: (
        "The evidence fails the gate: score {p.score:.3f} is lower than that of nearly all sufficient "
        "evidence seen before{below}."
    ),
    ReasonCode.GATE_AMBIGUOUS: (
        "The evidence is ambiguous: score {p.score:.3f} is no surprise for insufficient evidence{below}."
    ),
    ReasonCode.GATE_EMPTY_SET: (
        "The evidence is unusual: score {p.score:.3f} is a surprise for sufficient and for insufficient "
        "evidence."
    ),
    ReasonCode.GATE_UNFIT_GROUP: (
        "The gate cannot decide: too few retrievals of the group {p.group!r} have been labelled."
    ),
    ReasonCode.GATE_INFINITE: (
        "The gate cannot decide: it was calibrated on too few labels ({p.guarantee.n0} insufficient, "
        "{p.guarantee.n1} sufficient)."
    ),
}


# What a gate without prediction sets says in another way.
_RISK_REASONS: dict[ReasonCode, str] = {
    ReasonCode.GATE_AMBIGUOUS: "The evidence does not pass the gate: score {p.score:.3f}{below}.",
    ReasonCode.GATE_INFINITE: (
        "The gate cannot decide: its {p.guarantee.n0} insufficient and {p.guarantee.n1} sufficient labels "
        "certify no threshold."
    ),
}


def gate_reason(gated: GatePrediction) -> str:
    """The sentence for a decision of the gate."""
    margin = gated.margin_to_threshold
    above = "" if margin is None else f", {margin:.3f} above its threshold"
    below = "" if margin is None or margin > 0 else f", {-margin:.3f} below where it accepts"
    sentence = _GATE_REASONS[gated.reason_code]
    if gated.prediction_set is None:
        sentence = _RISK_REASONS.get(gated.reason_code, sentence)
    return sentence.format(p=gated, above=above, below=below)


def narrative(
    record: Mapping[str, Any], question: str | None, passages: Sequence[tuple[int, float, str | None]]
) -> str:
    """The card: verdict, reason, one line a signal, what was not assessed, and the support."""
    lines = [f"Question: {question}"] if question else []
    lines += [
        f"{record['verdict']}: {record['verdict_action']}",
        record["verdict_reason"],
        "",
        _row("retrieval confidence", record["retrieval_confidence"], record["retrieval_confidence_band"]),
    ]
    lines += [_line(record, signal) for signal in Signal]
    lines += [
        "",
        f"  weakest signal: {record['primary_risk'].replace('_', ' ')}",
        f"  {_contradiction(record)}",
        *_model_lines(record),
        *_gate_lines(record),
    ]
    if record["policy_fingerprint"] == DEFAULT_POLICY.fingerprint and not record["profile_fingerprint"]:
        lines.append("  grounding gate not fitted to your embedder: see MetricPolicy.fit_grounding")
    lines += [f"  note: {warning}" for warning in record["warnings"]]
    lines += _support(passages)
    return "\n".join(lines)


def _line(record: Mapping[str, Any], signal: Signal) -> str:
    value, band = record[signal], record[f"{signal}_band"]
    if value is None:
        return f"  {_LABELS[signal]:<22}     -  not assessed"
    meaning = _MEANINGS[band]
    if record["profile_fingerprint"]:
        meaning = _PROFILED_MEANINGS.get(band, meaning)
        if signal is not Signal.TOPICAL_GROUNDING and record[f"weights.{signal}"] == 0.0:
            meaning += " (not counted)"
    return _row(_LABELS[signal], value, f"{band}: {meaning}")


def _row(label: str, value: float, words: str) -> str:
    return f"  {label:<22}{value:>6.1f}  {words}"


def _contradiction(record: Mapping[str, Any]) -> str:
    if not record["contradiction_assessed"]:
        return "contradiction not assessed: embeddings cannot see it; pass contradiction="
    return f"contradiction score: {record['signals.contradiction']:.6g}"


def _model_lines(record: Mapping[str, Any]) -> list[str]:
    if record["model_contributions"] is None:
        return []
    parts = {name: part for name, part in record["model_contributions"].items() if name != "intercept"}
    largest = sorted(parts, key=lambda name: -abs(parts[name]))[:_SHOWN_PARTS]
    told = ", ".join(f"{name.removeprefix('signals.')} {parts[name]:+.2f}" for name in largest)
    lines = [f"  model: P(sufficient) {record['p_sufficient']:.3f}; log-odds from {told or 'no signal'}"]
    beyond = [name.removeprefix("signals.") for name in record["model_out_of_range"]]
    if beyond:
        lines.append(f"  model: outside what it was trained on: {', '.join(beyond)}")
    return lines


def _gate_lines(record: Mapping[str, Any]) -> list[str]:
    if record["decision"] is None:
        return []
    kept = record["prediction_set"]
    labels = "" if kept is None else f", labels kept {{{', '.join(map(str, kept))}}}"
    lines = [f"  gate: {record['decision']}{labels}; the policy alone says {record['policy_verdict']}"]
    if record["p_value_0"] is not None:
        p0, p1 = record["p_value_0"], record["p_value_1"]
        lines.append(f"  p-values: {p0:.3g} for insufficient, {p1:.3g} for sufficient")
    return [*lines, f"  guarantee: {record['guarantee']['sentence']}"]


def _support(passages: Sequence[tuple[int, float, str | None]]) -> list[str]:
    if not passages:
        return []
    rows = [
        f"  [{index}] {cosine:+.3f}  {snippet or '(no text given)'}" for index, cosine, snippet in passages
    ]
    return ["", "  support:", *rows]
