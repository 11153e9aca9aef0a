"""What a store holds, in numbers and in sentences about what is amiss."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from rag_confidence._history import GroupName
from rag_confidence.store.backend import Transaction
from rag_confidence.store.rows import microseconds, moment, scores_of
from rag_confidence.store.statements import Filter
from rag_confidence.store.stored_history import check_age

_COUNTS = """c.tool_name, c.group_name, l.outcome, l.labeling_source, COUNT(*), MIN(c.recorded_us),
    MAX(c.recorded_us), COUNT(c.recorded_us)"""
_BY = "GROUP BY c.tool_name, c.group_name, l.outcome, l.labeling_source"
_MADE_BY = "c.scores, c.fingerprints"
_STEPS = "c.recorded_us - LAG(c.recorded_us) OVER (ORDER BY c.id) AS step"
# Threads take the time before they queue; what a clock does is larger.
_BACKWARDS = -1_000_000


@dataclass(frozen=True)
class StoreSummary:
    """Counts of a store, or of the part that the conditions select.

    Attributes
    ----------
    n_calls, n_good, n_bad, n_unlabelled : int
    tools, groups, labeling_sources : mapping of name to count
        Groups and sources only where there are any.
    first, last : datetime or None
        Earliest and latest time of recording.
    n_untimed : int
        Calls whose time of recording is not known.
    scorers : mapping of str to mapping of str to int
        Check -> fingerprint -> how many scores; those of an unknown scorer stand under "".
    schema_version : int
    notes : tuple of str
        Sentences about old, few, unlabelled and mixed calls, and about times that cannot be.
    """

    n_calls: int
    n_good: int
    n_bad: int
    n_unlabelled: int
    tools: Mapping[str, int]
    groups: Mapping[GroupName, int]
    labeling_sources: Mapping[str, int]
    first: datetime | None
    last: datetime | None
    n_untimed: int
    scorers: Mapping[str, Mapping[str, int]]
    schema_version: int
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            **vars(self),
            "tools": dict(self.tools),
            "groups": {str(group): count for group, count in self.groups.items()},
            "labeling_sources": dict(self.labeling_sources),
            "first": None if self.first is None else self.first.isoformat(),
            "last": None if self.last is None else self.last.isoformat(),
            "scorers": {check: dict(counts) for check, counts in self.scorers.items()},
            "notes": [*self.notes],
        }


def summarize(
    transaction: Transaction,
    chosen: Filter,
    *,
    version: int,
    enough: int,
    max_age: timedelta,
    now: datetime | None,
) -> StoreSummary:
    """The summary of the calls that `chosen` selects, read in one transaction."""
    check_age(max_age)
    counts = transaction.rows(chosen.select(_COUNTS, tail=_BY), chosen.values)
    moments = [time for row in counts for time in row[5:7] if time is not None]
    now = now or datetime.now(UTC)
    tools, outcomes = _counted(counts, 0), _counted(counts, 2)
    n_calls = sum(tools.values())
    last = moment(max(moments, default=None))
    scorers = _scorers(transaction, chosen)
    notes = [
        *_notes_on_labels(outcomes, n_calls, enough),
        *_notes_on_scorers(scorers),
        *_notes_on_times(transaction, chosen, last=last, max_age=max_age, now=now),
    ]
    return StoreSummary(
        n_calls=n_calls,
        n_good=outcomes[1],
        n_bad=outcomes[0],
        n_unlabelled=n_calls - outcomes[1] - outcomes[0],
        tools=_sorted(tools),
        groups={json.loads(group): count for group, count in _sorted(_counted(counts, 1)).items()},
        labeling_sources=_sorted(_counted(counts, 3)),
        first=moment(min(moments, default=None)),
        last=last,
        n_untimed=n_calls - sum(row[7] for row in counts),
        scorers=scorers,
        schema_version=version,
        notes=tuple(notes),
    )


def _counted(rows: list[tuple[Any, ...]], place: int) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for row in rows:
        if row[place] is not None:
            found[row[place]] += row[4]
    return found


def _sorted(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items()))


def _scorers(transaction: Transaction, chosen: Filter) -> dict[str, dict[str, int]]:
    found: dict[str, Counter[str]] = {}
    for scores, fingerprints in transaction.stream(chosen.select(_MADE_BY), chosen.values):
        made_by = json.loads(fingerprints)
        for check in scores_of(scores):
            found.setdefault(check, Counter())[made_by.get(check, "")] += 1
    return {check: dict(found[check].most_common()) for check in sorted(found)}


def _notes_on_labels(outcomes: Counter[Any], n_calls: int, enough: int) -> list[str]:
    n_labelled = outcomes[0] + outcomes[1]
    notes = []
    if n_calls > n_labelled:
        notes.append(f"{n_calls - n_labelled} of {n_calls} calls have no label: they calibrate nothing yet.")
    if outcomes[1] < enough:
        notes.append(
            f"{outcomes[1]} good calls are fewer than {enough}: a threshold at level alpha needs at least "
            "1/alpha - 1 of them, and its true rate varies the less the more there are."
        )
    return notes


def _notes_on_scorers(scorers: Mapping[str, Mapping[str, int]]) -> list[str]:
    return [
        f"The scores of {check!r} were made by {len(made_by)} scorers: calibrate on one of them."
        for check, made_by in scorers.items()
        if len(made_by) > 1
    ]


def _notes_on_times(
    transaction: Transaction, chosen: Filter, *, last: datetime | None, max_age: timedelta, now: datetime
) -> list[str]:
    notes = []
    if last is not None and now - last > max_age:
        notes.append(f"The newest call is {(now - last).days} days old: calls may have changed since.")
    if last is not None and last > now:
        values = {**chosen.values, "now": microseconds(now)}
        condition = "AND" if chosen.where else "WHERE"
        sql = chosen.select("COUNT(*)", tail=f"{condition} c.recorded_us > :now")
        notes.append(
            f"{transaction.rows(sql, values)[0][0]} calls were recorded in the future: a clock is wrong."
        )
    sql = f"SELECT COUNT(*) FROM ({chosen.select(_STEPS)}) AS steps WHERE step < {_BACKWARDS}"
    ((backwards,),) = transaction.rows(sql, chosen.values)
    if backwards:
        notes.append(
            f"Time went backwards {backwards} times from one call to the next: a clock was set, or a log "
            "imported. Numbers still follow the order of recording."
        )
    return notes
