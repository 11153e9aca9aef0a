"""Calls in the objects of the real SDKs, and answers that their own types allow; nothing is sent anywhere."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from deciders import LONG, SHORT, ShortQueries

from rag_confidence.guard import (
    CallStatus,
    NoToolCallProducedError,
    ToolRegistry,
    openai_token_logprobs,
    wrap,
)

pytestmark = pytest.mark.needs_extra("test")

CHAT = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1_700_000_000,
    "model": "some-model",
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1_700_000_000,
    "model": "some-model",
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "status": "completed",
}
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "some-model",
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 1},
}


def search(query: str) -> dict[str, str]:
    """A tool with one argument, which is also one for free text."""
    return {"found": query.upper()}


async def asearch(query: str) -> dict[str, str]:
    """The same, awaited."""
    await asyncio.sleep(0)
    return search(query)


@pytest.fixture(params=[search, asearch], ids=["plain", "awaited"])
def decided(request: pytest.FixtureRequest) -> tuple[ShortQueries, Callable[..., Any]]:
    """What the guard was asked, and a call of one of the registry's methods, awaited or not."""
    decider = ShortQueries()
    registry = ToolRegistry([wrap(request.param, decider, tool_name="search")])
    awaited = request.param is asearch

    def call(method: str, response: Any, **options: Any) -> Any:
        if not awaited:
            return getattr(registry, method)(response, **options)
        return asyncio.run(getattr(registry, f"a{method}")(response, **options))

    return decider, call


def both(model: Any) -> list[Any]:
    """An object of an SDK, and the dictionary that it was made from."""
    return [model, model.model_dump(by_alias=True)]


def check_message(message: dict[str, Any], kind: Any) -> None:
    """A message that a type of the SDK allows, without any key that it does not know."""
    from pydantic import TypeAdapter

    TypeAdapter(kind).validate_python(message)
    assert set(message) <= set(kind.__annotations__)


# Chat Completions


def completion(message: dict[str, Any], reason: str = "tool_calls", logprobs: Any = None) -> Any:
    """A completion with one choice, read by the SDK."""
    from openai.types.chat import ChatCompletion

    choice = {
        "index": 0,
        "finish_reason": reason,
        "logprobs": logprobs,
        "message": {"role": "assistant", "content": None, "refusal": None, **message},
    }
    return ChatCompletion.model_validate_json(json.dumps({**CHAT, "choices": [choice]}))


def function_call(call_id: str, query: Any, name: str = "search") -> dict[str, Any]:
    """One function call of a message."""
    arguments = query if isinstance(query, str) else json.dumps(query)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def test_calls_of_a_completion_are_answered_in_its_shape(decided: Any) -> None:
    """Functions and custom tools, with one answer for each id, in order, whatever becomes of the call."""
    from openai.types.chat import (
        ChatCompletionMessageCustomToolCall,
        ChatCompletionToolMessageParam,
    )

    _, call = decided
    custom = {"id": "c6", "type": "custom", "custom": {"name": "search", "input": SHORT}}
    calls = [
        function_call("c1", {"query": SHORT}),
        function_call("c2", {"query": LONG}),
        function_call("c3", '{"query": "wea'),
        function_call("c4", {}, name="delete"),
        function_call("c5", "[1]"),
        custom,
    ]
    read = completion({"tool_calls": calls})
    assert isinstance(read.choices[0].message.tool_calls[-1], ChatCompletionMessageCustomToolCall)
    for choice in both(read.choices[0]):
        handled = call("handle_openai_choice", choice)
        assert [one.status for one in handled] == [
            *(CallStatus.EXECUTED, CallStatus.ABSTAINED, CallStatus.MALFORMED_ARGUMENTS),
            *(CallStatus.UNKNOWN_TOOL, CallStatus.MALFORMED_ARGUMENTS, CallStatus.EXECUTED),
        ]
        assert [message["tool_call_id"] for message in handled.messages] == [f"c{at}" for at in range(1, 7)]
        assert json.loads(handled.messages[0]["content"]) == {"found": SHORT.upper()}
        for message in handled.messages:
            check_message(message, ChatCompletionToolMessageParam)


def test_log_probabilities_of_a_completion_reach_the_scorers(decided: Any) -> None:
    """Those of all tokens of the choice, for each of its calls; none where it has none."""
    decider, call = decided
    calls = [function_call("c1", {"query": SHORT}), function_call("c2", {"query": SHORT})]
    tokens = [
        {"token": text, "logprob": logprob, "bytes": None, "top_logprobs": []}
        for text, logprob in (("{", -0.25), ("}", -9999.0))
    ]
    logprobs = {"content": tokens, "refusal": None}
    for choice in both(completion({"tool_calls": calls}, logprobs=logprobs).choices[0]):
        assert openai_token_logprobs(choice) == (-0.25, -9999.0)
        decider.asked.clear()
        call("handle_openai_choice", choice)
        assert [(asked.call_id, asked.token_logprobs) for asked in decider.asked] == [
            ("c1", (-0.25, -9999.0)),
            ("c2", (-0.25, -9999.0)),
        ]
    for nothing in (None, {"content": None, "refusal": None}):
        call("handle_openai_choice", completion({"tool_calls": calls}, logprobs=nothing).choices[0])
        assert decider.asked[-1].token_logprobs is None


