"""The guards of the tools that a registry is made of, checked once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rag_confidence.guard.guarding import Guard, guard_of

Wrapped = Callable[..., Any]
Tools = Mapping[str, Wrapped] | Iterable[Wrapped]

_CURE = "Pass a list of tools from wrap(), or a dictionary of them by name."


def guards_of(tools: Any) -> dict[str, Guard]:
    """Guards by name.

    Raises
    ------
    TypeError
        For what `wrap` did not make, a method without its object, and a tool that gives a stream.
    ValueError
        For no tools, and for two of one name.
    """
    if isinstance(tools, str | bytes) or not isinstance(tools, Iterable):
        raise TypeError(f"`tools` must be wrapped tools; got {type(tools).__name__}. {_CURE}")
    if isinstance(tools, Mapping):
        named = [(name, guard_of(tool)) for name, tool in tools.items()]
    else:
        named = [(guard.tool_name, guard) for guard in map(guard_of, tools)]
    if not named:
        raise ValueError(f"`tools` must hold at least one tool; got none. {_CURE}")
    guards: dict[str, Guard] = {}
    for name, guard in named:
        _check_tool(name, guard)
        if name in guards:
            raise ValueError(f"`tools` must have names of their own; got {name!r} twice. {_CURE}")
        guards[name] = guard
    return guards


def _check_tool(name: Any, guard: Guard) -> None:
    if not isinstance(name, str) or not name:
        raise TypeError(f"`tools` must have strings as names that are not empty; got {name!r}. {_CURE}")
    if guard.kind.stream:
        raise TypeError(
            f"`tools` must return their whole output; got {name}, which gives a stream. "
            "Wrap a function that collects it."
        )
    if not guard.bound and _first_parameter(guard) == "self":
        # A model would have to name the object.
        raise TypeError(
            f"`tools` must be methods of an object; got {name}, a method without one. "
            "Pass the attribute of the object, not of its class."
        )


def _first_parameter(guard: Guard) -> str | None:
    try:
        return next(iter(inspect.signature(guard.tool).parameters), None)
    except (TypeError, ValueError):
        return None
