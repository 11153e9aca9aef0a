"""The tool that bounds the share of insufficient evidence among what is accepted."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field, StrictStr

from rag_confidence.adapters._mcp.limits import History, Judged, Number, check_unit
from rag_confidence.adapters._mcp.results import BELOW_ALL, GuaranteeResult, Result
from rag_confidence.conformal.risk.fit import fit_risk_gate
from rag_confidence.conformal.risk.fitted import RiskGate


class RiskGateResult(Result):
    """A threshold above which few of the accepted retrievals are insufficient."""

    certified: bool = Field(description="Whether any threshold was certified; if not, nothing is accepted.")
    q0: float | None = Field(
        description="ACCEPT for s > q0; null if infinite, -1 if all is accepted. Apply it with q1 null."
    )
    q0_infinite: bool = Field(description="Nothing was certified: nothing is ever accepted.")
    target_risk: float = Field(description="Bound on the share of insufficient rows among the accepted.")
    delta: float = Field(description="Chance that an unlucky calibration set breaks it.")
    n0: int = Field(description="Insufficient rows.")
    n1: int = Field(description="Sufficient rows.")
    accepted: int = Field(description="Rows above the threshold.")
    errors: int = Field(description="Insufficient rows among those.")
    acceptance: float = Field(description="accepted / rows: of these rows, not of new ones.")
    labels_needed: int = Field(description="It takes at least that many accepted rows, all sufficient.")
    guarantee: GuaranteeResult = Field(description="What the gate promises, and what not.")
    warnings: list[str] = Field(description="What speaks against using it; empty if nothing does.")


def fit_risk(
    scores: History,
    labels: Judged,
    target_risk: Annotated[
        Number, Field(description="Largest share of insufficient retrievals among the accepted, in (0, 1).")
    ],
    delta: Annotated[Number, Field(description="Chance of an unlucky calibration set, in (0, 1).")] = 0.10,
    method: Annotated[
        Literal["sequence", "bonferroni"],
        Field(description='Where scores tie, "sequence" assumes that risk never falls as the score does.'),
    ] = "sequence",
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
) -> RiskGateResult:
    """Certify a threshold above which at most a share target_risk is insufficient: what is answered is good.

    Unlike alpha of fit_conformal_gate, which bounds how often insufficient evidence is accepted, this bounds
    how much of what is accepted is insufficient, for all but a share delta of calibration sets, those that
    certify nothing counting as kept. To decide on new scores, call apply_conformal_gate with this q0 and with
    q1 null. Rows must be independent: one a question.
    """
    check_unit("scores", scores)
    gate = fit_risk_gate(
        scores,
        labels,
        target_risk,
        delta,
        method=method,
        negatives=negatives,
        collected=collected,
        labeling_source=labeling_source,
    )
    return RiskGateResult(
        certified=gate.certified,
        q0=_threshold(gate),
        q0_infinite=not gate.certified,
        target_risk=gate.target_risk,
        delta=gate.delta,
        n0=gate.n0,
        n1=gate.n1,
        accepted=gate.accepted,
        errors=gate.errors,
        acceptance=gate.acceptance,
        labels_needed=gate.labels_needed,
        guarantee=GuaranteeResult.model_validate(gate.guarantee.to_dict()),
        warnings=[*gate.notes],
    )


def _threshold(gate: RiskGate) -> float | None:
    if not gate.certified:
        return None
    return BELOW_ALL if math.isinf(gate.threshold) else gate.threshold
