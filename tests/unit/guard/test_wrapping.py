"""wrap(): what a guarded tool is, and what is refused when it is made."""

from __future__ import annotations

import asyncio
import functools
import inspect
import typing
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from deciders import LONG, SHORT, Calls, Ledger, ShortQueries
from refusals import refuse

from rag_confidence._calls import ToolCallContext
from rag_confidence._types import Decision
from rag_confidence.errors import CalibrationMismatch
from rag_confidence.guard.result import GuardResult
from rag_confidence.guard.wrapping import guard_of, guarded, wrap


def search(query: str, limit: int = 3) -> str:
    """Look it up."""
    return query.upper() + "!" * limit


async def fetch(query: str) -> str:
    """Look it up, and wait."""
    await asyncio.sleep(0)
    return query.upper()


def words(query: str) -> Iterator[str]:
    """Word by word."""
    yield from query.split()


async def awaited_words(query: str) -> AsyncIterator[str]:
    """Word by word, and wait."""
    for word in query.split():
        yield word


def test_a_guarded_tool_looks_like_the_tool() -> None:
    """Name, documentation, module, annotations, signature and the tool itself."""
    guarded_search: Any = wrap(search, ShortQueries())
    assert (guarded_search.__name__, guarded_search.__doc__) == ("search", "Look it up.")
    assert (guarded_search.__qualname__, guarded_search.__module__) == ("search", search.__module__)
    assert inspect.signature(guarded_search) == inspect.signature(search)
    assert typing.get_type_hints(guarded_search) == {"query": str, "limit": int, "return": str}
    assert guarded_search.__wrapped__ is search


@pytest.mark.parametrize(
    ("tool", "awaited"), [(search, False), (words, False), (fetch, True), (awaited_words, True)]
)
def test_a_guarded_tool_is_a_real_function(tool: Any, awaited: bool) -> None:
    """A plain one, or one that inspect and frameworks see is awaited; never a generator function."""
    found = wrap(tool, ShortQueries())
    assert inspect.isfunction(found)
    assert inspect.iscoroutinefunction(found) is awaited
    assert not inspect.isgeneratorfunction(found)
    assert not inspect.isasyncgenfunction(found)


def test_an_accepted_call_runs() -> None:
    """The result has the output, and says that the tool ran."""
    result = wrap(search, ShortQueries())(SHORT, limit=1)
    assert isinstance(result, GuardResult)
    assert (result.decision, result.executed, result.output) == (Decision.ACCEPT, True, "WEATHER!")


@pytest.mark.parametrize("refusal", [Decision.ABSTAIN, Decision.REJECT])
def test_another_call_does_not_run(refusal: Decision) -> None:
    """Abstained or rejected, the tool is not called, and the result says why."""
    calls = Calls()
    result = wrap(calls.tool, ShortQueries(refusal))(LONG)
    assert (result.decision, result.executed, result.output, result.withheld) == (refusal, False, None, None)
    assert (result.failed_checks, result.reason) == (("length",), "The query is long.")
    assert calls == []


def test_coroutine_tools_are_awaited() -> None:
    """The caller awaits the result, and its output is no coroutine."""
    found = wrap(fetch, ShortQueries())
    assert asyncio.run(found(SHORT)).output == "WEATHER"
    assert not asyncio.run(found(LONG)).executed


class Agent:
    """Tools as methods, guarded in the class."""

    def __init__(self, mark: str) -> None:
        self.mark = mark

    @guarded(ShortQueries())
    def search(self, query: str) -> str:
        """Of the object."""
        return query + self.mark

    @guarded(ShortQueries())
    async def fetch(self, query: str) -> str:
        """Of the object, awaited."""
        return query + self.mark

    @classmethod
    @guarded(ShortQueries())
    def of_class(cls, query: str) -> str:
        """Guarded, then of the class."""
        return query + cls.__name__

    @guarded(ShortQueries())
    @classmethod
    def of_class_too(cls, query: str) -> str:
        """Of the class, then guarded."""
        return query + cls.__name__

    @staticmethod
    @guarded(ShortQueries())
    def alone(query: str) -> str:
        """Guarded, then static."""
        return query

    @guarded(ShortQueries())
    @staticmethod
    def alone_too(query: str) -> str:
        """Static, then guarded."""
        return query

    def bare(self, query: str) -> str:
        """Not guarded."""
        return query + self.mark


