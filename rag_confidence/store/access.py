"""An open store: its database, its schema version and its queue of writes, across forks."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, TypeVar

from rag_confidence.errors import StoreError
from rag_confidence.store.backend import Backend, Row, Synchronous, Transaction
from rag_confidence.store.group_commit import GroupCommit, Pending
from rag_confidence.store.postgres_backend import PostgresBackend, is_url
from rag_confidence.store.schema import VERSION, prepare
from rag_confidence.store.sqlite_backend import SqliteBackend, closed
from rag_confidence.store.unit_of_work import UnitOfWork

Result = TypeVar("Result")

_OPEN: weakref.WeakSet[Access] = weakref.WeakSet()


class Access:
    """What every method of a store goes through.

    Attributes
    ----------
    address : str
        What opens the same store again.
    name : str
        What messages call it.
    version : int
        Version of its tables.
    """

    def __init__(self, address: str, backend: Backend, *, create: bool, migrate: bool) -> None:
        self.address, self.name = address, backend.name
        self._backend = backend
        # Not a method of this object, which would then live on until the next garbage collection.
        self._commits = GroupCommit(partial(_transact, backend))
        self._finalizer = weakref.finalize(self, backend.close)
        try:
            self.version = prepare(backend, create=create, migrate=migrate)
        except BaseException:
            self.close()
            raise
        _OPEN.add(self)

    def reading(self) -> AbstractContextManager[Transaction]:
        """One snapshot."""
        self.check()
        return self._backend.reading()

    def rows(self, sql: str, values: Mapping[str, Any]) -> list[Row]:
        """All rows of one query."""
        with self.reading() as transaction:
            return transaction.rows(sql, values)

    def write(self, work: Callable[[UnitOfWork], Result], *, alone: bool = False) -> Result:
        """What `work` returns, after its commit: with others who wait, or in a transaction `alone`."""
        self.check()
        return self._commits.run(work, alone=alone)

    def findings(self) -> tuple[str, ...]:
        """What the database itself finds damaged."""
        return self._backend.findings()

    def migrate(self) -> None:
        """Bring the tables up to this release."""
        self.version = prepare(self._backend, create=False, migrate=True)

    def close(self) -> None:
        """Close every connection."""
        self._finalizer()
        _OPEN.discard(self)

    def after_fork(self) -> None:
        """Start anew in a child process: no thread of the parent will ever finish its commit here."""
        self._backend.after_fork()
        self._commits = GroupCommit(partial(_transact, self._backend))

    def check(self) -> None:
        """Refuse a store that was closed, and one whose tables are older than this release."""
        if not self._finalizer.alive:
            raise closed(self.name)
        if self.version != VERSION:
            raise StoreError(
                f"`store` must have schema version {VERSION}; got {self.version} at {self.name!r}. "
                "Call migrate() first."
            )


def _transact(backend: Backend, batch: Sequence[Pending]) -> None:
    with backend.writing() as transaction:
        unit = UnitOfWork(transaction)
        for pending in batch:
            try:
                pending.result = pending.work(unit)
            except ValueError as error:
                # Refused before it added anything; those that wait beside it need not suffer from that.
                if pending.alone:
                    raise
                pending.error = error
        unit.flush()


def opened(
    path: str | os.PathLike[str], *, synchronous: Synchronous, wait: float, create: bool, migrate: bool
) -> Access:
    """A store at a path or a URL; see `CalibrationStore`."""
    if is_url(path):
        server = PostgresBackend(str(path), synchronous, wait)
        return Access(str(path), server, create=create, migrate=migrate)
    given: Any = path
    if not isinstance(given, (str, os.PathLike)) or not os.fspath(given):
        raise TypeError(f"`path` must be a path or a URL; got {path!r}. Name a file, such as calls.db.")
    if os.fspath(path) == ":memory:":
        raise ValueError(
            "`path` must be a file; got ':memory:', which threads and processes cannot share. "
            "Name a file in a temporary folder."
        )
    backend = SqliteBackend.opened(path, synchronous=synchronous, wait=wait, create=create)
    return Access(backend.name, backend, create=create, migrate=migrate)


def _start_anew() -> None:
    for access in list(_OPEN):
        access.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)
