"""What kind of callable a tool is, and how a wrapper takes over its looks."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import GeneratorType
from typing import Any, NamedTuple

Tool = Callable[..., Any]

_KINDS_OF_METHODS = (staticmethod, classmethod)


class ToolKind(NamedTuple):
    """How a tool is called.

    Attributes
    ----------
    asynchronous : bool
        Whether its caller awaits the result of the guard.
    stream : bool
        Whether it gives a generator, so that there is no output before the caller takes the first item.
    """

    asynchronous: bool
    stream: bool


def kind_of(tool: Any, asynchronous: bool | None = None) -> ToolKind:
    """How a tool is called, seen through partial objects, methods and objects with ``__call__``.

    Parameters
    ----------
    tool : callable
        A function, a method, a class, or an object with ``__call__``.
    asynchronous : bool or None
        True for a tool that returns awaitables although nothing shows it; None looks at the tool.

    Raises
    ------
    TypeError
        For what cannot be called, and a bound that is no boolean.
    ValueError
        For ``asynchronous=False`` where the tool must be awaited.

    Examples
    --------
    >>> async def fetch(url): ...
    >>> kind_of(functools.partial(fetch, "http://127.0.0.1"))
    ToolKind(asynchronous=True, stream=False)
    """
    code = _code_of(tool)
    streams = inspect.isgeneratorfunction(code) or inspect.isasyncgenfunction(code)
    awaited = inspect.iscoroutinefunction(code) or inspect.isasyncgenfunction(code)
    if asynchronous is None:
        return ToolKind(awaited, streams)
    if not isinstance(asynchronous, bool):
        raise TypeError(f"`asynchronous` must be True, False or None; got {asynchronous!r}. Leave it out.")
    if awaited and not asynchronous:
        raise ValueError(
            "`asynchronous` must be True or None for a tool that is awaited; got False. Leave it out."
        )
    return ToolKind(asynchronous, streams)


def is_awaited(function: Any) -> bool:
    """Whether a callable is visibly one whose result must be awaited."""
    return inspect.iscoroutinefunction(_code_of(function))


def name_of(tool: Any) -> str:
    """Name of a tool: its own, that of the function in a partial object, or that of its class."""
    inner = _without_partial(tool)
    return str(getattr(inner, "__name__", type(inner).__name__))


def check_tool(tool: Any) -> None:
    """Refuse what cannot be called."""
    if not callable(tool):
        raise TypeError(
            f"`tool` must be callable; got {type(tool).__name__}. Pass a function, not its result."
        )


def unpacked(tool: Any) -> tuple[Tool, Callable[[Tool], Any]]:
    """The function in a staticmethod or classmethod, and what makes one of its wrapper again."""
    if isinstance(tool, _KINDS_OF_METHODS):
        return tool.__func__, type(tool)
    check_tool(tool)
    return tool, _as_is


def dressed(wrapper: Tool, tool: Tool) -> Tool:
    """The wrapper with name, documentation, annotations and signature of the tool."""
    inner = _without_partial(tool)
    if inspect.isroutine(inner):
        functools.update_wrapper(wrapper, inner)
    else:
        # The attributes of an object or a class are no attributes of a function.
        functools.update_wrapper(wrapper, inner, updated=())
        wrapper.__name__ = wrapper.__qualname__ = name_of(tool)
    # A signature is read from here, and a partial object has fewer parameters than its function.
    wrapper.__wrapped__ = tool  # type: ignore[attr-defined]
    return wrapper


def refuse_awaitable(name: str, value: Any, cure: str) -> None:
    """Refuse what must be awaited where nobody will, and close it."""
    # The type says it sooner than inspect does, but not of coroutines that are written as generators.
    kind = type(value)
    if not hasattr(kind, "__await__") and kind is not GeneratorType:
        return
    if not inspect.isawaitable(value):
        return
    for end in ("close", "cancel"):
        stop = getattr(value, end, None)
        if callable(stop):
            stop()
            break
    raise TypeError(f"`{name}` must return its result; got {type(value).__name__}, which is awaited. {cure}")


def _as_is(function: Tool) -> Tool:
    return function


def _without_partial(tool: Any) -> Any:
    while isinstance(tool, functools.partial):
        tool = tool.func
    return tool


def _code_of(tool: Any) -> Any:
    """The function that runs when a tool is called."""
    inner = _without_partial(tool)
    if inspect.isroutine(inner) or isinstance(inner, type):
        return inner
    return _without_partial(getattr(inner, "__call__", inner))  # noqa: B004
