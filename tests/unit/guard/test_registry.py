"""ToolRegistry: the calls in a response, run and answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from deciders import LONG, SHORT, Calls, ShortQueries
from guard_calls import quietly
from refusals import refuse
from tool_calls import choice, custom, function, item, message, registry, response, use

from rag_confidence._calls import ToolCallContext
from rag_confidence.errors import NoToolCallProducedError, SessionExhausted
from rag_confidence.guard.calibration import acalibrate, calibrate
from rag_confidence.guard.handled import HandledCalls
from rag_confidence.guard.logprobs import judge_score, logprob_score, mean_logprob
from rag_confidence.guard.registry import ToolRegistry
from rag_confidence.guard.session import Session
from rag_confidence.guard.wrapping import guarded, wrap

Handle = Callable[..., HandledCalls]

BROKEN = '{"query": '


def search(query: str) -> str:
    """Look it up."""
    return query.upper()


def fails(query: str) -> str:
    """A tool that raises."""
    raise ConnectionError("no answer")


def now() -> dict[str, int]:
    """A tool without arguments."""
    return {"hour": 12}


def of_choice(tools: ToolRegistry, *calls: tuple[str, str, Any], **more: Any) -> HandledCalls:
    """Chat Completions."""
    return tools.handle_openai_choice(choice(*(function(*call) for call in calls)), **more)


def of_response(tools: ToolRegistry, *calls: tuple[str, str, Any], **more: Any) -> HandledCalls:
    """Responses."""
    return tools.handle_openai_response(response(*(item(*call) for call in calls)), **more)


def of_message(tools: ToolRegistry, *calls: tuple[str, str, Any], **more: Any) -> HandledCalls:
    """Messages."""
    return tools.handle_anthropic_message(message(*(use(*call) for call in calls)), **more)


def of_choice_in_loop(tools: ToolRegistry, *calls: tuple[str, str, Any], **more: Any) -> HandledCalls:
    """Chat Completions, awaited."""
    one = choice(*(function(*call) for call in calls))
    return asyncio.run(tools.ahandle_openai_choice(one, **more))


def of_response_in_loop(tools: ToolRegistry, *calls: tuple[str, str, Any], **more: Any) -> HandledCalls:
    """Responses, awaited."""
    one = response(*(item(*call) for call in calls))
    return asyncio.run(tools.ahandle_openai_response(one, **more))


def of_message_in_loop(tools: ToolRegistry, *calls: tuple[str, str, Any], **more: Any) -> HandledCalls:
    """Messages, awaited."""
    one = message(*(use(*call) for call in calls))
    return asyncio.run(tools.ahandle_anthropic_message(one, **more))


IN_LOOP = [of_choice_in_loop, of_response_in_loop, of_message_in_loop]
every = pytest.mark.parametrize("handle", [of_choice, of_response, of_message, *IN_LOOP])


def text_of(message: Mapping[str, Any]) -> str:
    """The text of an answer in any of the three shapes."""
    return str(message.get("content", message.get("output")))


def id_of(message: Mapping[str, Any]) -> Any:
    """The id of the call that it answers."""
    return message.get("tool_call_id", message.get("call_id", message.get("tool_use_id")))


@every
def test_every_call_is_answered_in_order(handle: Handle) -> None:
    """Whatever becomes of one, the others have their results, and each has one answer under its id."""
    found = handle(
        registry(search, fails),
        ("c1", "search", {"query": SHORT}),
        ("c2", "fails", {"query": SHORT}),
        ("c3", "search", {"query": LONG}),
        ("c4", "cancel", {}),
        ("c5", "search", ["x"]),
        ("c6", "search", {"question": SHORT}),
        ("c7", "search", {"query": SHORT}),
    )
    assert [call.status for call in found] == [
        *("executed", "tool_error", "abstained", "unknown_tool", "malformed_arguments"),
        *("malformed_arguments", "executed"),
    ]
    assert [id_of(answer) for answer in found.messages] == [f"c{at}" for at in range(1, 8)]
    assert text_of(found.messages[0]) == text_of(found.messages[6]) == "WEATHER"
    assert text_of(found.messages[3]) == (
        "There is no tool named 'cancel', so nothing was run; there are: fails, search."
    )


@every
def test_a_response_without_calls_has_no_results(handle: Handle) -> None:
    """Without `required` that is no error."""
    found = handle(registry(search))
    assert (len(found), found.messages, bool(found)) == (0, [], False)


@every
def test_a_call_that_is_required_and_missing_is_raised(handle: Handle) -> None:
    """With the reason for which the model stopped."""
    with pytest.raises(NoToolCallProducedError, match=r"must ask for a tool.+\. `content` of this") as caught:
        handle(registry(search), required=True)
    assert caught.value.finish_reason in ("tool_calls", "completed", "tool_use")
    assert caught.value.content is None


@every
def test_calls_that_cannot_be_run_count_as_calls(handle: Handle) -> None:
    """`required` asks whether the model made one, not what became of it."""
    assert [call.status for call in handle(registry(search), ("c1", "no", {}), required=True)] == [
        "unknown_tool"
    ]


def test_what_the_model_said_instead_is_in_the_error() -> None:
    """Text and refusals."""
    said = choice(reason="stop")
    said["message"] |= {"content": "Which city?", "refusal": None}
    with pytest.raises(NoToolCallProducedError) as caught:
        registry(search).handle_openai_choice(said, required=True)
    assert (caught.value.finish_reason, caught.value.content) == ("stop", "Which city?")


@every
def test_a_tool_without_arguments_is_called_without(handle: Handle) -> None:
    """Its output is sent as JSON."""
    tools = ToolRegistry([wrap(now, ShortQueries(score=lambda context: 0.0))])
    (found,) = handle(tools, ("c1", "now", {}))
    assert (found.status, text_of(found.message)) == ("executed", '{"hour": 12}')


@pytest.mark.parametrize("arguments", ["", "  ", BROKEN, "null"])
def test_arguments_as_text(arguments: str) -> None:
    """Empty text is no arguments; broken JSON and other JSON are not guessed at."""
    tools = ToolRegistry([wrap(now, ShortQueries(score=lambda context: 0.0))])
    (found,) = tools.handle_openai_choice(choice(function("c1", "now", arguments)))
    assert found.status == ("malformed_arguments" if arguments.strip() else "executed")


def test_a_custom_tool_gets_its_text() -> None:
    """Its only parameter, whatever the name; a tool of two cannot be called so."""
    (found,) = registry(search).handle_openai_choice(choice(custom("c1", "search", SHORT)))
    assert (found.status, found.message["content"]) == ("executed", "WEATHER")
    two = registry(lambda query, limit: query, tool_name="two")
    (misfit,) = two.handle_openai_choice(choice(custom("c1", "two", SHORT)))
    assert misfit.status == "malformed_arguments"


def test_methods_are_called_on_their_object() -> None:
    """A model cannot name another one."""
    calls = Calls()
    tools = registry(calls.tool)
    first, second = of_choice(
        tools, ("c1", "tool", {"query": SHORT}), ("c2", "tool", {"query": SHORT, "self": 1})
    )
    assert (first.status, second.status, calls) == ("executed", "malformed_arguments", [SHORT])


@every
def test_guarded_methods_keep_their_object(handle: Handle) -> None:
    """One that was guarded in its class gets the object that it was taken from."""

    class Desk:
        name = "desk"

        @guarded(ShortQueries())
        def ask(self, query: str) -> str:
            """Whoever is at the desk."""
            return f"{self.name}: {query}"

    (found,) = handle(ToolRegistry([Desk().ask]), ("c1", "ask", {"query": SHORT}))
    assert (found.status, text_of(found.message)) == ("executed", "desk: weather")


def test_scorers_see_what_the_response_says() -> None:
    """Its log-probabilities, the id of the call, and the metadata of the user."""
    decider = ShortQueries()
    tokens = {"content": [{"token": "a", "logprob": -0.5}, {"token": "b", "logprob": -0.25}]}
    one = choice(function("c1", "search", {"query": SHORT}), logprobs=tokens)
    registry(search, decider=decider).handle_openai_choice(one, metadata={"user": "ada"})
    (seen,) = decider.asked
    assert (seen.tool_name, seen.call_id, dict(seen.args)) == ("search", "c1", {"query": SHORT})
    assert (seen.token_logprobs, dict(seen.metadata)) == ((-0.5, -0.25), {"user": "ada"})


def test_a_response_without_logprobs_abstains_where_they_are_needed() -> None:
    """What is not there is not judged, and never a default."""
    data = [(ToolCallContext("search", token_logprobs=(-0.1 * at,)), True) for at in range(40)]
    tools = ToolRegistry([wrap(search, calibrate(logprob_score(mean_logprob), data, 0.1))])
    tokens = {"content": [{"token": "a", "logprob": -0.5}]}
    call = function("c1", "search", {"query": SHORT})
    (judged,) = tools.handle_openai_choice(choice(call, logprobs=tokens))
    (unknown,) = tools.handle_openai_choice(choice(call))
    assert (judged.status, unknown.status) == ("executed", "abstained")
    assert unknown.message["content"] == (
        "search was not run: the call could not be judged, because logprob gave no score."
    )


def test_single_calls_are_handled() -> None:
    """Of any of the APIs, with log-probabilities beside them, synchronously and awaited."""
    decider = ShortQueries()
    tools = registry(search, decider=decider)
    call, block = function("c1", "search", {"query": SHORT}), use("t1", "search", {"query": SHORT})
    found = [
        tools.handle_openai_tool_call(call, token_logprobs=[-0.5], metadata={"user": "ada"}),
        tools.handle_openai_tool_call(item("c2", "search", {"query": SHORT})),
        tools.handle_anthropic_tool_use(block),
        asyncio.run(tools.ahandle_openai_tool_call(call, token_logprobs=[-0.5])),
        asyncio.run(tools.ahandle_anthropic_tool_use(block)),
    ]
    assert {call.status for call in found} == {"executed"}
    assert [call.call_id for call in found] == ["c1", "c2", "t1", "c1", "t1"]
    assert [seen.token_logprobs for seen in decider.asked] == [(-0.5,), None, None, (-0.5,), None]
    assert tools.handle_openai_tool_call(function("c1", "no", {})).status == "unknown_tool"


def test_a_namespace_tells_tools_of_one_name_apart() -> None:
    """The longer name is looked up first; without one the short name counts."""
    tools = ToolRegistry(
        {
            "search": wrap(search, ShortQueries()),
            "crm.search": wrap(lambda query: "customer", ShortQueries(), tool_name="crm.search"),
        }
    )
    found = tools.handle_openai_response(
        response(
            item("c1", "search", {"query": SHORT}, namespace="crm"),
            item("c2", "search", {"query": SHORT}, namespace="web"),
            item("c3", "search", {"query": SHORT}),
        )
    )
    assert [text_of(answer) for answer in found.messages] == ["customer", "WEATHER", "WEATHER"]


@every
def test_a_session_that_is_over_loses_no_result(handle: Handle) -> None:
    """Calls beyond the plan are answered as not run, and arguments that do not fit spend nothing of it."""
    ran = []

    def tool(s0: float) -> str:
        ran.append(s0)
        return "done"

    session = Session(quietly(range(100), tool_names="any"), 2, alpha=0.1)
    calls = [("c0", "tool", {}), *((f"c{at}", "tool", {"s0": 1.0}) for at in (1, 2, 3))]
    found = handle(ToolRegistry([wrap(tool, session, tool_name="tool")]), *calls)
    assert sorted(call.status for call in found) == [
        *("executed", "executed", "guard_error", "malformed_arguments")
    ]
    assert [type(error) for error in found.errors].count(SessionExhausted) == 1
    assert ran == [1.0, 1.0]


@pytest.mark.parametrize("handle", IN_LOOP)
def test_awaited_calls_run_side_by_side(handle: Handle) -> None:
    """Each waits for the other, and the answers keep the order of the calls."""
    arrived: list[str] = []

    async def meet(query: str) -> str:
        arrived.append(query)
        while len(arrived) < 2:
            await asyncio.sleep(0)
        return query

    found = handle(registry(meet), ("c1", "meet", {"query": "a"}), ("c2", "meet", {"query": "b"}))
    assert [text_of(answer) for answer in found.messages] == ["a", "b"]


def test_asynchronous_scorers_judge_plain_tools() -> None:
    """In the awaited methods, whatever the tool is; elsewhere such a scorer gives no score."""

    async def judge(context: ToolCallContext) -> float:
        await asyncio.sleep(0)
        return 1 / len(context.args["query"])

    data = [(ToolCallContext("search", {"query": "a" * size}), True) for size in range(1, 20)]
    calibrator = asyncio.run(acalibrate(judge_score(judge), data, 0.1))
    tools = ToolRegistry([wrap(search, calibrator)])
    calls = [("c1", "search", {"query": SHORT}), ("c2", "search", {"query": LONG})]
    assert [call.status for call in of_choice_in_loop(tools, *calls)] == ["executed", "abstained"]
    assert {call.status for call in of_choice(tools, *calls)} == {"abstained"}


def test_a_cancellation_passes_and_ends_every_call() -> None:
    """No call runs on unseen."""
    ended: list[str] = []

    async def waits(query: str) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(query)
        return query

    async def cancelled() -> None:
        calls = [function(name, "waits", {"query": name}) for name in ("a", "b")]
        task = asyncio.create_task(registry(waits).ahandle_openai_choice(choice(*calls)))
        for _ in range(5):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert sorted(ended) == ["a", "b"]

    asyncio.run(cancelled())


def test_a_tool_that_is_cancelled_lets_the_others_end() -> None:
    """Its cancellation passes then."""
    ended: list[str] = []

    async def tool(query: str) -> str:
        if query == "a":
            raise asyncio.CancelledError
        for _ in range(5):
            await asyncio.sleep(0)
        ended.append(query)
        return query

    with pytest.raises(asyncio.CancelledError):
        of_choice_in_loop(registry(tool), ("c1", "tool", {"query": "a"}), ("c2", "tool", {"query": "b"}))
    assert ended == ["b"]


@pytest.mark.parametrize("handle", [of_choice, of_response, of_message])
def test_tools_that_are_awaited_need_the_awaited_methods(handle: Handle) -> None:
    """Found at the first call of any tool; nothing runs."""
    calls = Calls()

    async def fetch(query: str) -> str:
        return query

    tools = registry(calls.tool, fetch)
    pattern = "`tools` must not be awaited here; got fetch. .+ begins with ahandle_"
    refuse(TypeError, pattern, lambda: handle(tools, ("c1", "tool", {"query": SHORT})))
    assert calls == []


@every
def test_two_calls_of_one_id_run_neither(handle: Handle) -> None:
    """There is one result for each id."""
    calls = Calls()
    tools = registry(calls.tool)
    one = ("c1", "tool", {"query": SHORT})
    refuse(ValueError, "ids of their own", lambda: handle(tools, one, one))
    assert calls == []


@every
def test_options_are_checked_before_anything_runs(handle: Handle) -> None:
    """Metadata is a mapping, `required` a boolean."""
    call = ("c1", "search", {"query": SHORT})
    refuse(TypeError, "`metadata` must be a mapping", lambda: handle(registry(search), call, metadata=[1]))
    refuse(
        TypeError, "`required` must be True or False", lambda: handle(registry(search), call, required="no")
    )


def test_the_response_is_left_as_it_was() -> None:
    """It goes back to the model, whatever a tool does to its arguments."""

    def empties(query: str, rows: list[int]) -> Iterator[int] | str:
        rows.clear()
        return "done"

    one = message(use("t1", "empties", {"query": SHORT, "rows": [1]}))
    (found,) = registry(empties).handle_anthropic_message(one)
    assert (found.status, one["content"][0]["input"]["rows"]) == ("executed", [1])


def test_a_registry_names_its_tools() -> None:
    """In alphabetical order."""
    tools = registry(search, fails)
    assert (tools.names, repr(tools)) == (("fails", "search"), "ToolRegistry(fails, search)")
