"""How guarded tools are called, for type checkers: parameters of the tool, results of the guard."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, Literal, ParamSpec, Protocol, TypeAlias, TypedDict, overload

from rag_confidence._history import GroupName
from rag_confidence.guard.contexts import ContextBuilder
from rag_confidence.guard.recording import Store
from rag_confidence.guard.result import GuardResult

P = ParamSpec("P")
Mode: TypeAlias = Literal["before", "after"]
Awaits: TypeAlias = Awaitable[Any] | AsyncIterator[Any]
Awaited: TypeAlias = Coroutine[Any, Any, GuardResult]


class WrapOptions(TypedDict, total=False):
    """Keywords of `wrap`, which documents them."""

    context_builder: ContextBuilder | None
    mode: Mode
    tool_name: str | None
    store: Store | None
    group: GroupName | None


class Guarded(Protocol):
    """A decorator that keeps the parameters of a tool."""

    @overload
    def __call__(self, tool: Callable[P, Awaits], /) -> Callable[P, Awaited]: ...
    @overload
    def __call__(self, tool: Callable[P, Any], /) -> Callable[P, GuardResult]: ...


class AsyncGuarded(Protocol):
    """A decorator of tools of which nothing shows that they are awaited."""

    def __call__(self, tool: Callable[P, Any], /) -> Callable[P, Awaited]:
        """The guarded tool."""
        ...
