"""One call of a guarded tool, from its arguments to its result."""

from __future__ import annotations

import asyncio
import inspect
import threading
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from deciders import LONG, SHORT, Calls, Ledger, ShortQueries
from refusals import refuse

from rag_confidence._calls import ToolCallContext
from rag_confidence._types import Decision
from rag_confidence.errors import AbstainedError, StoreError
from rag_confidence.guard.contexts import ResponseFacts
from rag_confidence.guard.result import GuardReason, GuardResult
from rag_confidence.guard.wrapping import guard_of, wrap

Call = Callable[..., GuardResult]


def as_plain(tool: Callable[..., Any], *args: Any, **options: Any) -> Call:
    """The guarded tool, called as a plain function."""
    return wrap(tool, *args, **options)


def as_awaited(tool: Callable[..., Any], *args: Any, **options: Any) -> Call:
    """The guarded tool behind a coroutine, awaited to its end."""

    async def waits(*given: Any, **named: Any) -> Any:
        await asyncio.sleep(0)
        return tool(*given, **named)

    waits.__signature__ = inspect.signature(tool)
    waits.__name__ = tool.__name__
    found = wrap(waits, *args, **options)

    def call(*given: Any, **named: Any) -> GuardResult:
        async def main() -> GuardResult:
            return await found(*given, **named)

        return asyncio.run(main())

    return call


BOTH = pytest.mark.parametrize("guarded", [as_plain, as_awaited])


def length_of_output(context: ToolCallContext) -> float:
    """A score that needs what the tool returned."""
    return float(len(context.result))


@BOTH
def test_the_tool_runs_after_acceptance_only(guarded: Any) -> None:
    """Scored first, in mode 'before'."""
    calls = Calls()
    call = guarded(calls.tool, ShortQueries())
    assert call(SHORT).output == "WEATHER"
    assert call(LONG).output is None
    assert calls == [SHORT]


@BOTH
def test_an_output_is_judged_in_mode_after(guarded: Any) -> None:
    """The tool runs, the scorer sees its output, and what is not accepted is withheld."""
    calls = Calls()
    call = guarded(calls.tool, ShortQueries(score=length_of_output), mode="after")
    good, bad = call(SHORT), call(LONG)
    assert (good.executed, good.output, good.withheld) == (True, "WEATHER", None)
    assert (bad.executed, bad.output, bad.withheld) == (True, None, LONG.upper())
    assert bad.context is not None
    assert bad.context.result == LONG.upper()
    assert calls == [SHORT, LONG]


@BOTH
@pytest.mark.parametrize("mode", ["before", "after"])
def test_raise_raises_with_the_result(guarded: Any, mode: str) -> None:
    """AbstainedError for every call that is not accepted, with a withheld output in its result."""
    for refusal in (Decision.ABSTAIN, Decision.REJECT):
        call = guarded(Calls().tool, ShortQueries(refusal), "raise", mode=mode)
        assert call(SHORT).output == "WEATHER"
        with pytest.raises(AbstainedError, match="The query is long") as caught:
            call(LONG)
        assert caught.value.result.decision is refusal
        assert caught.value.result.withheld == (LONG.upper() if mode == "after" else None)


@BOTH
@pytest.mark.parametrize("mode", ["before", "after"])
def test_a_callback_gives_the_output(guarded: Any, mode: str) -> None:
    """It gets the result, what it returns is the output, and the decision stays."""
    seen: list[GuardResult] = []

    def ask(result: GuardResult) -> str:
        seen.append(result)
        return "asked"

    call = guarded(Calls().tool, ShortQueries(), ask, mode=mode)
    assert (call(SHORT).output, seen) == ("WEATHER", [])
    result = call(LONG)
    assert (result.output, result.decision, result.executed) == ("asked", Decision.ABSTAIN, mode == "after")
    assert seen[0].output is None


@BOTH
def test_exceptions_of_a_callback_propagate(guarded: Any) -> None:
    """The same object."""
    error = LookupError("nobody there")

    def ask(result: GuardResult) -> None:
        raise error

    with pytest.raises(LookupError) as caught:
        guarded(Calls().tool, ShortQueries(), ask)(LONG)
    assert caught.value is error


def test_async_callbacks_are_awaited() -> None:
    """In an awaited tool."""

    async def ask(result: GuardResult) -> str:
        await asyncio.sleep(0)
        return "asked"

    assert as_awaited(Calls().tool, ShortQueries(), ask)(LONG).output == "asked"


def test_a_hidden_async_callback_is_refused_where_nobody_awaits() -> None:
    """Its coroutine is closed, and never an output."""

    async def ask(result: GuardResult) -> str:
        return "asked"

    call = wrap(Calls().tool, ShortQueries(), lambda result: ask(result))
    refuse(TypeError, "`on_abstain` must return its result; got coroutine", lambda: call(LONG))


