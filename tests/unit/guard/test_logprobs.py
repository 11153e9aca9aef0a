"""Scores from token log-probabilities and from judges: explicit aggregates, and nothing made up."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable
from typing import Any

import numpy as np
import pytest
from guard_calls import call
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuse

from rag_confidence._calls import ToolCallContext
from rag_confidence.guard.logprobs import (
    judge_score,
    length_normalised_logprob,
    logprob_score,
    mean_logprob,
    min_logprob,
    tail_mean_logprob,
)

LOGPROBS = st.lists(st.floats(-50, 0), min_size=1, max_size=30)


def with_logprobs(*logprobs: Any) -> ToolCallContext:
    """A call with these log-probabilities."""
    return ToolCallContext("search", token_logprobs=logprobs)


@given(LOGPROBS)
def test_the_aggregates_are_what_they_are_called(logprobs: list[float]) -> None:
    """Mean, minimum, tail and length-normalised sum agree with their slow definitions."""
    tokens, n = sorted(logprobs), len(logprobs)
    assert mean_logprob(logprobs) == pytest.approx(np.mean(logprobs))
    assert min_logprob(logprobs) == tokens[0]
    assert tail_mean_logprob(0.3)(logprobs) == pytest.approx(np.mean(tokens[: math.ceil(0.3 * n)]))
    assert length_normalised_logprob(0.5)(logprobs) == pytest.approx(sum(logprobs) / n**0.5)


@given(LOGPROBS)
def test_the_ends_of_the_aggregates_meet(logprobs: list[float]) -> None:
    """The whole tail and the power 1 are the mean, a tiny tail is the minimum, and the power 0 the sum."""
    assert tail_mean_logprob(1)(logprobs) == pytest.approx(mean_logprob(logprobs))
    assert tail_mean_logprob(1e-9)(logprobs) == min_logprob(logprobs)
    assert length_normalised_logprob(1)(logprobs) == pytest.approx(mean_logprob(logprobs))
    assert length_normalised_logprob(0)(logprobs) == pytest.approx(math.fsum(logprobs))


@given(LOGPROBS, st.data())
def test_a_less_sure_token_never_lowers_the_score(logprobs: list[float], data: st.DataObject) -> None:
    """Higher is more suspicious, whatever the aggregate."""
    at = data.draw(st.integers(0, len(logprobs) - 1))
    lower = [*logprobs]
    lower[at] -= 1.0
    for aggregate in (mean_logprob, min_logprob, tail_mean_logprob(0.2), length_normalised_logprob(0.5)):
        scorer = logprob_score(aggregate)
        before, after = scorer.score(with_logprobs(*logprobs)), scorer.score(with_logprobs(*lower))
        assert after.value >= before.value - 1e-9


def test_missing_logprobs_are_unavailable() -> None:
    """A call without log-probabilities, or with none of them, is not judged by a default."""
    for context in (call(), with_logprobs()):
        scored = logprob_score(mean_logprob).score(context)
        assert scored == (math.inf, "logprob is unavailable: the call carries no token log-probabilities")


@pytest.mark.parametrize("odd", [math.nan, -math.inf, math.inf, 0.5, "-1", None, True])
def test_what_is_no_logprob_is_a_failure(odd: Any) -> None:
    """NaN, infinities, probabilities and texts among the log-probabilities fail."""
    scored = logprob_score(mean_logprob).score(with_logprobs(-1.0, odd))
    assert math.isinf(scored.value)
    assert "`token_logprobs` must hold" in str(scored.error)


def test_rounding_above_zero_is_no_failure() -> None:
    """Servers that write the logarithm of 1 as a tiny positive number are heard."""
    assert logprob_score(mean_logprob).score(with_logprobs(1e-7)).value == -1e-7


def test_the_aggregate_is_an_explicit_choice() -> None:
    """There is no default, and a name of one is refused."""
    make: Any = logprob_score
    with pytest.raises(TypeError):
        make()
    refuse(TypeError, r"`aggregate` must be callable; got str", lambda: make("mean"))
    refuse(ValueError, r"`share` must be above 0", lambda: tail_mean_logprob(0))
    refuse(ValueError, r"`share` must be a number in \[0, 1\]; got 2", lambda: tail_mean_logprob(2))
    refuse(
        ValueError, r"`exponent` must be a number in \[0, 1\]; got -1", lambda: length_normalised_logprob(-1)
    )


def test_other_aggregates_are_other_scorers() -> None:
    """The fingerprint knows the aggregate and its share."""
    aggregates = [
        mean_logprob,
        min_logprob,
        *map(tail_mean_logprob, (0.1, 0.2)),
        length_normalised_logprob(0.5),
    ]
    assert len({logprob_score(aggregate).fingerprint for aggregate in aggregates}) == len(aggregates)


def test_a_judge_is_turned_around() -> None:
    """One minus what the judge says, from the context or from a function."""
    carried = ToolCallContext("search", judge_score=0.75)
    assert judge_score().score(carried).value == 0.25
    assert judge_score(lambda context: 0.9).score(carried).value == pytest.approx(0.1)


def test_a_judge_that_is_missing_or_off_the_scale_fails() -> None:
    """No judgement, a percentage, NaN and a word are no judgement in [0, 1]."""
    assert judge_score().score(call()) == (math.inf, "judge is unavailable: the call carries no judge_score")
    for odd in (75, math.nan, "good", None, [0.5, 0.5]):
        scored = judge_score(lambda context, odd=odd: odd).score(call())  # type: ignore[misc]
        assert math.isinf(scored.value)
        assert "`judge` must return" in str(scored.error)
    refuse(TypeError, r"`judge` must be callable; got float", lambda: judge_score(0.5))  # type: ignore[arg-type]


def test_a_judge_may_be_awaited() -> None:
    """An async judge, and a function that returns its coroutine, are heard by ascore and closed by score."""

    async def judge(context: ToolCallContext) -> float:
        return 0.75

    def lazy(context: ToolCallContext) -> Awaitable[float]:
        return judge(context)

    for function in (judge, lazy):
        scorer = judge_score(function)
        assert asyncio.run(scorer.ascore(call())).value == 0.25
        assert "must be awaited" in str(scorer.score(call()).error)
