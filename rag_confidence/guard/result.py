"""GuardResult: what a guard decided on one tool call, why, and what the tool returned."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, Protocol

from rag_confidence._calls import ToolCallContext
from rag_confidence._types import Decision, Guarantee


class GuardReason(StrEnum):
    """What decided on a call."""

    ACCEPTED = "accepted"
    ABOVE_THRESHOLD = "above_threshold"
    BETWEEN = "between"
    CONFLICT = "conflict"
    SCORER_FAILED = "scorer_failed"
    INFINITE_THRESHOLD = "infinite_threshold"
    OTHER_TOOL = "other_tool"
    CONTEXT_FAILED = "context_failed"
    UNKNOWN_GROUP = "unknown_group"


@dataclass(frozen=True, eq=False)
class GuardResult:
    """The decision on one tool call with everything that led to it.

    Attributes
    ----------
    decision : Decision
        ACCEPT, ABSTAIN, or REJECT where bad calls were calibrated too.
    reason : str
        Why, in a sentence. It names scorers and tools and quotes no arguments, but what a scorer raised may.
    reason_code : GuardReason
        The same for programs.
    output : anything
        What the tool returned; None where it did not run, or its output is withheld.
    executed : bool
        Whether the tool ran.
    withheld : anything
        Output of a tool that ran before it was judged, and was not accepted.
    guarantee : Guarantee or None
        What is bounded and what is not claimed; None where no calibration applies.
    failed_checks : tuple of str
        Checks above the threshold, those that failed to run among them. Empty where the threshold is
        infinite, because then no check is to blame.
    failed_scorers : mapping of str to str
        Scorers that gave no usable score, and what happened.
    scores : mapping of str to float
        Score by check, higher is stranger; +inf where a scorer failed. Empty where none was asked.
    statistic : float or None
        What was compared with the threshold; None where no scorer was asked.
    threshold : float
        ACCEPT up to here; infinite where nothing is accepted.
    context : ToolCallContext or None
        The call, as the scorers saw it; None where it could not be described.
    calibrator : str or None
        Fingerprint of the calibrator.
    record_id : int or None
        Number of the call in the store, for `CalibrationStore.label` later; None where it is in none.
    """

    decision: Decision
    reason: str
    reason_code: GuardReason
    output: Any = field(default=None, repr=False)
    executed: bool = False
    withheld: Any = field(default=None, repr=False)
    guarantee: Guarantee | None = field(default=None, repr=False)
    failed_checks: tuple[str, ...] = ()
    failed_scorers: Mapping[str, str] = field(default_factory=dict)
    scores: Mapping[str, float] = field(default_factory=dict)
    statistic: float | None = None
    threshold: float = math.inf
    context: ToolCallContext | None = field(default=None, repr=False)
    calibrator: str | None = field(default=None, repr=False)
    record_id: int | None = field(default=None, repr=False)

    @property
    def accepted(self) -> bool:
        """Whether the decision is ACCEPT."""
        return self.decision is Decision.ACCEPT

    def changed(self, **changes: Any) -> GuardResult:
        """A copy in which some fields are others, such as `output` and `executed` after the tool ran."""
        if not _NAMES.issuperset(changes):
            odd = ", ".join(sorted(changes.keys() - _NAMES))
            raise TypeError(f"`changes` must name fields of GuardResult; got {odd}. Check the spelling.")
        return assembled({**self.__dict__, **changes})

    def to_dict(self, *, output: bool = False, args: bool = False) -> dict[str, Any]:
        """Plain values, ready for JSON, which has no infinity: an infinite number becomes None.

        Parameters
        ----------
        output : bool
            Add `output` and `withheld` as the tool returned them, whether or not JSON can hold them.
        args : bool
            Add the whole context under `context`: arguments, result and metadata.

        Returns
        -------
        dict
            Without both nothing that a tool was given or gave back is in it, but for what an exception of a
            scorer quotes.
        """
        plain: dict[str, Any] = {
            "tool_name": None if self.context is None else self.context.tool_name,
            "call_id": None if self.context is None else self.context.call_id,
            "decision": self.decision.name,
            "reason": self.reason,
            "reason_code": self.reason_code.value,
            "executed": self.executed,
            "failed_checks": [*self.failed_checks],
            "failed_scorers": dict(self.failed_scorers),
            "scores": {name: _finite(score) for name, score in self.scores.items()},
            "statistic": _finite(self.statistic),
            "threshold": _finite(self.threshold),
            "guarantee": None if self.guarantee is None else self.guarantee.to_dict(),
            "calibrator": self.calibrator,
            "record_id": self.record_id,
        }
        if output:
            plain |= {"output": self.output, "withheld": self.withheld}
        if args:
            plain["context"] = None if self.context is None else self.context.to_dict()
        return plain


class Decider(Protocol):
    """Whatever judges calls: a `Calibrator`, one a group, or a session."""

    def decide(self, context: ToolCallContext) -> GuardResult:
        """The decision on a call, without its output."""
        ...

    async def adecide(self, context: ToolCallContext) -> GuardResult:
        """The same, with scorers that are awaited."""
        ...


def assembled(values: dict[str, Any]) -> GuardResult:
    """A result from all its fields at once, in a dictionary that nobody else keeps.

    The constructor of a frozen dataclass sets one field after the other through `object`, which costs more
    than a whole decision.
    """
    result = _new(GuardResult)
    _set(result, "__dict__", values)
    return result


_new, _set = object.__new__, object.__setattr__
_NAMES = {item.name for item in fields(GuardResult)}


def _finite(number: float | None) -> float | None:
    return None if number is None or math.isinf(number) else number
