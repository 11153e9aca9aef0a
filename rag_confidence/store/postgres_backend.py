"""A store in a PostgreSQL database, through SQLAlchemy 2 and psycopg 3."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from rag_confidence._optional import require
from rag_confidence.errors import StoreError
from rag_confidence.store.backend import NONE, Row, Synchronous, Transaction, Values
from rag_confidence.store.schema import META
from rag_confidence.store.sqlite_backend import closed

_EXTRA = "postgres"
_DIALECT, _DRIVER = "postgresql", "postgresql+psycopg"
# Writers to one schema take turns; the number is that of the application in SQLite files.
_SETTINGS = """SELECT set_config('lock_timeout', :wait, true),
    set_config('synchronous_commit', :commit_kind, true)"""
_ONE_WRITER = """SELECT current_schema(),
    pg_advisory_xact_lock(1380139859, hashtext(current_schema()))"""
# From the rows of the catalogue: to_regclass() may answer from a cache that is older than the lock.
_EXISTS = """SELECT EXISTS (SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = current_schema() AND c.relname = :table)"""
_VERSION = f"SELECT value FROM {META} WHERE name = 'schema_version'"
_SET_VERSION = f"UPDATE {META} SET value = :value WHERE name = 'schema_version'"
_NEW_VERSION = f"INSERT INTO {META} (name, value) VALUES ('schema_version', :value)"
_FETCHED = 500


@lru_cache(maxsize=256)
def _text(sql: str) -> Any:
    return require("sqlalchemy", extra=_EXTRA).text(sql)


class _Transaction:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def rows(self, sql: str, values: Values = NONE) -> list[Row]:
        return [tuple(row) for row in self._connection.execute(_text(sql), values)]

    def stream(self, sql: str, values: Values = NONE) -> Iterator[Row]:
        options = {"stream_results": True, "yield_per": _FETCHED}
        result = self._connection.execute(_text(sql), values, execution_options=options)
        return (tuple(row) for row in result)

    def run(self, sql: str, values: Values = NONE) -> int:
        return int(self._connection.execute(_text(sql), values).rowcount)

    def run_many(self, sql: str, rows: Sequence[Values]) -> None:
        self._connection.execute(_text(sql), [*rows])

    def run_all(self, statements: Iterable[str]) -> None:
        for statement in statements:
            self._connection.execute(_text(statement))


class PostgresBackend:
    """A pool of connections to one database; the tables lie in the first schema of its search path."""

    key_type = "BIGINT PRIMARY KEY"

    def __init__(self, url: str, synchronous: Synchronous, wait: float) -> None:
        alchemy = require("sqlalchemy", extra=_EXTRA)
        require("psycopg", extra=_EXTRA)
        self._errors: Any = alchemy.exc
        address = _address(alchemy, url)
        self.name = address.render_as_string(hide_password=True)
        # Asked before each use, a connection that the server has closed since is replaced.
        self._engine = alchemy.create_engine(address, pool_size=8, max_overflow=-1, pool_pre_ping=True)
        self._wait = wait
        self._settings = {
            "wait": str(max(1, round(1000 * wait))),
            "commit_kind": "on" if synchronous == "full" else "off",
        }
        self._closed = False

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        """The only writer: committed at the end, rolled back if the body raises."""
        with self._connected(writing=True) as connection:
            begun = connection.begin()
            with begun:
                transaction = _Transaction(connection)
                transaction.rows(_SETTINGS, self._settings)
                if transaction.rows(_ONE_WRITER)[0][0] is None:
                    raise self._without_schema()
                yield transaction
                self._commit(begun)

    def _commit(self, begun: Any) -> None:
        try:
            begun.commit()
        except self._errors.DBAPIError as error:
            if not error.connection_invalidated:
                raise
            raise StoreError(
                f"`path` must lead to a PostgreSQL database that stays connected; got a connection to "
                f"{self.name!r} that was lost during a commit. Whether this write was kept is not known: "
                "look before you write it again."
            ) from error

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """One snapshot."""
        with self._connected(writing=False) as connection:
            snapshot = connection.execution_options(
                isolation_level="REPEATABLE READ", postgresql_readonly=True
            )
            with snapshot.begin():
                yield _Transaction(snapshot)

    def _without_schema(self) -> StoreError:
        return StoreError(
            f"`path` must lead to a schema that exists; got none on the search path of {self.name!r}. "
            "Create the schema first."
        )

    @contextmanager
    def _connected(self, *, writing: bool) -> Iterator[Any]:
        if self._closed:
            raise closed(self.name)
        try:
            with self._engine.connect() as connection:
                try:
                    yield connection
                finally:
                    self._come_back(connection)
        except self._errors.SQLAlchemyError as error:
            raise self._explained(error, writing=writing) from error

    def _come_back(self, connection: Any) -> None:
        if self._closed and not connection.invalidated:
            # The pool that it came from is gone, and nobody would close it.
            connection.detach()

    def _explained(self, error: Exception, *, writing: bool) -> StoreError:
        cause = getattr(error, "orig", None) or error
        reason = (str(cause).strip() or type(cause).__name__).splitlines()[0].rstrip(".")
        kept = "Nothing of this write was kept, and what was committed before stays. " if writing else ""
        return StoreError(
            f"`path` must lead to a PostgreSQL database that answers within {self._wait:g} s; "
            f"got {reason!r} from {self.name!r}. {kept}Check the server and the rights of the user."
        )

    def marked_version(self, transaction: Transaction) -> int | None:
        """Schema version of the store; None where there is none yet, 0 where it has none."""
        if not transaction.rows(_EXISTS, {"table": META})[0][0]:
            return None
        found = transaction.rows(_VERSION)
        return int(found[0][0]) if found else 0

    def mark_version(self, transaction: Transaction, version: int) -> None:
        """Note the schema version, within the transaction that makes it true."""
        if not transaction.run(_SET_VERSION, {"value": str(version)}):
            transaction.run(_NEW_VERSION, {"value": str(version)})

    def findings(self) -> tuple[str, ...]:
        """What is damaged below the rows."""
        # A server looks after its own pages; the rows are checked by who calls this.
        return ()

    def after_fork(self) -> None:
        """Forget the connections of the parent process, without closing them."""
        self._engine.dispose(close=False)

    def close(self) -> None:
        """Close every connection."""
        self._closed = True
        self._engine.dispose()


def is_url(path: Any) -> bool:
    """Whether a path is the URL of a database."""
    return isinstance(path, str) and "://" in path


def _address(alchemy: Any, url: str) -> Any:
    """The URL with psycopg 3 as its driver."""
    cure = "Write postgresql+psycopg://user@host/database."
    try:
        address = alchemy.make_url(url)
    except alchemy.exc.ArgumentError:
        # The URL may hold a password.
        raise StoreError(f"`path` must be a file or a URL of PostgreSQL; got neither. {cure}") from None
    if address.drivername not in (_DIALECT, _DRIVER):
        raise StoreError(
            f"`path` must be a file or a URL of PostgreSQL; got one of {address.drivername!r}. {cure}"
        )
    return address.set(drivername=_DRIVER)
