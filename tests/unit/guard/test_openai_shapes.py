"""Calls of Chat Completions and of the Responses API."""

from __future__ import annotations

import math
from typing import Any

import pytest
from refusals import refuse
from tool_calls import choice, custom, function, item, response

from rag_confidence.guard.openai_shapes import (
    call_of_openai,
    openai_token_logprobs,
    turn_of_choice,
    turn_of_response,
)
from rag_confidence.guard.turns import CUT_OFF


def read(turn: Any) -> list[tuple[Any, ...]]:
    """Id, name, arguments and problem of each call."""
    return [(call.call_id, call.name, call.args, call.kwargs, call.problem) for call in turn.calls]


def test_a_choice_has_functions_and_custom_tools() -> None:
    """In order; a custom tool gets its text by position."""
    turn = turn_of_choice(choice(function("c1", "search", {"query": "x"}), custom("c2", "shell", "ls")))
    assert read(turn) == [("c1", "search", (), {"query": "x"}, None), ("c2", "shell", ("ls",), {}, None)]
    assert (turn.finish_reason, turn.content, turn.token_logprobs) == ("tool_calls", None, None)


def test_answers_of_a_choice_are_tool_messages() -> None:
    """The shape has no place for whether it is an error."""
    (call,) = turn_of_choice(choice(function("c1", "search", {}))).calls
    assert call.answer("found", True) == {"role": "tool", "tool_call_id": "c1", "content": "found"}


def test_the_older_function_call_is_read_where_there_is_no_other() -> None:
    """It has no id, and its answer is a function message; beside tool_calls it is a copy of one of them."""
    one = choice()
    one["message"]["function_call"] = {"name": "search", "arguments": '{"query": "x"}'}
    (call,) = turn_of_choice(one).calls
    assert (call.call_id, call.kwargs) == (None, {"query": "x"})
    assert call.answer("found", False) == {"role": "function", "name": "search", "content": "found"}
    one["message"]["tool_calls"] = [function("c1", "search", {"query": "x"})]
    assert [call.call_id for call in turn_of_choice(one).calls] == ["c1"]


def test_a_call_of_a_kind_that_is_not_known_has_no_name() -> None:
    """It is answered all the same, as a tool that does not exist."""
    (call,) = turn_of_choice(choice({"id": "c1", "type": "new"})).calls
    assert (call.call_id, call.name) == ("c1", "")


@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_a_call_that_was_cut_off_is_not_run(reason: str) -> None:
    """Free text, no arguments and half of some may miss anything; an object is whole, as is a call before."""
    for last in (custom("c2", "shell", "rm -rf /"), function("c2", "f", ""), function("c2", "f", '{"a": 1')):
        turn = turn_of_choice(choice(custom("c1", "shell", "ls"), last, reason=reason))
        assert [call.problem for call in turn.calls] == [None, CUT_OFF]
    (whole,) = turn_of_choice(choice(function("c1", "f", {"a": 1}), reason=reason)).calls
    assert (whole.problem, whole.kwargs) == (None, {"a": 1})


def test_what_the_model_said_is_text_and_refusal() -> None:
    """Content may be a list of pieces."""
    one = choice(reason="stop")
    one["message"] |= {"content": "Hello.", "refusal": "No."}
    assert turn_of_choice(one).content == "Hello.\nNo."
    one["message"] |= {"content": [{"type": "text", "text": "Hi."}], "refusal": None}
    assert turn_of_choice(one).content == "Hi."


@pytest.mark.parametrize("wrong", [None, {"choices": []}, {"delta": {}}, "text"])
def test_what_is_no_choice_is_refused(wrong: Any) -> None:
    """A whole completion and a piece of a stream among it."""
    refuse(
        TypeError, r"`choice` must have a `message`.+completion\.choices\[0\]", lambda: turn_of_choice(wrong)
    )


