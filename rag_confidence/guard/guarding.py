"""Guard: what happens to one call of a guarded tool, from its arguments to its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rag_confidence.guard.contexts import ResponseFacts
from rag_confidence.guard.result import Decider, GuardResult


@dataclass(frozen=True, eq=False)
class Guard:
    """A tool, what judges its calls, and what happens to those that are not accepted."""

    tool: Callable[..., Any]
    calibrator: Decider
    tool_name: str
    asynchronous: bool

    def call(
        self, kwargs: Mapping[str, Any], response: ResponseFacts | None = None, *, args: tuple[Any, ...] = ()
    ) -> GuardResult:
        """Judge a call, and run it if it is accepted; for tools that are not awaited."""
        raise NotImplementedError

    async def acall(
        self, kwargs: Mapping[str, Any], response: ResponseFacts | None = None, *, args: tuple[Any, ...] = ()
    ) -> GuardResult:
        """The same for every tool; one that is not awaited runs in the thread of the event loop."""
        raise NotImplementedError
