"""Scores of calibration calls: stored ones where the same scorers made them, and new ones otherwise."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
from guard_calls import INF, call, readers

from rag_confidence._calls import CallRecord, ToolCallContext
from rag_confidence.guard.reading import read_calls
from rag_confidence.guard.scorers import Scorer
from rag_confidence.guard.scoring import ScoreTable, ascore_all, ascore_calls, score_calls

SCORERS = readers(2)
PRINTS = {scorer.name: scorer.fingerprint for scorer in SCORERS}


def record(scores: dict[str, float], fingerprints: dict[str, str] | None = None) -> CallRecord:
    """A good call with scores of its own, which differ from those that would be made now."""
    return CallRecord(call(7.0, 8.0), True, scores, PRINTS if fingerprints is None else fingerprints)


def both(entries: list[Any]) -> ScoreTable:
    """The table, which must be the same with and without waiting."""
    calls = read_calls(entries)
    table, awaited = score_calls(SCORERS, calls), asyncio.run(ascore_calls(SCORERS, calls, 3))
    assert np.array_equal(table.rows, awaited.rows)
    assert (table.failures, table.n_other) == (awaited.failures, awaited.n_other)
    return table


def test_calls_are_scored_in_order() -> None:
    """One row a call, one column a scorer."""
    table = both([(call(float(at), -float(at)), True) for at in range(8)])
    assert table.rows.tolist() == [[at, -at] for at in range(8)]
    assert (table.failures, table.n_other) == ({}, 0)


def test_stored_scores_of_the_same_scorers_are_used() -> None:
    """A record brings its scores along; a stored infinity is a failure."""
    table = both([record({"check_0": 1.0, "check_1": 2.0}), record({"check_0": 1.0, "check_1": INF})])
    assert table.rows.tolist() == [[1.0, 2.0], [1.0, INF]]
    assert table.failures == {"check_1": (1, "check_1 returned inf, which is no score")}
    assert table.n_other == 0


@pytest.mark.parametrize(
    ("scores", "fingerprints", "other"),
    [
        ({"check_0": 1.0, "check_1": 2.0}, {**PRINTS, "check_1": "another"}, 1),
        ({"check_0": 1.0, "check_1": 2.0}, {"check_0": PRINTS["check_0"]}, 1),
        ({"check_0": 1.0}, PRINTS, 0),
        ({"other": 1.0}, {"other": "x"}, 0),
        ({}, {}, 0),
    ],
)
def test_all_other_calls_are_scored_again(scores: Any, fingerprints: Any, other: int) -> None:
    """Scores of another scorer or an unknown one are not used, and counted; missing ones are made."""
    table = both([record(scores, fingerprints), (call(3.0, 4.0), True)])
    assert table.rows.tolist() == [[7.0, 8.0], [3.0, 4.0]]
    assert table.n_other == other


def test_failures_are_counted_by_scorer() -> None:
    """Each scorer that failed is there with its count and one message."""
    table = both([(call(1.0, INF), True), (call(INF, INF), True), (call(1.0, 1.0), False)])
    assert table.rows.tolist() == [[1.0, INF], [INF, INF], [1.0, 1.0]]
    message = "raised ConnectionError: no answer"
    assert table.failures == {"check_0": (1, f"check_0 {message}"), "check_1": (2, f"check_1 {message}")}


def meeting(count: int) -> list[Scorer]:
    """Scorers that all wait until each of them has begun."""
    begun: list[int] = []

    def waits(at: int) -> Scorer:
        async def score(context: ToolCallContext) -> float:
            begun.append(at)
            while len(begun) < count:
                await asyncio.sleep(0)
            return float(at)

        return Scorer(f"waits_{at}", score, version="1")

    return [waits(at) for at in range(count)]


def test_scorers_of_a_call_wait_together() -> None:
    """Scorers that are awaited run at the same time, beside those that are not."""
    scored = asyncio.run(ascore_all([*meeting(3), *readers(1)], call(0.5)))
    assert [one.value for one in scored] == [0.0, 1.0, 2.0, 0.5]


def test_no_more_calls_than_asked_for_are_open_at_once() -> None:
    """The concurrency is kept, and reached."""
    open_now, most = 0, 0

    async def score(context: ToolCallContext) -> float:
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        await asyncio.sleep(0)
        open_now -= 1
        return context.args["s0"]  # type: ignore[no-any-return]

    calls = read_calls([(call(float(at)), True) for at in range(10)])
    table = asyncio.run(ascore_calls([Scorer("slow", score)], calls, 4))
    assert (most, table.rows[:, 0].tolist()) == (4, [float(at) for at in range(10)])


def test_a_cancellation_ends_all_scorers() -> None:
    """Cancelling a decision cancels every scorer that it waits for."""
    ended: list[str] = []

    def hangs(name: str) -> Scorer:
        async def score(context: ToolCallContext) -> float:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(name)
            return 0.0

        return Scorer(name, score)

    async def cancel() -> None:
        task = asyncio.ensure_future(ascore_all([hangs("a"), hangs("b")], call()))
        for _ in range(3):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert sorted(ended) == ["a", "b"]
