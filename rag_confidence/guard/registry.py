"""ToolRegistry: guarded tools by name, for programs that run the calls of a model themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rag_confidence._options import check_flag
from rag_confidence.errors import NoToolCallProducedError
from rag_confidence.guard.anthropic_shapes import call_of_block, turn_of_message
from rag_confidence.guard.contexts import ResponseFacts
from rag_confidence.guard.guarding import Guard
from rag_confidence.guard.handled import CallStatus, HandledCall, HandledCalls, answered
from rag_confidence.guard.openai_shapes import call_of_openai, turn_of_choice, turn_of_response
from rag_confidence.guard.registering import Tools, guards_of
from rag_confidence.guard.running import arun, run
from rag_confidence.guard.turns import RequestedCall, Turn


@dataclass(frozen=True)
class _Beside:
    """What the user knows of the calls of one response."""

    required: bool = False
    token_logprobs: tuple[float, ...] | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


class ToolRegistry:
    """Guarded tools by name: it runs the calls in a response of a model, and answers each of them.

    Parameters
    ----------
    tools : mapping of str to wrapped tool, or iterable of wrapped tools
        From `wrap` or `guarded`. Without names they are known by those that `wrap` gave them.

    Attributes
    ----------
    names : tuple of str
        The tools, in alphabetical order.

    Raises
    ------
    TypeError
        For what `wrap` did not make, a method without its object, and a tool that gives a stream, of which
        there is no whole output to answer with.
    ValueError
        For no tools, and for two of one name.

    Notes
    -----
    Each call is judged and run by itself: nothing that is wrong with one loses another, and each gets an
    answer. What a tool raises is in the answer, cut short, for the model to read, and whole in
    `HandledCall.error`; only a `BaseException` that is no `Exception`, such as a cancellation, passes.
    Arguments that do not fit the tool, calls that were cut off and unknown tools are answered and not judged.
    Outputs are sent as text, strings as they are and all else as JSON. Where `on_abstain` is a function, what
    it returns is sent instead of the reason.

    A call of a tool in a namespace is looked up as "namespace.name" first, then by its name alone.

    The log-probabilities of a response belong to all of its tokens: each of its calls is judged with all of
    them. Calls of one response are judged one by one, and the guarantee is one for each call.

    The ``handle_`` methods run calls in order. The ``ahandle_`` methods run them side by side: tools that are
    not awaited in threads, everything else in the event loop, scorers too, which may be asynchronous there.
    A cancellation cannot stop a thread.

    Examples
    --------
    >>> from rag_confidence.guard import ToolCallContext, calibrate, wrap
    >>> calls = [(ToolCallContext("upper", {"text": "a" * size}), True) for size in range(1, 100)]
    >>> calibrator = calibrate(lambda call: len(call.args["text"]), calls, 0.1)
    >>> registry = ToolRegistry([wrap(lambda text: text.upper(), calibrator, tool_name="upper")])
    >>> call = {"id": "c1", "function": {"name": "upper", "arguments": '{"text": "hello"}'}}
    >>> registry.handle_openai_tool_call(call).message
    {'role': 'tool', 'tool_call_id': 'c1', 'content': 'HELLO'}
    """

    def __init__(self, tools: Tools) -> None:
        self._guards = guards_of(tools)
        self.names = tuple(sorted(self._guards))

    def handle_openai_choice(
        self, choice: Any, *, required: bool = False, metadata: Mapping[str, Any] | None = None
    ) -> HandledCalls:
        """Run the calls in one choice of a chat completion.

        Parameters
        ----------
        choice : Choice or mapping
            ``completion.choices[0]``, with `tool_calls` of functions and custom tools, or the older
            `function_call`. Its log-probabilities, where it has them, go to the scorers.
        required : bool
            Refuse a response without any call.
        metadata : mapping of str to anything, optional
            Goes to the scorers with each call.

        Returns
        -------
        HandledCalls

        Raises
        ------
        NoToolCallProducedError
            With `required`, where there is no call; it holds the finish reason and what the model said.
        TypeError, ValueError
            For what is no choice, and calls without ids of their own; before anything runs. Also where a tool
            of the registry must be awaited.
        """
        return self._handled(turn_of_choice(choice), _beside(metadata, required))

    def handle_openai_response(
        self, response: Any, *, required: bool = False, metadata: Mapping[str, Any] | None = None
    ) -> HandledCalls:
        """Run the calls in a response of the Responses API, which gives no log-probabilities of them.

        Parameters, results and exceptions are those of `handle_openai_choice`. The messages are items for the
        `input` of the next request.
        """
        return self._handled(turn_of_response(response), _beside(metadata, required))

    def handle_anthropic_message(
        self, message: Any, *, required: bool = False, metadata: Mapping[str, Any] | None = None
    ) -> HandledCalls:
        """Run the calls in a message of the Anthropic API, which gives no log-probabilities.

        Parameters, results and exceptions are those of `handle_openai_choice`. The messages are blocks for
        the content of one user message.
        """
        return self._handled(turn_of_message(message), _beside(metadata, required))

    async def ahandle_openai_choice(
        self, choice: Any, *, required: bool = False, metadata: Mapping[str, Any] | None = None
    ) -> HandledCalls:
        """`handle_openai_choice` for tools of every kind, side by side."""
        return await self._ahandled(turn_of_choice(choice), _beside(metadata, required))

    async def ahandle_openai_response(
        self, response: Any, *, required: bool = False, metadata: Mapping[str, Any] | None = None
    ) -> HandledCalls:
        """`handle_openai_response` for tools of every kind, side by side."""
        return await self._ahandled(turn_of_response(response), _beside(metadata, required))

    async def ahandle_anthropic_message(
        self, message: Any, *, required: bool = False, metadata: Mapping[str, Any] | None = None
    ) -> HandledCalls:
        """`handle_anthropic_message` for tools of every kind, side by side."""
        return await self._ahandled(turn_of_message(message), _beside(metadata, required))

    def handle_openai_tool_call(
        self,
        tool_call: Any,
        *,
        token_logprobs: Iterable[float] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> HandledCall:
        """Run one call: an entry of `tool_calls`, or an item of a response.

        Log-probabilities are no part of a call, and are given beside it.
        """
        return self._handled_one(call_of_openai(tool_call), _beside(metadata, logprobs=token_logprobs))

    def handle_anthropic_tool_use(
        self, block: Any, *, metadata: Mapping[str, Any] | None = None
    ) -> HandledCall:
        """Run one `tool_use` block."""
        return self._handled_one(call_of_block(block), _beside(metadata))

    async def ahandle_openai_tool_call(
        self,
        tool_call: Any,
        *,
        token_logprobs: Iterable[float] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> HandledCall:
        """`handle_openai_tool_call` for tools of every kind."""
        return await self._arun(call_of_openai(tool_call), _beside(metadata, logprobs=token_logprobs))

    async def ahandle_anthropic_tool_use(
        self, block: Any, *, metadata: Mapping[str, Any] | None = None
    ) -> HandledCall:
        """`handle_anthropic_tool_use` for tools of every kind."""
        return await self._arun(call_of_block(block), _beside(metadata))

    def __repr__(self) -> str:
        return f"ToolRegistry({', '.join(self.names)})"

    def _handled(self, turn: Turn, beside: _Beside) -> HandledCalls:
        beside = _checked(turn, beside)
        return HandledCalls(tuple([self._handled_one(call, beside) for call in turn.calls]))

    async def _ahandled(self, turn: Turn, beside: _Beside) -> HandledCalls:
        beside = _checked(turn, beside)
        runs = (self._arun(call, beside) for call in turn.calls)
        # With exceptions as results all calls come to their end, before what no call may keep is raised.
        found = await asyncio.gather(*runs, return_exceptions=True)
        for one in found:
            if isinstance(one, BaseException):
                raise one
        return HandledCalls(tuple(one for one in found if isinstance(one, HandledCall)))

    def _handled_one(self, call: RequestedCall, beside: _Beside) -> HandledCall:
        self._refuse_awaited()
        guard = self._guard_of(call)
        return self._unknown(call) if guard is None else run(call, guard, _facts(call, beside))

    async def _arun(self, call: RequestedCall, beside: _Beside) -> HandledCall:
        guard = self._guard_of(call)
        return self._unknown(call) if guard is None else await arun(call, guard, _facts(call, beside))

    def _guard_of(self, call: RequestedCall) -> Guard | None:
        return self._guards.get(f"{call.family}.{call.name}") or self._guards.get(call.name)

    def _unknown(self, call: RequestedCall) -> HandledCall:
        told = (
            f"There is no tool named {call.name!r}, so nothing was run; there are: {', '.join(self.names)}."
        )
        return answered(call, CallStatus.UNKNOWN_TOOL, told)

    def _refuse_awaited(self) -> None:
        # At the first call of any tool, and not at the first one of a tool that is awaited.
        awaited = [name for name, guard in self._guards.items() if guard.asynchronous]
        if awaited:
            raise TypeError(
                f"`tools` must not be awaited here; got {', '.join(awaited)}. "
                "Await the method of the same name that begins with ahandle_."
            )


def _beside(metadata: Any, required: Any = False, *, logprobs: Iterable[float] | None = None) -> _Beside:
    if metadata is not None and not isinstance(metadata, Mapping):
        raise TypeError(
            f"`metadata` must be a mapping with names as keys; got {type(metadata).__name__}. "
            "Pass a dictionary."
        )
    known = None if logprobs is None else tuple(logprobs)
    return _Beside(check_flag("required", required), known, metadata or {})


def _checked(turn: Turn, beside: _Beside) -> _Beside:
    """What is known beside the calls, with what the response says for all of them."""
    if beside.required and not turn.calls:
        raise NoToolCallProducedError(
            f"`{turn.shape}` must ask for a tool, which is required; got none (finish reason "
            f"{turn.finish_reason!r}). `content` of this error is what the model said instead.",
            finish_reason=turn.finish_reason,
            content=turn.content,
        )
    return _Beside(beside.required, turn.token_logprobs, beside.metadata)


def _facts(call: RequestedCall, beside: _Beside) -> ResponseFacts:
    return ResponseFacts(call.call_id, beside.token_logprobs, metadata=beside.metadata)
