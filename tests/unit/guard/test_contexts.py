"""Contexts: the arguments of a call by name, a builder of the user's, and facts of the response."""

from __future__ import annotations

import functools
import inspect
import re
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuse

from rag_confidence._calls import ToolCallContext
from rag_confidence.guard.contexts import NO_FACTS, Parameters, ResponseFacts, describer, with_output


def search(query: str, limit: int = 3, *, language: str = "en") -> str:
    """A tool without stars."""
    return query


def stars(query: str, *args: int, **kwargs: int) -> str:
    """A tool with stars."""
    return query


def positional(query: str, /, limit: int = 3) -> str:
    """A tool with a parameter that has no name outside."""
    return query


LOCK = threading.Lock()
ARGUMENTS = st.tuples(
    st.lists(st.integers(), max_size=4).map(tuple),
    st.dictionaries(st.sampled_from(["query", "limit", "language", "other"]), st.integers()),
)


@pytest.mark.parametrize("tool", [search, stars, positional])
@given(arguments=ARGUMENTS)
def test_arguments_are_bound_as_python_binds_them(tool: Any, arguments: tuple[Any, Any]) -> None:
    """Whatever is passed, names and defaults are those of inspect, and what it refuses is refused."""
    args, kwargs = arguments
    assert said_or_bound(Parameters(tool, "tool").bound, args, kwargs) == said_or_bound(
        by_inspect(tool), args, kwargs
    )


def by_inspect(tool: Any) -> Any:
    """What the standard library makes of a call."""

    def bind(args: Any, kwargs: Any) -> dict[str, Any]:
        bound = inspect.signature(tool).bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.arguments

    return bind


def said_or_bound(bind: Any, args: Any, kwargs: Any) -> Any:
    """Arguments by name; where they do not fit what the error says, without the name of the tool."""
    try:
        return bind(args, kwargs)
    except TypeError as error:
        return str(error).removeprefix("tool() ")


def test_binding_errors_have_no_cause_but_the_call() -> None:
    """The error reads like the tool's own: nothing of the guard is its cause or context."""
    with pytest.raises(TypeError, match=r"^search\(\) missing a required argument: 'query'$") as caught:
        Parameters(search, "search").bound((), {})
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.parametrize("name", ["self", "cls"])
def test_the_object_of_a_method_is_left_out(name: str) -> None:
    """self and cls are no arguments of a call; elsewhere than at the front they are."""
    space: dict[str, Any] = {}
    exec(f"def method({name}, query): ...\ndef other(query, {name}): ...", space)
    assert Parameters(space["method"], "m").bound((object(), "weather"), {}) == {"query": "weather"}
    assert Parameters(space["other"], "m").bound(("weather", 1), {}) == {"query": "weather", name: 1}


def test_star_arguments_keep_their_names() -> None:
    """*args and **kwargs come under these names, empty too."""
    bound = Parameters(stars, "stars").bound
    assert bound(("weather", 1, 2), {"a": 3}) == {"query": "weather", "args": (1, 2), "kwargs": {"a": 3}}
    assert bound(("weather",), {}) == {"query": "weather", "args": (), "kwargs": {}}


def test_without_a_signature_every_call_fits() -> None:
    """A function that tells nothing of its parameters has args and kwargs."""
    assert Parameters(max, "max").bound((1, 2), {"key": 3}) == {"args": (1, 2), "kwargs": {"key": 3}}


def described(
    builder: Callable[..., Any] | None,
    *args: Any,
    facts: ResponseFacts = NO_FACTS,
    tool: Any = search,
    **kwargs: Any,
) -> Any:
    """Context of a call, or what went wrong."""
    return describer(tool, "search", builder)(args, kwargs, facts)


def test_the_default_context_has_every_argument() -> None:
    """Name of the tool, arguments by name with defaults, nothing else."""
    context = described(None, "weather", language="de")
    assert context == ToolCallContext("search", {"query": "weather", "limit": 3, "language": "de"})


