"""Run one call that a model asked for under its guard, so that whatever happens becomes an answer."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from rag_confidence.errors import AbstainedError
from rag_confidence.guard.contexts import ResponseFacts
from rag_confidence.guard.guarding import Guard
from rag_confidence.guard.handled import CallStatus, HandledCall, answered, settled
from rag_confidence.guard.recording import UnrecordedCall
from rag_confidence.guard.replies import guard_failed, said
from rag_confidence.guard.result import GuardResult
from rag_confidence.guard.tools import Tool
from rag_confidence.guard.turns import RequestedCall


@dataclass(eq=False)
class Watched:
    """A tool in one call, which tells what the tool raised from what its guard raised.

    Attributes
    ----------
    tool : callable
    started : bool
    error : Exception or None
    """

    tool: Tool
    started: bool = False
    error: Exception | None = None

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """The tool."""
        self.started = True
        try:
            return self.tool(*args, **kwargs)
        except Exception as error:
            self.error = error
            raise

    async def acall(self, *args: Any, **kwargs: Any) -> Any:
        """The tool, awaited."""
        self.started = True
        try:
            return await _awaited(self.tool(*args, **kwargs))
        except Exception as error:
            self.error = error
            raise

    async def in_thread(self, *args: Any, **kwargs: Any) -> Any:
        """The tool in a thread of its own, while other calls go on."""
        return await _awaited(await asyncio.to_thread(self._called, args, kwargs))

    def _called(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        try:
            return self.call(*args, **kwargs)
        except StopIteration as error:
            # A future cannot hold it, and whoever waits for that would wait for ever.
            self.error = RuntimeError("the tool raised StopIteration")
            raise self.error from error


def run(call: RequestedCall, guard: Guard, facts: ResponseFacts) -> HandledCall:
    """Judge a call, and run it if it is accepted; for tools that are not awaited."""
    misfit = _misfit(call, guard)
    if misfit is not None:
        return misfit
    watched = Watched(guard.tool)
    try:
        result = replace(guard, tool=watched.call).call(call.kwargs, facts, args=call.args)
    except Exception as error:  # noqa: BLE001
        return _raised(call, watched, error)
    return settled(call, result)


async def arun(call: RequestedCall, guard: Guard, facts: ResponseFacts) -> HandledCall:
    """`run` for every tool: it is judged in the event loop, and one that is not awaited runs in a thread."""
    misfit = _misfit(call, guard)
    if misfit is not None:
        return misfit
    watched = Watched(guard.tool)
    tool = watched.acall if guard.asynchronous else watched.in_thread
    try:
        result = await replace(guard, tool=tool).acall(call.kwargs, facts, args=call.args)
    except Exception as error:  # noqa: BLE001
        return _raised(call, watched, error)
    return settled(call, result)


def _misfit(call: RequestedCall, guard: Guard) -> HandledCall | None:
    """The answer to a call whose arguments cannot be used; None for any other."""
    problem = call.problem
    try:
        if problem is None:
            guard.describe.parameters.bound((*guard.bound, *call.args), call.kwargs)
            return None
        error: Exception = ValueError(problem)
    except TypeError as raised:
        problem, error = str(raised), raised
    told = f"{call.name} was not run: {problem}."
    return answered(call, CallStatus.MALFORMED_ARGUMENTS, told, error=error)


def _raised(call: RequestedCall, watched: Watched, error: Exception) -> HandledCall:
    if watched.error is not None:
        told = f"{call.name} failed: {said(watched.error)}"
        return answered(call, CallStatus.TOOL_ERROR, told, error=watched.error)
    judged = error.result if isinstance(error, AbstainedError | UnrecordedCall) else None
    if not isinstance(judged, GuardResult):
        told = guard_failed(call.name, error, started=watched.started)
        return answered(call, CallStatus.GUARD_ERROR, told, error=error)
    return settled(call, judged, error if isinstance(error, UnrecordedCall) else None)


async def _awaited(output: Any) -> Any:
    return await output if inspect.isawaitable(output) else output
