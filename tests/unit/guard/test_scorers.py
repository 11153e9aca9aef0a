"""Scorers: a number, or a failure that says what happened; never an exception and never an accept."""

from __future__ import annotations

import asyncio
import functools
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from guard_calls import call
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuse

from rag_confidence._calls import ToolCallContext
from rag_confidence.guard.scorers import Later, Scored, Scorer, ScoreUnavailable, as_scorer, as_scorers

ODD: list[tuple[Any, str]] = [
    (math.nan, "odd returned nan, which is no score"),
    (math.inf, "odd returned inf, which is no score"),
    (-math.inf, "odd returned -inf, which is no score"),
    (np.float64("nan"), "odd returned nan, which is no score"),
    (True, "odd returned bool instead of a number"),
    (np.True_, "odd returned bool instead of a number"),
    ("0.3", "odd returned str instead of a number"),
    (None, "odd returned NoneType instead of a number"),
    (np.array([0.3]), "odd returned ndarray instead of a number"),
    (np.array(0.3), "odd returned ndarray instead of a number"),
    ([0.3], "odd returned list instead of a number"),
    (Decimal("0.3"), "odd returned Decimal instead of a number"),
    (1 + 0j, "odd returned complex instead of a number"),
    (1.5, "odd returned 1.5, outside [0.0, 1.0]"),
    (-1, "odd returned -1.0, outside [0.0, 1.0]"),
]


class Mute(Exception):
    """An exception that cannot say what it is."""

    def __str__(self) -> str:
        raise ValueError("no text")


def raising(error: BaseException) -> Scorer:
    """A scorer that raises."""

    def score(context: ToolCallContext) -> float:
        raise error

    return Scorer("odd", score, version="1")


@pytest.mark.parametrize(("value", "message"), ODD, ids=[str(at) for at in range(len(ODD))])
def test_what_is_no_score_is_a_failure(value: Any, message: str) -> None:
    """NaN, infinities, no numbers and numbers outside the range count as +inf, in every way to score."""
    scorer = Scorer("odd", lambda context: value, version="1", low=0.0, high=1.0)
    expected = Scored(math.inf, message)
    assert scorer.score(call()) == expected
    assert asyncio.run(scorer.ascore(call())) == expected
    assert scorer.score_many([call(), call()]) == ([math.inf] * 2, 2, expected.error)


@pytest.mark.parametrize("value", [0.25, 0, 1, np.float64(0.25), np.float32(0.25), np.int64(1), np.uint8(1)])
def test_numbers_are_scores(value: Any) -> None:
    """Integers and the floats of NumPy become plain floats of the same value."""
    scorer = Scorer("plain", lambda context: value, version="1", low=0.0, high=1.0)
    for scored in (scorer.score(call()), asyncio.run(scorer.ascore(call()))):
        assert (scored.value, scored.error, type(scored.value)) == (float(value), None, float)
    assert scorer.score_many([call()]) == ([float(value)], 0, None)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("bad"), "odd raised ValueError: bad"),
        (KeyError("query"), "odd raised KeyError: 'query'"),
        (Mute(), "odd raised Mute: an exception that has no text"),
        (ScoreUnavailable("no logprobs"), "odd is unavailable: no logprobs"),
        (RecursionError("deep"), "odd raised RecursionError: deep"),
        (ValueError("x" * 1000), f"odd raised ValueError: {'x' * 300}..."),
    ],
)
def test_an_exception_of_a_scorer_is_a_failure(error: Exception, message: str) -> None:
    """What a scorer raises becomes +inf and a sentence."""
    expected = Scored(math.inf, message)
    assert raising(error).score(call()) == expected
    assert asyncio.run(raising(error).ascore(call())) == expected
    assert raising(error).score_many([call()]) == ([math.inf], 1, message)


def test_numbers_too_large_for_a_float_are_failures() -> None:
    """An integer of 400 digits raises inside and not outside."""
    scorer = Scorer("odd", lambda context: 10**400, version="1")
    assert "OverflowError" in str(scorer.score(call()).error)
    assert math.isinf(scorer.read(10**400).value)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(2), asyncio.CancelledError()])
def test_what_is_no_exception_passes(error: BaseException) -> None:
    """Interrupts, exits and cancellations are not turned into data."""
    with pytest.raises(type(error)):
        raising(error).score(call())
    with pytest.raises(type(error)):
        raising(error).score_many([call()])


def test_a_coroutine_in_a_call_without_await_is_a_failure_and_closed() -> None:
    """A judge that must be awaited is named with its cure, and Python has no coroutine to warn of."""

    async def judge(context: ToolCallContext) -> float:
        return 0.5

    scorer = Scorer("judge", judge, version="1")
    assert scorer.score(call()) == Scored(
        math.inf, "judge returned coroutine, which must be awaited: use adecide"
    )
    assert asyncio.run(scorer.ascore(call())) == Scored(0.5)


def test_any_awaitable_is_awaited() -> None:
    """Not only coroutines: what a plain function made for later is awaited too."""

    async def later() -> float:
        return 0.25

    scorer = Scorer("later", lambda context: Later(later(), lambda value: value + 0.5), version="1")
    assert asyncio.run(scorer.ascore(call())) == Scored(0.75)
    assert scorer.score(call()).error == "later returned Later, which must be awaited: use adecide"


