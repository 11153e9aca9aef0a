"""A log in JSONL becomes calls of the store: all of it in one transaction, or nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from rag_confidence._calls import CallRecord
from rag_confidence.store.log_lines import Keys, record_of_line
from rag_confidence.store.rows import call_row, label_row
from rag_confidence.store.schema import CALLS, LABELS, META
from rag_confidence.store.sqlite_handles import HANDLES
from rag_confidence.store.unit_of_work import CallRow, LabelRow, UnitOfWork

OnError: TypeAlias = Literal["raise", "skip"]

_ROWS_A_FLUSH = 1000
# What reading a value of an unexpected type or size can raise.
_UNREADABLE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
_IS_NUMBER = re.compile(r"[0-9]{1,18}")
_STORE = f"SELECT value FROM {META} WHERE name = 'store'"
_KNOWN = f"""SELECT c.id, EXISTS (SELECT 1 FROM {LABELS} l WHERE l.call_id = c.id)
    FROM {CALLS} c WHERE c.uid = :uid OR c.id = :id"""


@dataclass(frozen=True)
class ImportReport:
    """What an import did.

    Attributes
    ----------
    ids : tuple of int
        Numbers of the calls that were added, in the order of their lines.
    n_known : int
        Lines whose call was in the store already.
    n_labelled : int
        Of those, how many got from their line the label that they lacked.
    skipped : tuple of (int, str)
        Lines that could not be read, counted from 1, with the reason; only with ``on_error="skip"``.
    """

    ids: tuple[int, ...]
    n_known: int
    n_labelled: int
    skipped: tuple[tuple[int, str], ...]

    @property
    def n_added(self) -> int:
        """How many calls were added."""
        return len(self.ids)


@dataclass(frozen=True)
class _Line:
    """A line that can be kept: its name if it has one, its call and its label."""

    uid: str | None
    call: CallRow
    label: LabelRow | None


class Import:
    """One file on its way into a transaction."""

    def __init__(self, path: str | os.PathLike[str], keys: Keys, on_error: OnError) -> None:
        self._path, self._keys, self._on_error = _check_path(path), keys, on_error
        self._ids: list[int] = []
        self._skipped: list[tuple[int, str]] = []
        self._n_known = self._n_labelled = 0

    def run(self, work: UnitOfWork) -> ImportReport:
        """Add every line; an error leaves the transaction to its end, which keeps nothing."""
        ((store,),) = work.transaction.rows(_STORE)
        seen: set[str] = set()
        for line in self._lines():
            if line.uid in seen or self._is_known(work, store, line):
                self._n_known += 1
                continue
            self._ids.append(work.add(line.call, line.label))
            if line.uid is not None:
                seen.add(line.uid)
            if len(self._ids) % _ROWS_A_FLUSH == 0:
                work.flush()
        return ImportReport(tuple(self._ids), self._n_known, self._n_labelled, tuple(self._skipped))

    def _is_known(self, work: UnitOfWork, store: str, line: _Line) -> bool:
        """Whether the store has this call; if it lacks a label that the line has, it gets that."""
        if line.uid is None:
            return False
        origin, _, number = line.uid.partition(":")
        own = int(number) if origin == store and _IS_NUMBER.fullmatch(number) else -1
        found = work.transaction.rows(_KNOWN, {"uid": line.uid, "id": own})
        if found and line.label is not None and not found[0][1]:
            work.label(found[0][0], line.label)
            self._n_labelled += 1
        return bool(found)

    def _lines(self) -> Iterator[_Line]:
        with open(self._path, "rb") as file:
            for number, raw in enumerate(file, start=1):
                if raw.strip() and (found := self._read(number, raw)) is not None:
                    yield found

    def _read(self, number: int, raw: bytes) -> _Line | None:
        try:
            return _line(*record_of_line(raw.decode("utf-8"), self._keys))
        except _UNREADABLE as error:
            if self._on_error == "skip":
                self._skipped.append((number, str(error)))
                return None
            raise ValueError(
                f"`path` must hold a log in JSONL; got line {number}: {str(error).rstrip('.')}. "
                'Nothing was imported. Mend the line, or pass on_error="skip".'
            ) from error


def _check_path(path: Any) -> str | os.PathLike[str]:
    """Refuse what is no path, such as the number of an open file, and a store that is open here."""
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"`path` must be a path; got {path!r:.80}. Name a file, such as log.jsonl.")
    if HANDLES.is_open(path):
        raise ValueError(
            f"`path` must be a log in JSONL; got {os.fspath(path)!r}, a store that is open. Export it first."
        )
    return path


def _line(uid: str | None, record: CallRecord) -> _Line:
    # What a log does not say is not known: the time of the import is not that of the call.
    label = None
    if record.outcome is not None:
        label = label_row(record.outcome, record.labeling_source, record.labeled_at)
    return _Line(uid, call_row(record, recorded_at=record.recorded_at, uid=uid), label)
