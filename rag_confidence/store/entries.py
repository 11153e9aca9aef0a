"""What a caller hands in becomes rows, checked whole before anything is queued."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from rag_confidence._calls import CallRecord, ToolCallContext, check_moment, check_outcome
from rag_confidence._options import check_integer
from rag_confidence.store.rows import call_row, label_row
from rag_confidence.store.unit_of_work import CallRow, LabelRow

_PAIR = "Pass CallRecords, or pairs such as (ToolCallContext(tool_name='search'), True)."


def record_entry(record: CallRecord, now: datetime) -> tuple[CallRow, LabelRow | None]:
    """The rows of a record; times that it lacks are `now`."""
    if not isinstance(record, CallRecord):
        raise TypeError(f"`record` must be a CallRecord; got {type(record).__name__}. {_PAIR}")
    call = call_row(record, recorded_at=record.recorded_at or now)
    if record.outcome is not None:
        return call, label_row(record.outcome, record.labeling_source, record.labeled_at or now)
    if record.labeling_source is not None or record.labeled_at is not None:
        raise ValueError(
            "`outcome` must be given with a labelling source or time; got None. "
            "Leave these out until the call is labelled."
        )
    return call, None


def entries_of_records(records: Any, now: datetime) -> list[tuple[CallRow, LabelRow | None]]:
    """The rows of records and pairs; the first that cannot be kept is named."""
    if isinstance(records, (str, bytes, CallRecord)) or not isinstance(records, Iterable):
        raise TypeError(f"`records` must be a list of records; got {type(records).__name__}. {_PAIR}")
    return [_named(at, entry, now) for at, entry in enumerate(records)]


def _named(at: int, entry: Any, now: datetime) -> tuple[CallRow, LabelRow | None]:
    try:
        return record_entry(_record(entry), now)
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(
            f"`records[{at}]` must be a call that can be kept; got one that cannot: "
            f"{str(error).rstrip('.')}. Nothing was written."
        ) from error


def _record(entry: Any) -> CallRecord:
    if isinstance(entry, CallRecord):
        return entry
    if isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], ToolCallContext):
        return CallRecord(context=entry[0], outcome=entry[1])
    raise TypeError(f"`record` must be a CallRecord or a pair; got {type(entry).__name__}. {_PAIR}")


def label_entry(
    call_id: Any, outcome: Any, labeling_source: Any, *, labeled_at: datetime | None
) -> tuple[int, LabelRow]:
    """The number of a call and the row of its label."""
    if not isinstance(labeling_source, str) or not labeling_source:
        raise TypeError(
            f"`labeling_source` must be a string that is not empty; got {labeling_source!r}. "
            "Pass LabelingSource.HUMAN, for example."
        )
    moment = check_moment("labeled_at", labeled_at) or datetime.now(UTC)
    number = check_integer("call_id", call_id, 1)
    return number, label_row(check_outcome(outcome), labeling_source, moment)


def entries_of_labels(
    labels: Any, labeling_source: Any, labeled_at: datetime | None
) -> list[tuple[int, LabelRow]]:
    """The same for many pairs of number and outcome; a mapping will do."""
    pairs = labels.items() if hasattr(labels, "items") else labels
    if isinstance(pairs, (str, bytes)) or not isinstance(pairs, Iterable):
        raise TypeError(
            f"`labels` must be pairs of number and outcome; got {type(labels).__name__}. Pass [(1, True)]."
        )
    moment = check_moment("labeled_at", labeled_at) or datetime.now(UTC)
    found = []
    for at, pair in enumerate(pairs):
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(f"`labels[{at}]` must be a number and an outcome; got {pair!r}. Pass (1, True).")
        found.append(label_entry(*pair, labeling_source, labeled_at=moment))
    return found
