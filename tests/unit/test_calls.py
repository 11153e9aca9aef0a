"""Calls and records: nothing in a context can be changed, and what is no call, score or moment is refused."""

from __future__ import annotations

import json
import math
import pickle
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from threading import Lock
from typing import Any

import numpy as np
import pytest
from refusals import refuse

from rag_confidence._calls import CallRecord, LabelingSource, ToolCallContext, check_moment, check_outcome
from rag_confidence._types import Decision

CONTEXT = ToolCallContext("search", {"query": "weather", "tags": ["a"]}, call_id="c1", metadata={"turn": 3})


def test_arguments_are_copies_that_nobody_can_replace() -> None:
    """Neither the caller's dictionary nor what it holds is shared with a context."""
    args: dict[str, Any] = {"query": "weather", "tags": ["a"]}
    context = ToolCallContext("search", args, metadata=args)
    context.args["tags"].append("b")
    context.metadata["tags"].clear()
    args["query"] = "news"
    assert (args["tags"], context.args["query"]) == (["a"], "weather")
    with pytest.raises(TypeError):
        context.args["query"] = "news"  # type: ignore[index]
    with pytest.raises(AttributeError):
        context.args = {}  # type: ignore[misc]


def test_contexts_have_values() -> None:
    """They compare by their fields, and copies, pickles and plain values give the same again."""
    again = [
        deepcopy(CONTEXT),
        pickle.loads(pickle.dumps(CONTEXT)),
        replace(CONTEXT),
        ToolCallContext.from_dict(json.loads(json.dumps(CONTEXT.to_dict()))),
    ]
    assert all(one == CONTEXT for one in again)
    assert replace(CONTEXT, tool_name="mail") != CONTEXT
    assert repr(ToolCallContext("search")).startswith(
        "ToolCallContext(tool_name='search', args=mappingproxy({})"
    )


def test_a_result_is_added_after_the_tool_ran() -> None:
    """`with_result` changes nothing else."""
    after = CONTEXT.with_result([1, 2])
    assert after.result == [1, 2]
    assert after.with_result(None) == CONTEXT


def test_logprobs_become_a_tuple() -> None:
    """Any iterable of numbers is kept as a tuple."""
    assert ToolCallContext("a", token_logprobs=[-1.0, -2.0]).token_logprobs == (-1.0, -2.0)
    assert ToolCallContext("a", token_logprobs=iter([-1.0])).token_logprobs == (-1.0,)
    assert ToolCallContext("a").token_logprobs is None


def test_what_is_no_context_is_refused() -> None:
    """Tools without a name, arguments without names, and what cannot be copied are refused by message."""
    make: Any = ToolCallContext
    for odd in ("", None, 3, ["search"]):
        refuse(TypeError, r"`tool_name` must be a string that is not empty", lambda odd=odd: make(odd))  # type: ignore[misc]
    for name in ("args", "metadata"):
        for odd in (None, [1], "query", {1: 2}, [("query", 1)]):
            refuse(
                TypeError,
                rf"`{name}` must be a mapping with names as keys; got {type(odd).__name__}",
                lambda name=name, odd=odd: make("search", **{name: odd}),  # type: ignore[misc]
            )
    refuse(
        TypeError,
        r"`args\['lock'\]` must be a value that can be copied; got lock",
        lambda: make("a", {"lock": Lock()}),
    )


@pytest.mark.parametrize(("outcome", "good"), [(True, True), (0, False), (1.0, True), (np.False_, False)])
def test_outcomes_are_booleans_and_zero_and_one(outcome: Any, good: bool) -> None:
    """Whatever holds a 0 or a 1 is an outcome."""
    assert check_outcome(outcome) is good
    assert CallRecord(CONTEXT, outcome).outcome is good


@pytest.mark.parametrize("odd", ["False", "no", "0", "", 2, 0.5, math.nan, [True], b"0"])
def test_nothing_else_is_an_outcome(odd: Any) -> None:
    """Texts are refused, whatever they say."""
    refuse((TypeError, ValueError), r"`outcome` must be 0 or 1", lambda: CallRecord(CONTEXT, odd))


