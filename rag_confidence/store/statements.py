"""Queries of the store, with the conditions that a caller may give."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypedDict

from rag_confidence._calls import CallRecord, check_moment, check_outcome
from rag_confidence._history import GroupName, check_group
from rag_confidence._options import check_flag, check_integer, check_text
from rag_confidence.store.rows import microseconds, plain_text, to_json
from rag_confidence.store.schema import CALLS, LABELS

# The label of a call is its latest one by sequence: clocks may go backwards.
_SOURCE = f"""FROM {CALLS} c LEFT JOIN {LABELS} l
    ON l.call_id = c.id AND l.seq = (SELECT MAX(m.seq) FROM {LABELS} m WHERE m.call_id = c.id)"""

_LEAST_ID, _MOST_ROWS = -1, 2**63 - 1

_CONDITIONS = {
    "tool_name": "c.tool_name = :tool_name",
    "group_name": "c.group_name = :group_name",
    "outcome": "l.outcome = :outcome",
    "labeling_source": "l.labeling_source = :labeling_source",
    "since": "c.recorded_us >= :since",
    "until": "c.recorded_us < :until",
    "after_id": "c.id > :after_id",
}


@dataclass(frozen=True)
class Filter:
    """Checked conditions: SQL with its values."""

    where: str = ""
    values: dict[str, Any] = field(default_factory=dict)
    limit: int | None = None

    def select(self, columns: str, *, tail: str = "") -> str:
        """A query of these columns; calls are `c` and their labels `l`."""
        return f"SELECT {columns} {_SOURCE} {self.where} {tail}"

    def in_order(self, columns: str) -> str:
        """The same in the order of recording, and limited."""
        limit = "" if self.limit is None else f" LIMIT {self.limit}"
        return self.select(columns, tail=f"ORDER BY c.id{limit}")


COLUMNS = """c.id, c.tool_name, c.context, c.scores, c.fingerprints, c.group_name, c.decision, c.calibrator,
    c.recorded_us, l.outcome, l.labeling_source, l.labeled_us"""


class Conditions(TypedDict, total=False):
    """What a caller may select calls by; None, as if not given, sets no condition."""

    tool_name: str | None
    group: GroupName | None
    outcome: bool | None
    labelled: bool | None
    labeling_source: str | None
    since: datetime | None
    until: datetime | None
    after_id: int | None
    limit: int | None


def filter_of(
    *,
    tool_name: str | None = None,
    group: GroupName | None = None,
    outcome: bool | None = None,
    labelled: bool | None = None,
    labeling_source: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    after_id: int | None = None,
    limit: int | None = None,
) -> Filter:
    """The conditions of `CalibrationStore.query`, checked; None sets no condition."""
    check_text("tool_name", tool_name)
    check_text("labeling_source", labeling_source)
    values = {
        "tool_name": plain_text("tool_name", tool_name),
        "group_name": None if group is None else to_json(check_group("group", group)),
        "outcome": None if outcome is None else int(check_outcome(outcome)),
        "labeling_source": plain_text("labeling_source", labeling_source),
        "since": microseconds(check_moment("since", since)),
        "until": microseconds(check_moment("until", until)),
        "after_id": None if after_id is None else _within("after_id", after_id, _LEAST_ID),
    }
    given = {name: value for name, value in values.items() if value is not None}
    parts = [_CONDITIONS[name] for name in given]
    if labelled is not None:
        parts.append("l.seq IS NOT NULL" if check_flag("labelled", labelled) else "l.seq IS NULL")
    return Filter(
        where=f"WHERE {' AND '.join(parts)}" if parts else "",
        values=given,
        limit=None if limit is None else _within("limit", limit, 0),
    )


def pages(
    query: Callable[..., list[CallRecord]], conditions: Mapping[str, Any], size: int = 1000
) -> Iterator[CallRecord]:
    """What a query finds, fetched `size` at a time, each time after the last number seen."""
    left, after = conditions.get("limit"), conditions.get("after_id")
    while left is None or left > 0:
        wanted = size if left is None else min(size, left)
        page = query(**{**conditions, "limit": wanted, "after_id": after})
        yield from page
        if len(page) < wanted:
            return
        after, left = page[-1].id, None if left is None else left - wanted


def _within(name: str, value: int, least: int) -> int:
    return min(check_integer(name, value, least), _MOST_ROWS)