class Stop(BaseException):
    """No Exception."""


@BOTH
@pytest.mark.parametrize("mode", ["before", "after"])
@pytest.mark.parametrize(
    "error", [ValueError("bad"), KeyError("query"), TypeError("odd"), Stop("stop"), SystemExit(3)]
)
def test_exceptions_of_the_tool_come_out_untouched(guarded: Any, mode: str, error: BaseException) -> None:
    """The same object, without cause or context, raised where the tool raised it."""
    error.__traceback__ = None

    def broken(query: str) -> str:
        raise error

    with pytest.raises(type(error)) as caught:
        guarded(broken, ShortQueries(), mode=mode)(SHORT)
    assert caught.value is error
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "broken"


@BOTH
@pytest.mark.parametrize("build", [None, lambda **kwargs: ToolCallContext("tool", kwargs)])
def test_wrong_arguments_raise_as_the_tool_would(guarded: Any, build: Any) -> None:
    """A TypeError that names tool and argument; no scorer is asked and nothing runs."""
    calls, decider = Calls(), ShortQueries()
    call = guarded(calls.tool, decider, "raise", context_builder=build)
    for args, kwargs, said in [
        ((), {}, r"^tool\(\) missing a required argument: 'query'"),
        ((SHORT, SHORT), {}, r"^tool\(\) too many positional arguments"),
        ((SHORT,), {"query": SHORT}, r"^tool\(\) multiple values for argument 'query'"),
        ((), {"query": SHORT, "limit": 3}, r"^tool\(\) got an unexpected keyword argument 'limit'"),
    ]:
        with pytest.raises(TypeError, match=said):
            call(*args, **kwargs)
    assert (calls, decider.asked) == ([], [])


@BOTH
@pytest.mark.parametrize("mode", ["before", "after"])
def test_a_call_without_context_is_never_accepted(guarded: Any, mode: str) -> None:
    """A builder that raises or returns something else: the call abstains, and nothing runs in either mode."""

    def broken(**kwargs: Any) -> ToolCallContext:
        raise LookupError("no such user")

    for build, said in ((broken, "LookupError: no such user"), (lambda **kwargs: kwargs, "returned dict")):
        calls, decider = Calls(), ShortQueries()
        result = guarded(calls.tool, decider, context_builder=build, mode=mode)(SHORT)
        assert (result.decision, result.reason_code) == (Decision.ABSTAIN, GuardReason.CONTEXT_FAILED)
        assert said in result.reason
        assert (result.guarantee, result.executed, calls, decider.asked) == (None, False, [], [])


@BOTH
def test_arguments_that_cannot_be_copied_are_never_accepted(guarded: Any) -> None:
    """The call abstains, through on_abstain like any other."""
    with pytest.raises(
        AbstainedError, match=r"`args\['query'\]` must be a value that can be copied"
    ) as caught:
        guarded(Calls().tool, ShortQueries(), "raise")(threading.Lock())
    assert caught.value.result.reason_code is GuardReason.CONTEXT_FAILED


@BOTH
def test_an_output_that_cannot_be_copied_is_withheld(guarded: Any) -> None:
    """It was never judged, so it is not accepted, and it is not lost."""
    lock = threading.Lock()

    def locks(query: str) -> Any:
        return lock

    result = guarded(locks, ShortQueries(), mode="after")(SHORT)
    assert (result.reason_code, result.executed, result.output) == (GuardReason.CONTEXT_FAILED, True, None)
    assert result.withheld is lock
    assert result.context is not None


@BOTH
@pytest.mark.parametrize("mode", ["before", "after"])
def test_the_tool_gets_the_callers_own_arguments(guarded: Any, mode: str) -> None:
    """A scorer that changes what it sees changes copies: the tool and its output are as without a guard."""
    given, seen = ["weather"], []

    def spoil(context: ToolCallContext) -> float:
        context.args["query"].append("and secrets")
        if context.result is not None:
            context.result.clear()
        return 0.0

    def tool(query: list[str]) -> list[str]:
        seen.append(query)
        return [*query]

    result = guarded(tool, ShortQueries(score=spoil), mode=mode)(given)
    assert seen[0] is given
    assert given == result.output == ["weather"]


def test_a_tool_that_changes_its_arguments_is_judged_by_what_it_was_given() -> None:
    """In mode 'after' the context is made before the tool runs."""

    def tool(query: list[str]) -> int:
        query.clear()
        return 0

    decider = ShortQueries()
    wrap(tool, decider, mode="after")(["weather"])
    assert decider.asked[0].args["query"] == ["weather"]