def test_scorers_see_copies() -> None:
    """What is in the context is equal to the argument and another object."""
    query = ["weather"]
    context = described(None, query)
    assert context.args["query"] == query
    assert context.args["query"] is not query


def test_a_builder_of_keywords_gets_every_argument_by_name() -> None:
    """conformguard's way of writing builders works for calls by position, with defaults, and for methods."""
    build = lambda **kwargs: ToolCallContext(tool_name="search", args=kwargs)  # noqa: E731
    assert described(build, "weather").args == {"query": "weather", "limit": 3, "language": "en"}
    assert described(build, "weather", a=1, tool=stars).args == {"query": "weather", "args": (), "a": 1}


def test_another_builder_gets_the_call_as_it_was_made() -> None:
    """Positional arguments stay positional, and names of its own are no matter."""
    seen: list[Any] = []

    def build(*args: Any, **kwargs: Any) -> ToolCallContext:
        seen.append((args, kwargs))
        return ToolCallContext("search")

    described(build, "weather", limit=1)
    assert seen == [(("weather",), {"limit": 1})]
    assert described(lambda text: ToolCallContext("find", {"text": text}), "weather").args == {
        "text": "weather"
    }


def raises(**kwargs: Any) -> ToolCallContext:
    """A builder that fails."""
    raise LookupError("no such user")


async def coroutine(**kwargs: Any) -> ToolCallContext:
    """A builder that would have to be awaited."""
    return ToolCallContext("search")


@pytest.mark.parametrize(
    ("builder", "said"),
    [
        (raises, "LookupError: no such user"),
        (
            lambda **kwargs: kwargs,
            "TypeError: the context builder returned dict instead of a ToolCallContext",
        ),
        (lambda **kwargs: None, "TypeError: the context builder returned NoneType instead"),
        (lambda wrong, number: None, "TypeError: .* missing 1 required positional argument"),
        (lambda: None, "TypeError: .* unexpected keyword argument"),
        (coroutine, "TypeError: the context builder returned a coroutine instead of a ToolCallContext"),
        (
            lambda **kwargs: ToolCallContext("search", {"lock": threading.Lock()}),
            "TypeError: .*can be copied",
        ),
    ],
    ids=["raises", "dict", "none", "two", "no parameters", "coroutine", "no copy"],
)
def test_a_builder_that_fails_gives_its_message(builder: Any, said: str) -> None:
    """Whatever goes wrong in a builder becomes a sentence, and never a context."""
    found = described(builder, "weather")
    assert isinstance(found, str)
    assert re.search(said, found)


def test_arguments_that_cannot_be_copied_give_a_message() -> None:
    """It names the argument and its type, and says what to do."""
    assert "`args['query']` must be a value that can be copied; got lock" in described(None, threading.Lock())


def test_defaults_that_cannot_be_copied_are_refused_when_wrapping() -> None:
    """Otherwise every call would abstain; with a builder they do not matter."""

    def tool(query: str, lock: Any = LOCK) -> None:
        return None

    refuse(
        TypeError,
        r"`args\['lock'\]` must be a value that can be copied",
        lambda: describer(tool, "tool", None),
    )
    context = described(lambda query: ToolCallContext("tool", {"query": query}), "weather", tool=tool)
    assert context.args == {"query": "weather"}


def test_exits_pass_through_a_builder() -> None:
    """Only an Exception is a failure of the builder."""

    def leaves(**kwargs: Any) -> ToolCallContext:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        described(leaves, "weather")


FACTS = ResponseFacts("call-1", (-0.5, -1.0), 0.75, {"user": "guest", "model": "small"})


def test_facts_of_the_response_are_in_the_default_context() -> None:
    """Call id, log-probabilities, judge score and metadata."""
    context = described(None, "weather", facts=FACTS)
    found = (context.call_id, context.token_logprobs, context.judge_score, context.metadata)
    assert found == ("call-1", (-0.5, -1.0), 0.75, {"user": "guest", "model": "small"})