def test_the_function_call_of_older_servers_is_answered(decided: Any) -> None:
    """It has no id; its answer names the function."""
    from openai.types.chat import ChatCompletionFunctionMessageParam

    _, call = decided
    older = {"function_call": {"name": "search", "arguments": json.dumps({"query": SHORT})}}
    for choice in both(completion(older, "function_call").choices[0]):
        (one,) = call("handle_openai_choice", choice)
        assert (one.status, one.call_id, one.message["name"]) == (CallStatus.EXECUTED, None, "search")
        check_message(one.message, ChatCompletionFunctionMessageParam)


@pytest.mark.parametrize(
    ("message", "said"),
    [({"content": "Sorry."}, "Sorry."), ({"refusal": "I will not."}, "I will not."), ({}, None)],
)
def test_a_completion_without_a_call_is_refused_where_one_is_required(
    decided: Any, message: dict[str, Any], said: str | None
) -> None:
    """The error has the finish reason, and text or refusal; without `required` nothing is answered."""
    _, call = decided
    for choice in both(completion(message, "stop").choices[0]):
        assert not call("handle_openai_choice", choice)
        with pytest.raises(NoToolCallProducedError) as caught:
            call("handle_openai_choice", choice, required=True)
        assert (caught.value.finish_reason, caught.value.content) == ("stop", said)


def test_a_whole_completion_is_no_choice(decided: Any) -> None:
    """Nor is a piece of a stream."""
    from openai.types.chat import ChatCompletionChunk

    _, call = decided
    delta = {"index": 0, "finish_reason": None, "delta": {"role": "assistant", "content": "He"}}
    chunk = ChatCompletionChunk.model_validate(
        {**CHAT, "object": "chat.completion.chunk", "choices": [delta]}
    )
    for wrong in (completion({"content": "Hello"}, "stop"), chunk, chunk.choices[0]):
        with pytest.raises(TypeError, match="`choice` must have a `message`"):
            call("handle_openai_choice", wrong)


# Responses


def response(*items: dict[str, Any], **more: Any) -> Any:
    """A result of the Responses API, read by the SDK."""
    from openai.types.responses import Response

    return Response.model_validate_json(json.dumps({**RESPONSE, "output": items, **more}))


def item_call(call_id: str, query: str, **more: Any) -> dict[str, Any]:
    """One function call of a response."""
    item = {"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, "name": "search"}
    return {**item, "arguments": json.dumps({"query": query}), "status": "completed", **more}


def said_item(**content: Any) -> dict[str, Any]:
    """A message of a response."""
    content = {"annotations": [], **content} if content["type"] == "output_text" else content
    return {"type": "message", "id": "msg", "role": "assistant", "status": "completed", "content": [content]}


REASONING = {"type": "reasoning", "id": "rs_1", "summary": []}
SEARCHED = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {"type": "search", "query": "weather"},
}


def test_calls_of_a_response_are_answered_in_its_shape(decided: Any) -> None:
    """By call id, not by the id of the item; other items are skipped; there are no log-probabilities."""
    from openai.types.responses import ResponseCustomToolCallOutputParam
    from openai.types.responses.response_input_item_param import FunctionCallOutput

    decider, call = decided
    custom = {"type": "custom_tool_call", "id": "ct", "call_id": "c2", "name": "search", "input": SHORT}
    text = said_item(type="output_text", text="Let me see.")
    for read in both(
        response(REASONING, text, item_call("c1", SHORT), SEARCHED, custom, item_call("c3", LONG))
    ):
        handled = call("handle_openai_response", read)
        assert [(one.call_id, one.status) for one in handled] == [
            ("c1", CallStatus.EXECUTED),
            ("c2", CallStatus.EXECUTED),
            ("c3", CallStatus.ABSTAINED),
        ]
        for message, kind in zip(
            handled.messages,
            (FunctionCallOutput, ResponseCustomToolCallOutputParam, FunctionCallOutput),
            strict=True,
        ):
            check_message(message, kind)
    assert {asked.token_logprobs for asked in decider.asked} == {None}


def test_a_call_of_a_response_that_was_cut_off_is_not_run(decided: Any) -> None:
    """Even where what is there could be read."""
    decider, call = decided
    cut = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    for read in both(response(item_call("c1", SHORT), item_call("c2", SHORT, status="incomplete"), **cut)):
        handled = call("handle_openai_response", read)
        assert [one.status for one in handled] == [CallStatus.EXECUTED, CallStatus.MALFORMED_ARGUMENTS]
    assert {asked.call_id for asked in decider.asked} == {"c1"}