async def answer(query: str) -> str:
    """A coroutine."""
    return query.upper()


def test_a_plain_tool_that_returns_a_coroutine_is_refused() -> None:
    """The error says how to wrap it, and the coroutine is closed; it is never an output."""
    for mode in ("before", "after"):
        call: Any = wrap(lambda query: answer(query), ShortQueries(), mode=mode)
        said = refuse(
            TypeError, "`tool` must return its result; got coroutine", lambda call=call: call(SHORT)
        )
        assert "asynchronous=True" in said


def test_with_asynchronous_any_awaitable_is_awaited() -> None:
    """A coroutine, a future, a task, an object with __await__; and a plain output is taken as it is."""

    class Soon:
        def __await__(self) -> Any:
            return answer(SHORT).__await__()

    async def main() -> list[Any]:
        future = asyncio.get_running_loop().create_future()
        future.set_result("WEATHER")
        outputs: list[Any] = [answer(SHORT), future, asyncio.ensure_future(answer(SHORT)), Soon(), "WEATHER"]
        found = wrap(lambda query: outputs.pop(), ShortQueries(), asynchronous=True)
        return [(await found(SHORT)).output for _ in range(5)]

    assert asyncio.run(main()) == ["WEATHER"] * 5


def test_a_stream_is_judged_before_its_first_item() -> None:
    """The output is the generator itself, of which nothing was taken."""
    steps: list[str] = []

    def words(query: str) -> Iterator[str]:
        try:
            for word in query.split():
                steps.append(word)
                yield word
        finally:
            steps.append("closed")

    call = wrap(words, ShortQueries())
    output = call("one two").output
    assert steps == []
    assert next(output) == "one"
    output.close()
    assert steps == ["one", "closed"]
    assert call(LONG).output is None
    assert steps == ["one", "closed"]


def test_an_async_stream_is_judged_before_its_first_item() -> None:
    """It is awaited for the result, and the output is the async generator."""
    steps: list[str] = []

    async def words(query: str) -> AsyncIterator[str]:
        try:
            for word in query.split():
                yield word
        finally:
            steps.append("closed")

    async def main() -> None:
        call: Any = wrap(words, ShortQueries())
        output = (await call("one two")).output
        assert await anext(output) == "one"
        await output.aclose()
        assert steps == ["closed"]
        assert [word async for word in (await call("one two")).output] == ["one", "two"]
        assert not (await call(LONG)).executed

    asyncio.run(main())


def test_a_hidden_stream_cannot_be_judged_after() -> None:
    """A plain function that returns a generator is refused in mode 'after'."""
    call = wrap(lambda query: iter(part for part in query), ShortQueries(), mode="after")
    refuse(TypeError, "`tool` must return its whole output.*mode='before'", lambda: call(SHORT))


def test_a_cancellation_passes() -> None:
    """Wherever the call waits, and the tool sees it."""
    steps: list[str] = []

    async def slow(query: str) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            steps.append("tool cancelled")
            raise

    async def main(mode: Any) -> bool:
        task = asyncio.ensure_future(wrap(slow, ShortQueries(), "raise", mode=mode)(SHORT))
        for _ in range(3):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert asyncio.run(main("before"))
    assert asyncio.run(main("after"))
    assert steps == ["tool cancelled"] * 2


def test_a_call_that_is_cancelled_while_it_is_judged_does_not_run() -> None:
    """Nothing is accepted by a scorer that did not finish."""
    calls = Calls()

    class Waits(ShortQueries):
        async def adecide(self, context: ToolCallContext) -> GuardResult:
            await asyncio.Event().wait()
            return self.decide(context)

    async def main() -> None:
        task = asyncio.ensure_future(wrap(calls.tool, Waits(), asynchronous=True)(SHORT))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    asyncio.run(main())
    assert calls == []


@BOTH
def test_what_a_decider_raises_comes_out_and_nothing_runs(guarded: Any) -> None:
    """Such as a session that is used up."""
    calls = Calls()

    def over(context: ToolCallContext) -> float:
        raise RuntimeError("no calls left")

    with pytest.raises(RuntimeError, match="no calls left"):
        guarded(calls.tool, ShortQueries(score=over))(SHORT)
    assert calls == []


@BOTH
def test_decisions_are_recorded_before_the_tool_runs(guarded: Any) -> None:
    """Accepted or not, with the number of the record in the result."""
    store = Ledger()
    seen: list[int] = []

    def tool(query: str) -> None:
        seen.append(len(store.rows))

    call = guarded(tool, ShortQueries(), store=store)
    assert [call(SHORT).record_id, call(LONG).record_id, call(SHORT).record_id] == [1, 2, 3]
    assert seen == [1, 3]
    assert [row["decision"] for row in store.rows] == ["accept", "abstain", "accept"]


