"""Arguments of `calibrate`: every one is checked, by a message that names it and its cure."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from guard_calls import call, labelled, reader, readers
from refusals import quiet, refuse

from rag_confidence._calls import CallRecord, ToolCallContext
from rag_confidence.guard.calibration import acalibrate, calibrate, calibrate_multi_check

GOOD = labelled([at / 20 for at in range(20)])
BAD = labelled([], [1.0, 2.0])


def refused(kind: Any, message: str, **changes: Any) -> None:
    """`calibrate` and `acalibrate` refuse the same call by the same message."""
    asked: dict[str, Any] = {"scorer": reader(0), "calibration_data": GOOD, "alpha": 0.1, **changes}
    first, *rest = (asked.pop(name) for name in ("scorer", "calibration_data", "alpha"))
    refuse(kind, message, lambda: calibrate(first, *rest, **asked))
    refuse(kind, message, lambda: asyncio.run(acalibrate(first, *rest, **asked)))


@pytest.mark.parametrize("odd", [None, 0.5, "length", []])
def test_the_scorer_must_be_callable(odd: Any) -> None:
    """Numbers, names, nothing and an empty list are no scorers."""
    refused((TypeError, ValueError), r"`scorer` must ", scorer=odd)


@pytest.mark.parametrize("alpha", [0, 1, 0.0, 1.0, -0.1, 1.1, 10, float("nan"), float("inf"), "ten", 1e-13])
def test_levels_lie_between_zero_and_one(alpha: Any) -> None:
    """Zero, one, percentages, NaN, infinities and words are no levels, for either kind of calls."""
    refused(ValueError, r"`alpha` must be ", alpha=alpha)
    refused(ValueError, r"`beta` must be ", beta=alpha, calibration_data=GOOD + BAD)


@pytest.mark.parametrize("alpha", [None, True, [0.1], 0.1j])
def test_levels_are_numbers(alpha: Any) -> None:
    """What is no number is no level."""
    refused((TypeError, ValueError), r"`alpha` must be ", alpha=alpha)


def test_extreme_levels_are_exact() -> None:
    """At .9999 one call suffices; at .0001 thousands are needed, and the number is said."""
    with quiet():
        loose, strict = calibrate(reader(0), GOOD, "0.9999"), calibrate(reader(0), GOOD, "0.0001")
    assert (loose.threshold, loose.n_missing) == (0.0, 0)
    assert (strict.threshold, strict.n_missing) == (float("inf"), 9979)


def test_there_must_be_calls_to_learn_from() -> None:
    """Nothing, unlabelled records only, bad calls only, and no bad calls for beta are refused."""
    empty = r"`calibration_data` must hold labelled calls; got none\. "
    refused(ValueError, empty, calibration_data=[])
    refused(ValueError, empty, calibration_data=iter(()))
    unlabelled = [CallRecord(call(0.5)), CallRecord(call(0.6))]
    message = r"`calibration_data` must hold labelled calls; got none and 2 without an outcome"
    refused(ValueError, message, calibration_data=unlabelled)
    refused(ValueError, r"`calibration_data` must hold good calls; got 2, all bad", calibration_data=BAD)
    refused(
        ValueError, r"`calibration_data` must hold good calls; got 2, all bad", calibration_data=BAD, beta=0.1
    )
    refused(ValueError, r"`calibration_data` must hold bad calls for `beta`; got 20, all good", beta=0.1)


def test_outcomes_are_no_texts() -> None:
    """The words False, no and 0 are not good outcomes, and no outcomes at all."""
    for odd in ("False", "no", "0"):
        refused(
            (TypeError, ValueError),
            r"`calibration_data\[20\]\[1\]` must ",
            calibration_data=[*GOOD, (call(1.0), odd)],
        )


def test_calls_of_other_tools_are_refused() -> None:
    """Names of tools are checked and not only kept."""
    data = [*GOOD, (call(0.5, tool="mail"), True)]
    message = r"`calibration_data` must hold calls of search; got 1 of other tools, such as mail"
    refused(ValueError, message, calibration_data=data, tool_names={"search"})
    assert calibrate(reader(0), data, 0.1, tool_names=("search", "mail")).tool_names == {"search", "mail"}
    assert calibrate(reader(0), data, 0.1).tool_names == {"search", "mail"}
    assert calibrate(reader(0), data, 0.1, tool_names="any").tool_names is None
    for odd in ("search", [], [""], [3]):
        refused(TypeError, r"`tool_names` must ", tool_names=odd)


def test_the_other_options_are_checked() -> None:
    """Sources, days, groups, ages, moments, flags and traffic are refused by name."""
    refused(TypeError, r"`labeling_source` must be a string; got int", labeling_source=3)
    refused(ValueError, r"`collected` must hold dates; got 'soon'", collected="soon")
    refused(ValueError, r"`collected` must run from", collected=("2026-02-01", "2026-01-01"))
    refused(TypeError, r"`group` must be a string or an integer; got 0.5", group=0.5)
    refused(TypeError, r"`max_age` must be a timedelta or None; got 90", max_age=90)
    refused(ValueError, r"`max_age` must be positive", max_age=timedelta(0))
    refused(TypeError, r"`now` must be a datetime with a time zone", now=datetime(2026, 1, 1))
    refused(TypeError, r"`strict` must be True or False; got 'yes'", strict="yes")
    refused(TypeError, r"`reference\[0\]` must hold a ToolCallContext; got float", reference=[0.5])
    assert calibrate(reader(0), GOOD, 0.1, now=datetime(2026, 1, 1, tzinfo=UTC), group=3).group == 3


def test_scorers_that_must_be_awaited_are_refused_without_waiting() -> None:
    """An async scorer fails at once and with its cure, not silently on each call."""

    async def judge(context: ToolCallContext) -> float:
        return 0.5

    class Judge:
        async def __call__(self, context: ToolCallContext) -> float:
            return 0.5

    for scorer in (judge, Judge()):
        refuse(
            TypeError,
            r"`scorer` must return a number here; got judge|Judge, which must be awaited",
            lambda scorer=scorer: calibrate(scorer, GOOD, 0.1),  # type: ignore[misc]
        )


def test_several_checks_are_at_least_two() -> None:
    """`calibrate_multi_check` is for several scorers."""
    refuse(
        ValueError,
        r"`scorers` must hold at least two scorers; got 1",
        lambda: calibrate_multi_check(readers(1), GOOD, 0.1),
    )


def test_the_concurrency_is_a_count() -> None:
    """At least one call must be open at a time."""
    refuse(
        ValueError,
        r"`concurrency` must be an integer of at least 1; got 0",
        lambda: asyncio.run(acalibrate(reader(0), GOOD, 0.1, concurrency=0)),
    )
