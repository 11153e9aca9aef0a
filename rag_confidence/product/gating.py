"""The gate as the last word: what its decision makes of the policy's verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rag_confidence._predictions import GatePrediction, GatePredictions
from rag_confidence._types import Decision, IntArray, ReasonCode, Verdict
from rag_confidence.product.verdict import CODES, VERDICT_OF

_FINAL: dict[Decision, Verdict] = {
    Decision.ACCEPT: Verdict.ANSWER,
    Decision.ABSTAIN: Verdict.REVIEW,
    Decision.REJECT: Verdict.ABSTAIN,
}

_VERDICTS = np.array([VERDICT_OF[code].value for code in CODES])
_REASONS = np.array([code.value for code in CODES])


def final_verdict(code: ReasonCode, gated: GatePrediction | None) -> tuple[Verdict, ReasonCode]:
    """The verdict and its reason, from the row of the policy's table and the decision of the gate.

    A conflict that the policy saw makes every verdict but ABSTAIN an ESCALATE: stricter, never milder, so
    the gate's bound on false acceptance survives.
    """
    if gated is None:
        return VERDICT_OF[code], code
    verdict = _FINAL[gated.decision]
    if code is ReasonCode.CONFLICTING and verdict is not Verdict.ABSTAIN:
        return Verdict.ESCALATE, code
    return verdict, gated.reason_code


@dataclass(frozen=True, eq=False)
class Gated:
    """Decisions of a gate on those retrievals of a batch that have a score.

    Attributes
    ----------
    predictions : GatePredictions
    places : ndarray of int, shape (Q,)
        Where each retrieval stands in `predictions`; -1 for one without a score.
    """

    predictions: GatePredictions
    places: IntArray

    def of(self, row: int) -> GatePrediction | None:
        """The decision on one retrieval."""
        place = int(self.places[row])
        return None if place < 0 else self.predictions[place]

    def column(self, values: Sequence[Any] | np.ndarray[Any, Any], missing: Any) -> np.ndarray[Any, Any]:
        """A column of `predictions` as one of the batch."""
        held = np.asarray(values)
        found = np.full(
            len(self.places), missing, dtype=np.result_type(held.dtype, np.asarray(missing).dtype)
        )
        found[self.places >= 0] = held[self.places[self.places >= 0]]
        return found


def verdicts(codes: IntArray, gated: Gated | None) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """`final_verdict` for a whole batch: verdicts and reason codes as strings, shape (Q,)."""
    policy_verdicts, reasons = _VERDICTS[codes], _REASONS[codes]
    if gated is None:
        return policy_verdicts, reasons
    decisions = gated.column(gated.predictions.decision, "")
    final = policy_verdicts.copy()
    for decision, verdict in _FINAL.items():
        final[decisions == decision.value] = verdict.value
    conflict = (
        (reasons == ReasonCode.CONFLICTING.value) & (final != Verdict.ABSTAIN.value) & (decisions != "")
    )
    final[conflict] = Verdict.ESCALATE.value
    outcome = gated.column(gated.predictions.reason_code, "")
    return final, np.where((decisions == "") | conflict, reasons, outcome)
