"""Guard: what happens to one call of a guarded tool, from its arguments to its result."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rag_confidence._calls import ToolCallContext
from rag_confidence.guard.abstaining import Reaction, escalate, without_context
from rag_confidence.guard.contexts import NO_FACTS, Describer, ResponseFacts, with_output
from rag_confidence.guard.recording import Recorder
from rag_confidence.guard.result import Decider, GuardResult, assembled
from rag_confidence.guard.tools import Tool, ToolKind, refuse_awaitable

_AWAITED = "Wrap it with asynchronous=True, and await the guarded tool."
_WHOLE = "Wrap it with mode='before': a stream is judged before its first item."

Args = tuple[Any, ...]
Kwargs = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Guard:
    """A tool, what judges its calls, and what happens to those that are not accepted.

    Attributes
    ----------
    tool : callable
        The tool as it was given to `wrap`.
    calibrator : Decider
    tool_name : str
    kind : ToolKind
        Whether the tool is awaited, and whether it gives a stream.
    after : bool
        Whether calls are judged after they ran.
    describe : Describer
        Makes the contexts.
    react : callable
        What gives a call its output that was not accepted.
    recorder : Recorder or None
    bound : tuple
        The object of a bound method, which comes before all arguments.

    Notes
    -----
    It keeps nothing of a call, so that calls may overlap in threads and tasks. A decider or a store may keep
    state of its own.
    """

    tool: Tool
    calibrator: Decider
    tool_name: str
    kind: ToolKind
    after: bool
    describe: Describer
    react: Reaction
    recorder: Recorder | None
    bound: Args = ()

    @property
    def asynchronous(self) -> bool:
        """Whether the guarded tool is awaited: then `acall` is the only way to call it."""
        return self.kind.asynchronous

    def call(self, kwargs: Kwargs, response: ResponseFacts | None = None, *, args: Args = ()) -> GuardResult:
        """Judge a call, and run it if it is accepted; for tools that are not awaited.

        Parameters
        ----------
        kwargs : mapping of str to anything
            Arguments by name.
        response : ResponseFacts or None
            What the response that asked for the call says beside them.
        args : tuple
            Arguments by position.

        Raises
        ------
        TypeError
            For a tool that is awaited, and where the tool would raise one, because the arguments do not fit.
        AbstainedError
            With ``on_abstain="raise"``.
        Exception
            Whatever the tool raises, untouched.
        """
        if self.kind.asynchronous:
            raise TypeError(
                f"`call` must be given a tool that is not awaited; got {self.tool_name}. Use acall."
            )
        return self.run((*self.bound, *args), kwargs, response or NO_FACTS)

    async def acall(
        self, kwargs: Kwargs, response: ResponseFacts | None = None, *, args: Args = ()
    ) -> GuardResult:
        """`call` for every tool; one that is not awaited runs in the thread of the event loop.

        Scorers may be asynchronous here, whatever the tool is.
        """
        return await self.arun((*self.bound, *args), kwargs, response or NO_FACTS)

    def of(self, owner: Any) -> Guard:
        """The guard of the method of one object."""
        return replace(self, bound=(owner,))

    def run(self, args: Args, kwargs: Kwargs, facts: ResponseFacts) -> GuardResult:
        """One call of a tool that is not awaited."""
        context = self.describe(args, kwargs, facts)
        if isinstance(context, str):
            return self._settled(self._recorded(self._undescribed(context)))
        if self.after:
            decider = reserved(self.calibrator)
            result = self._judged_after(context, self._output(args, kwargs), decider)
            return result if result.accepted else self._settled(result)
        result = self._recorded(self.calibrator.decide(context))
        if not result.accepted:
            return self._settled(result)
        return _ran(result, self._output(args, kwargs))

    async def arun(self, args: Args, kwargs: Kwargs, facts: ResponseFacts) -> GuardResult:
        """One call, of which scorers, tool and callback may all have to be awaited."""
        context = self.describe(args, kwargs, facts)
        if isinstance(context, str):
            return await self._asettled(await self._arecorded(self._undescribed(context)))
        if self.after:
            decider = reserved(self.calibrator)
            result = await self._ajudged_after(context, await self._aoutput(args, kwargs), decider)
            return result if result.accepted else await self._asettled(result)
        result = await self._arecorded(await self.calibrator.adecide(context))
        if not result.accepted:
            return await self._asettled(result)
        return _ran(result, await self._aoutput(args, kwargs))

    def _output(self, args: Args, kwargs: Kwargs) -> Any:
        output = self.tool(*args, **kwargs)
        refuse_awaitable("tool", output, _AWAITED)
        return output

    async def _aoutput(self, args: Args, kwargs: Kwargs) -> Any:
        output = self.tool(*args, **kwargs)
        return await output if inspect.isawaitable(output) else output

    def _undescribed(self, happened: str) -> GuardResult:
        return without_context(self.tool_name, happened, self.calibrator)

    def _judged_after(self, context: ToolCallContext, output: Any, decider: Decider) -> GuardResult:
        full = self._with_output(context, output)
        judged = full if isinstance(full, GuardResult) else decider.decide(full)
        result = _ran(judged, output)
        return result if self.recorder is None else self.recorder.record_after(result)

    async def _ajudged_after(self, context: ToolCallContext, output: Any, decider: Decider) -> GuardResult:
        full = self._with_output(context, output)
        judged = full if isinstance(full, GuardResult) else await decider.adecide(full)
        result = _ran(judged, output)
        if self.recorder is None:
            return result
        return await asyncio.to_thread(self.recorder.record_after, result)

    def _with_output(self, context: ToolCallContext, output: Any) -> ToolCallContext | GuardResult:
        if inspect.isgenerator(output) or inspect.isasyncgen(output):
            raise TypeError(f"`tool` must return its whole output with mode='after'; got a stream. {_WHOLE}")
        full = with_output(context, output)
        return self._undescribed(full).changed(context=context) if isinstance(full, str) else full

    def _recorded(self, result: GuardResult) -> GuardResult:
        return result if self.recorder is None else self.recorder.record(result)

    async def _arecorded(self, result: GuardResult) -> GuardResult:
        # A durable write takes milliseconds, in which other calls need not wait.
        return result if self.recorder is None else await asyncio.to_thread(self.recorder.record, result)

    def _settled(self, result: GuardResult) -> GuardResult:
        if self.react is escalate:
            return result
        output = self.react(result)
        refuse_awaitable("on_abstain", output, _AWAITED)
        return result.changed(output=output)

    async def _asettled(self, result: GuardResult) -> GuardResult:
        if self.react is escalate:
            return result
        output = self.react(result)
        return result.changed(output=await output if inspect.isawaitable(output) else output)


def reserved(calibrator: Decider) -> Decider:
    """What judges a call that is about to run: of a session one of its calls, so that none runs beyond it."""
    reserve = getattr(calibrator, "reserve", None)
    return calibrator if reserve is None else reserve()


def _ran(result: GuardResult, output: Any) -> GuardResult:
    """The result of a call that ran, whose output is withheld where it is not accepted."""
    where = "output" if result.accepted else "withheld"
    return assembled({**vars(result), "executed": True, where: output})


def guard_of(wrapped: Callable[..., Any]) -> Guard:
    """The guard in a function that `wrap` made, bound to its object where that is a method.

    Raises
    ------
    TypeError
        For what `wrap` did not make.
    """
    guard = getattr(wrapped, "guard", None)
    if not isinstance(guard, Guard):
        raise TypeError(f"`wrapped` must be a tool from wrap(); got {type(wrapped).__name__}. Wrap it first.")
    if getattr(wrapped, "__wrapped__", guard.tool) is not guard.tool:
        # A decorator copies the attributes of what it decorates, and its own work would be skipped.
        raise TypeError(
            f"`wrapped` must be a tool from wrap(); got a decorator around {guard.tool_name}. Decorate the "
            "tool first, then wrap it."
        )
    return guard.of(wrapped.__self__) if inspect.ismethod(wrapped) else guard
