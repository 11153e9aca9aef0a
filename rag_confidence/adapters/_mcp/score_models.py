"""What the scoring tools return."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from rag_confidence.adapters._mcp.results import DecisionName, GuaranteeResult, Label, Result


class GateOutcome(Result):
    """What the gate of this server decided on the score."""

    decision: DecisionName | None = Field(description="Answer on ACCEPT alone; null if nothing was scored.")
    prediction_set: list[Label] | None = Field(description="Labels that are not excluded.")
    p_value_0: float | None = Field(description='Conformal p-value of "insufficient".')
    p_value_1: float | None = Field(description='Conformal p-value of "sufficient".')
    margin_to_threshold: float | None = Field(description="Score minus the score from which it accepts.")
    guarantee: GuaranteeResult | None = Field(description="What the decision promises.")


class SupportResult(Result):
    """One of the best distinct passages."""

    index: int = Field(description="Its place in the list that was sent, from 0.")
    cosine: float = Field(description="Its cosine to the query.")
    snippet: str | None = Field(description="The start of its text, if texts were sent.")


class ScoreResult(Result):
    """How far to trust one retrieval, and what to do with it."""

    verdict: Literal["ANSWER", "REVIEW", "ABSTAIN", "ESCALATE"] = Field(description="What to branch on.")
    verdict_reason: str = Field(description="One sentence that a user can be shown.")
    verdict_action: str = Field(description="What the verdict asks for.")
    reason_code: str = Field(description="The rule that decided.")
    policy_verdict: str = Field(description="The verdict without a gate.")
    gate: GateOutcome | None = Field(description="Null when this server runs without a gate.")
    kpi: float = Field(
        description="The score in [0, 1], unrounded: what a gate is fitted on. No probability."
    )
    retrieval_confidence: float = Field(description="The same from 0 to 100, rounded.")
    topical_grounding: float | None = Field(description="Is the query about these passages? 0 to 100.")
    answer_localization: float | None = Field(description="Does the support sit in one region? 0 to 100.")
    support_cohesion: float | None = Field(description="Do the passages hold together? 0 to 100.")
    evidence_consistency: float | None = Field(description="Do they resemble each other? 0 to 100.")
    query_robustness: float | None = Field(description="Does the top passage survive small turns? 0 to 100.")
    primary_risk: str = Field(description="The signal that clears its floor by least.")
    contradiction_assessed: bool = Field(description="Whether a contradiction score was sent.")
    support: list[SupportResult] = Field(description="The best distinct passages.")
    narrative: str = Field(description="The assessment in a few lines for people.")
    warnings: list[str] = Field(description="What was capped, dropped or not assessed.")
    record: dict[str, Any] | None = Field(description="The whole flat record, if full_record was true.")
