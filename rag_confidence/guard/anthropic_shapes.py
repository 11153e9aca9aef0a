"""Calls in the messages of the Anthropic API, and the blocks that answer them.

Dictionaries are read like the objects of the SDK, which is never imported.
"""

from __future__ import annotations

from typing import Any

from rag_confidence.guard.turns import (
    CUT_OFF,
    Answer,
    RequestedCall,
    Turn,
    call_id_of,
    check_ids,
    joined,
    named_arguments,
    part,
    parts,
    text_of,
)

_CUT_SHORT = ("max_tokens", "model_context_window_exceeded", "refusal")


def turn_of_message(message: Any) -> Turn:
    """What a message asks for; it gives no log-probabilities.

    Parameters
    ----------
    message : Message or mapping
        Of its content `tool_use` blocks are read. Tools that the server runs (`server_tool_use`) and other
        blocks are left out.

    Raises
    ------
    TypeError
        For what has no content, such as the list of its blocks.
    ValueError
        For a call without an id of its own.
    """
    content = part(message, "content")
    if content is None:
        raise TypeError(
            f"`message` must have a `content`; got {type(message).__name__}. "
            "Pass what messages.create returned, and a stream once it is complete."
        )
    blocks = parts(message, "content")
    reason = text_of(message, "stop_reason")
    calls = [
        call_of_block(block, cut=reason in _CUT_SHORT and block is blocks[-1])
        for block in blocks
        if part(block, "type") == "tool_use"
    ]
    said = [content] if isinstance(content, str) else [text_of(block, "text") for block in blocks]
    return Turn("message", check_ids("message", calls), reason, joined([*said, _refusal_of(message)]))


def call_of_block(block: Any, *, cut: bool = False) -> RequestedCall:
    """One `tool_use` block.

    Raises
    ------
    TypeError
        For another block.
    ValueError
        For one without an id.
    """
    if part(block, "type") != "tool_use":
        raise TypeError(
            f"`block` must be of type 'tool_use'; got {part(block, 'type')!r}. "
            "Pass an entry of message.content that asks for a tool."
        )
    call_id = call_id_of(block, "id", "block")
    arguments, problem = named_arguments(part(block, "input"))
    family = text_of(block, "toolset_name")
    return RequestedCall(
        call_id,
        text_of(block, "name") or "",
        _tool_result(call_id, family),
        # An input that was cut off may still be an object, with entries missing.
        kwargs={} if cut else arguments,
        problem=CUT_OFF if cut else problem,
        family=family,
    )


def _refusal_of(message: Any) -> str | None:
    """What the API says of a refusal."""
    return text_of(part(message, "stop_details"), "explanation")


def _tool_result(call_id: str, family: str | None) -> Answer:
    more = {} if family is None else {"toolset_name": family}

    def answer(text: str, failed: bool) -> dict[str, Any]:
        block = {"type": "tool_result", "tool_use_id": call_id, "content": text, "is_error": failed}
        return {**block, **more}

    return answer
