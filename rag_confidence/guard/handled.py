"""What became of the calls that a model asked for, with the answer to each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, overload

from rag_confidence.guard.replies import not_accepted, sendable, text_of_output
from rag_confidence.guard.result import GuardResult
from rag_confidence.guard.turns import RequestedCall


class CallStatus(StrEnum):
    """What became of one call."""

    EXECUTED = "executed"
    ABSTAINED = "abstained"
    TOOL_ERROR = "tool_error"
    MALFORMED_ARGUMENTS = "malformed_arguments"
    UNKNOWN_TOOL = "unknown_tool"
    GUARD_ERROR = "guard_error"


@dataclass(frozen=True, eq=False)
class HandledCall:
    """One call that a model asked for, and what became of it.

    Attributes
    ----------
    call_id : str or None
        Name of the call in the response; None where the API has none.
    name : str
        Name of the tool, as the model wrote it.
    status : CallStatus
        "executed": accepted, run, and its output is in the message. "abstained": not accepted, so not run, or
        its output withheld. "tool_error": accepted and run, but the tool raised, or its output cannot be
        sent. "malformed_arguments" and "unknown_tool": neither judged nor run. "guard_error": the guard
        itself raised, such as a store that is full, a session that is over, or a callback.
    message : dict
        The answer to the call, in the shape of its API.
    result : GuardResult or None
        The decision; None where the call was not judged, or the tool or the guard raised.
    error : Exception or None
        What was raised; for an output that cannot be sent, why.
    """

    call_id: str | None
    name: str
    status: CallStatus
    message: dict[str, Any] = field(repr=False)
    result: GuardResult | None = field(default=None, repr=False)
    error: Exception | None = None


@dataclass(frozen=True, eq=False)
class HandledCalls(Sequence[HandledCall]):
    """The calls of one response, in its order; empty, and so false, where it had none.

    Attributes
    ----------
    calls : tuple of HandledCall
    """

    calls: tuple[HandledCall, ...] = ()

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The answers, one for each call: append them to the conversation after the response.

        The Anthropic API wants those of one message together: ``{"role": "user", "content": messages}``.
        """
        return [call.message for call in self.calls]

    @property
    def errors(self) -> tuple[Exception, ...]:
        """What tools and guards raised, in the order of the calls."""
        return tuple(call.error for call in self.calls if call.error is not None)

    def __len__(self) -> int:
        return len(self.calls)

    @overload
    def __getitem__(self, index: int) -> HandledCall: ...
    @overload
    def __getitem__(self, index: slice) -> HandledCalls: ...
    def __getitem__(self, index: int | slice) -> HandledCall | HandledCalls:
        found = self.calls[index]
        return found if isinstance(found, HandledCall) else HandledCalls(found)


def answered(
    call: RequestedCall,
    status: CallStatus,
    text: str,
    *,
    result: GuardResult | None = None,
    error: Exception | None = None,
    failed: bool = True,
) -> HandledCall:
    """A call with a text as its answer, which tells of a failure if not said otherwise."""
    return HandledCall(call.call_id, call.name, status, call.answer(sendable(text), failed), result, error)


def settled(call: RequestedCall, result: GuardResult, error: Exception | None = None) -> HandledCall:
    """A call that was judged."""
    found = _executed(call, result) if result.accepted else _abstained(call, result)
    return found if error is None else replace(found, error=error)


def _executed(call: RequestedCall, result: GuardResult) -> HandledCall:
    try:
        text = text_of_output(result.output)
    except TypeError as error:
        told = f"{call.name} ran, but its output cannot be sent. {error}"
        return answered(call, CallStatus.TOOL_ERROR, told, result=result, error=error)
    return answered(call, CallStatus.EXECUTED, text, result=result, failed=False)


def _abstained(call: RequestedCall, result: GuardResult) -> HandledCall:
    told = not_accepted(call.name, result)
    if result.output is None:
        return answered(call, CallStatus.ABSTAINED, told, result=result)
    try:
        text = text_of_output(result.output)
    except TypeError as error:
        return answered(call, CallStatus.ABSTAINED, told, result=result, error=error)
    # What the user's function gave instead of the output of the tool.
    return answered(call, CallStatus.ABSTAINED, text, result=result, failed=False)
