"""One check of many recorded calls as columns, for gates, audits and monitors."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from rag_confidence._history import GroupName
from rag_confidence._types import FloatArray, IntArray, Mask, Provenance
from rag_confidence.errors import (
    CalibrationRefused,
    MixedScorersWarning,
    StaleCalibrationWarning,
    warn_caller,
)
from rag_confidence.store.backend import Row
from rag_confidence.store.rows import moment, scores_of

COLUMNS = """c.id, c.scores, c.fingerprints, c.group_name, c.recorded_us, l.outcome, l.labeling_source"""


@dataclass(frozen=True)
class StoredHistory:
    """The labelled scores of one check, in the order of recording.

    Attributes
    ----------
    scores : ndarray, shape (n,), float64
        As stored: high is good for a KPI, high is strange for a check of tool calls; +inf where it failed.
    labels : ndarray, shape (n,), bool
        True where the retrieval was sufficient, or the call good.
    groups : tuple of (str, int or None), or None
        The group of each row; None where no row has one.
    row_ids : ndarray, shape (n,), int64
        Number of each call in the store.
    collected : tuple of str, or None
        First and last day of recording; None where that is not known of every row.
    labeling_source : str or None
        Who or what labelled, several joined by " + "; None where that is not known of every row.
    provenance : Provenance or None
        How the scores of a retrieval log were made; None for others, and for scores made in several ways.
    fingerprints : mapping of str to int
        How many rows each scorer made; those of an unknown one stand under "".
    n_unlabelled, n_without : int
        Calls that were left out: scored by this check but without a label; labelled but without this score.
    """

    scores: FloatArray
    labels: Mask
    groups: tuple[GroupName | None, ...] | None
    row_ids: IntArray
    collected: tuple[str, str] | None
    labeling_source: str | None
    provenance: Provenance | None
    fingerprints: dict[str, int]
    n_unlabelled: int
    n_without: int

    def __len__(self) -> int:
        return len(self.scores)


@dataclass
class _Columns:
    """What is gathered row by row."""

    scores: list[float]
    labels: list[bool]
    groups: list[GroupName | None]
    numbers: list[int]
    times: list[int | None]
    sources: list[str | None]
    made_by: list[str]


def history_of(
    rows: Iterator[Row],
    check: str,
    *,
    fingerprint: str | None,
    max_age: timedelta,
    now: datetime | None,
    strict: bool,
) -> StoredHistory:
    """The columns of one check; see `CalibrationStore.history`."""
    check_age(max_age)
    columns = _Columns([], [], [], [], [], [], [])
    n_unlabelled = n_without = 0
    for number, scores, fingerprints, group, recorded, outcome, source in rows:
        score = scores_of(scores).get(check)
        made_by = json.loads(fingerprints).get(check, "")
        if score is None:
            n_without += outcome is not None
        elif fingerprint is not None and made_by != fingerprint:
            continue
        elif outcome is None:
            n_unlabelled += 1
        else:
            columns.scores.append(score)
            columns.labels.append(bool(outcome))
            columns.groups.append(None if group is None else json.loads(group))
            columns.numbers.append(number)
            columns.times.append(recorded)
            columns.sources.append(source)
            columns.made_by.append(made_by)
    _refuse_mixed(check, Counter(columns.made_by), strict=strict)
    _warn_of_age(check, columns.times, max_age, now)
    return _history(columns, n_unlabelled, n_without)


def _history(columns: _Columns, n_unlabelled: int, n_without: int) -> StoredHistory:
    grouped = any(group is not None for group in columns.groups)
    return StoredHistory(
        scores=np.array(columns.scores, dtype=np.float64),
        labels=np.array(columns.labels, dtype=bool),
        groups=tuple(columns.groups) if grouped else None,
        row_ids=np.array(columns.numbers, dtype=np.int64),
        collected=_days(columns.times),
        labeling_source=_sources(columns.sources),
        provenance=provenance_of({*columns.made_by}),
        fingerprints=dict(Counter(columns.made_by)),
        n_unlabelled=n_unlabelled,
        n_without=n_without,
    )


def check_age(max_age: Any) -> None:
    """Refuse what is no length of time; `timedelta.max` is the one that never warns."""
    if not isinstance(max_age, timedelta):
        raise TypeError(f"`max_age` must be a timedelta; got {max_age!r:.80}. Pass timedelta(days=90).")


def provenance_of(fingerprints: set[str]) -> Provenance | None:
    """The provenance that is the fingerprint of the scores of a retrieval log, if there is only one."""
    if len(fingerprints) != 1:
        return None
    try:
        return Provenance(**json.loads(fingerprints.pop()))
    except (ValueError, TypeError):
        # The fingerprint of a scorer of tool calls is no JSON.
        return None


def _refuse_mixed(check: str, made_by: Counter[str], *, strict: bool) -> None:
    if len(made_by) < 2:
        return
    (most, count), *_ = made_by.most_common()
    message = (
        f"The scores of {check!r} were made by {len(made_by)} scorers ({count} of {made_by.total()} rows by "
        f"{most or 'an unknown one'!r}): they are not of one kind, and no provenance is claimed for them. "
        "Choose one with fingerprint=..., or score the calls again."
    )
    if strict:
        raise CalibrationRefused(
            f"`history` must hold scores of one scorer; got {len(made_by)} of them. {message}"
        )
    warn_caller(message, MixedScorersWarning)


def _warn_of_age(check: str, times: list[int | None], max_age: timedelta, now: datetime | None) -> None:
    known = [time for time in times if time is not None]
    newest = moment(max(known)) if known else None
    if newest is None:
        return
    age = (now or datetime.now(UTC)) - newest
    if age > max_age:
        warn_caller(
            f"The newest labelled call with a score of {check!r} is {age.days} days old (recorded on "
            f"{newest.date()}): calls may have changed since. Label some of late.",
            StaleCalibrationWarning,
        )


def _days(times: list[int | None]) -> tuple[str, str] | None:
    known = [time for time in times if time is not None]
    if not known or len(known) < len(times):
        return None
    first, last = moment(min(known)), moment(max(known))
    return (str(first.date()), str(last.date())) if first and last else None


def _sources(sources: list[str | None]) -> str | None:
    known = sorted({source for source in sources if source is not None})
    return " + ".join(known) if known and None not in sources else None
