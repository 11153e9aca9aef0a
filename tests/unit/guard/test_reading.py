"""Calibration data: pairs and records become labelled calls, and anything else is refused by message."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from guard_calls import call
from refusals import refuse

from rag_confidence._calls import CallRecord, ToolCallContext
from rag_confidence.guard.reading import read_calls, read_traffic


@pytest.mark.parametrize("good", [True, 1, 1.0, np.True_, np.int64(1)])
@pytest.mark.parametrize("bad", [False, 0, 0.0, np.False_, np.int64(0)])
def test_booleans_and_zero_and_one_are_outcomes(good: Any, bad: Any) -> None:
    """Numbers that equal 0 or 1 are read as what they mean."""
    calls = read_calls([(call(1.0), good), (call(2.0), bad)])
    assert calls.good == [True, False]
    assert all(type(outcome) is bool for outcome in calls.good)


@pytest.mark.parametrize("odd", ["False", "no", "0", "True", 2, -1, 0.5, float("nan"), None, [1], b"1"])
def test_anything_else_is_no_outcome(odd: Any) -> None:
    """Texts are not read as outcomes, whatever they say, and the entry is named."""
    data: list[Any] = [(call(1.0), True), (call(2.0), odd)]
    refuse((TypeError, ValueError), r"`calibration_data\[1\]\[1\]` must ", lambda: read_calls(data))


def test_pairs_and_records_can_be_mixed() -> None:
    """Records without an outcome are left out and counted; a generator is read once."""

    def entries() -> Iterator[Any]:
        yield call(1.0), True
        yield [call(2.0), 0]
        yield CallRecord(call(3.0), 1)  # type: ignore[arg-type]
        yield CallRecord(call(4.0))

    calls = read_calls(entries())
    assert [context.args["s0"] for context in calls.contexts] == [1.0, 2.0, 3.0]
    assert (calls.good, [*calls.records], calls.n_unlabelled) == ([True, False, True], [2], 1)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, r"`calibration_data` must be an iterable of calls; got NoneType"),
        ("calls", r"`calibration_data` must be an iterable of calls; got str"),
        ({"a": 1}, r"`calibration_data` must be an iterable of calls; got dict"),
        ([call(1.0)], r"`calibration_data\[0\]` must be a pair or a record; got ToolCallContext"),
        ([(call(1.0), True, 1)], r"`calibration_data\[0\]` must be a pair or a record; got tuple"),
        ([(call(1.0),)], r"`calibration_data\[0\]` must be a pair or a record; got tuple"),
        ([(0.5, True)], r"`calibration_data\[0\]` must hold a ToolCallContext; got float"),
        ([(True, call(1.0))], r"`calibration_data\[0\]` must hold a ToolCallContext; got bool"),
    ],
)
def test_what_are_no_calls_is_refused(data: Any, message: str) -> None:
    """The first entry that is no labelled call is named with its cure."""
    refuse(TypeError, message, lambda: read_calls(data))


def test_a_record_counts_once() -> None:
    """The same row of a store twice is refused: copies are no evidence."""
    records = [CallRecord(call(1.0), True, id=at) for at in (3, 7, 3)]
    refuse(
        ValueError,
        r"`calibration_data` must hold each record once; got the record 3 again",
        lambda: read_calls(records),
    )


def test_traffic_needs_no_outcome() -> None:
    """Contexts, records with and without outcome, and pairs are traffic."""
    entries: list[Any] = [call(1.0), CallRecord(call(2.0)), CallRecord(call(3.0), False), (call(4.0), None)]
    calls = read_traffic(entries)
    assert [context.args["s0"] for context in calls.contexts] == [1.0, 2.0, 3.0, 4.0]
    assert [*calls.records] == [1, 2]


def test_what_is_no_traffic_is_refused() -> None:
    """Scores without a context, texts and nothing are refused."""
    read: Any = read_traffic
    refuse(TypeError, r"`reference\[0\]` must hold a ToolCallContext; got float", lambda: read([0.5]))
    refuse(TypeError, r"`reference` must be an iterable of calls; got str", lambda: read("calls"))
    refuse(ValueError, r"`reference` must hold calls; got none", lambda: read([]))
    assert isinstance(read([call(1.0)]).contexts[0], ToolCallContext)


def test_the_first_copy_of_many_records_is_named() -> None:
    """Found by counting: comparing each with all before it takes minutes for a large store."""
    records = [CallRecord(call(), True, id=1 + at % 9_999) for at in range(10_000)]
    refuse(ValueError, "got the record 1 again", lambda: read_calls(records))
