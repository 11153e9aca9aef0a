"""Recording decisions in a store."""

from __future__ import annotations

import math
from datetime import date
from types import SimpleNamespace
from typing import Any

import pytest
from deciders import LONG, SHORT, Calls, Ledger, ShortQueries
from refusals import named, refuse

from rag_confidence._calls import ToolCallContext
from rag_confidence._types import Decision
from rag_confidence.errors import StoreError
from rag_confidence.guard.abstaining import without_context
from rag_confidence.guard.recording import UnrecordedCall, recorder_for
from rag_confidence.guard.result import GuardResult
from rag_confidence.guard.wrapping import wrap


def decided(query: str = SHORT) -> GuardResult:
    """The result of one call, before its tool runs."""
    return ShortQueries().decide(ToolCallContext("search", {"query": query}))


def recorder(store: Any, *, scorers: Any = (), group: Any = None) -> Any:
    """What writes to a store for a calibrator with these scorers."""
    calibrator: Any = SimpleNamespace(scorers=scorers)
    return recorder_for(store, "search", calibrator, group)


def test_without_a_store_nothing_is_recorded() -> None:
    """None where no store is given, whatever the group."""
    assert recorder(None, group="high") is None


@pytest.mark.parametrize("store", [[], "calls.db", 3])
def test_a_store_must_have_add(store: Any) -> None:
    """A path or a list is no store; it is refused when the tool is wrapped."""
    refuse(TypeError, "`store` must have a method `add`.*CalibrationStore", lambda: recorder(store))


def test_a_group_must_be_a_name() -> None:
    """As everywhere else, a string or an integer."""
    refuse(TypeError, "`group` must be a string or an integer", lambda: recorder(Ledger(), group=1.5))


@pytest.mark.parametrize(("query", "decision"), [(SHORT, Decision.ACCEPT), (LONG, Decision.ABSTAIN)])
def test_a_record_has_all_of_a_decision(query: str, decision: Decision) -> None:
    """Context, scores and fingerprints of the scorers asked, group, decision, calibrator; and its number."""
    store = Ledger()
    scorers = [SimpleNamespace(name=name, fingerprint=name.upper()) for name in ("length", "other")]
    result = recorder(store, scorers=scorers, group="high").record(decided(query))
    assert result.record_id == 1
    assert store.rows == [
        {
            "context": ToolCallContext("search", {"query": query}),
            "scores": {"length": float(len(query))},
            "fingerprints": {"length": "LENGTH"},
            "group": "high",
            "decision": decision,
            "calibrator": "of-the-decider",
        }
    ]


def test_the_group_is_that_of_the_guarantee() -> None:
    """Where none is given; a given one comes first."""
    result = decided().changed(guarantee=SimpleNamespace(group="low"))
    for group, expected in ((None, "low"), ("high", "high")):
        store = Ledger()
        recorder(store, group=group).record(result)
        assert store.rows[0]["group"] == expected


def test_a_call_without_context_is_recorded_under_the_name_of_its_tool() -> None:
    """With the reason in its metadata, and without scores."""
    store = Ledger()
    recorder(store).record(without_context("search", "KeyError: 'user'", ShortQueries()))
    context = store.rows[0]["context"]
    assert (context.tool_name, dict(context.args)) == ("search", {})
    assert context.metadata["context_failed"].endswith("KeyError: 'user'")
    assert store.rows[0]["scores"] == {}


def test_before_the_tool_the_error_of_a_store_passes() -> None:
    """It is the same object."""
    error = OSError("disk full")
    with pytest.raises(OSError, match="disk full") as caught:
        recorder(Ledger(error)).record(decided())
    assert caught.value is error


def test_after_the_tool_the_error_holds_the_result() -> None:
    """Output and decision are in it, and the store's error is its cause."""
    error = OSError("disk full")
    result = decided().changed(output="WEATHER", executed=True)
    with pytest.raises(StoreError, match="search ran, but its call was not recorded: disk full") as caught:
        recorder(Ledger(error)).record_after(result)
    assert isinstance(caught.value, UnrecordedCall)
    assert caught.value.result is result
    assert caught.value.__cause__ is error


def test_a_call_that_cannot_be_kept_does_not_run() -> None:
    """Arguments that are no values of JSON are an error of the store, before the tool runs."""
    calls = Calls()
    store = Ledger(TypeError("`args['query']` must be a value of JSON; got date. Pass text."))
    tool = wrap(calls.tool, ShortQueries(), tool_name="search", store=store)
    refuse(StoreError, "^`store` must be able to keep the call of search; got `args", lambda: tool(SHORT))
    assert calls == []


@pytest.mark.parametrize("output", [date(2026, 12, 1), {1, 2}, math.nan, [object()]], ids=named)
def test_an_output_that_cannot_be_kept_is_left_out_and_told_of(output: Any) -> None:
    """A tool that is judged afterwards may return anything: the record says what is missing."""
    store = Ledger()
    tool = wrap(lambda query: output, ShortQueries(), tool_name="search", mode="after", store=store)
    assert tool(SHORT).accepted
    kept = store.rows[0]["context"]
    assert kept.result is None
    assert kept.metadata == {"result_left_out": type(output).__name__}


def test_an_output_of_json_is_kept() -> None:
    """What JSON holds is recorded as it is."""
    store = Ledger()
    tool = wrap(lambda query: [query, 1], ShortQueries(), tool_name="search", mode="after", store=store)
    tool(SHORT)
    assert store.rows[0]["context"].result == [SHORT, 1]