def test_logprobs_are_those_of_all_tokens() -> None:
    """None where one is missing, because the others are then those of another response."""
    tokens = [{"token": "a", "logprob": -0.5}, {"token": "b", "logprob": 0}]
    assert openai_token_logprobs({"logprobs": {"content": tokens}}) == (-0.5, 0.0)
    for odd in (None, math.nan, -math.inf, "-1", True):
        found = {"logprobs": {"content": [*tokens, {"token": "c", "logprob": odd}]}}
        assert openai_token_logprobs(found) is None
    missings: list[Any] = [None, {"logprobs": None}, {"logprobs": {}}, {"logprobs": {"content": []}}]
    for missing in missings:
        assert openai_token_logprobs(missing) is None


def test_a_response_has_function_calls_and_custom_calls() -> None:
    """Other items ask for nothing here: the server runs its own tools."""
    turn = turn_of_response(
        response(
            {"type": "reasoning", "id": "r1", "summary": []},
            {"type": "web_search_call", "id": "w1", "status": "completed"},
            item("c1", "search", {"query": "x"}, id="fc_1", status="completed"),
            {"type": "custom_tool_call", "call_id": "c2", "name": "shell", "input": "ls"},
        )
    )
    assert read(turn) == [("c1", "search", (), {"query": "x"}, None), ("c2", "shell", ("ls",), {}, None)]
    assert (turn.finish_reason, turn.token_logprobs) == ("completed", None)


def test_answers_of_a_response_are_output_items() -> None:
    """Of the kind of the call; one of a program names its caller."""
    caller = {"type": "program", "caller_id": "p1"}
    one = response(
        item("c1", "search", {}, caller=caller),
        {"type": "custom_tool_call", "call_id": "c2", "name": "shell", "input": "ls", "caller": None},
    )
    first, second = (call.answer("found", False) for call in turn_of_response(one).calls)
    assert first == {"type": "function_call_output", "call_id": "c1", "output": "found", "caller": caller}
    assert second == {"type": "custom_tool_call_output", "call_id": "c2", "output": "found"}


def test_an_item_that_is_not_complete_is_not_run() -> None:
    """Its own status counts, else that of the response for its last item."""
    ls = {"type": "custom_tool_call", "call_id": "c2", "name": "shell", "input": "ls"}
    half = turn_of_response(response(item("c1", "f", {"a": 1}, status="incomplete"), ls))
    assert [(call.problem, call.kwargs) for call in half.calls] == [(CUT_OFF, {}), (None, {})]
    cut = turn_of_response(response(item("c1", "f", ""), ls, status="incomplete"))
    assert [call.problem for call in cut.calls] == [None, CUT_OFF]
    whole = turn_of_response(response(item("c1", "f", "", status="completed"), status="incomplete"))
    assert [call.problem for call in whole.calls] == [None]


def test_why_a_response_ended_names_what_is_missing() -> None:
    """Status with the reason, or with the error; text and refusals are what was said."""
    said = {
        "type": "message",
        "content": [{"type": "output_text", "text": "Hm."}, {"type": "refusal", "refusal": "No."}],
    }
    turn = turn_of_response(
        response(said, status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    )
    assert (turn.finish_reason, turn.content) == ("incomplete: max_output_tokens", "Hm.\nNo.")
    failed = turn_of_response(response(status="failed", error={"message": "overloaded"}))
    assert failed.finish_reason == "failed: overloaded"
    refuse(TypeError, "`response` must have an `output`", lambda: turn_of_response({"choices": []}))


def test_a_namespace_is_kept() -> None:
    """Two tools of one name may differ in it."""
    (call,) = turn_of_response(response(item("c1", "search", {}, namespace="crm"))).calls
    assert call.family == "crm"


def test_a_single_call_is_of_either_api() -> None:
    """An entry of tool_calls, or an item of a response; nothing else."""
    assert call_of_openai(function("c1", "search", {"query": "x"})).kwargs == {"query": "x"}
    assert call_of_openai(item("c2", "search", {"query": "x"})).call_id == "c2"
    refuse(TypeError, "`tool_call` must be a call", lambda: call_of_openai({"id": "c1"}))


@pytest.mark.parametrize("odd", [None, 3, {"query": "x"}])
def test_the_input_of_a_custom_tool_is_text(odd: Any) -> None:
    """Anything else is a problem of that call."""
    one = {"id": "c1", "type": "custom", "custom": {"name": "shell", "input": odd}}
    assert call_of_openai(one).problem == "the input must be text"
