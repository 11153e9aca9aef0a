"""What became of the calls of one response."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rag_confidence._types import Decision
from rag_confidence.guard.handled import CallStatus, HandledCalls, answered, settled
from rag_confidence.guard.result import GuardReason, GuardResult
from rag_confidence.guard.turns import RequestedCall


def iter_nothing() -> Iterator[int]:
    """A stream without items."""
    yield from ()


CALL = RequestedCall("c1", "search", lambda text, failed: {"text": text, "failed": failed})
ACCEPTED = GuardResult(Decision.ACCEPT, "Fine.", GuardReason.ACCEPTED, executed=True, output={"n": 1})
ABSTAINED = GuardResult(Decision.ABSTAIN, "Odd.", GuardReason.ABOVE_THRESHOLD, failed_checks=("length",))


def test_an_accepted_call_answers_with_its_output() -> None:
    """As text, and not as an error."""
    found = settled(CALL, ACCEPTED)
    assert (found.call_id, found.name, found.status, found.error) == ("c1", "search", "executed", None)
    assert found.message == {"text": '{"n": 1}', "failed": False}
    assert found.result is ACCEPTED


@pytest.mark.parametrize("decision", [Decision.ABSTAIN, Decision.REJECT])
def test_a_call_that_is_not_accepted_answers_with_the_reason(decision: Decision) -> None:
    """As an error; rejected or abstained, it was not run."""
    found = settled(CALL, ABSTAINED.changed(decision=decision))
    assert found.status is CallStatus.ABSTAINED
    told = "search was not run: length found the call stranger than calls that were right."
    assert found.message == {"text": told, "failed": True}


def test_a_withheld_output_is_not_told() -> None:
    """The model learns that the tool ran, and nothing of what it returned."""
    found = settled(CALL, ABSTAINED.changed(executed=True, withheld="secret"))
    assert found.message["text"].startswith("search ran, but its output is withheld:")
    assert "secret" not in found.message["text"]


def test_the_output_of_a_callback_is_the_answer() -> None:
    """The user chose it for a call that was not accepted; what cannot be sent is kept as an error."""
    found = settled(CALL, ABSTAINED.changed(output=["ask me"]))
    assert (found.status, found.message) == ("abstained", {"text": '["ask me"]', "failed": False})
    odd = settled(CALL, ABSTAINED.changed(output={1}))
    assert (odd.status, type(odd.error), odd.message["failed"]) == ("abstained", TypeError, True)


@pytest.mark.parametrize("output", [{1}, float("nan"), iter_nothing()], ids=["set", "nan", "stream"])
def test_an_output_that_cannot_be_sent_keeps_its_result(output: Any) -> None:
    """The tool did run, and the answer says so."""
    found = settled(CALL, ACCEPTED.changed(output=output))
    assert (found.status, type(found.error)) == ("tool_error", TypeError)
    assert found.result is not None
    assert (found.result.executed, found.result.output) == (True, output) or output != output
    assert found.message["text"].startswith("search ran, but its output cannot be sent. `output` must be")
    assert found.message["failed"] is True


def test_handled_calls_are_a_sequence() -> None:
    """With the messages and errors in the order of the calls; without calls it is false."""
    error = ValueError("no")
    first = answered(CALL, CallStatus.TOOL_ERROR, "a", error=error)
    second = answered(CALL, CallStatus.EXECUTED, "b", failed=False)
    calls = HandledCalls((first, second))
    assert (len(calls), [*calls], calls[-1]) == (2, [first, second], second)
    assert isinstance(calls[1:], HandledCalls)
    assert calls.messages == [{"text": "a", "failed": True}, {"text": "b", "failed": False}]
    assert calls.errors == (error,)
    assert not HandledCalls()


def test_messages_are_a_new_list() -> None:
    """So that what is appended to it is not in the record."""
    calls = HandledCalls((settled(CALL, ACCEPTED),))
    calls.messages.append({})
    assert len(calls.messages) == 1


def test_outputs_are_not_in_the_representation() -> None:
    """Logs of handled calls hold neither messages nor results."""
    secret = settled(CALL, ACCEPTED.changed(output="secret"))
    assert secret.message["text"] == "secret"
    assert "secret" not in repr(HandledCalls((secret,)))
