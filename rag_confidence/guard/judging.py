"""From the scores of one call to the decision on it, and to the sentence that says why."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rag_confidence._calls import ToolCallContext
from rag_confidence._types import Decision, Guarantee
from rag_confidence.conformal.joint.traffic import TrafficRanks
from rag_confidence.guard.result import GuardReason, GuardResult, assembled
from rag_confidence.guard.scorers import Scored
from rag_confidence.guard.thresholds import Thresholds

_LIKE_GOOD = "No check finds this call stranger than good calls usually are."
_LIKE_GOOD_ONLY = "This call is no stranger than good calls usually are, and less strange than bad calls are."
_UNLIKE_BAD = "This call is less strange than bad calls are; good ones are too few to compare it with."
_BETWEEN = (
    "This call is no stranger than good calls usually are and as strange as bad calls are: "
    "it could be either."
)
_CONFLICT = (
    "This call is stranger than good calls usually are and less strange than bad calls are: "
    "it is like neither."
)


@dataclass(frozen=True, eq=False)
class Rule:
    """What decides on calls: the cuts, and all that is the same for every call.

    Attributes
    ----------
    names : tuple of str
        The checks, in the order of the scores.
    thresholds : Thresholds
    ranks : TrafficRanks or None
    tool_names : frozenset of str, or None
        Tools whose calls are judged.
    guarantee : Guarantee
    accept_to : float
        As in `thresholds`, a step nearer.
    accepted : dict
        All fields of a result that accepts.
    """

    names: tuple[str, ...]
    thresholds: Thresholds
    ranks: TrafficRanks | None
    tool_names: frozenset[str] | None
    guarantee: Guarantee
    accept_to: float
    accepted: dict[str, Any]

    def judge(self, context: ToolCallContext | None, scored: Sequence[Scored]) -> GuardResult:
        """The decision on a call, from one score a check.

        Notes
        -----
        A failed check is +inf, and `accept_to` is finite or -inf: one comparison keeps out failures too.
        Plain Python, because arrays of one row cost more than all of it.
        """
        values = [one.value for one in scored]
        compared = values if self.ranks is None else _ranks(self.ranks, values)
        statistic = max(compared)
        fields = self.accepted.copy()
        fields["scores"] = dict(zip(self.names, values, strict=True))
        fields["statistic"] = statistic
        fields["context"] = context
        fields["failed_scorers"] = {}
        if not statistic <= self.accept_to:
            fields.update(self._refusal(scored, compared, statistic))
        return assembled(fields)

    def _refusal(
        self, scored: Sequence[Scored], compared: Sequence[float], statistic: float
    ) -> dict[str, Any]:
        pairs = zip(self.names, scored, strict=True)
        failed = {name: one.error for name, one in pairs if one.error is not None}
        # Where nothing can be accepted no check is to blame, unless it has the call rejected.
        limit = self.accept_to if self.thresholds.accepts else self.thresholds.reject_above
        above = tuple(name for name, at in zip(self.names, compared, strict=True) if at > limit)
        decision, code = self._outcome(statistic, failed=bool(failed))
        blamed = above
        if decision is Decision.REJECT:
            pairs_of = zip(self.names, compared, strict=True)
            blamed = tuple(name for name, at in pairs_of if at > self.thresholds.reject_above)
        return {
            "decision": decision,
            "reason_code": code,
            "reason": self._sentence(code, blamed, failed),
            "failed_checks": above,
            "failed_scorers": failed,
        }

    def stopped_by(self, above: tuple[str, ...]) -> dict[str, Any]:
        """What is different in a result that abstains because these checks are above the threshold."""
        return {
            "decision": Decision.ABSTAIN,
            "reason_code": GuardReason.ABOVE_THRESHOLD,
            "reason": _above(above, rejects=False),
            "failed_checks": above,
        }

    def _outcome(self, statistic: float, *, failed: bool) -> tuple[Decision, GuardReason]:
        """Of a call that is not accepted. A call that was not measured is not rejected either."""
        cuts = self.thresholds
        if not (cuts.accepts or cuts.rejects):
            return Decision.ABSTAIN, GuardReason.INFINITE_THRESHOLD
        if failed:
            return Decision.ABSTAIN, GuardReason.SCORER_FAILED
        if statistic > cuts.reject_above:
            return Decision.REJECT, GuardReason.ABOVE_THRESHOLD
        if cuts.bad_from is None:
            return Decision.ABSTAIN, GuardReason.ABOVE_THRESHOLD
        if not cuts.complete:
            return Decision.ABSTAIN, GuardReason.INFINITE_THRESHOLD
        conflict = statistic > cuts.good_to
        return Decision.ABSTAIN, GuardReason.CONFLICT if conflict else GuardReason.BETWEEN

    def _sentence(self, code: GuardReason, above: Sequence[str], failed: dict[str, str]) -> str:
        errors = f" {'; '.join(failed.values())}." if failed else ""
        if code is GuardReason.ABOVE_THRESHOLD:
            return _above(above, rejects=self.thresholds.bad_from not in (None, -math.inf))
        if code is GuardReason.SCORER_FAILED:
            return f"This call was not judged, because a check failed to run:{errors}"
        if code is GuardReason.INFINITE_THRESHOLD:
            return f"This call was not judged. {self.guarantee.sentence}{errors}"
        return _CONFLICT if code is GuardReason.CONFLICT else _BETWEEN


def rule_of(
    names: tuple[str, ...],
    thresholds: Thresholds,
    ranks: TrafficRanks | None,
    *,
    tool_names: frozenset[str] | None,
    guarantee: Guarantee,
    fingerprint: str,
) -> Rule:
    """The rule of a calibrator."""
    accepts = thresholds.accepts
    accepted = GuardResult(
        decision=Decision.ACCEPT,
        reason=_accepted(thresholds),
        reason_code=GuardReason.ACCEPTED,
        guarantee=guarantee,
        threshold=thresholds.accept_to if accepts else math.inf,
        calibrator=fingerprint,
    )
    return Rule(names, thresholds, ranks, tool_names, guarantee, thresholds.accept_to, vars(accepted))


def of_other_tool(rule: Rule, context: ToolCallContext) -> GuardResult:
    """The result for a tool that the calibration is not for; no scorer is asked."""
    known = ", ".join(sorted(rule.tool_names or ()))
    return assembled(rule.accepted.copy()).changed(
        decision=Decision.ABSTAIN,
        reason_code=GuardReason.OTHER_TOOL,
        reason=f"This call was not judged: the calibration is for {known}, and not for {context.tool_name}.",
        guarantee=None,
        context=context,
    )


def _accepted(thresholds: Thresholds) -> str:
    if thresholds.bad_from is None:
        return _LIKE_GOOD
    return _LIKE_GOOD_ONLY if math.isfinite(thresholds.good_to) else _UNLIKE_BAD


def _ranks(ranks: TrafficRanks, values: list[float]) -> list[float]:
    found: list[float] = ranks.of(np.array([values]))[0].tolist()
    return found


def _above(names: Sequence[str], *, rejects: bool) -> str:
    finds = "This check finds" if len(names) == 1 else "These checks find"
    like = "stranger than good calls usually are"
    if rejects:
        like += ", and as strange as bad calls are"
    return f"{finds} the call {like}: {', '.join(names)}."
