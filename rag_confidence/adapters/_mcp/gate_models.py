"""What the tools around a gate return."""

from __future__ import annotations

from pydantic import Field

from rag_confidence.adapters._mcp.results import (
    DecisionName,
    GuaranteeResult,
    Label,
    ProportionResult,
    Result,
)


class GateResult(Result):
    """Thresholds fitted to labelled history, with what they guarantee."""

    q0: float | None = Field(description='"insufficient" is kept for s <= q0; null if infinite.')
    q0_infinite: bool = Field(description="Too few insufficient rows: nothing is ever accepted.")
    q1: float | None = Field(description='"sufficient" is kept for 1 - s <= q1; null if infinite.')
    q1_infinite: bool = Field(description="Too few sufficient rows: nothing is ever rejected.")
    accepts_when: str = Field(description="Which scores s get ACCEPT.")
    rejects_when: str = Field(description="Which scores s get REJECT.")
    alpha: float = Field(description="Level of a false ACCEPT, as used.")
    alpha_reject: float = Field(description="Level of a false REJECT, as used.")
    n0: int = Field(description="Insufficient rows.")
    n1: int = Field(description="Sufficient rows.")
    labels_needed_0: int = Field(description="Fewest insufficient rows for a finite q0.")
    labels_needed_1: int = Field(description="Fewest sufficient rows for a finite q1.")
    auroc: float = Field(description="How well the score separates the classes; 0.5 is chance.")
    auroc_low: float = Field(description="Lower end of its 95 % interval.")
    auroc_high: float = Field(description="Upper end of its 95 % interval.")
    guarantee: GuaranteeResult = Field(description="What the gate promises, and what not.")
    warnings: list[str] = Field(description="What speaks against using it; empty if nothing does.")


class DecisionResult(Result):
    """The decision on one score."""

    score: float = Field(description="As it was sent.")
    decision: DecisionName = Field(description="Answer on ACCEPT alone.")
    prediction_set: list[Label] = Field(description="Labels that are not excluded.")
    margin_to_threshold: float | None = Field(description="Score minus the score from which it accepts.")
    reason_code: str = Field(description="Which outcome of the gate it is.")


class DecisionsResult(Result):
    """Decisions of loose thresholds on new scores."""

    decisions: list[DecisionResult] = Field(description="One a score, in their order.")
    n_accept: int = Field(description="Scores with the decision ACCEPT.")
    n_reject: int = Field(description="Scores with the decision REJECT.")
    n_abstain: int = Field(description="Scores with the decision ABSTAIN.")
    alpha: float = Field(description="The level that was named.")
    guarantee: str = Field(description="What can be said of thresholds without their calibration set.")
    warnings: list[str] = Field(description="What speaks against acting on the decisions.")


class EvaluationResult(Result):
    """Rates of a gate on labelled rows that it has not seen."""

    n: int = Field(description="Rows.")
    n0: int = Field(description="Insufficient rows.")
    n1: int = Field(description="Sufficient rows.")
    coverage_0: ProportionResult = Field(description="Insufficient rows whose label was kept.")
    coverage_1: ProportionResult = Field(description="Sufficient rows whose label was kept.")
    false_sufficiency_rate: ProportionResult = Field(
        description="Insufficient rows that were accepted: what alpha bounds."
    )
    false_rejection_rate: ProportionResult = Field(description="Sufficient rows that were rejected.")
    selective_risk: ProportionResult = Field(
        description="Accepted rows that are insufficient: what alpha does not bound."
    )
    sufficient_accepted: ProportionResult = Field(description="Sufficient rows that were accepted.")
    acceptance_rate: ProportionResult = Field(description="Rows that were accepted.")
    rejection_rate: ProportionResult = Field(description="Rows that were rejected.")
    abstention_rate: ProportionResult = Field(description="Rows that were abstained on.")
    conflict_rate: ProportionResult = Field(description="Rows that are strange for both labels.")
    alpha: float = Field(description="The level that was named.")
    above_alpha: bool | None = Field(
        description="Whether the interval of the false-sufficiency rate lies above alpha, which a sound "
        "marginal gate may be; null without rows."
    )
    summary: str = Field(description="The outcome in a sentence or two.")
    warnings: list[str] = Field(description="What speaks against the numbers.")


class ClassPlanResult(Result):
    """Rows of one class that a level needs."""

    label: Label = Field(description="0 for insufficient, 1 for sufficient rows.")
    alpha: float = Field(description="The level that its threshold must support.")
    n_finite: int = Field(description="Fewest rows for any decision by this class.")
    n_pac: int = Field(description='Fewest rows for guarantee "pac".')
    n_close: int = Field(description="Rows from which one set's rate stays below alpha + tolerance.")


class PlanResult(Result):
    """How many labelled rows of each class a gate needs."""

    insufficient: ClassPlanResult = Field(description="For the false ACCEPT.")
    sufficient: ClassPlanResult = Field(description="For the false REJECT.")
    delta: float = Field(description="Share of calibration sets that may turn out unlucky.")
    tolerance: float = Field(description="How far above its level the rate of one set may lie.")
    attempts: int = Field(description="Tries at one question that share alpha.")
    rows: dict[str, int] | None = Field(description="Rows to label in all, if a prevalence was given.")
    accepted_without_error: int | None = Field(description="Accepted rows needed for target_risk.")
    sentence: str = Field(description="The same in words.")
