"""What kind of callable a tool is."""

from __future__ import annotations

import asyncio
import functools
import inspect
import types
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from refusals import refuse

from rag_confidence.guard.tools import dressed, is_awaited, kind_of, name_of, refuse_awaitable, unpacked


def plain(query: str) -> str:
    """Plain."""
    return query


async def awaited(query: str) -> str:
    """Awaited."""
    return query


def stream(query: str) -> Iterator[str]:
    """A stream."""
    yield query


async def async_stream(query: str) -> AsyncIterator[str]:
    """An async stream."""
    yield query


class Tools:
    """All kinds as methods."""

    def plain(self, query: str) -> str:
        """Plain."""
        return query

    async def awaited(self, query: str) -> str:
        """Awaited."""
        return query

    @classmethod
    async def of_class(cls, query: str) -> str:
        """Awaited, of the class."""
        return query


class AsyncObject:
    """An object that is awaited."""

    async def __call__(self, query: str) -> str:
        """Awaited."""
        return query


class StreamObject:
    """An object that gives a stream."""

    def __call__(self, query: str) -> Iterator[str]:
        """A stream."""
        yield query


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        (plain, (False, False)),
        (awaited, (True, False)),
        (stream, (False, True)),
        (async_stream, (True, True)),
        (Tools().plain, (False, False)),
        (Tools().awaited, (True, False)),
        (Tools.of_class, (True, False)),
        (AsyncObject(), (True, False)),
        (StreamObject(), (False, True)),
        (functools.partial(awaited, "weather"), (True, False)),
        (functools.partial(functools.partial(async_stream), query="weather"), (True, True)),
        (functools.partial(AsyncObject(), "weather"), (True, False)),
        (AsyncObject, (False, False)),
        (len, (False, False)),
    ],
    ids=lambda value: name_of(value) if callable(value) else "",
)
def test_kind_is_that_of_the_code_that_runs(tool: Any, expected: tuple[bool, bool]) -> None:
    """Partial objects, methods and objects with __call__ are seen through; a class gives an object."""
    assert kind_of(tool) == expected


def test_a_decorator_decides_what_its_function_is() -> None:
    """Where a plain function runs a coroutine itself nothing is awaited, whatever it wraps."""

    @functools.wraps(awaited)
    def runs(query: str) -> str:
        return asyncio.run(awaited(query))

    assert kind_of(runs) == (False, False)


def test_what_is_not_visible_can_be_said() -> None:
    """asynchronous=True makes a plain tool an awaited one; False is refused where it must be awaited."""
    assert kind_of(plain, True) == (True, False)
    assert kind_of(plain, False) == (False, False)
    refuse(ValueError, "True or None for a tool that is awaited", lambda: kind_of(awaited, False))
    refuse(TypeError, "asynchronous.*got 'yes'", lambda: kind_of(plain, "yes"))  # type: ignore[arg-type]


def test_awaited_callbacks_are_seen() -> None:
    """An async function is awaited, in a partial object too; a plain one and an async stream are not."""
    assert is_awaited(functools.partial(awaited, "weather"))
    assert not is_awaited(plain)
    assert not is_awaited(async_stream)


@pytest.mark.parametrize("value", [None, 3, "search", ["search"], plain("weather")])
def test_what_cannot_be_called_is_no_tool(value: Any) -> None:
    """A value that is not callable is refused by name."""
    refuse(TypeError, "`tool` must be callable", lambda: unpacked(value))


def test_methods_are_unpacked_and_packed_again() -> None:
    """The function of a staticmethod or classmethod comes out, and what makes one of its wrapper."""
    for kind in (staticmethod, classmethod):
        function, again = unpacked(kind(plain))
        assert function is plain
        assert isinstance(again(plain), kind)
    assert unpacked(plain)[1](plain) is plain


@pytest.mark.parametrize(
    ("tool", "name"),
    [
        (plain, "plain"),
        (functools.partial(functools.partial(plain), "weather"), "plain"),
        (Tools().plain, "plain"),
        (AsyncObject(), "AsyncObject"),
        (AsyncObject, "AsyncObject"),
    ],
    ids=["function", "partial", "method", "object", "class"],
)
def test_names_are_those_that_people_use(tool: Callable[..., Any], name: str) -> None:
    """The name of the function, also in a partial object; of an object the name of its class."""

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return None

    assert name_of(tool) == name
    assert dressed(wrapper, tool).__name__ == name


def test_a_wrapper_of_a_partial_object_has_its_signature_and_the_words_of_its_function() -> None:
    """Parameters that a partial object fills are gone, and the documentation is not that of partial."""

    def search(query: str, limit: int = 3) -> str:
        """Look it up."""
        return query * limit

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return None

    found = dressed(wrapper, functools.partial(search, "weather"))
    assert str(inspect.signature(found)) == "(limit: 'int' = 3) -> 'str'"
    assert found.__doc__ == "Look it up."


def test_attributes_of_an_object_do_not_become_those_of_its_wrapper() -> None:
    """Only functions hand on their attributes."""

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return None

    tool: Any = AsyncObject()
    tool.secret = 1
    assert not hasattr(dressed(wrapper, tool), "secret")
    assert dressed(wrapper, tool).__doc__ == "An object that is awaited."


def test_a_coroutine_that_nobody_awaits_is_closed() -> None:
    """It is refused with a cure, and Python has nothing to warn of."""
    coroutine = awaited("weather")
    said = refuse(TypeError, "`tool` must return", lambda: refuse_awaitable("tool", coroutine, "Cure it."))
    assert "got coroutine, which is awaited. Cure it." in said
    assert inspect.getcoroutinestate(coroutine) == inspect.CORO_CLOSED


def test_a_task_that_nobody_awaits_is_cancelled() -> None:
    """What runs already is told to stop."""

    async def main() -> bool:
        task = asyncio.ensure_future(awaited("weather"))
        refuse(TypeError, "got .*Task", lambda: refuse_awaitable("tool", task, "Cure."))
        await asyncio.wait([task])
        return task.cancelled()

    assert asyncio.run(main())


def test_generators_are_no_awaitables() -> None:
    """A stream is an output like any other; a coroutine that is written as a generator is not."""
    items = stream("weather")
    refuse_awaitable("tool", items, "Cure.")
    assert [*items] == ["weather"]
    old = types.coroutine(stream)("weather")
    refuse(TypeError, "got generator", lambda: refuse_awaitable("tool", old, "Cure."))
