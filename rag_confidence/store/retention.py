"""Forgetting old calls, each with all its labels."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from rag_confidence._calls import check_moment
from rag_confidence._options import check_integer
from rag_confidence.store.backend import Transaction
from rag_confidence.store.rows import microseconds
from rag_confidence.store.schema import CALLS, LABELS

_OLD = f"SELECT id FROM {CALLS} WHERE recorded_us < :before"
_MANY = f"SELECT id FROM {CALLS} WHERE id <= (SELECT id FROM {CALLS} ORDER BY id DESC LIMIT 1 OFFSET :kept)"
_MOST = 2**63 - 1


def check_limits(
    older_than: timedelta | None, before: datetime | None, keep_last: int | None, now: datetime | None
) -> tuple[str, dict[str, int | None]]:
    """The calls to forget: SQL that selects their numbers, and its values."""
    given = [
        name
        for name, value in (("older_than", older_than), ("before", before), ("keep_last", keep_last))
        if value is not None
    ]
    if len(given) != 1:
        raise ValueError(
            f"`prune` must be given one of older_than, before and keep_last; got {given or 'none'}. "
            "Call it once for each rule."
        )
    if keep_last is not None:
        return _MANY, {"kept": min(check_integer("keep_last", keep_last, 0), _MOST)}
    if older_than is not None:
        age: Any = older_than
        if not isinstance(age, timedelta) or age < timedelta(0):
            raise ValueError(
                f"`older_than` must be a timedelta of at least 0; got {older_than!r}. "
                "Pass timedelta(days=365), for example."
            )
        before = _earlier(check_moment("now", now) or datetime.now(UTC), older_than)
    return _OLD, {"before": microseconds(check_moment("before", before))}


def _earlier(now: datetime, age: timedelta) -> datetime:
    """The time so long before now; no time lies before the year 1."""
    first = datetime.min.replace(tzinfo=UTC)
    return now - age if age < now - first else first


def forget(transaction: Transaction, chosen: str, values: dict[str, int | None]) -> int:
    """Delete the labels of the chosen calls, then the calls; how many calls."""
    transaction.run(f"DELETE FROM {LABELS} WHERE call_id IN ({chosen})", values)
    return transaction.run(f"DELETE FROM {CALLS} WHERE id IN ({chosen})", values)
