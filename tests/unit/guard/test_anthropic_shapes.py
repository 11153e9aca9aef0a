"""Calls of the Messages API."""

from __future__ import annotations

from typing import Any

import pytest
from refusals import refuse
from tool_calls import message, use

from rag_confidence.guard.anthropic_shapes import call_of_block, turn_of_message
from rag_confidence.guard.turns import CUT_OFF

TEXT = {"type": "text", "text": "Let me see."}
ON_SERVER = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}}


def test_a_message_has_tool_uses() -> None:
    """In order; what the server runs, text and thinking are left out."""
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": ""}
    turn = turn_of_message(message(thinking, TEXT, ON_SERVER, use("t1", "search", {"query": "x"})))
    assert [(call.call_id, call.name, call.kwargs, call.problem) for call in turn.calls] == [
        ("t1", "search", {"query": "x"}, None)
    ]
    assert (turn.finish_reason, turn.content, turn.token_logprobs) == ("tool_use", "Let me see.", None)


def test_answers_are_result_blocks() -> None:
    """They say whether they are an error; one of a set of tools names it."""
    block = {"type": "tool_result", "tool_use_id": "t1", "content": "no", "is_error": True}
    assert call_of_block(use("t1", "search", {})).answer("no", True) == block
    of_set = call_of_block(use("t1", "search", {}, toolset_name="browser"))
    assert of_set.answer("no", True) == {**block, "toolset_name": "browser"}
    assert of_set.family == "browser"


@pytest.mark.parametrize("reason", ["max_tokens", "model_context_window_exceeded", "refusal"])
def test_a_call_that_was_cut_off_is_not_run(reason: str) -> None:
    """The input of the last block may miss entries, which nothing shows; blocks before it are whole."""
    turn = turn_of_message(message(use("t1", "f", {"a": 1}), use("t2", "f", {"a": 1}), reason=reason))
    assert [(call.problem, call.kwargs) for call in turn.calls] == [(None, {"a": 1}), (CUT_OFF, {})]
    before = turn_of_message(message(use("t1", "f", {"a": 1}), TEXT, reason=reason))
    assert [call.problem for call in before.calls] == [None]


@pytest.mark.parametrize("given", [["x"], 3, "[1]"])
def test_an_input_that_is_no_object_is_a_problem(given: Any) -> None:
    """Of that call alone."""
    assert "must be a JSON object" in str(call_of_block(use("t1", "f", given)).problem)


def test_what_the_api_says_of_a_refusal_is_kept() -> None:
    """Beside the text of the message."""
    turn = turn_of_message(message(TEXT, reason="refusal", stop_details={"explanation": "Not this."}))
    assert (turn.finish_reason, turn.content) == ("refusal", "Let me see.\nNot this.")
    assert turn_of_message(message(content="Only text.")).content == "Only text."


@pytest.mark.parametrize("wrong", [None, [], {"choices": []}])
def test_what_is_no_message_is_refused(wrong: Any) -> None:
    """The list of its blocks among it."""
    refuse(TypeError, "`message` must have a `content`", lambda: turn_of_message(wrong))


def test_a_block_of_another_type_is_refused() -> None:
    """What ran on the server is no call for a program; a call needs an id."""
    refuse(
        TypeError,
        "`block` must be of type 'tool_use'; got 'server_tool_use'",
        lambda: call_of_block(ON_SERVER),
    )
    nameless = {"type": "tool_use", "name": "f", "input": {}}
    refuse(ValueError, "`block` must give each call an `id`", lambda: call_of_block(nameless))
