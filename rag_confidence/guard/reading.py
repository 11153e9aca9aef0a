"""Calibration data become labelled calls here, and calls become scores: stored ones, or made again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from rag_confidence._calls import CallRecord, ToolCallContext
from rag_confidence._history import check_labels
from rag_confidence._types import FloatArray
from rag_confidence.guard.scorers import Scored, Scorer

CalibrationData: TypeAlias = Iterable[tuple[ToolCallContext, Any] | CallRecord]
Traffic: TypeAlias = Iterable[ToolCallContext | CallRecord | tuple[ToolCallContext, Any]]

_CURE = "Pass pairs (ToolCallContext, outcome), or records of a CalibrationStore."


@dataclass(frozen=True)
class Calls:
    """Labelled calls, in the order in which they came.

    Attributes
    ----------
    contexts : list of ToolCallContext
    good : list of bool
    records : list of CallRecord or None
        What else is known of each.
    n_unlabelled : int
        Records that were left out, because nobody knows yet whether the call was good.
    """

    contexts: list[ToolCallContext]
    good: list[bool]
    records: list[CallRecord | None]
    n_unlabelled: int

    def known(self) -> Iterator[CallRecord]:
        """The calls that came as records."""
        return (record for record in self.records if record is not None)


@dataclass
class ScoreTable:
    """Scores of calls, and what went wrong while they were made.

    Attributes
    ----------
    rows : list of list of float
        One row a call and one score a check; +inf where it failed.
    failures : dict
        Scorer -> how many calls it failed on, and what happened at the first.
    n_other : int
        Calls with stored scores of other scorers, which were not used.
    """

    rows: list[list[float]] = field(default_factory=list)
    failures: dict[str, tuple[int, str]] = field(default_factory=dict)
    n_other: int = 0

    def add(self, scorers: Sequence[Scorer], scored: Sequence[Scored]) -> None:
        """The scores of one more call."""
        self.rows.append([one.value for one in scored])
        for scorer, one in zip(scorers, scored, strict=True):
            if one.error is not None:
                count, first = self.failures.get(scorer.name, (0, one.error))
                self.failures[scorer.name] = count + 1, first

    def matrix(self) -> FloatArray:
        """The scores as an array (n, K)."""
        return np.array(self.rows, dtype=np.float64)


def read_calls(data: CalibrationData) -> Calls:
    """Labelled calls from pairs and records; an outcome is a boolean, or 0 or 1."""
    calls = Calls([], [], [], 0)
    unlabelled = 0
    for at, entry in enumerate(_entries("calibration_data", data, _CURE)):
        if isinstance(entry, CallRecord):
            unlabelled += entry.outcome is None
            if entry.outcome is not None:
                _append(calls, entry.context, good=entry.outcome, record=entry)
        else:
            context, outcome = _pair(f"calibration_data[{at}]", entry)
            _append(calls, context, good=outcome, record=None)
    _refuse_repeated(calls)
    return Calls(calls.contexts, calls.good, calls.records, unlabelled)


def read_traffic(traffic: Traffic) -> Calls:
    """Calls without regard to their outcome, which may be unknown."""
    calls = Calls([], [], [], 0)
    cure = "Pass contexts, or records of a CalibrationStore."
    for at, entry in enumerate(_entries("reference", traffic, cure)):
        record = entry if isinstance(entry, CallRecord) else None
        context = entry.context if record is not None else entry
        if isinstance(entry, tuple | list) and len(entry) == 2:
            context = entry[0]
        _check_context(f"reference[{at}]", context, cure)
        _append(calls, context, good=True, record=record)
    return calls


def stored_scores(scorers: Sequence[Scorer], record: CallRecord | None) -> list[Scored] | None:
    """The scores that came with a call, if each was made by the scorer in use."""
    if record is None or not record.scores:
        return None
    for scorer in scorers:
        if record.fingerprints.get(scorer.name) != scorer.fingerprint or scorer.name not in record.scores:
            return None
    return [scorer.read(record.scores[scorer.name]) for scorer in scorers]


def score_calls(scorers: Sequence[Scorer], calls: Calls) -> ScoreTable:
    """Scores of all calls, by scorers that need not be awaited."""
    table = ScoreTable()
    for context, record in zip(calls.contexts, calls.records, strict=True):
        scored = stored_scores(scorers, record)
        if scored is None:
            table.n_other += _has_others(scorers, record)
            scored = [scorer.score(context) for scorer in scorers]
        table.add(scorers, scored)
    return table


async def ascore_calls(scorers: Sequence[Scorer], calls: Calls, concurrency: int) -> ScoreTable:
    """`score_calls` with up to so many calls at a time in the hands of the scorers."""
    table = ScoreTable()
    async for at, scored in _in_order(scorers, calls, concurrency):
        if stored_scores(scorers, calls.records[at]) is None:
            table.n_other += _has_others(scorers, calls.records[at])
        table.add(scorers, scored)
    return table


async def _in_order(
    scorers: Sequence[Scorer], calls: Calls, concurrency: int
) -> AsyncIterator[tuple[int, list[Scored]]]:
    import asyncio

    async def score(at: int) -> list[Scored]:
        stored = stored_scores(scorers, calls.records[at])
        return await ascore_all(scorers, calls.contexts[at]) if stored is None else stored

    for start in range(0, len(calls.contexts), concurrency):
        places = range(start, min(start + concurrency, len(calls.contexts)))
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(score(at)) for at in places]
        for at, task in zip(places, tasks, strict=True):
            yield at, task.result()


async def ascore_all(scorers: Sequence[Scorer], context: ToolCallContext) -> list[Scored]:
    """The scores of one call, all checks at the same time; a cancellation ends them all."""
    started = [scorer.start(context) for scorer in scorers]
    if sum(not isinstance(one, Scored) for one in started) < 2:
        return [await scorer.finish(one) for scorer, one in zip(scorers, started, strict=True)]
    return await _together(scorers, started)


async def _together(scorers: Sequence[Scorer], started: Sequence[Scored | Awaitable[Any]]) -> list[Scored]:
    import asyncio

    pairs = zip(scorers, started, strict=True)
    tasks = [asyncio.ensure_future(scorer.finish(one)) for scorer, one in pairs]
    try:
        return [*await asyncio.gather(*tasks)]
    finally:
        for task in tasks:
            task.cancel()


def _has_others(scorers: Sequence[Scorer], record: CallRecord | None) -> bool:
    """Whether scores under these names were stored that another scorer made, or one that is not known."""
    return record is not None and any(
        scorer.name in record.scores and record.fingerprints.get(scorer.name) != scorer.fingerprint
        for scorer in scorers
    )


def _entries(name: str, data: Any, cure: str) -> Iterable[Any]:
    if isinstance(data, str | bytes | Mapping | Set) or not isinstance(data, Iterable):
        raise TypeError(f"`{name}` must be an iterable of calls; got {type(data).__name__}. {cure}")
    return data


def _pair(name: str, entry: Any) -> tuple[ToolCallContext, bool]:
    if not isinstance(entry, tuple | list) or len(entry) != 2:
        raise TypeError(f"`{name}` must be a pair or a record; got {type(entry).__name__}. {_CURE}")
    context, outcome = entry
    _check_context(name, context, _CURE)
    if type(outcome) is not bool:
        outcome = bool(check_labels(f"{name}[1]", [outcome])[0])
    return context, outcome


def _check_context(name: str, context: Any, cure: str) -> None:
    if not isinstance(context, ToolCallContext):
        raise TypeError(f"`{name}` must hold a ToolCallContext; got {type(context).__name__}. {cure}")


def _append(calls: Calls, context: ToolCallContext, *, good: bool, record: CallRecord | None) -> None:
    calls.contexts.append(context)
    calls.good.append(good)
    calls.records.append(record)


def _refuse_repeated(calls: Calls) -> None:
    ids = [record.id for record in calls.known() if record.id is not None]
    if len(set(ids)) < len(ids):
        twice = next(number for at, number in enumerate(ids) if number in ids[:at])
        raise ValueError(
            f"`calibration_data` must hold each record once; got the record {twice} again. "
            "Leave out the copies: they count as evidence that is not there."
        )
