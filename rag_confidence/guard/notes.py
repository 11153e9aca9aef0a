"""What is odd about a calibration: sentences for the caller, each with the category it warns under."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, time, timedelta
from typing import NamedTuple

import numpy as np

from rag_confidence._types import Decision, FloatArray
from rag_confidence.conformal.history import History
from rag_confidence.conformal.quantile import least_rank
from rag_confidence.errors import (
    CalibrationRefused,
    MixedScorersWarning,
    SelectedCallsWarning,
    SmallCalibrationWarning,
    StaleCalibrationWarning,
    TiedScoresWarning,
    warn_caller,
)
from rag_confidence.guard.guarantee import Basis
from rag_confidence.guard.reading import Calls
from rag_confidence.guard.scorers import Scorer
from rag_confidence.guard.scoring import ScoreTable
from rag_confidence.guard.thresholds import Thresholds


class Note(NamedTuple):
    """One sentence, and the category of the warning; None for what is only written down."""

    text: str
    category: type[Warning] | None = None


def tell(notes: Sequence[Note], *, strict: bool) -> None:
    """Warn of each note that has a category, or raise the first of them."""
    for text, category in notes:
        if category is not None and strict:
            raise CalibrationRefused(text)
        if category is not None:
            warn_caller(text, category)


def notes_of_calls(calls: Calls, table: ScoreTable) -> Iterator[Note]:
    """What the calls and their scores are like, whatever the level."""
    if calls.n_unlabelled:
        yield Note(f"{calls.n_unlabelled} records without an outcome were left out.")
    shared = _repeated_call_ids(calls)
    if shared:
        yield Note(
            f"{shared} calls have the call id of another one. If they are retries of one call, they count as "
            "more evidence than they are."
        )
    if table.n_other:
        yield Note(
            f"{table.n_other} calls carry scores of other scorers than these, or of scorers that are not "
            "recorded; they were scored again.",
            MixedScorersWarning,
        )
    for name, (count, first) in table.failures.items():
        yield Note(f"{name} failed on {count} of {len(table.rows)} calls, which count as +inf: {first}.")
    yield from _selected(calls)


def _repeated_call_ids(calls: Calls) -> int:
    ids = [context.call_id for context in calls.contexts]
    named = len(ids) - ids.count(None)
    return named - len({*ids} - {None})


def _selected(calls: Calls) -> Iterator[Note]:
    """A guard that learns from what it let through lets ever less through."""
    decided = [record.decision for record in calls.records.values() if record.decision is not None]
    if decided and 2 * len(decided) >= len(calls.good) and set(decided) == {Decision.ACCEPT}:
        yield Note(
            f"All {len(decided)} calls of which a decision is recorded were accepted by a guard. Calls that "
            "it stopped are missing, so the new threshold will be too low and shut out good calls, more with "
            "every round. Label a sample of the stopped calls too.",
            SelectedCallsWarning,
        )


def notes_of_age(calls: Calls, history: History, max_age: timedelta | None, now: datetime) -> Iterator[Note]:
    """Whether the newest call is old, or from the future."""
    if max_age is None:
        return
    times = [record.recorded_at for record in calls.records.values() if record.recorded_at is not None]
    ahead = sum(moment > now for moment in times)
    if ahead:
        yield Note(f"{ahead} calls were recorded later than now: a clock is wrong.")
    newest = _newest(times, history)
    if newest is None:
        yield Note("When the calls were made is not recorded, so their age is not known.")
    elif now - newest > max_age:
        yield Note(
            f"The newest call is of {newest.date().isoformat()}, {(now - newest).days} days ago. Calls may "
            "have changed since: calibrate on newer ones.",
            StaleCalibrationWarning,
        )


def _newest(times: Sequence[datetime], history: History) -> datetime | None:
    if times:
        return max(times)
    if history.collected is None:
        return None
    return datetime.combine(datetime.fromisoformat(history.collected[1]), time.max, UTC)


def notes_of_levels(
    basis: Basis,
    thresholds: Thresholds,
    *,
    good: FloatArray,
    scorers: Sequence[Scorer],
    sentence: str,
) -> Iterator[Note]:
    """What is odd at these levels: too few calls, or scores so tied that nothing is stopped."""
    if not thresholds.complete:
        yield Note(sentence, SmallCalibrationWarning)
    if math.isinf(thresholds.good_to):
        return
    finite = good[np.isfinite(good)]
    above = int(np.count_nonzero(finite > thresholds.good_to))
    if not basis.ranked and thresholds.good_to >= max(scorer.high for scorer in scorers):
        yield Note(
            f"The threshold {thresholds.good_to:g} is the largest score there is: good calls reach it too "
            "often, and no call is stopped but one that cannot be scored. Use a finer scorer.",
            TiedScoresWarning,
        )
    elif (
        not above and least_rank(len(good), basis.level) < len(finite) and not _least(finite, scorers, basis)
    ):
        tied = int(np.count_nonzero(finite == thresholds.good_to))
        yield Note(
            f"{tied} of {len(finite)} scored good calls share the largest score, {thresholds.good_to:g}, "
            "which is the threshold: only a call stranger than all of them is stopped. Use a finer scorer.",
            TiedScoresWarning,
        )


def _least(finite: FloatArray, scorers: Sequence[Scorer], basis: Basis) -> bool:
    """Whether all good calls have the least score there is, so that any other is above the threshold."""
    return not basis.ranked and bool(finite[-1] == max(scorer.low for scorer in scorers))