@pytest.mark.parametrize(
    ("method", "output"),
    [
        ("search", "weather!"),
        ("of_class", "weatherAgent"),
        ("of_class_too", "weatherAgent"),
        ("alone", SHORT),
        ("alone_too", SHORT),
    ],
)
def test_methods_bind(method: str, output: str) -> None:
    """Of an object, of the class and static, in both orders of decorators; the object is no argument."""
    result = getattr(Agent("!"), method)(SHORT)
    assert result.output == output
    assert dict(result.context.args) == {"query": SHORT}
    assert result.context.tool_name == method
    assert not getattr(Agent("!"), method)(query=LONG).executed


def test_async_methods_bind() -> None:
    """They are seen as awaited when bound, too."""
    agent: Any = Agent("!")
    assert inspect.iscoroutinefunction(agent.fetch)
    assert asyncio.run(agent.fetch(SHORT)).output == "weather!"


def test_a_bound_method_can_be_wrapped() -> None:
    """It keeps its object, and its signature has none."""
    found = wrap(Agent("?").bare, ShortQueries())
    assert found(SHORT).output == "weather?"
    assert [*inspect.signature(found).parameters] == ["query"]


class Object:
    """A tool that is an object."""

    def __call__(self, query: str) -> str:
        """In capitals."""
        return query.upper()


@pytest.mark.parametrize(
    ("tool", "name"),
    [(functools.partial(search, limit=0), "search"), (Object(), "Object")],
    ids=["partial", "object"],
)
def test_what_is_no_function_can_be_wrapped(tool: Any, name: str) -> None:
    """Partial objects and objects with __call__, under the names that people use."""
    result = wrap(tool, ShortQueries())(SHORT)
    assert (result.output, result.context.tool_name) == ("WEATHER", name)


def test_guard_of_a_method_has_its_object() -> None:
    """Calls through the guard of a bound method meet that object, of a class that class."""
    assert guard_of(Agent("!").search).call({"query": SHORT}).output == "weather!"
    assert guard_of(Agent.of_class).call({"query": SHORT}).output == "weatherAgent"
    assert guard_of(Agent.alone).call({"query": SHORT}).output == SHORT


def test_guard_of_other_functions_is_refused() -> None:
    """A tool that is not guarded has no guard."""
    refuse(TypeError, r"`wrapped` must be a tool from wrap\(\); got function", lambda: guard_of(search))


def test_guard_of_a_decorator_around_a_guard_is_refused() -> None:
    """It carries the attributes of the guarded tool; calls through the guard would skip its own work."""
    tool = wrap(search, ShortQueries())

    @functools.wraps(tool)
    def limited(*args: Any, **kwargs: Any) -> Any:
        return tool(*args, **kwargs)

    refuse(TypeError, "a decorator around search. Decorate the tool first", lambda: guard_of(limited))


def test_the_guard_says_what_it_guards() -> None:
    """Tool, calibrator and name."""
    calibrator = ShortQueries()
    guard = guard_of(wrap(search, calibrator, tool_name="find"))
    assert (guard.tool, guard.calibrator, guard.tool_name) == (search, calibrator, "find")
    assert not guard.asynchronous


@pytest.mark.parametrize("tool", [None, "search", 3, ShortQueries()])
def test_what_cannot_be_called_is_refused(tool: Any) -> None:
    """A tool must be callable."""
    refuse(TypeError, "`tool` must be callable", lambda: wrap(tool, ShortQueries()))


def test_what_cannot_decide_is_refused() -> None:
    """A calibrator has decide and adecide; a threshold or a scorer has not."""
    for value in (0.5, search, None):
        refuse(TypeError, "`calibrator` must have the methods", lambda v=value: wrap(search, v))


