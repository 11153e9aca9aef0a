"""Calls become scores here: those stored with them where the same scorers made them, or made again."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rag_confidence._calls import CallRecord, ToolCallContext
from rag_confidence._types import FloatArray
from rag_confidence.guard.reading import Calls
from rag_confidence.guard.scorers import Column, Scored, Scorer


@dataclass(frozen=True)
class ScoreTable:
    """Scores of calls, and what went wrong while they were made.

    Attributes
    ----------
    rows : ndarray, shape (n, K)
        +inf where a check failed.
    failures : dict
        Scorer -> how many calls it failed on, and what happened at one of them.
    n_other : int
        Calls with stored scores of other scorers, which were not used.
    """

    rows: FloatArray
    failures: dict[str, tuple[int, str]]
    n_other: int


def score_calls(scorers: Sequence[Scorer], calls: Calls) -> ScoreTable:
    """Scores of all calls, by scorers that need not be awaited."""
    split = _split(scorers, calls)
    return _table(scorers, split, [scorer.score_many(split.contexts) for scorer in scorers])


async def ascore_calls(scorers: Sequence[Scorer], calls: Calls, concurrency: int) -> ScoreTable:
    """`score_calls` with up to so many calls at a time in the hands of the scorers."""
    split = _split(scorers, calls)
    rows = await _in_turn(scorers, split.contexts, concurrency)
    return _table(scorers, split, [_column(row[check] for row in rows) for check in range(len(scorers))])


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


async def _in_turn(
    scorers: Sequence[Scorer], contexts: Sequence[ToolCallContext], concurrency: int
) -> list[list[Scored]]:
    import asyncio

    rows: list[list[Scored]] = []
    for start in range(0, len(contexts), concurrency):
        async with asyncio.TaskGroup() as group:
            together = contexts[start : start + concurrency]
            tasks = [group.create_task(ascore_all(scorers, context)) for context in together]
        rows += [task.result() for task in tasks]
    return rows


@dataclass(frozen=True)
class _Split:
    """Calls whose stored scores are used, and those that are scored again."""

    stored: dict[int, list[Scored]]
    fresh: list[int] | slice
    contexts: list[ToolCallContext]
    n: int
    n_other: int


def _split(scorers: Sequence[Scorer], calls: Calls) -> _Split:
    n = len(calls.contexts)
    if not calls.records:
        return _Split({}, slice(None), calls.contexts, n, 0)
    read = {at: _stored(scorers, record) for at, record in calls.records.items()}
    stored = {at: scored for at, scored in read.items() if scored is not None}
    n_other = sum(_has_others(scorers, calls.records[at]) for at in read if at not in stored)
    fresh = [at for at in range(n) if at not in stored]
    return _Split(stored, fresh, [calls.contexts[at] for at in fresh], n, n_other)


def _stored(scorers: Sequence[Scorer], record: CallRecord) -> list[Scored] | None:
    """The scores that came with a call, if each was made by the scorer in use."""
    for scorer in scorers:
        if scorer.name not in record.scores or _is_other(scorer, record):
            return None
    return [scorer.read(record.scores[scorer.name]) for scorer in scorers]


def _has_others(scorers: Sequence[Scorer], record: CallRecord) -> bool:
    """Whether scores under these names were made by another scorer, or by one that is not known."""
    return any(scorer.name in record.scores and _is_other(scorer, record) for scorer in scorers)


def _is_other(scorer: Scorer, record: CallRecord) -> bool:
    return record.fingerprints.get(scorer.name) != scorer.fingerprint


def _table(scorers: Sequence[Scorer], split: _Split, fresh: Sequence[Column]) -> ScoreTable:
    rows = np.empty((split.n, len(scorers)))
    failures: dict[str, tuple[int, str]] = {}
    places = [*split.stored]
    for check, scorer in enumerate(scorers):
        old = _column(scored[check] for scored in split.stored.values())
        rows[split.fresh, check], rows[places, check] = fresh[check].values, old.values
        error = fresh[check].error or old.error
        if error is not None:
            failures[scorer.name] = fresh[check].n_failed + old.n_failed, error
    return ScoreTable(rows, failures, split.n_other)


def _column(scored: Iterable[Scored]) -> Column:
    entries = [*scored]
    errors = [one.error for one in entries if one.error is not None]
    return Column([one.value for one in entries], len(errors), errors[0] if errors else None)
