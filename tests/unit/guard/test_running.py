"""One call under its guard: whatever happens becomes an answer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from deciders import LONG, SHORT, Calls, Ledger, ShortQueries

from rag_confidence._calls import ToolCallContext
from rag_confidence.errors import AbstainedError
from rag_confidence.guard.contexts import ResponseFacts
from rag_confidence.guard.handled import HandledCall
from rag_confidence.guard.recording import UnrecordedCall
from rag_confidence.guard.running import arun, run
from rag_confidence.guard.turns import RequestedCall
from rag_confidence.guard.wrapping import guard_of, wrap

Run = Callable[..., HandledCall]


def synchronously(wrapped: Any, *args: Any, **kwargs: Any) -> HandledCall:
    """One call without an event loop."""
    return run(asked(args, kwargs), guard_of(wrapped), ResponseFacts("c1"))


def awaited(wrapped: Any, *args: Any, **kwargs: Any) -> HandledCall:
    """One call in an event loop."""
    return asyncio.run(arun(asked(args, kwargs), guard_of(wrapped), ResponseFacts("c1")))


def asked(args: tuple[Any, ...], kwargs: dict[str, Any]) -> RequestedCall:
    """A call with these arguments."""
    return RequestedCall("c1", "search", lambda text, failed: {"text": text, "failed": failed}, args, kwargs)


def search(query: str) -> str:
    """Look it up."""
    return query.upper()


def fails(query: str) -> str:
    """A tool that raises."""
    raise ConnectionError(f"no answer to {query}")


both = pytest.mark.parametrize("handle", [synchronously, awaited])


@both
def test_an_accepted_call_runs(handle: Run) -> None:
    """Its result and its output are in the answer, and the call id in the context."""
    found = handle(wrap(search, ShortQueries()), query=SHORT)
    assert (found.status, found.message["text"], found.error) == ("executed", "WEATHER", None)
    assert found.result is not None
    assert found.result.context is not None
    assert found.result.context.call_id == "c1"


@both
def test_another_call_does_not_run(handle: Run) -> None:
    """It is answered with the reason."""
    calls = Calls()
    found = handle(wrap(calls.tool, ShortQueries()), query=LONG)
    assert (found.status, found.error, calls) == ("abstained", None, [])


@both
def test_an_abstention_that_is_raised_becomes_an_answer(handle: Run) -> None:
    """It is a decision and no error, so that it ends no loop over other calls."""
    found = handle(wrap(search, ShortQueries(), "raise"), query=LONG)
    assert (found.status, found.error) == ("abstained", None)
    assert found.result is not None
    assert found.result.failed_checks == ("length",)


@both
def test_an_abstention_inside_a_tool_is_an_error_of_the_tool(handle: Run) -> None:
    """The guard of another tool raised it; this one ran."""

    def outer(query: str) -> Any:
        return wrap(search, ShortQueries(), "raise")(LONG)

    found = handle(wrap(outer, ShortQueries()), query=SHORT)
    assert (found.status, type(found.error), found.result) == ("tool_error", AbstainedError, None)


@both
def test_what_a_tool_raises_is_kept(handle: Run) -> None:
    """Whole in the error, and in words for the model."""
    found = handle(wrap(fails, ShortQueries()), query=SHORT)
    assert (found.status, type(found.error)) == ("tool_error", ConnectionError)
    assert found.message == {
        "text": "search failed: ConnectionError: no answer to weather",
        "failed": True,
    }


@both
@pytest.mark.parametrize(
    ("args", "kwargs", "said"),
    [
        ((), {}, "missing a required argument: 'query'"),
        ((), {"query": SHORT, "limit": 3}, "got an unexpected keyword argument 'limit'"),
        ((SHORT, SHORT), {}, "too many positional arguments"),
    ],
)
def test_arguments_that_do_not_fit_are_answered(handle: Run, args: Any, kwargs: Any, said: str) -> None:
    """The call is neither judged nor run, and a session spends nothing on it."""
    decider = ShortQueries()
    found = handle(wrap(search, decider), *args, **kwargs)
    assert (found.status, type(found.error), found.result) == ("malformed_arguments", TypeError, None)
    assert said in found.message["text"]
    assert decider.asked == []


@both
def test_a_type_error_of_the_tool_is_its_own(handle: Run) -> None:
    """It ran with arguments that fit."""

    def adds(query: str) -> str:
        return query + 1  # type: ignore[operator]

    assert handle(wrap(adds, ShortQueries()), query=SHORT).status == "tool_error"


@both
def test_a_problem_of_the_arguments_is_an_error(handle: Run) -> None:
    """One that was found when the response was read."""
    call = RequestedCall("c1", "search", lambda text, failed: {"text": text}, problem="the text is cut")
    guard = guard_of(wrap(search, ShortQueries()))
    found = (
        run(call, guard, ResponseFacts())
        if handle is synchronously
        else asyncio.run(arun(call, guard, ResponseFacts()))
    )
    assert (found.status, str(found.error)) == ("malformed_arguments", "the text is cut")
    assert found.message["text"] == "search was not run: the text is cut."


@both
def test_a_store_that_fails_before_the_tool_stops_it(handle: Run) -> None:
    """A call that is not recorded is not run; that is no fault of the tool."""
    calls = Calls()
    found = handle(wrap(calls.tool, ShortQueries(), store=Ledger(OSError("full"))), query=SHORT)
    assert (found.status, type(found.error), calls) == ("guard_error", OSError, [])
    assert found.message["text"] == "search was not run: its guard failed with OSError."


@both
def test_a_store_that_fails_after_the_tool_loses_no_result(handle: Run) -> None:
    """The answer has the output, and the error says that it was not recorded."""
    wrapped = wrap(search, ShortQueries(), mode="after", store=Ledger(OSError("full")))
    found = handle(wrapped, query=SHORT)
    assert (found.status, found.message["text"]) == ("executed", "WEATHER")
    assert isinstance(found.error, UnrecordedCall)
    assert found.result is found.error.result


@both
def test_a_callback_that_fails_is_an_error_of_the_guard(handle: Run) -> None:
    """Also one that raises an abstention of its own, without a result."""
    for error in (ValueError("no"), AbstainedError("no")):

        def callback(result: Any, error: Exception = error) -> Any:
            raise error

        found = handle(wrap(search, ShortQueries(), callback), query=LONG)
        assert (found.status, found.error) == ("guard_error", error)
    after = handle(wrap(search, ShortQueries(), callback, mode="after"), query=LONG)
    assert after.message["text"].startswith("search ran, but its output is withheld: its guard failed")


@both
def test_exceptions_that_are_no_errors_pass(handle: Run) -> None:
    """A tool that ends the program does."""

    def ends(query: str) -> str:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        handle(wrap(ends, ShortQueries()), query=SHORT)


@both
def test_a_stream_is_an_error_that_keeps_its_result(handle: Run) -> None:
    """One that nothing showed before; nothing is taken of it."""
    taken: list[int] = []

    def words() -> Iterator[str]:
        taken.append(1)
        yield "a"

    found = handle(wrap(lambda query: words(), ShortQueries(), tool_name="words"), query=SHORT)
    assert (found.status, taken) == ("tool_error", [])
    assert "got a stream" in found.message["text"]


def test_async_tools_and_async_streams_are_awaited() -> None:
    """A tool that is awaited runs in the event loop; an async stream cannot be an answer."""

    async def fetch(query: str) -> int:
        await asyncio.sleep(0)
        return threading.get_ident()

    async def items() -> AsyncIterator[str]:
        yield "a"

    found = awaited(wrap(fetch, ShortQueries()), query=SHORT)
    assert found.message["text"] == str(threading.get_ident())
    stream = awaited(wrap(lambda query: items(), ShortQueries(), tool_name="items"), query=SHORT)
    assert stream.status == "tool_error"


def test_other_tools_run_in_a_thread() -> None:
    """So that several run side by side; the scorers stay in the event loop, where they may be async."""
    decider = ShortQueries(score=lambda context: float(threading.get_ident() != home))
    home = threading.get_ident()
    found = awaited(wrap(lambda query: threading.get_ident(), decider, tool_name="which"), query=SHORT)
    assert found.result is not None
    assert found.result.output != home
    assert found.result.scores == {"length": 0.0}


def test_a_plain_tool_that_returns_an_awaitable_is_awaited_in_a_loop() -> None:
    """Without one it is refused, and nothing is left that nobody awaits."""

    async def later(query: str) -> str:
        return query.upper()

    wrapped = wrap(lambda query: later(query), ShortQueries(), tool_name="later")
    assert awaited(wrapped, query=SHORT).message["text"] == "WEATHER"
    found = synchronously(wrapped, query=SHORT)
    assert (found.status, type(found.error)) == ("guard_error", TypeError)


@both
def test_a_tool_that_raises_stop_iteration_ends(handle: Run) -> None:
    """In a thread it would keep its caller waiting for ever."""
    empty: Iterator[str] = iter(())
    found = handle(wrap(lambda query: next(empty), ShortQueries(), tool_name="next"), query=SHORT)
    assert found.status == "tool_error"
    assert "StopIteration" in found.message["text"]


@both
def test_a_context_that_cannot_be_made_abstains(handle: Run) -> None:
    """As it does outside a registry."""

    def builder(**kwargs: Any) -> ToolCallContext:
        raise KeyError("no")

    found = handle(wrap(search, ShortQueries(), context_builder=builder), query=SHORT)
    assert found.status == "abstained"
    assert found.message["text"] == "search was not run: the call could not be described to its checks."
