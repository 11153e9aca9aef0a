"""A store in one SQLite file: WAL, one writer at a time, readers beside it, connections that are reused."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock

from rag_confidence.errors import StoreError
from rag_confidence.store.backend import NONE, Row, Synchronous, Transaction, Values
from rag_confidence.store.schema import missing
from rag_confidence.store.sqlite_errors import explained
from rag_confidence.store.sqlite_handles import HANDLES
from rag_confidence.store.sqlite_header import APPLICATION_ID, look

_MOST_IDLE = 8
_RETRY = 0.01
_FETCHED = 500

# Connections of a parent process. Closing them here could remove the log that the parent is writing to.
_INHERITED: list[sqlite3.Connection] = []


class _Transaction:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, sql: str, values: Values = NONE) -> list[Row]:
        return self._connection.execute(sql, values).fetchall()

    def stream(self, sql: str, values: Values = NONE) -> Iterator[Row]:
        cursor = self._connection.execute(sql, values)
        while rows := cursor.fetchmany(_FETCHED):
            yield from rows

    def run(self, sql: str, values: Values = NONE) -> int:
        return self._connection.execute(sql, values).rowcount

    def run_many(self, sql: str, rows: Sequence[Values]) -> None:
        self._connection.executemany(sql, rows)

    def run_all(self, statements: Iterable[str]) -> None:
        for statement in statements:
            self._connection.execute(statement)


class SqliteBackend:
    """Connections to one file.

    A connection is lent to one thread at a time. One that met an error of SQLite is closed.
    """

    key_type = "INTEGER PRIMARY KEY"

    def __init__(self, path: str | os.PathLike[str], synchronous: Synchronous, wait: float) -> None:
        self.name = os.path.abspath(os.fsdecode(path))
        self._synchronous, self._wait = synchronous, wait
        self._uses_log = False
        self._file: tuple[int, int] | None = None
        self._forget()

    def _forget(self) -> None:
        self._lock = Lock()
        self._idle: list[sqlite3.Connection] = []
        self._open: set[sqlite3.Connection] = set()
        self._closed = False

    @classmethod
    def opened(
        cls, path: str | os.PathLike[str], *, synchronous: Synchronous, wait: float, create: bool
    ) -> SqliteBackend:
        """A backend of a file that is a store or may become one; anything else is refused untouched."""
        backend = cls(path, synchronous, wait)
        if look(backend.name) is None:
            if not create:
                raise missing(backend.name)
            backend._make_file()
        backend._file = HANDLES.enter(backend.name)
        return backend

    def _make_file(self) -> None:
        try:
            os.makedirs(os.path.dirname(self.name), exist_ok=True)
            HANDLES.make(self.name)
        except OSError as error:
            raise StoreError(
                f"`path` must be a place where a file can be made; got {self.name!r} ({error.strerror}). "
                "Choose another folder."
            ) from error

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        """The only writer: committed at the end, rolled back if the body raises."""
        with self._lent(writing=True) as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield _Transaction(connection)
            connection.execute("COMMIT")
            if not self._uses_log:
                self._use_log(connection)

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """One snapshot."""
        with self._lent(writing=False) as connection:
            connection.execute("BEGIN")
            yield _Transaction(connection)
            connection.execute("ROLLBACK")

    def _use_log(self, connection: sqlite3.Connection) -> None:
        """Switch a file to WAL, after the commit that made it ours: until then its header says nothing.

        Where that cannot be done the next write tries again: this one is committed, so nothing is raised.
        """
        deadline = time.monotonic() + self._wait
        while not self._uses_log:
            try:
                # Where there is no WAL, SQLite says so without an error, and keeps its older kind of journal.
                connection.execute("PRAGMA journal_mode = WAL").fetchone()
                self._uses_log = True
            except sqlite3.OperationalError:
                # Another process is switching, for which SQLite does not wait.
                if time.monotonic() > deadline:
                    return
                time.sleep(_RETRY)

    @contextmanager
    def _lent(self, *, writing: bool) -> Iterator[sqlite3.Connection]:
        connection = None
        self._check_file()
        try:
            connection = self._taken()
            yield connection
        except sqlite3.Error as error:
            self._discard(connection)
            raise explained(error, self.name, writing=writing, wait=self._wait) from error
        except BaseException:
            self._rolled_back(connection)
            raise
        self._give_back(connection)

    def _check_file(self) -> None:
        """Refuse a file that was deleted or replaced: SQLite would go on with one that nobody finds again."""
        if self._file is not None and not HANDLES.is_at(self.name, self._file):
            raise StoreError(
                f"`path` must be the file that was opened; got another one, or none, at {self.name!r}. "
                "Open the store again: the file was deleted or replaced."
            )

    def _rolled_back(self, connection: sqlite3.Connection | None) -> None:
        if connection is None:
            return
        try:
            connection.rollback()
        except sqlite3.Error:
            self._discard(connection)
        else:
            self._give_back(connection)

    def _taken(self) -> sqlite3.Connection:
        with self._lock:
            if self._closed:
                raise closed(self.name)
            if self._idle:
                return self._idle.pop()
        connection = self._connected()
        with self._lock:
            self._open.add(connection)
        return connection

    def _connected(self) -> sqlite3.Connection:
        address = f"{Path(self.name).as_uri()}?mode=rw"
        connection = sqlite3.connect(
            address, timeout=self._wait, isolation_level=None, check_same_thread=False, uri=True
        )
        try:
            connection.execute(f"PRAGMA synchronous = {self._synchronous}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _give_back(self, connection: sqlite3.Connection) -> None:
        with self._lock:
            keep = not self._closed and len(self._idle) < _MOST_IDLE
            if keep:
                self._idle.append(connection)
        if not keep:
            self._discard(connection)

    def _discard(self, connection: sqlite3.Connection | None) -> None:
        if connection is None:
            return
        # A connection that cannot even be closed has been reported by what broke it.
        with suppress(sqlite3.Error):
            connection.close()
        with self._lock:
            self._open.discard(connection)
        self._leave_file()

    def marked_version(self, transaction: Transaction) -> int | None:
        """Schema version of the store; None where there is none yet."""
        ((application,),) = transaction.rows("PRAGMA application_id")
        ((version,),) = transaction.rows("PRAGMA user_version")
        return int(version) if application == APPLICATION_ID else None

    def mark_version(self, transaction: Transaction, version: int) -> None:
        """Note the schema version, within the transaction that makes it true."""
        transaction.run_all((f"PRAGMA application_id = {APPLICATION_ID}", f"PRAGMA user_version = {version}"))

    def findings(self) -> tuple[str, ...]:
        """What is damaged below the rows."""
        with self.reading() as transaction:
            found = [str(text) for (text,) in transaction.rows("PRAGMA integrity_check")]
        return () if found == ["ok"] else tuple(found)

    def after_fork(self) -> None:
        """Forget the connections of the parent process, without closing them."""
        _INHERITED.extend(self._open)
        closed_before = self._closed
        self._forget()
        self._closed = closed_before

    def close(self) -> None:
        """Close every connection; those that are lent when they come back.

        SQLite crashes the process if a connection is closed under a thread that uses it.
        """
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            self._discard(connection)
        self._leave_file()

    def _leave_file(self) -> None:
        with self._lock:
            file = self._file if self._closed and not self._open else None
            if file is not None:
                self._file = None
        if file is not None:
            HANDLES.leave(file)


def closed(name: str) -> StoreError:
    """The store was closed before."""
    return StoreError(f"`store` must be open; got {name!r} after close(). Open it again.")