def test_a_failure_after_waiting_is_a_failure() -> None:
    """An exception raised by what is awaited becomes +inf; a cancellation passes."""

    async def fails(context: ToolCallContext) -> float:
        raise TimeoutError("slow")

    async def cancelled(context: ToolCallContext) -> float:
        raise asyncio.CancelledError

    assert asyncio.run(Scorer("judge", fails).ascore(call())).error == "judge raised TimeoutError: slow"
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(Scorer("judge", cancelled).ascore(call()))


@given(st.floats(), st.floats(), st.floats())
def test_a_score_lies_in_its_range_or_failed(low: float, high: float, value: float) -> None:
    """Whatever the floats, a score is finite and within its range, or it is +inf with a reason."""
    if not low < high:
        return
    scored = Scorer("any", lambda context: value, version="1", low=low, high=high).score(call())
    inside = math.isfinite(value) and low <= value <= high
    assert (scored.error is None) == inside
    assert scored.value == (value if inside else math.inf)


def test_the_fingerprint_knows_name_range_and_version() -> None:
    """A scorer of another name, range, version or code is another scorer."""
    made = [
        Scorer("a", lambda context: 1.0),
        Scorer("a", lambda context: 2.0),
        Scorer("b", lambda context: 1.0),
        Scorer("a", lambda context: 1.0, low=0.0),
        Scorer("a", lambda context: 1.0, version="1"),
        Scorer("a", lambda context: 1.0, version="2"),
    ]
    assert len({scorer.fingerprint for scorer in made}) == len(made)
    assert made[0].fingerprint == Scorer("a", lambda context: 1.0).fingerprint
    assert (
        Scorer("a", lambda c: 1.0, version="1").fingerprint
        == Scorer("a", lambda c: 2.0, version="1").fingerprint
    )


def test_functions_are_scorers_under_their_own_names() -> None:
    """A function, a partial, an object and a lambda have a name; a Scorer stays itself."""

    def length(context: ToolCallContext) -> float:
        return 1.0

    class Judge:
        def __call__(self, context: ToolCallContext) -> float:
            return 1.0

    named = [length, functools.partial(length), Judge(), lambda context: 1.0]
    assert [as_scorer(function).name for function in named] == ["length", "length", "Judge", "scorer"]
    scorer = Scorer("own", length)
    assert as_scorers(scorer) == as_scorers([scorer]) == (scorer,)


def test_what_is_no_scorer_is_refused() -> None:
    """Numbers, names, classes, nothing, an empty list and names used twice are refused by message."""
    for odd in (None, 0.5, "length", b"x", 3):
        refuse(TypeError, r"`scorer` must be callable; got ", lambda odd=odd: as_scorers(odd))  # type: ignore[misc]
    refuse(TypeError, r"`scorer` must be callable; got the class dict", lambda: as_scorer(dict))  # type: ignore[arg-type]
    refuse(TypeError, r"`scorer` must be callable; got str", lambda: as_scorers(["a"]))  # type: ignore[list-item]
    refuse(ValueError, r"`scorer` must hold at least one scorer; got none", lambda: as_scorers([]))
    refuse(
        ValueError,
        r"`scorer` must hold scorers of different names; got scorer, scorer",
        lambda: as_scorers([lambda c: 1.0, lambda c: 2.0]),
    )


def test_what_cannot_make_a_scorer_is_refused() -> None:
    """Names, functions, versions and ranges are checked when a scorer is made."""

    def one(context: ToolCallContext) -> float:
        return 1.0

    make: Any = Scorer
    refuse(TypeError, r"`name` must be a string that is not empty; got ''", lambda: make("", one))
    refuse(TypeError, r"`name` must be a string that is not empty; got 3", lambda: make(3, one))
    refuse(TypeError, r"`function` must be callable; got float", lambda: make("a", 0.5))
    refuse(TypeError, r"`version` must be a string; got int", lambda: make("a", one, version=1))
    refuse(TypeError, r"`low` must be a number; got '0'", lambda: make("a", one, low="0"))
    refuse(TypeError, r"`high` must be a number; got True", lambda: make("a", one, high=True))
    refuse(ValueError, r"`low` must be below `high`; got 1.0 and 1.0", lambda: make("a", one, low=1, high=1))
    refuse(ValueError, r"`low` must be below `high`; got nan and", lambda: make("a", one, low=math.nan))


def test_a_length_of_time_is_no_score() -> None:
    """NumPy takes timedelta64 for an integer; the number in it has no meaning without its unit."""
    odd: Any = np.timedelta64(5)
    assert Scorer("s", lambda context: odd).score(call()).value == math.inf
    refuse(TypeError, "`low` must be a number", lambda: Scorer("s", lambda context: 1.0, low=odd))


def test_a_bound_beyond_the_range_of_floats_is_refused() -> None:
    """It would raise an OverflowError of Python's own."""
    refuse(
        ValueError,
        "`low` must be within the range of floats",
        lambda: Scorer("s", lambda context: 1.0, low=-(10**400)),
    )
