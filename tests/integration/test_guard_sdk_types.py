"""The registry on the objects of the SDKs: their own models read the responses, and accept the answers."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from deciders import LONG, SHORT, ShortQueries
from tool_calls import custom, function, item, use

from rag_confidence.errors import NoToolCallProducedError
from rag_confidence.guard import HandledCalls, ToolRegistry, wrap

pytestmark = pytest.mark.needs_extra("test")

USAGE = {"input_tokens": 9, "output_tokens": 9}
TOKENS = [
    {"token": "{", "bytes": [123], "logprob": -0.25, "top_logprobs": []},
    {"token": "}", "bytes": [125], "logprob": -0.75, "top_logprobs": []},
]


def search(query: str) -> dict[str, str]:
    """Look it up."""
    return {"found": query}


def tools(decider: Any = None) -> ToolRegistry:
    """A registry of one tool."""
    return ToolRegistry([wrap(search, decider or ShortQueries())])


def completion(message: dict[str, Any], reason: str = "tool_calls", **more: Any) -> Any:
    """A chat completion as the SDK gives it."""
    from openai.types.chat import ChatCompletion

    choice = {"index": 0, "finish_reason": reason, "message": {"role": "assistant", **message}, **more}
    plain = {"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
    return ChatCompletion.model_validate_json(json.dumps(plain))


def response(*output: dict[str, Any], **more: Any) -> Any:
    """A result of the Responses API as the SDK gives it."""
    from openai.types.responses import Response

    plain = {
        "id": "r",
        "object": "response",
        "created_at": 0,
        "model": "m",
        "output": [*output],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "status": "completed",
        **more,
    }
    return Response.model_validate_json(json.dumps(plain))


def message(*content: dict[str, Any], reason: str = "tool_use", **more: Any) -> Any:
    """A message as the SDK gives it."""
    from anthropic.types import Message

    plain = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [*content],
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": USAGE,
        **more,
    }
    return Message.model_validate_json(json.dumps(plain))


def check_answers(kind: Any, answers: list[dict[str, Any]]) -> None:
    """The SDK's own type for the request has these fields, and holds these values."""
    from pydantic import ConfigDict, TypeAdapter

    kind.__pydantic_config__ = ConfigDict(extra="forbid")
    adapter = TypeAdapter(kind)
    for answer in answers:
        adapter.validate_python(answer)


def statuses(handled: HandledCalls) -> list[str]:
    """What became of the calls."""
    return [str(call.status) for call in handled]


CHAT_CALLS = [
    function("c1", "search", {"query": SHORT}),
    custom("c2", "search", SHORT),
    function("c3", "search", {"query": LONG}),
    function("c4", "search", '{"query": '),
    function("c5", "cancel", ""),
]


def test_chat_completions() -> None:
    """Functions and custom tools in one message, with the log-probabilities of its tokens."""
    from openai.types.chat import ChatCompletionMessageCustomToolCall, ChatCompletionToolMessageParam

    decider = ShortQueries()
    done = completion(
        {"content": None, "tool_calls": CHAT_CALLS}, logprobs={"content": TOKENS, "refusal": None}
    )
    choice = done.choices[0]
    assert isinstance(choice.message.tool_calls[1], ChatCompletionMessageCustomToolCall)
    handled = tools(decider).handle_openai_choice(choice)
    assert statuses(handled) == ["executed", "executed", "abstained", "malformed_arguments", "unknown_tool"]
    assert {seen.token_logprobs for seen in decider.asked} == {(-0.25, -0.75)}
    assert handled.messages[0]["content"] == '{"found": "weather"}'
    check_answers(ChatCompletionToolMessageParam, handled.messages)


def test_the_older_function_call() -> None:
    """Answered by name."""
    from openai.types.chat import ChatCompletionFunctionMessageParam

    call = {"name": "search", "arguments": json.dumps({"query": SHORT})}
    done = completion({"content": None, "function_call": call}, "function_call")
    handled = tools().handle_openai_choice(done.choices[0])
    assert statuses(handled) == ["executed"]
    check_answers(ChatCompletionFunctionMessageParam, handled.messages)


def test_a_completion_without_a_call() -> None:
    """The refusal is in the error; a whole completion is no choice."""
    done = completion({"content": None, "refusal": "I will not."}, "stop")
    with pytest.raises(NoToolCallProducedError) as caught:
        tools().handle_openai_choice(done.choices[0], required=True)
    assert (caught.value.finish_reason, caught.value.content) == ("stop", "I will not.")
    with pytest.raises(TypeError, match=r"got ChatCompletion\. Pass completion\.choices\[0\]"):
        tools().handle_openai_choice(done)