def test_facts_fill_in_what_a_builder_left_empty() -> None:
    """What the builder said stays, its metadata before that of the response."""

    def build(**kwargs: Any) -> ToolCallContext:
        return ToolCallContext("search", kwargs, call_id="mine", metadata={"user": "root"})

    context = described(build, "weather", facts=FACTS)
    assert (context.call_id, context.token_logprobs, context.judge_score) == ("mine", (-0.5, -1.0), 0.75)
    assert context.metadata == {"user": "root", "model": "small"}


def test_zero_is_not_empty() -> None:
    """A judge's 0, the worst score there is, is not overwritten by the response's."""
    build = lambda **kwargs: ToolCallContext("search", judge_score=0.0)  # noqa: E731
    assert described(build, "weather", facts=FACTS).judge_score == 0.0


def test_an_output_is_copied_for_the_scorers() -> None:
    """A scorer that changes the output changes its copy; what cannot be copied gives a message."""
    output = {"hits": [1, 2]}
    context = with_output(ToolCallContext("search"), output)
    assert isinstance(context, ToolCallContext)
    assert context.result == output
    context.result["hits"].clear()
    assert output == {"hits": [1, 2]}
    assert "cannot be copied, TypeError" in str(with_output(ToolCallContext("search"), threading.Lock()))


def unprintable(*args: Any, **kwargs: Any) -> Any:
    """Raise what cannot even be printed."""

    class Unprintable(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    raise Unprintable


def test_exceptions_without_a_text_give_a_message() -> None:
    """A builder or an output that raises one abstains like any other."""
    said = "Unprintable: an exception that has no text"
    assert described(unprintable, "weather") == said
    output = type("Output", (), {"__deepcopy__": unprintable})()
    assert with_output(ToolCallContext("search"), output) == f"its output cannot be copied, {said}"


def test_long_messages_are_cut() -> None:
    """A reason is no place for a whole document."""

    def build(query: str) -> Any:
        raise ValueError("x" * 10_000)

    assert len(described(build, "weather")) < 500


def test_what_a_builder_returns_by_mistake_is_not_closed() -> None:
    """Only what nobody can await any more is: a connection belongs to the user."""
    closed: list[int] = []
    connection = type("Connection", (), {"close": lambda self: closed.append(1)})()
    assert "Connection instead of a ToolCallContext" in described(lambda query: connection, "weather")
    assert not closed


def test_two_arguments_of_one_name_are_not_taken_for_each_other() -> None:
    """A keyword cannot put itself in the place of a parameter that is given by position only."""

    def pay(amount: int, /, **options: Any) -> int:
        return amount

    build = lambda **kwargs: ToolCallContext("pay", kwargs)  # noqa: E731
    assert described(build, 10**6, tool=pay, limit=1).args == {"amount": 10**6, "limit": 1}
    assert "same name cannot be told apart: amount" in described(build, 10**6, tool=pay, amount=1)
    assert described(None, 10**6, tool=pay, amount=1).args == {"amount": 10**6, "options": {"amount": 1}}


def test_an_argument_by_name_is_seen_whatever_its_name() -> None:
    """The object of a method comes by position, so that a keyword called self is an argument."""

    def odd(self: Any, cls: Any = 2) -> Any:
        return self, cls

    assert Parameters(odd, "odd").bound((), {"self": 1}) == {"self": 1, "cls": 2}
    assert Parameters(odd, "odd").bound((object(),), {}) == {"cls": 2}


def test_a_decorator_may_add_arguments_of_its_own() -> None:
    """It shows the signature of its function, which then asks for more than a call gives."""

    def inject(tool: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(tool)
        def with_database(*args: Any, **kwargs: Any) -> Any:
            return tool("database", *args, **kwargs)

        return with_database

    @inject
    def find(database: str, name: str, limit: int = 3) -> Any:
        return database, name, limit

    assert described(None, tool=find, name="x").args == {"name": "x"}
    with pytest.raises(TypeError, match="missing a required argument"):
        described(None, "x", tool=find)