@BOTH
def test_a_store_that_fails_stops_the_call(guarded: Any) -> None:
    """Its own error comes out, and nothing ran."""
    calls, error = Calls(), StoreError("disk full")
    with pytest.raises(StoreError) as caught:
        guarded(calls.tool, ShortQueries(), store=Ledger(error))(SHORT)
    assert caught.value is error
    assert calls == []


@BOTH
def test_a_store_that_fails_after_the_tool_loses_nothing(guarded: Any) -> None:
    """The error has the result, with an output that was accepted or withheld."""
    call = guarded(Calls().tool, ShortQueries(), mode="after", store=Ledger(StoreError("disk full")))
    for query, name in ((SHORT, "output"), (LONG, "withheld")):
        with pytest.raises(StoreError, match="tool ran, but its call was not recorded: disk full") as caught:
            call(query)
        assert getattr(caught.value.result, name) == query.upper()


@BOTH
def test_decisions_after_the_tool_are_recorded_with_its_output(guarded: Any) -> None:
    """As the scorers saw it, before anything is raised."""
    store = Ledger()
    call = guarded(Calls().tool, ShortQueries(), "raise", mode="after", store=store)
    call(SHORT)
    with pytest.raises(AbstainedError) as caught:
        call(LONG)
    assert caught.value.result.record_id == 2
    assert [row["context"].result for row in store.rows] == ["WEATHER", LONG.upper()]


@BOTH
@pytest.mark.parametrize("mode", ["before", "after"])
def test_calls_without_context_are_recorded(guarded: Any, mode: str) -> None:
    """Every decision is."""
    store = Ledger()
    result = guarded(Calls().tool, ShortQueries(), mode=mode, store=store)(threading.Lock())
    assert result.record_id == 1
    assert store.rows[0]["decision"] is Decision.ABSTAIN


FACTS = ResponseFacts("call-1", (-0.5,), 0.25, {"model": "small"})


def test_a_registry_passes_what_the_response_says() -> None:
    """Scorers find call id, log-probabilities, judge score and metadata in the context."""
    decider = ShortQueries()
    guard = guard_of(wrap(Calls().tool, decider))
    assert guard.call({"query": SHORT}, response=FACTS).output == "WEATHER"
    assert guard.call({}, args=(SHORT,)).output == "WEATHER"
    context = decider.asked[0]
    assert (context.call_id, context.token_logprobs, context.judge_score) == ("call-1", (-0.5,), 0.25)
    assert dict(context.metadata) == {"model": "small"}
    assert decider.asked[1].call_id is None


def test_acall_is_for_every_tool_and_call_is_not() -> None:
    """A tool that is awaited cannot be called; one that is not can be awaited, with its scorers."""
    awaited = guard_of(wrap(answer, ShortQueries()))
    refuse(
        TypeError,
        "`call` must be given a tool that is not awaited; got answer",
        lambda: awaited.call({"query": SHORT}),
    )
    for guard in (awaited, guard_of(wrap(Calls().tool, ShortQueries()))):
        assert asyncio.run(guard.acall({"query": SHORT}, FACTS)).output == "WEATHER"
        assert not asyncio.run(guard.acall({"query": LONG}, FACTS)).executed


def test_threads_do_not_mix_calls() -> None:
    """Every result belongs to its own call."""
    store = Ledger()
    call = wrap(
        str.upper,
        ShortQueries(),
        store=store,
        context_builder=lambda text: ToolCallContext("upper", {"query": text}),
    )
    queries = [f"{number:0{5 + number % 10}d}" for number in range(400)]
    with ThreadPoolExecutor(8) as pool:
        results = [*pool.map(call, queries)]
    for query, result in zip(queries, results, strict=True):
        assert result.context is not None
        assert result.context.args["query"] == query
        assert result.output == (query if len(query) <= 10 else None)
    assert len(store.rows) == 400


def test_tasks_do_not_mix_calls() -> None:
    """Calls that overlap in one event loop keep their arguments and outputs."""
    store = Ledger()
    call: Callable[[str], Awaitable[GuardResult]] = wrap(answer, ShortQueries(), store=store)
    queries = [f"q{number:0{4 + number % 10}d}" for number in range(200)]

    async def main() -> list[GuardResult]:
        return await asyncio.gather(*map(call, queries))

    for query, result in zip(queries, asyncio.run(main()), strict=True):
        assert result.output == (query.upper() if len(query) <= 10 else None)
    assert len(store.rows) == 200
