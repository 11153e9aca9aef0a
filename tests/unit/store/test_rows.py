"""A record survives its way through text and whole numbers."""

from __future__ import annotations

from collections import UserDict
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuse

from rag_confidence import Decision
from rag_confidence._calls import CallRecord, ToolCallContext
from rag_confidence.errors import StoreError
from rag_confidence.store.rows import call_row, label_row, microseconds, moment, record_of

NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**70), 2**70)
TEXTS = st.text(st.characters(exclude_categories=()), max_size=5)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
NAMES = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00"), min_size=1, max_size=5)
TIMES = st.datetimes(timezones=st.just(UTC))
CONTEXTS = st.builds(
    ToolCallContext,
    tool_name=NAMES,
    args=st.dictionaries(TEXTS, JSON, max_size=3),
    result=JSON,
    token_logprobs=st.none() | st.lists(st.floats(max_value=0.0), max_size=3).map(tuple),
    judge_score=st.none() | st.floats(0.0, 1.0),
    call_id=st.none() | TEXTS,
    metadata=st.dictionaries(TEXTS, JSON, max_size=2),
)
RECORDS = st.builds(
    CallRecord,
    context=CONTEXTS,
    outcome=st.booleans(),
    scores=st.dictionaries(TEXTS, st.floats(allow_nan=False).filter(lambda x: x > float("-inf")), max_size=3),
    fingerprints=st.dictionaries(TEXTS, TEXTS, max_size=2),
    labeling_source=st.none() | NAMES,
    group=st.none() | TEXTS | st.integers(-(2**63), 2**64 - 1),
    decision=st.none() | st.sampled_from(Decision),
    calibrator=st.none() | NAMES,
    recorded_at=TIMES,
    labeled_at=TIMES,
    id=st.integers(1, 2**62),
)


def through_a_row(record: CallRecord) -> CallRecord:
    """The record as a query would find it."""
    call = call_row(record, recorded_at=record.recorded_at)
    label = label_row(bool(record.outcome), record.labeling_source, record.labeled_at)
    del call["uid"]
    row: tuple[Any, ...] = (record.id, *call.values(), *label.values())
    return record_of(row)


@given(RECORDS)
def test_any_record_comes_back_equal(record: CallRecord) -> None:
    """Equal field by field, and numbers of the same text, which tells -0.0 from 0.0."""
    again = through_a_row(record)
    assert again == record
    assert repr(again.context.args) == repr(record.context.args)
    assert repr(sorted(again.scores.items())) == repr(sorted(record.scores.items()))


@given(TIMES, TIMES)
def test_times_are_exact_and_sort_as_numbers(first: datetime, second: datetime) -> None:
    """Whole microseconds, before 1970 too."""
    numbers = [microseconds(first), microseconds(second)]
    assert moment(numbers[0]) == first
    assert (first < second) == (numbers[0] < numbers[1])  # type: ignore[operator]


def test_tuples_come_back_as_lists() -> None:
    """JSON knows only one kind of list."""
    record = CallRecord(ToolCallContext("t", {"pair": (1, 2)}), outcome=True, id=1)
    assert through_a_row(record).context.args == {"pair": [1, 2]}


def test_a_mapping_that_is_no_dict_and_a_huge_integer_are_refused() -> None:
    """Neither comes back as it was."""
    for value, pattern in ((UserDict(), "must be a dict"), (2**5000, "at most 4096 bits")):
        context = ToolCallContext("t", metadata={"x": [value] if isinstance(value, int) else value})
        refuse((TypeError, ValueError), pattern, lambda c=context: call_row(CallRecord(c), recorded_at=None))  # type: ignore[misc]


def test_a_row_of_another_shape_is_an_error_of_the_store() -> None:
    """What was not written by this package is not guessed at."""
    good = [1, "t", '{"args":{}}', "{}", "{}", None, None, None, None, None, None, None]
    for place, odd in ((2, "{}"), (2, "text"), (3, '{"a":"?"}'), (6, "perhaps"), (8, 2**80)):
        row = [*good]
        row[place] = odd
        refuse(StoreError, "call 1", lambda row=row: record_of(tuple(row)))  # type: ignore[misc]


def test_numbers_of_numpy_are_kept_where_numbers_stand() -> None:
    """Log-probabilities and judgements often come from arrays."""
    logprobs: Any = (np.float32(-0.5), np.int64(-1))
    context = ToolCallContext("t", token_logprobs=logprobs, judge_score=np.float32(0.25))  # type: ignore[arg-type]
    kept = through_a_row(CallRecord(context, outcome=True, id=1)).context
    assert (kept.token_logprobs, kept.judge_score) == ((-0.5, -1.0), 0.25)


@pytest.mark.parametrize("odd", [10**400, np.timedelta64(1), True, None, np.float32("nan")])
def test_a_log_probability_is_a_number(odd: Any) -> None:
    """A length of time is none, nor what no float can hold."""
    record = CallRecord(ToolCallContext("t", token_logprobs=(odd,)), outcome=True)
    refuse(ValueError, r"`token_logprobs\[0\]` must be a number", lambda: through_a_row(record))