@pytest.mark.parametrize(
    ("kind", "pattern", "options"),
    [
        (ValueError, "`on_abstain` must be.*'rase'", {"on_abstain": "rase"}),
        (TypeError, "`on_abstain` must be.*None", {"on_abstain": None}),
        (TypeError, "`on_abstain` must be a plain function", {"on_abstain": fetch}),
        (ValueError, "`mode` must be one of 'before', 'after'; got 'later'", {"mode": "later"}),
        (TypeError, "`context_builder` must be callable; got dict", {"context_builder": {}}),
        (TypeError, "`tool_name` must be a string that is not empty; got ''", {"tool_name": ""}),
        (TypeError, "`tool_name` must be a string that is not empty; got 3", {"tool_name": 3}),
        (TypeError, "`store` must have a method `add`; got str", {"store": "calls.db"}),
        (TypeError, "`group` must be a string or an integer", {"group": 0.5}),
        (TypeError, "`asynchronous` must be True, False or None", {"asynchronous": "no"}),
    ],
)
def test_options_are_checked_when_wrapping(kind: Any, pattern: str, options: dict[str, Any]) -> None:
    """A mistake is an error now, and not at the first call that abstains."""
    refuse(kind, pattern, lambda: wrap(search, ShortQueries(), **options))
    refuse(kind, pattern, lambda: guarded(ShortQueries(), **options)(search))


def test_a_coroutine_tool_cannot_be_wrapped_as_a_plain_one() -> None:
    """asynchronous=False would hand out coroutines."""
    refuse(
        ValueError,
        "`asynchronous` must be True or None",
        lambda: wrap(fetch, ShortQueries(), asynchronous=False),
    )


@pytest.mark.parametrize("tool", [words, awaited_words])
def test_streams_are_judged_before(tool: Any) -> None:
    """mode='after' is refused for them: there is no output before the caller takes it."""
    refuse(
        ValueError,
        "`mode` must be 'before' for a tool that gives a stream",
        lambda: wrap(tool, ShortQueries(), mode="after"),
    )


def test_the_name_must_be_one_that_the_calibrator_is_for() -> None:
    """A calibrator for other tools is refused, by the function's name and by a given one."""
    calibrator = ShortQueries(tool_names=frozenset({"fetch", "find"}))
    assert wrap(search, calibrator, tool_name="find")(SHORT).accepted
    refuse(CalibrationMismatch, r"\(fetch, find\); got 'search'", lambda: wrap(search, calibrator))
    refuse(CalibrationMismatch, "got 'look'", lambda: wrap(search, calibrator, tool_name="look"))


def test_a_builder_may_name_the_tool() -> None:
    """Then the name of the function says nothing; a name that is given does."""
    calibrator = ShortQueries(tool_names=frozenset({"find"}))
    build = lambda **kwargs: ToolCallContext("find", kwargs)  # noqa: E731
    assert wrap(search, calibrator, context_builder=build)(SHORT).accepted
    refuse(
        CalibrationMismatch,
        "got 'look'",
        lambda: wrap(search, calibrator, context_builder=build, tool_name="look"),
    )


def test_decorated_tools_take_the_options_of_wrap() -> None:
    """guarded(...) is wrap in another form."""
    store = Ledger()

    @guarded(ShortQueries(), lambda result: "asked", tool_name="find", store=store, group="high")
    def tool(query: str) -> str:
        return query

    assert tool(LONG).output == "asked"
    assert (store.rows[0]["context"].tool_name, store.rows[0]["group"]) == ("find", "high")


def test_conformguards_example_works() -> None:
    """Its way of wrapping, called by name or by position."""
    wrapped_search = wrap(
        search,
        calibrator=ShortQueries(),
        on_abstain="escalate",
        context_builder=lambda **kwargs: ToolCallContext(tool_name="search", args=kwargs),
    )
    assert wrapped_search(query=SHORT).output == wrapped_search(SHORT).output == "WEATHER!!!"
    assert wrapped_search(query=LONG).decision == "abstain"
