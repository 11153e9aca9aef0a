"""The tools around a gate: plan, fit, apply, evaluate."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field, StrictInt, StrictStr

from rag_confidence import (
    ConformalGate,
    GateEvaluation,
    GatePrediction,
    Thresholds,
    apply_conformal_gate,
    evaluate_conformal_gate,
    fit_conformal_gate,
    plan,
)
from rag_confidence._history import check_aligned, check_labels
from rag_confidence.adapters._mcp.gate_models import (
    DecisionResult,
    DecisionsResult,
    EvaluationResult,
    GateResult,
    PlanResult,
)
from rag_confidence.adapters._mcp.limits import FewScores, History, Judged, Names, Number, Scores, check_unit
from rag_confidence.adapters._mcp.results import BELOW_ALL, GuaranteeResult, finite

Alpha = Annotated[Number, Field(description="Largest rate of false acceptance, in (0, 1).")]
Threshold0 = Annotated[Number | None, Field(description="q0 of fit_conformal_gate; null if infinite.")]
Threshold1 = Annotated[Number | None, Field(description="q1 of fit_conformal_gate; null if infinite.")]

INFINITE_0 = "q0 is infinite: nothing is ever accepted. Label more insufficient rows, or raise alpha."
INFINITE_1 = "q1 is infinite: nothing is ever rejected. Label more sufficient rows, or raise alpha."


def plan_calibration(
    alpha: Alpha = 0.10,
    delta: Annotated[
        Number, Field(description="Share of calibration sets that may turn out unlucky.")
    ] = 0.05,
    tolerance: Annotated[
        Number, Field(description="How far above its level the rate of one calibration set may lie.")
    ] = 0.05,
    alpha_reject: Annotated[
        Number | None, Field(description="Level of a false REJECT; by default alpha.")
    ] = None,
    prevalence: Annotated[
        Number | None, Field(description="Expected share of sufficient rows, for the rows in all.")
    ] = None,
    target_risk: Annotated[
        Number | None, Field(description="Share of the accepted rows that may be insufficient.")
    ] = None,
    attempts: Annotated[StrictInt, Field(description="Tries at one question that share alpha.")] = 1,
) -> PlanResult:
    """How many labelled rows of each class a gate needs, before any is collected."""
    found = plan(
        alpha,
        delta,
        alpha_reject=alpha_reject,
        tolerance=tolerance,
        prevalence=prevalence,
        target_risk=target_risk,
        attempts=attempts,
    )
    return PlanResult.model_validate(found.to_dict())


def fit_gate(
    scores: History,
    labels: Judged,
    alpha: Alpha = 0.10,
    alpha_reject: Annotated[
        Number | None, Field(description="Level of a false REJECT; by default alpha.")
    ] = None,
    guarantee: Annotated[
        Literal["marginal", "pac"],
        Field(description="Bound on average over calibration sets, or for all but a share delta of them."),
    ] = "marginal",
    delta: Annotated[Number, Field(description='For "pac".')] = 0.05,
    clusters: Annotated[
        Names | None, Field(description="Query of each row, where a query has several rows.")
    ] = None,
    negatives: Annotated[
        dict[str, int] | None,
        Field(description="How many insufficient rows are topic_gap, ranking_failure, near_miss, unknown."),
    ] = None,
    collected: Annotated[
        list[str] | None, Field(description="First and last day of the rows, as 2026-11-30.")
    ] = None,
    labeling_source: Annotated[
        StrictStr | None, Field(description="Who or what decided on the labels.")
    ] = None,
) -> GateResult:
    """Fit class-conditional split-conformal thresholds q0 and q1 to labelled scores.

    If new retrievals are exchangeable with these rows, insufficient evidence is then accepted at a rate of
    at most alpha on average over calibration sets, or with "pac" for all but a share delta of them; the rate
    of this very set may lie above alpha. With too few rows of a class its threshold is infinite and the
    class is never excluded.
    """
    check_unit("scores", scores)
    gate = fit_conformal_gate(
        scores,
        labels,
        alpha,
        alpha_reject=alpha_reject,
        guarantee=guarantee,
        delta=delta,
        clusters=clusters,
        negatives=negatives,
        collected=collected,
        labeling_source=labeling_source,
    )
    return _gate_result(gate)


def apply_gate(
    scores: Annotated[FewScores, Field(description="New scores, of the kind that the gate was fitted on.")],
    q0: Threshold0,
    q1: Threshold1,
    alpha: Alpha = 0.10,
) -> DecisionsResult:
    """Decide on new scores with fitted thresholds: ACCEPT, REJECT or ABSTAIN, and the prediction set.

    ACCEPT where only the label 1 is left, REJECT where only 0 is, ABSTAIN where both or none are.
    """
    gate = _thresholds(q0, q1, alpha)
    check_unit("scores", scores)
    decided = apply_conformal_gate(scores, gate)
    return DecisionsResult(
        decisions=[_decision(one) for one in decided],
        n_accept=int(decided.accepted.sum()),
        n_reject=int(decided.rejected.sum()),
        n_abstain=int(decided.abstained.sum()),
        alpha=float(alpha),
        guarantee=gate.guarantee.sentence,
        warnings=_infinite(gate),
    )


def evaluate_gate(
    eval_scores: Annotated[Scores, Field(description="Scores of labelled rows that the gate has not seen.")],
    eval_labels: Judged,
    q0: Threshold0,
    q1: Threshold1,
    alpha: Alpha = 0.10,
) -> EvaluationResult:
    """Measure fitted thresholds on held-out labelled rows, each rate with a 95 % interval.

    Intervals are exact for independent rows: one a question. A rate above alpha alone does not show a broken
    gate: a sound marginal gate keeps alpha on average over calibration sets, not with each of them.
    """
    check_aligned(eval_scores=eval_scores, eval_labels=eval_labels)
    check_unit("eval_scores", eval_scores)
    check_labels("eval_labels", eval_labels)
    gate = _thresholds(q0, q1, alpha)
    return _evaluation(evaluate_conformal_gate(eval_scores, eval_labels, gate), gate)


def _thresholds(q0: float | None, q1: float | None, alpha: float) -> Thresholds:
    lower = -math.inf if q0 == BELOW_ALL else q0
    infinite = [math.inf if threshold is None else threshold for threshold in (lower, q1)]
    return Thresholds(q0=infinite[0], q1=infinite[1], alpha=alpha)


def _infinite(gate: Thresholds) -> list[str]:
    return [note for value, note in ((gate.q0, INFINITE_0), (gate.q1, INFINITE_1)) if value == math.inf]


def _gate_result(gate: ConformalGate) -> GateResult:
    accepts, rejects = not math.isinf(gate.q0), not math.isinf(gate.q1)
    return GateResult(
        q0=finite(gate.q0),
        q0_infinite=not accepts,
        q1=finite(gate.q1),
        q1_infinite=not rejects,
        accepts_when=_when((gate.q0, f"s > {gate.q0!r}"), (gate.t1, f"s >= {gate.t1!r}")),
        rejects_when=_when((gate.t1, f"s < {gate.t1!r}"), (gate.q0, f"s <= {gate.q0!r}")),
        alpha=gate.alpha,
        alpha_reject=gate.alpha_reject,
        n0=gate.n0,
        n1=gate.n1,
        labels_needed_0=gate.labels_needed[0],
        labels_needed_1=gate.labels_needed[1],
        auroc=gate.auroc,
        auroc_low=gate.auroc_low,
        auroc_high=gate.auroc_high,
        guarantee=GuaranteeResult.model_validate(gate.guarantee.to_dict()),
        warnings=[*gate.notes],
    )


def _when(deciding: tuple[float, str], other: tuple[float, str]) -> str:
    """The rule for one decision; an infinite threshold excludes no label, so it decides nothing."""
    if math.isinf(deciding[0]):
        return "never"
    return " and ".join(text for value, text in (deciding, other) if not math.isinf(value))


def _decision(one: GatePrediction) -> DecisionResult:
    return DecisionResult.model_validate(
        {
            "score": one.score,
            "decision": one.decision.name,
            "prediction_set": one.prediction_set,
            "margin_to_threshold": one.margin_to_threshold,
            "reason_code": one.reason_code.value,
        }
    )


def _evaluation(found: GateEvaluation, gate: Thresholds) -> EvaluationResult:
    kept = {name: value for name, value in found.to_dict().items() if name in EvaluationResult.model_fields}
    rate, alpha = found.false_sufficiency_rate, float(gate.alpha)
    return EvaluationResult.model_validate(
        kept
        | {
            "alpha": alpha,
            "above_alpha": rate.low > alpha if rate.total else None,
            "summary": _summary(found, alpha),
            "warnings": [*_infinite(gate), *_missing(found)],
        }
    )


def _missing(found: GateEvaluation) -> list[str]:
    counts = {"insufficient": found.n0, "sufficient": found.n1}
    return [f"No row is {word}: its rates are not known." for word, count in counts.items() if not count]


def _summary(found: GateEvaluation, alpha: float) -> str:
    rate, risk = found.false_sufficiency_rate, found.selective_risk
    if rate.rate is None:
        return "Without insufficient rows nothing can be said about false sufficiency."
    against = "lies above" if rate.low > alpha else "does not contradict"
    excuse = ", which a sound marginal gate may be" if rate.low > alpha else ""
    text = (
        f"{rate.count} of {rate.total} insufficient rows were accepted: {rate.rate:.1%}, 95 % interval "
        f"{rate.low:.1%} to {rate.high:.1%}, which {against} alpha = {alpha:g}{excuse}."
    )
    if risk.rate is None:
        return f"{text} Nothing was accepted."
    return (
        f"{text} Of the {risk.total} accepted rows {risk.rate:.1%} are insufficient: not what alpha bounds."
    )
