"""Opening, closing and reading a file takes away no lock that SQLite has on it in this process."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from refusals import refuse

from rag_confidence._calls import ToolCallContext
from rag_confidence.errors import StoreError
from rag_confidence.store import CalibrationStore
from rag_confidence.store.sqlite_handles import HANDLES, Handles

# Whether another process could lock the bytes that SQLite locks while a database is open.
PROBE = """
import fcntl, sys
with open(sys.argv[1], "r+b") as file:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 510, 0x40000002)
    except OSError:
        print("locked")
    else:
        print("free")
"""


def state(path: Path) -> str:
    """What another process finds."""
    found = subprocess.run(
        [sys.executable, "-S", "-c", PROBE, path], capture_output=True, text=True, check=True
    )
    return found.stdout.strip()


def test_a_second_store_of_a_file_leaves_the_locks_of_the_first(tmp_path: Path) -> None:
    """Otherwise another process removes the log of the first, with all that was committed to it."""
    path = tmp_path / "calls.db"
    with CalibrationStore(path) as first:
        first.add(ToolCallContext("search"))
        CalibrationStore(path).close()
        assert state(path) == "locked"
    assert state(path) == "free"


def test_a_refused_file_keeps_the_locks_of_its_own_program(tmp_path: Path) -> None:
    """A database of another part of the process is not harmed by being taken for a store."""
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (a)")
        refuse(StoreError, "another program", lambda: CalibrationStore(path))
        assert state(path) == "locked"


def test_an_open_store_is_not_read_as_a_log(tmp_path: Path) -> None:
    """Reading it would end with closing it, and that with its locks."""
    path = tmp_path / "calls.db"
    with CalibrationStore(path) as store:
        store.add(ToolCallContext("search"))
        refuse(
            ValueError,
            "`path` must be a log in JSONL; got .* a store that is open",
            lambda: store.import_jsonl(path),
        )
        assert state(path) == "locked"


def test_handles_are_closed_with_the_last_store(tmp_path: Path) -> None:
    """Stores that come and go leave no descriptor behind, and other files are not kept open at all."""
    before = len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else None
    text = tmp_path / "notes.txt"
    text.write_text("no database")
    for number in range(5):
        path = tmp_path / f"{number}.db"
        with CalibrationStore(path), CalibrationStore(path):
            assert HANDLES.is_open(path)
        assert not HANDLES.is_open(path)
        refuse(StoreError, "no whole SQLite file", lambda: CalibrationStore(text))
    assert before is None or len(os.listdir("/proc/self/fd")) == before


def test_the_start_of_a_file_is_read_anew(tmp_path: Path) -> None:
    """A handle that stayed open shows what the file holds now."""
    handles, path = Handles(), str(tmp_path / "calls.db")
    handles.make(path)
    handles.make(path)
    assert handles.start_of(path, 100) == b""
    file = handles.enter(path)
    Path(path).write_bytes(b"SQLite format 3\x00 and more")
    assert handles.start_of(path, 18) == b"SQLite format 3\x00 a"
    handles.after_fork()
    handles.leave(file)
    assert not handles.is_open(path)
