"""Calls in the responses of OpenAI's APIs, Chat Completions and Responses, and the messages that answer them.

Dictionaries are read like the objects of the SDK, which is never imported.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
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

_CUT_SHORT = ("length", "content_filter")
_UNFINISHED = ("incomplete", "in_progress")
_ITEMS = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}


def openai_token_logprobs(choice: Any) -> tuple[float, ...] | None:
    """Log-probabilities of the tokens of one choice of a chat completion.

    Parameters
    ----------
    choice : Choice or mapping
        ``completion.choices[0]`` of the SDK, or the same as a dictionary.

    Returns
    -------
    tuple of float, or None
        Those of all tokens, of text and calls alike; None where the server gave none, or one that is no
        finite number: without it the others are those of another response.

    Examples
    --------
    >>> openai_token_logprobs({"logprobs": {"content": [{"token": "{", "logprob": -0.25}]}})
    (-0.25,)
    """
    found = [part(token, "logprob") for token in parts(part(choice, "logprobs"), "content")]
    return tuple(map(float, found)) if found and all(map(_is_finite, found)) else None


def turn_of_choice(choice: Any) -> Turn:
    """What one choice of a chat completion asks for.

    Parameters
    ----------
    choice : Choice or mapping
        Its message has `tool_calls`, functions and custom tools, or the older `function_call`. The
        log-probabilities of its tokens count for each of its calls.

    Raises
    ------
    TypeError
        For what has no message, such as the whole completion.
    ValueError
        For a call without an id of its own.
    """
    message = part(choice, "message")
    if message is None:
        raise TypeError(
            f"`choice` must have a `message`; got {type(choice).__name__}. "
            "Pass completion.choices[0], and of a stream the choice that is put together at its end."
        )
    reason = text_of(choice, "finish_reason")
    return Turn(
        "choice",
        check_ids("choice", _calls_of_message(message, cut=reason in _CUT_SHORT)),
        reason,
        joined([_said(message), text_of(message, "refusal")]),
        openai_token_logprobs(choice),
    )


def turn_of_response(response: Any) -> Turn:
    """What a response of the Responses API asks for; it gives no log-probabilities of calls.

    Parameters
    ----------
    response : Response or mapping
        Of its output `function_call` and `custom_tool_call` are read. Other items, such as the calls of tools
        that the server runs, are left out.

    Raises
    ------
    TypeError
        For what has no output.
    ValueError
        For a call without an id of its own.
    """
    if part(response, "output") is None:
        raise TypeError(
            f"`response` must have an `output`; got {type(response).__name__}. "
            "Pass what responses.create returned, and a stream once it is complete."
        )
    items = parts(response, "output")
    cut = part(response, "status") == "incomplete"
    calls = [
        call_of_item(item, cut=cut and item is items[-1]) for item in items if part(item, "type") in _ITEMS
    ]
    return Turn(
        "response",
        check_ids("response", calls),
        _status_of(response),
        joined([_said(item) for item in items if part(item, "type") == "message"]),
    )


def call_of_openai(tool_call: Any) -> RequestedCall:
    """One call, an entry of `tool_calls` or an item of a response."""
    if part(tool_call, "type") in _ITEMS:
        return call_of_item(tool_call)
    if part(tool_call, "function") is None and part(tool_call, "custom") is None:
        raise TypeError(
            f"`tool_call` must be a call of a function or a custom tool; got {type(tool_call).__name__}. "
            "Pass an entry of message.tool_calls, or an item of response.output."
        )
    return call_of_entry(tool_call)


def call_of_entry(entry: Any, *, cut: bool = False) -> RequestedCall:
    """One entry of `tool_calls`; one of a kind that is not known has no name."""
    call_id = call_id_of(entry, "id", "tool_calls")
    answer = _tool_message(call_id)
    function, custom = part(entry, "function"), part(entry, "custom")
    if function is not None:
        return _of_function(call_id, function, answer, cut=cut)
    return _of_custom(call_id, custom, answer, cut=cut)


def call_of_item(item: Any, *, cut: bool = False) -> RequestedCall:
    """One item of a response that calls a function or a custom tool."""
    call_id = call_id_of(item, "call_id", "response")
    answer = _output_item(call_id, item)
    status = part(item, "status")
    cut = status in _UNFINISHED or (cut and status != "completed")
    if part(item, "type") == "function_call":
        return _of_function(call_id, item, answer, cut=cut)
    return _of_custom(call_id, item, answer, cut=cut)


def _calls_of_message(message: Any, *, cut: bool) -> tuple[RequestedCall, ...]:
    entries = parts(message, "tool_calls")
    if entries:
        # Only the last call can be incomplete.
        return tuple(call_of_entry(entry, cut=cut and entry is entries[-1]) for entry in entries)
    function = part(message, "function_call")
    if function is None:
        return ()
    return (_of_function(None, function, _function_message(function), cut=cut),)


def _of_function(call_id: str | None, function: Any, answer: Answer, *, cut: bool) -> RequestedCall:
    arguments, problem = named_arguments(part(function, "arguments"))
    # A JSON object that was cut off does not parse; no text at all does.
    if cut and (problem or not arguments or part(function, "status") in _UNFINISHED):
        arguments, problem = {}, CUT_OFF
    name, family = text_of(function, "name") or "", text_of(function, "namespace")
    return RequestedCall(call_id, name, answer, kwargs=arguments, problem=problem, family=family)


def _of_custom(call_id: str, custom: Any, answer: Answer, *, cut: bool) -> RequestedCall:
    given = part(custom, "input")
    name, family = text_of(custom, "name") or "", text_of(custom, "namespace")
    problem = None if isinstance(given, str) else "the input must be text"
    # Nothing shows whether free text is whole.
    problem = CUT_OFF if cut else problem
    return RequestedCall(call_id, name, answer, args=(given,), problem=problem, family=family)


def _status_of(response: Any) -> str | None:
    """The status of a response, with what is missing of it or went wrong."""
    status = text_of(response, "status")
    details = text_of(part(response, "incomplete_details"), "reason")
    details = details or text_of(part(response, "error"), "message")
    return f"{status}: {details}" if status and details else status


def _said(message: Any) -> str | None:
    """Text and refusals of a message, whose content is one text or a list of pieces."""
    pieces = [text_of(piece, "text") or text_of(piece, "refusal") for piece in parts(message, "content")]
    return text_of(message, "content") or joined(pieces)


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _tool_message(call_id: str) -> Answer:
    return lambda text, _: {"role": "tool", "tool_call_id": call_id, "content": text}


def _function_message(function: Any) -> Answer:
    name = text_of(function, "name") or ""
    return lambda text, _: {"role": "function", "name": name, "content": text}


def _output_item(call_id: str, item: Any) -> Answer:
    kind, caller = _ITEMS[part(item, "type")], _plain(part(item, "caller"))
    # A call from a program is matched to it by its caller.
    more = {} if caller is None else {"caller": caller}
    return lambda text, _: {"type": kind, "call_id": call_id, "output": text, **more}


def _plain(model: Any) -> dict[str, Any] | None:
    if isinstance(model, Mapping):
        return dict(model)
    dump = getattr(model, "model_dump", None)
    return dump(exclude_none=True) if callable(dump) else None
