"""What the store asks of a database: exclusive transactions, snapshots to read, and that it can be closed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol, TypeAlias

Values: TypeAlias = Mapping[str, Any]
Row: TypeAlias = tuple[Any, ...]
Synchronous: TypeAlias = Literal["full", "normal"]

NONE: Values = {}


class Transaction(Protocol):
    """An open transaction. Values stand in the SQL as :name."""

    def rows(self, sql: str, values: Values = NONE) -> list[Row]:
        """All rows of a query."""

    def stream(self, sql: str, values: Values = NONE) -> Iterator[Row]:
        """The rows of a query, one after the other; to be used up within the transaction."""

    def run(self, sql: str, values: Values = NONE) -> int:
        """Run a statement; how many rows it touched."""

    def run_many(self, sql: str, rows: Sequence[Values]) -> None:
        """Run a statement once for each row."""

    def run_all(self, statements: Iterable[str]) -> None:
        """Run statements without values."""


class Backend(Protocol):
    """One database. Every method may be called from any thread.

    Attributes
    ----------
    name : str
        The path, or the URL without its password.
    key_type : str
        How this database declares a whole number that is a primary key.
    """

    name: str
    key_type: str

    def writing(self) -> AbstractContextManager[Transaction]:
        """The only writer of the database: all is kept at the end, and nothing if the body raises."""

    def reading(self) -> AbstractContextManager[Transaction]:
        """One snapshot, which does not wait for writers nor make them wait."""

    def marked_version(self, transaction: Transaction) -> int | None:
        """Schema version that the database says it has; None where there is no store in it yet.

        It is 0 where there are tables without a version: another process may be making them.
        """

    def mark_version(self, transaction: Transaction, version: int) -> None:
        """Note the schema version, within the transaction that makes it true."""

    def findings(self) -> tuple[str, ...]:
        """What the database itself finds damaged."""

    def after_fork(self) -> None:
        """Forget, in a child process, the connections of its parent, without closing them."""

    def close(self) -> None:
        """Close every connection."""