@pytest.mark.parametrize(
    ("content", "more", "reason"),
    [
        ({"type": "output_text", "text": "No."}, {}, "completed"),
        (
            {"type": "refusal", "refusal": "No."},
            {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}},
            "incomplete: content_filter",
        ),
    ],
)
def test_a_response_without_a_call_is_refused_where_one_is_required(
    decided: Any, content: dict[str, Any], more: dict[str, Any], reason: str
) -> None:
    """Its status and what is incomplete are the finish reason; what it said is the content."""
    _, call = decided
    for read in both(response(REASONING, said_item(**content), **more)):
        with pytest.raises(NoToolCallProducedError) as caught:
            call("handle_openai_response", read, required=True)
        assert (caught.value.finish_reason, caught.value.content) == (reason, "No.")


def test_the_caller_of_a_call_is_in_its_answer(decided: Any) -> None:
    """A call from a program goes back to that program."""
    from openai.types.responses.response_input_item_param import FunctionCallOutput

    _, call = decided
    caller = {"type": "program", "caller_id": "prog_1"}
    for read in both(response(item_call("c1", SHORT, caller=caller))):
        (message,) = call("handle_openai_response", read).messages
        assert message["caller"] == caller
        check_message(message, FunctionCallOutput)


# Messages


def message(*blocks: dict[str, Any], reason: str = "tool_use", **more: Any) -> Any:
    """A message, read by the SDK."""
    from anthropic.types import Message

    return Message.model_validate_json(
        json.dumps({**MESSAGE, "content": blocks, "stop_reason": reason, **more})
    )


def use(call_id: str, query: str, kind: str = "tool_use", name: str = "search") -> dict[str, Any]:
    """One block that asks for a tool."""
    return {"type": kind, "id": call_id, "name": name, "input": {"query": query}}


def test_calls_of_a_message_are_answered_in_its_shape(decided: Any) -> None:
    """Tools that the server ran and other blocks are skipped; whatever did not run is an error."""
    from anthropic.types import ToolResultBlockParam

    _, call = decided
    text = {"type": "text", "text": "Let me see.", "citations": None}
    thinking = {"type": "thinking", "thinking": "...", "signature": "s"}
    server = use("srv_1", SHORT, "server_tool_use", "web_search")
    blocks = [thinking, text, server, use("t1", SHORT), use("t2", LONG), use("t3", SHORT, name="delete")]
    for read in both(message(*blocks)):
        handled = call("handle_anthropic_message", read)
        assert [(one.call_id, one.status, one.message["is_error"]) for one in handled] == [
            ("t1", CallStatus.EXECUTED, False),
            ("t2", CallStatus.ABSTAINED, True),
            ("t3", CallStatus.UNKNOWN_TOOL, True),
        ]
        for block in handled.messages:
            check_message(block, ToolResultBlockParam)


def test_the_last_call_of_a_message_that_was_cut_off_is_not_run(decided: Any) -> None:
    """Its input is an object already, so that nothing shows what is missing."""
    decider, call = decided
    for read in both(message(use("t1", SHORT), use("t2", SHORT), reason="max_tokens")):
        handled = call("handle_anthropic_message", read)
        assert [one.status for one in handled] == [CallStatus.EXECUTED, CallStatus.MALFORMED_ARGUMENTS]
    assert {asked.call_id for asked in decider.asked} == {"t1"}


def test_a_message_without_a_call_is_refused_where_one_is_required(decided: Any) -> None:
    """The calls of the server's tools are none; the stop reason and the texts are in the error."""
    _, call = decided
    texts = [{"type": "text", "text": text, "citations": None} for text in ("I looked.", "Nothing.")]
    server = use("srv_1", SHORT, "server_tool_use", "web_search")
    for read in both(message(texts[0], server, texts[1], reason="end_turn")):
        with pytest.raises(NoToolCallProducedError) as caught:
            call("handle_anthropic_message", read, required=True)
        assert (caught.value.finish_reason, caught.value.content) == ("end_turn", "I looked.\nNothing.")


def test_a_refused_message_says_so(decided: Any) -> None:
    """Where there is no text, the explanation of the API is the content."""
    _, call = decided
    details = {"type": "refusal", "category": None, "explanation": "Not this."}
    for read in both(message(reason="refusal", stop_details=details)):
        with pytest.raises(NoToolCallProducedError) as caught:
            call("handle_anthropic_message", read, required=True)
        assert (caught.value.finish_reason, caught.value.content) == ("refusal", "Not this.")


# One call by itself


def test_single_calls_are_answered_like_those_of_a_response(decided: Any) -> None:
    """An entry of a message, an item of a response, and a block, each as the SDK gives it."""
    decider, call = decided
    entry = (
        completion({"tool_calls": [function_call("c1", {"query": SHORT})]}).choices[0].message.tool_calls[0]
    )
    item = response(item_call("c2", SHORT)).output[0]
    block = message(use("t1", SHORT)).content[0]
    for one in both(entry):
        assert call("handle_openai_tool_call", one, token_logprobs=[-0.5]).message["tool_call_id"] == "c1"
        assert decider.asked[-1].token_logprobs == (-0.5,)
    for one in both(item):
        assert call("handle_openai_tool_call", one).message["call_id"] == "c2"
    for one in both(block):
        assert call("handle_anthropic_tool_use", one).message["tool_use_id"] == "t1"