def test_a_record_is_checked() -> None:
    """Scores, fingerprints, texts, groups, decisions and moments are refused by name."""
    make: Any = CallRecord
    refuse(TypeError, r"`context` must be a ToolCallContext; got dict", lambda: make({}))
    refuse(
        TypeError,
        r"`scores` must be a mapping from names of checks; got \[0.1\]",
        lambda: make(CONTEXT, scores=[0.1]),
    )
    for odd in ("0.1", None, True, [0.1]):
        refuse(
            TypeError, r"`scores\['a'\]` must be a number", lambda odd=odd: make(CONTEXT, scores={"a": odd})
        )  # type: ignore[misc]
    for odd in (math.nan, -math.inf):
        refuse(
            ValueError, r"`scores\['a'\]` must not be nan", lambda odd=odd: make(CONTEXT, scores={"a": odd})
        )  # type: ignore[misc]
    refuse(TypeError, r"`fingerprints\['a'\]` must be a string", lambda: make(CONTEXT, fingerprints={"a": 1}))
    refuse(
        TypeError, r"`labeling_source` must be a string; got int", lambda: make(CONTEXT, labeling_source=3)
    )
    refuse(TypeError, r"`group` must be a string or an integer; got 0.5", lambda: make(CONTEXT, group=0.5))
    for odd in ("2026-01-01", datetime(2026, 1, 1), 3.0):
        refuse(
            TypeError,
            r"`recorded_at` must be a datetime with a time zone",
            lambda odd=odd: make(CONTEXT, recorded_at=odd),
        )  # type: ignore[misc]
    with pytest.raises(ValueError, match="accepted"):
        make(CONTEXT, decision="accepted")


def test_a_record_holds_plain_values() -> None:
    """Numbers of NumPy become floats, decisions members, and moments are in UTC."""
    there = datetime(2026, 1, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    record = CallRecord(
        CONTEXT,
        scores={"a": np.float32(0.5), "b": math.inf},
        decision="accept",  # type: ignore[arg-type]
        labeling_source=LabelingSource.JUDGE,
        recorded_at=there,
    )
    assert {**record.scores} == {"a": 0.5, "b": math.inf}
    assert type(record.scores["a"]) is float
    assert record.decision is Decision.ACCEPT
    assert record.labeling_source == "judge"
    assert record.recorded_at == there
    assert check_moment("now", there) == there.astimezone(UTC)
    assert check_moment("now", None) is None


@pytest.mark.parametrize("odd", [10**400, -(10**400)])
def test_a_score_beyond_the_range_of_floats_is_infinite(odd: int) -> None:
    """+inf counts as failed and is kept as that; -inf is no score."""
    context = ToolCallContext("search")
    if odd > 0:
        assert CallRecord(context, scores={"a": odd}).scores == {"a": math.inf}
    else:
        refuse(
            ValueError, "must not be nan or -inf; got -inf", lambda: CallRecord(context, scores={"a": odd})
        )


def test_a_length_of_time_is_neither_a_score_nor_an_outcome() -> None:
    """NumPy takes timedelta64 for an integer."""
    length: Any = np.timedelta64(1)
    refuse(TypeError, "must be a number", lambda: CallRecord(CONTEXT, scores={"a": length}))
    refuse(ValueError, "must be 0 or 1", lambda: check_outcome(length))


def test_moments_and_decisions_that_are_none_are_refused_by_name() -> None:
    """Whatever Python says of them, the message names the argument."""
    first = datetime.min.replace(tzinfo=timezone(timedelta(hours=5)))
    refuse(
        ValueError,
        "`moment` must be a time between the years 1 and 9999",
        lambda: check_moment("moment", first),
    )
    odd: Any = "ACCEPT"
    refuse(
        ValueError,
        "`decision` must be one of 'accept'.*; got 'ACCEPT'",
        lambda: CallRecord(CONTEXT, decision=odd),
    )
