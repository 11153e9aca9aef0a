"""Wrapped tools with real calibrators and a real store: what a user puts together."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path
from typing import Any

import pytest
from deciders import LONG, SHORT
from refusals import quiet

from rag_confidence._calls import CallRecord, ToolCallContext
from rag_confidence._types import Decision
from rag_confidence.errors import CalibrationMismatch
from rag_confidence.guard.calibration import acalibrate, calibrate, calibrate_multi_check
from rag_confidence.guard.result import GuardReason
from rag_confidence.guard.wrapping import guard_of, guarded, wrap
from rag_confidence.store import CalibrationStore

CALLS = [(ToolCallContext("search", {"query": "x" * size}), True) for size in range(1, 13)] * 10


def length(context: ToolCallContext) -> float:
    """How many characters the query has."""
    return float(len(context.args["query"]))


def spaces(context: ToolCallContext) -> float:
    """How many spaces it has."""
    return float(context.args["query"].count(" "))


async def awaited(context: ToolCallContext) -> float:
    """The length, from far away."""
    await asyncio.sleep(0)
    return length(context)


def search(query: str) -> str:
    """A tool."""
    return query.upper()


def test_an_accepted_call_has_output_and_guarantee() -> None:
    """What conformguard's quickstart shows, on every result."""
    result = wrap(search, calibrate(length, CALLS, 0.1, labeling_source="deterministic"))(SHORT)
    assert (result.decision, result.output) == ("accept", "WEATHER")
    assert result.guarantee is not None
    assert result.guarantee.alpha == 0.1


def test_checks_that_fail_are_named() -> None:
    """Of several checks those above the joint threshold."""
    with quiet():
        calibrator = calibrate_multi_check([length, spaces], CALLS, 0.1)
    result = wrap(search, calibrator)(LONG)
    assert (result.executed, result.failed_checks, [*result.scores]) == (
        False,
        ("length",),
        ["length", "spaces"],
    )


@pytest.mark.parametrize("value", [math.nan, -math.inf, "1", None, True])
def test_a_scorer_without_a_score_never_accepts(value: Any) -> None:
    """The call abstains, the tool does not run, and the reason names the scorer."""
    sick: list[Any] = []
    tool = wrap(search, calibrate(lambda context: sick[0] if sick else length(context), CALLS, 0.1))
    assert tool(SHORT).executed
    sick.append(value)
    result = tool(SHORT)
    assert (result.executed, result.reason_code) == (False, GuardReason.SCORER_FAILED)
    assert [*result.failed_scorers] == ["scorer"]


def test_an_infinite_threshold_runs_nothing() -> None:
    """Too few good calls: everything abstains, and the reason says how many are missing."""
    with quiet():
        calibrator = calibrate(length, CALLS[:5], 0.1)
    result = wrap(search, calibrator)("x")
    assert (result.executed, result.reason_code) == (False, GuardReason.INFINITE_THRESHOLD)
    assert str(calibrator.n_missing) in result.reason


def test_three_outcomes_reach_on_abstain() -> None:
    """With bad calls calibrated a call may be rejected; it does not run, and the callback is asked."""
    bad = [(ToolCallContext("search", {"query": "x" * size}), False) for size in range(8, 40)]
    seen: list[Decision] = []
    tool = wrap(
        search, calibrate(length, CALLS + bad, 0.1, beta=0.1), lambda result: seen.append(result.decision)
    )
    assert [tool("x" * size).executed for size in (3, 11, 30)] == [True, False, False]
    assert seen == [Decision.ABSTAIN, Decision.REJECT]


def test_async_scorers_need_an_awaited_tool() -> None:
    """asynchronous=True makes one of a plain tool; without it they fail, and nothing is accepted."""
    calibrator = asyncio.run(acalibrate(awaited, CALLS, 0.1))

    async def main() -> list[bool]:
        tool = wrap(search, calibrator, asynchronous=True)
        return [(await tool(query)).executed for query in (SHORT, LONG)]

    assert asyncio.run(main()) == [True, False]
    assert wrap(search, calibrator)(SHORT).reason_code is GuardReason.SCORER_FAILED


def test_the_names_of_a_calibrator_are_checked() -> None:
    """A tool that it is not for is refused when it is wrapped."""
    calibrator = calibrate(length, CALLS, 0.1)
    assert guarded(calibrator)(search)(SHORT).accepted
    with pytest.raises(CalibrationMismatch, match="'upper'"):
        wrap(str.upper, calibrator)
    any_tool = calibrate(length, CALLS, 0.1, tool_names="any")
    assert wrap(lambda query: query, any_tool, tool_name="upper")(SHORT).accepted


def test_recorded_calls_are_labelled_and_calibrated_on(tmp_path: Path) -> None:
    """From guarded calls to the store, to labels, to a calibrator that uses the stored scores."""
    calibrator = calibrate(length, CALLS, 0.1)
    with CalibrationStore(tmp_path / "calls.db") as store:
        tool = wrap(search, calibrator, store=store)
        results = [tool("x" * size) for size in range(1, 15)]
        for result in results:
            assert result.record_id is not None
            store.label(result.record_id, True, "human")
        records: list[CallRecord] = [*store.query(labelled=True)]
    assert [record.decision for record in records] == [result.decision for result in results]
    assert {record.calibrator for record in records} == {calibrator.fingerprint}
    assert {record.fingerprints["length"] for record in records} == {calibrator.scorers[0].fingerprint}
    again = calibrate(length, records, 0.2)
    assert again.good.tolist() == [float(size) for size in range(1, 15)]
    assert again.labeling_source == "human"


def test_calls_after_the_fact_are_recorded_with_their_output(tmp_path: Path) -> None:
    """A score that needs the output comes back from the store with it."""
    calibrator = calibrate(length, CALLS, 0.1)
    with CalibrationStore(tmp_path / "calls.db") as store:
        results = [*map(wrap(search, calibrator, mode="after", store=store), (SHORT, LONG))]
        assert [record.context.result for record in store.query()] == ["WEATHER", LONG.upper()]
    assert [result.withheld for result in results] == [None, LONG.upper()]


def test_async_tools_share_a_store(tmp_path: Path) -> None:
    """Calls that overlap are all recorded, each with a number of its own."""

    async def fetch(query: str) -> str:
        await asyncio.sleep(0)
        return query.upper()

    async def main(store: CalibrationStore) -> list[Any]:
        guard = guard_of(wrap(fetch, calibrate(length, CALLS, 0.1), tool_name="search", store=store))
        return await asyncio.gather(*(guard.acall({"query": "x" * size}) for size in range(1, 21)))

    with CalibrationStore(tmp_path / "calls.db") as store:
        results = asyncio.run(main(store))
        assert sorted(result.record_id for result in results) == [record.id for record in store.query()]
        assert store.count() == 20
