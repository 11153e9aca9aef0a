"""What is particular to a file: which journal it has, and what a caller hears of it."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

from refusals import refuse

from rag_confidence._calls import ToolCallContext
from rag_confidence.errors import StoreError
from rag_confidence.store import CalibrationStore
from rag_confidence.store.sqlite_backend import SqliteBackend
from rag_confidence.store.sqlite_handles import HANDLES


def test_a_journal_that_cannot_be_switched_fails_no_write(tmp_path: Path) -> None:
    """The write is committed when that is tried, and an error would say that nothing of it was kept."""
    path = tmp_path / "calls.db"
    backend = SqliteBackend.opened(path, synchronous="full", wait=0.0, create=True)
    with (
        closing(backend),
        closing(sqlite3.connect(path)) as reader,
        closing(sqlite3.connect(path, timeout=0)) as writer,
    ):
        writer.execute("CREATE TABLE t (a)")
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM t")
        backend._use_log(writer)
        assert not backend._uses_log
        reader.rollback()
        backend._use_log(writer)
        assert backend._uses_log
        assert writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_connection_in_use_is_closed_when_it_comes_back(tmp_path: Path) -> None:
    """Closing it under a thread that uses it crashes the process; the write that is under way is kept."""
    path = str(tmp_path / "calls.db")
    with CalibrationStore(path) as store:
        backend = store._access._backend
        with backend.writing() as transaction:
            store.close()
            transaction.run("CREATE TABLE t (a)")
            assert HANDLES.is_open(path)
        assert not HANDLES.is_open(path)
        refuse(StoreError, "must be open", store.count)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT COUNT(*) FROM t").fetchone() == (0,)


def test_a_store_can_be_closed_while_threads_use_it(tmp_path: Path) -> None:
    """Each of them finishes what it began or is told that the store is closed."""
    store, errors, numbers = CalibrationStore(tmp_path / "calls.db"), [], []
    begun = threading.Event()

    def use() -> None:
        try:
            while True:
                numbers.append(store.add(ToolCallContext("search")))
                store.count()
                begun.set()
        except StoreError as error:
            errors.append(str(error))

    threads = [threading.Thread(target=use) for _ in range(6)]
    for thread in threads:
        thread.start()
    begun.wait()
    store.close()
    for thread in threads:
        thread.join()
    assert len(errors) == 6
    assert all("must be open" in error for error in errors)
    with CalibrationStore(tmp_path / "calls.db") as again:
        assert {record.id for record in again.query()} == set(numbers)


def test_a_file_that_is_gone_takes_no_writes(tmp_path: Path) -> None:
    """They would go to a file without a name, and be lost with the process."""
    path = tmp_path / "calls.db"
    with CalibrationStore(path) as store:
        store.add(ToolCallContext("search"))
        path.unlink()
        refuse(StoreError, "the file that was opened", lambda: store.add(ToolCallContext("search")))
        with CalibrationStore(path) as other:
            assert other.add(ToolCallContext("news")) == 1
            refuse(StoreError, "the file that was opened", store.query)
            assert other.count() == 1
