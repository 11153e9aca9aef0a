"""Files of rows: JSON lines, JSON, Parquet and NumPy archives, read into columns by name."""

from __future__ import annotations

import io
import json
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from rag_confidence._optional import require

STDIN = Path("-")
LINES = (".jsonl", ".ndjson")
ENDINGS = (*LINES, ".json", ".parquet", ".npz")
MISSING = object()


@dataclass(frozen=True)
class Rows:
    """Rows of one file.

    Attributes
    ----------
    name : str
        What errors call the file.
    records : sequence of mapping, or None
        One object a row, for what is written in JSON.
    arrays : mapping, or None
        Columns, for what is stored in columns.
    numbers : sequence of int, or None
        The line of each row in a file of JSON lines.
    """

    name: str
    records: Sequence[dict[str, Any]] | None = None
    arrays: dict[str, Any] | None = None
    numbers: Sequence[int] | None = None

    def place(self, row: int) -> str:
        """Where a row stands, for people: lines count from 1, rows from 0."""
        return f"{self.name} row {row}" if self.numbers is None else f"{self.name} line {self.numbers[row]}"

    def has(self, column: str) -> bool:
        """Whether any row has this column."""
        if self.arrays is not None:
            return column in self.arrays
        return any(_value(record, column) is not MISSING for record in self.records or ())

    def column(self, name: str) -> list[Any]:
        """The values of a column, one a row; a row of JSON without it is refused by its line."""
        if self.arrays is not None:
            if name not in self.arrays:
                self._refuse_column(name, [*self.arrays], self.name)
            values = self.arrays[name]
            if np.ndim(values) == 0:
                raise ValueError(
                    f"`{name}` must have one value a row; got a single value in {self.name}. Write an array."
                )
            return list(values.tolist() if isinstance(values, np.ndarray) else values)
        found = [_value(record, name) for record in self.records or ()]
        for row, value in enumerate(found):
            if value is MISSING:
                self._refuse_column(name, [*(self.records or ())[row]], self.place(row))
        return found

    def optional(self, name: str | None) -> list[Any] | None:
        """The values of a column, None where it is missing; None if no row has it or none is named."""
        if name is None or not self.has(name):
            return None
        if self.arrays is not None:
            return self.column(name)
        return [_or_none(_value(record, name)) for record in self.records or ()]

    def __len__(self) -> int:
        if self.records is not None:
            return len(self.records)
        return min((len(column) for column in (self.arrays or {}).values() if np.ndim(column)), default=0)

    def _refuse_column(self, name: str, present: Sequence[str], place: str) -> NoReturn:
        raise ValueError(
            f"`{place}` must have the column {name!r}; got {_shown(present)}. Name the column by its option."
        )


def check_lengths(name: str, columns: Mapping[str, Sized | None]) -> None:
    """Refuse columns of a file that belong together and differ in length: an archive may hold any."""
    lengths = {column: len(values) for column, values in columns.items() if values is not None}
    if len({*lengths.values()}) > 1:
        raise ValueError(f"`{name}` must hold columns of one length; got {lengths}. Write one value a row.")


def read_rows(path: Path) -> Rows:
    """The rows of a file, by the ending of its name; `-` is standard input.

    Raises
    ------
    OSError, ValueError
        For what cannot be read, naming the file and the line.
    """
    if path == STDIN:
        return _lines("standard input", _standard_input())
    ending = path.suffix.lower()
    if ending in LINES:
        with path.open(encoding="utf-8-sig") as file:
            return _lines(str(path), file)
    readers = {".json": _document, ".parquet": _parquet, ".npz": _archive}
    if ending not in readers:
        raise ValueError(f"`{path}` must end in {', '.join(ENDINGS)}; got {ending!r}. Name the format.")
    return readers[ending](path)


def _standard_input() -> Iterator[str]:
    """Lines of standard input, read as strictly as those of a file."""
    stream: Any = sys.stdin
    if stream is None:
        raise OSError("standard input is closed")
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(encoding="utf-8-sig", errors="strict")
    return iter(stream)


def _lines(name: str, file: Iterator[str]) -> Rows:
    records, numbers = [], []
    for number, record in _objects(name, file):
        records.append(record)
        numbers.append(number)
    return Rows(name, records=records, numbers=numbers)


def _objects(name: str, file: Iterator[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    number = 0
    try:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield number, _object(f"{name} line {number}", line)
    except UnicodeDecodeError as problem:
        raise ValueError(
            f"`{name}` must be UTF-8; got {problem} after line {number}. Encode it."
        ) from problem


def _object(place: str, text: str) -> dict[str, Any]:
    record = parse(place, text)
    if not isinstance(record, dict):
        raise ValueError(
            f"`{place}` must be one JSON object; got {type(record).__name__}. Write an object on each line."
        )
    return record


def parse(place: str, text: str) -> Any:
    """A text of JSON as Python reads it; nan and infinities, which are no JSON, are refused."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as problem:
        raise ValueError(f"`{place}` must be JSON; got {problem}. Write one value of JSON.") from problem


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"the number {word}, which JSON lacks")


def read_json(path: Path) -> Any:
    """The contents of a file of JSON."""
    try:
        return parse(str(path), path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as problem:
        raise ValueError(f"`{path}` must be UTF-8; got {problem}. Encode it.") from problem


def _document(path: Path) -> Rows:
    found = read_json(path)
    if isinstance(found, dict) and all(isinstance(column, list) for column in found.values()):
        check_lengths(str(path), found)
        return Rows(str(path), arrays=found)
    if not isinstance(found, list) or not all(isinstance(record, dict) for record in found):
        raise ValueError(
            f"`{path}` must hold a list of objects, or an object of lists; got something else. "
            "Write one object a row."
        )
    return Rows(str(path), records=found)


def _parquet(path: Path) -> Rows:
    pyarrow, parquet = (require(name, extra="parquet") for name in ("pyarrow", "pyarrow.parquet"))
    with path.open("rb") as file:
        try:
            found = parquet.read_table(file)
        except (pyarrow.ArrowException, OSError) as problem:
            raise ValueError(f"`{path}` must be a Parquet file; got {problem}. Write it again.") from problem
    return Rows(str(path), arrays={name: found[name].to_pylist() for name in found.column_names})


def _archive(path: Path) -> Rows:
    with path.open("rb") as file:
        try:
            with np.load(file, allow_pickle=False) as archive:
                return Rows(str(path), arrays={name: archive[name] for name in archive.files})
        except (ValueError, TypeError, EOFError, AttributeError, zipfile.BadZipFile) as problem:
            raise ValueError(
                f"`{path}` must be a NumPy archive of plain arrays; got {problem}. Write it with numpy.savez."
            ) from problem


def _value(record: dict[str, Any], name: str) -> Any:
    """The value under a name; `a.b` is also looked up as b inside of a."""
    if name in record:
        return record[name]
    outer, dot, inner = name.partition(".")
    if dot and isinstance(record.get(outer), dict):
        return _value(record[outer], inner)
    return MISSING


def _or_none(value: Any) -> Any:
    return None if value is MISSING else value


def _shown(names: Sequence[str]) -> str:
    listed = ", ".join(map(repr, names[:8])) or "none"
    return f"{listed}, ..." if len(names) > 8 else listed
