"""A store as one file, JSONL or Parquet: all of it or nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any, TypeAlias

from rag_confidence._artefact import encode_float, whole_file
from rag_confidence._calls import CallRecord
from rag_confidence._optional import require
from rag_confidence.store.backend import Transaction
from rag_confidence.store.rows import context_text, record_of, scores_of
from rag_confidence.store.schema import META
from rag_confidence.store.statements import COLUMNS, Filter

FORMAT = "rag_confidence_call"
_STORE = f"SELECT value FROM {META} WHERE name = 'store'"
_ROWS_A_GROUP = 10_000

Writer: TypeAlias = Callable[[IO[bytes], Transaction, Filter], int]


def writer_for(path: str | os.PathLike[str]) -> Writer:
    """What writes a file of this name; other endings than .jsonl and .parquet are refused."""
    ending = Path(path).suffix.lower()
    if ending not in _WRITERS:
        raise ValueError(
            f"`path` must end in {' or '.join(_WRITERS)}; got {os.fspath(path)!r}. Name the format."
        )
    if ending == ".parquet":
        require("pyarrow", extra="parquet")
    return _WRITERS[ending]


def export(path: str | os.PathLike[str], write: Writer, transaction: Transaction, chosen: Filter) -> int:
    """Write the chosen calls to `path`, which appears only when all of it is written; how many."""
    with whole_file(path) as file:
        return write(file, transaction, chosen)


def _records(transaction: Transaction, chosen: Filter) -> Iterator[tuple[str, CallRecord]]:
    """Each call with the name that it has in every store that it is copied to."""
    ((store,),) = transaction.rows(_STORE)
    for uid, *row in transaction.stream(chosen.in_order(f"c.uid, {COLUMNS}"), chosen.values):
        record = record_of(tuple(row))
        yield uid or f"{store}:{record.id}", record


def _write_jsonl(file: IO[bytes], transaction: Transaction, chosen: Filter) -> int:
    count = 0
    for uid, record in _records(transaction, chosen):
        line = {"format": FORMAT, "uid": uid, **plain(record)}
        file.write(f"{json.dumps(line, allow_nan=False)}\n".encode("ascii"))
        count += 1
    return count


def plain(record: CallRecord) -> dict[str, Any]:
    """A record as values of JSON; infinite scores are "inf"."""
    return {
        "id": record.id,
        "tool_name": record.context.tool_name,
        "context": json.loads(context_text(record.context)),
        "outcome": record.outcome,
        "labeling_source": record.labeling_source,
        "scores": {name: encode_float(score) for name, score in record.scores.items()},
        "fingerprints": dict(record.fingerprints),
        "group": record.group,
        "decision": None if record.decision is None else record.decision.value,
        "calibrator": record.calibrator,
        "recorded_at": None if record.recorded_at is None else record.recorded_at.isoformat(),
        "labeled_at": None if record.labeled_at is None else record.labeled_at.isoformat(),
    }


def _write_parquet(file: IO[bytes], transaction: Transaction, chosen: Filter) -> int:
    arrow, parquet = (require(name, extra="parquet") for name in ("pyarrow", "pyarrow.parquet"))
    checks = _checks(transaction, chosen)
    schema = _parquet_schema(arrow, checks)
    count = 0
    with parquet.ParquetWriter(file, schema) as writer:
        for batch in _batches(_records(transaction, chosen)):
            columns = [_parquet_row(uid, record, checks) for uid, record in batch]
            writer.write_table(arrow.Table.from_pylist(columns, schema=schema))
            count += len(batch)
    return count


def _checks(transaction: Transaction, chosen: Filter) -> tuple[str, ...]:
    found: set[str] = set()
    for (scores,) in transaction.stream(chosen.in_order("c.scores"), chosen.values):
        found.update(scores_of(scores))
    return tuple(sorted(found))


def _parquet_schema(arrow: Any, checks: tuple[str, ...]) -> Any:
    text, time = arrow.string(), arrow.timestamp("us", tz="UTC")
    columns = {"id": arrow.int64(), "uid": text, "tool_name": text, "context": text}
    columns |= {"outcome": arrow.bool_(), "labeling_source": text, "group": text, "decision": text}
    columns |= {"calibrator": text, "recorded_at": time, "labeled_at": time, "fingerprints": text}
    columns |= {_column(check): arrow.float64() for check in checks}
    return arrow.schema(list(columns.items()))


def _parquet_row(uid: str, record: CallRecord, checks: tuple[str, ...]) -> dict[str, Any]:
    row = plain(record) | {"uid": uid, "recorded_at": record.recorded_at, "labeled_at": record.labeled_at}
    for name in ("context", "fingerprints", "group"):
        row[name] = None if row[name] is None else json.dumps(row[name])
    return row | {_column(check): record.scores.get(check) for check in checks}


def _column(check: str) -> str:
    """The name of a check as that of a column, for which it must be Unicode."""
    return f"scores.{check}".encode("utf-8", "backslashreplace").decode("utf-8")


def _batches(entries: Iterable[tuple[str, CallRecord]]) -> Iterator[list[tuple[str, CallRecord]]]:
    iterator = iter(entries)
    while batch := list(islice(iterator, _ROWS_A_GROUP)):
        yield batch


_WRITERS: dict[str, Writer] = {".jsonl": _write_jsonl, ".parquet": _write_parquet}
