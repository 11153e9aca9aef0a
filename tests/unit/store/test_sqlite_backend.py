"""What is particular to a file: which journal it has, and what a caller hears of it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from rag_confidence.store.sqlite_backend import SqliteBackend


def test_a_journal_that_cannot_be_switched_fails_no_write(tmp_path: Path) -> None:
    """The write is committed when that is tried, and an error would say that nothing of it was kept."""
    path = tmp_path / "calls.db"
    backend = SqliteBackend.opened(path, synchronous="full", wait=0.0, create=True)
    with closing(backend), closing(sqlite3.connect(path)) as reader, closing(sqlite3.connect(path)) as writer:
        writer.execute("CREATE TABLE t (a)")
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM t")
        backend._use_log(writer)
        assert not backend._uses_log
        reader.rollback()
        backend._use_log(writer)
        assert backend._uses_log
        assert writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)