RESPONSE_ITEMS: list[dict[str, Any]] = [
    {"type": "reasoning", "id": "rs", "summary": []},
    {
        "type": "web_search_call",
        "id": "ws",
        "status": "completed",
        "action": {"type": "search", "query": "x"},
    },
    item("c1", "search", {"query": SHORT}, id="fc1", status="completed"),
    {"type": "custom_tool_call", "call_id": "c2", "name": "search", "input": SHORT, "id": "ct"},
    item("c3", "search", {"query": LONG}, id="fc3", status="completed"),
    item("c4", "search", {"query": SHORT}, id="fc4", status="incomplete"),
    item("c5", "search", {"query": SHORT}, caller={"type": "program", "caller_id": "p"}),
]


def test_responses() -> None:
    """Function and custom calls are answered, each in its own shape; items of the server are not."""
    from openai.types.responses.response_custom_tool_call_output_param import (
        ResponseCustomToolCallOutputParam,
    )
    from openai.types.responses.response_input_param import FunctionCallOutput

    decider = ShortQueries()
    handled = tools(decider).handle_openai_response(response(*RESPONSE_ITEMS))
    assert [call.call_id for call in handled] == ["c1", "c2", "c3", "c4", "c5"]
    assert statuses(handled) == ["executed", "executed", "abstained", "malformed_arguments", "executed"]
    assert {seen.token_logprobs for seen in decider.asked} == {None}
    first, second, *others = handled.messages
    check_answers(FunctionCallOutput, [first, *others])
    check_answers(ResponseCustomToolCallOutputParam, [second])
    assert others[-1]["caller"] == {"type": "program", "caller_id": "p"}


def test_a_response_without_a_call() -> None:
    """Status, what is missing, and what was said are in the error."""
    said = {
        "type": "message",
        "id": "m",
        "role": "assistant",
        "status": "incomplete",
        "content": [{"type": "output_text", "text": "Well,", "annotations": []}],
    }
    cut = response(said, status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    with pytest.raises(NoToolCallProducedError) as caught:
        tools().handle_openai_response(cut, required=True)
    assert (caught.value.finish_reason, caught.value.content) == ("incomplete: max_output_tokens", "Well,")


MESSAGE_BLOCKS: list[dict[str, Any]] = [
    {"type": "thinking", "thinking": "Hm.", "signature": "s"},
    {"type": "text", "text": "Let me see."},
    {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": SHORT}},
    use("t1", "search", {"query": SHORT}),
    use("t2", "search", {"query": LONG}),
    use("t3", "search", {}),
    use("t4", "cancel", {}),
]


def test_messages() -> None:
    """Tool uses are answered, and say whether they failed; other blocks are left out."""
    from anthropic.types import ToolResultBlockParam

    handled = tools().handle_anthropic_message(message(*MESSAGE_BLOCKS))
    assert [call.call_id for call in handled] == ["t1", "t2", "t3", "t4"]
    assert statuses(handled) == ["executed", "abstained", "malformed_arguments", "unknown_tool"]
    assert [answer["is_error"] for answer in handled.messages] == [False, True, True, True]
    check_answers(ToolResultBlockParam, handled.messages)


def test_a_message_without_a_call() -> None:
    """Why it stopped, and its text."""
    said = message({"type": "text", "text": "Which city?"}, reason="end_turn")
    with pytest.raises(NoToolCallProducedError) as caught:
        tools().handle_anthropic_message(said, required=True)
    assert (caught.value.finish_reason, caught.value.content) == ("end_turn", "Which city?")


def test_a_message_that_was_cut_off() -> None:
    """The last call may miss arguments, and is not run."""
    handled = tools().handle_anthropic_message(message(*MESSAGE_BLOCKS[:4], reason="max_tokens"))
    assert statuses(handled) == ["malformed_arguments"]
    assert "cut off" in handled.messages[0]["content"]


def test_objects_dictionaries_and_awaited_calls_agree() -> None:
    """The same answers, whoever parsed the response."""
    choice = completion({"content": None, "tool_calls": CHAT_CALLS}).choices[0]
    whole, said = response(*RESPONSE_ITEMS), message(*MESSAGE_BLOCKS)
    registry = tools()
    for handle, ahandle, one in (
        (registry.handle_openai_choice, registry.ahandle_openai_choice, choice),
        (registry.handle_openai_response, registry.ahandle_openai_response, whole),
        (registry.handle_anthropic_message, registry.ahandle_anthropic_message, said),
    ):
        expected = handle(one).messages
        assert handle(one.model_dump()).messages == expected
        assert handle(json.loads(one.model_dump_json(exclude_none=True))).messages == expected
        assert asyncio.run(ahandle(one)).messages == expected


def test_single_calls_of_the_sdks() -> None:
    """An entry of tool_calls, an item, and a block."""
    registry = tools()
    entry = completion({"content": None, "tool_calls": CHAT_CALLS}).choices[0].message.tool_calls[0]
    found = [
        registry.handle_openai_tool_call(entry),
        registry.handle_openai_tool_call(response(*RESPONSE_ITEMS).output[2]),
        registry.handle_anthropic_tool_use(message(*MESSAGE_BLOCKS).content[3]),
    ]
    assert [(call.call_id, call.status) for call in found] == [
        ("c1", "executed"),
        ("c1", "executed"),
        ("t1", "executed"),
    ]
