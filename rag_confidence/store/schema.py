"""The tables, their versions, and the way from one version to the next, all within one transaction."""

from __future__ import annotations

from collections.abc import Callable
from uuid import uuid4

from rag_confidence.errors import StoreError
from rag_confidence.store.backend import Backend, Transaction

VERSION = 2

CALLS, LABELS, META = "rag_confidence_calls", "rag_confidence_labels", "rag_confidence_meta"

_META = f"CREATE TABLE {META} (name TEXT PRIMARY KEY, value TEXT NOT NULL)"

_TABLES_1 = (
    f"""CREATE TABLE {CALLS} (
        id {{key}}, tool_name TEXT NOT NULL, context TEXT NOT NULL, scores TEXT NOT NULL,
        fingerprints TEXT NOT NULL, group_name TEXT, decision TEXT, calibrator TEXT, recorded_us BIGINT,
        outcome INTEGER, labeling_source TEXT, labeled_us BIGINT)""",
    _META,
)

_TABLES_2 = (
    f"""CREATE TABLE {CALLS} (
        id {{key}}, tool_name TEXT NOT NULL, context TEXT NOT NULL, scores TEXT NOT NULL,
        fingerprints TEXT NOT NULL, group_name TEXT, decision TEXT, calibrator TEXT, recorded_us BIGINT,
        uid TEXT)""",
    f"""CREATE TABLE {LABELS} (
        seq {{key}}, call_id BIGINT NOT NULL REFERENCES {CALLS} (id),
        outcome INTEGER NOT NULL CHECK (outcome IN (0, 1)), labeling_source TEXT, labeled_us BIGINT)""",
    f"CREATE INDEX {CALLS}_by_tool ON {CALLS} (tool_name, id)",
    f"CREATE UNIQUE INDEX {CALLS}_by_uid ON {CALLS} (uid) WHERE uid IS NOT NULL",
    f"CREATE INDEX {LABELS}_by_call ON {LABELS} (call_id, seq)",
)

_OLD = f"{CALLS}_before"
_COPY_CALLS = f"""INSERT INTO {CALLS}
    (id, tool_name, context, scores, fingerprints, group_name, decision, calibrator, recorded_us)
    SELECT id, tool_name, context, scores, fingerprints, group_name, decision, calibrator, recorded_us
    FROM {_OLD}"""
_COPY_LABELS = f"""INSERT INTO {LABELS} (seq, call_id, outcome, labeling_source, labeled_us)
    SELECT ROW_NUMBER() OVER (ORDER BY id), id, outcome, labeling_source, labeled_us
    FROM {_OLD} WHERE outcome IS NOT NULL"""
_COUNT_LABELS = f"""INSERT INTO {META} (name, value)
    SELECT 'next_label', CAST(COALESCE(MAX(seq), 0) + 1 AS TEXT) FROM {LABELS}"""


def create_version_1(backend: Backend, transaction: Transaction) -> None:
    """The first schema: one label a call, beside it. Kept so that the way from it stays tested."""
    _create(backend, transaction, _TABLES_1)
    _note(transaction, next_call="1", store=uuid4().hex)
    backend.mark_version(transaction, 1)


def _create_version_2(backend: Backend, transaction: Transaction) -> None:
    _create(backend, transaction, (*_TABLES_2, _META))
    _note(transaction, next_call="1", next_label="1", store=uuid4().hex)
    backend.mark_version(transaction, 2)


def _from_1_to_2(backend: Backend, transaction: Transaction) -> None:
    """Labels get a table of their own, so that a later one adds to the earlier ones; calls get a name."""
    transaction.run(f"ALTER TABLE {CALLS} RENAME TO {_OLD}")
    # The index behind a primary key keeps its name when a table of PostgreSQL is renamed; tables are copied
    # into new ones, whose own index then gets the next free name.
    _create(backend, transaction, _TABLES_2)
    transaction.run_all((_COPY_CALLS, _COPY_LABELS, _COUNT_LABELS, f"DROP TABLE {_OLD}"))
    backend.mark_version(transaction, 2)


_STEPS: dict[int, Callable[[Backend, Transaction], None]] = {1: _from_1_to_2}


def prepare(backend: Backend, *, create: bool, migrate: bool) -> int:
    """Make the tables where there are none, and migrate older ones if asked to; the version after that.

    Whatever other processes do at the same time, one of them does the work and the others find it done.
    """
    with backend.reading() as transaction:
        found = backend.marked_version(transaction)
    if found is None and not create:
        raise missing(backend.name)
    if not found or (found < VERSION and migrate):
        with backend.writing() as transaction:
            found = _bring_up(backend, transaction, migrate=migrate)
    return _known(backend, found)


def _bring_up(backend: Backend, transaction: Transaction, *, migrate: bool) -> int:
    found = backend.marked_version(transaction)
    if found is None:
        _create_version_2(backend, transaction)
        return VERSION
    while migrate and found in _STEPS:
        _STEPS[found](backend, transaction)
        found += 1
    return found


def _known(backend: Backend, version: int) -> int:
    if 1 <= version <= VERSION:
        return version
    raise newer(backend.name, version)


def missing(name: str) -> StoreError:
    """There is no store where one was to be opened."""
    return StoreError(
        f"`path` must be a calibration store that exists; got {name!r}, where there is none. "
        "Check the path, or pass create=True."
    )


def newer(name: str, version: int) -> StoreError:
    """A store that a later release of this package wrote."""
    return StoreError(
        f"`path` must have a schema version from 1 to {VERSION}; got {name!r}, which has {version}. "
        "Use the release of rag-confidence that wrote it, or a later one."
    )


def _create(backend: Backend, transaction: Transaction, statements: tuple[str, ...]) -> None:
    transaction.run_all(statement.replace("{key}", backend.key_type) for statement in statements)


def _note(transaction: Transaction, **values: str) -> None:
    sql = f"INSERT INTO {META} (name, value) VALUES (:name, :value)"
    transaction.run_many(sql, [{"name": name, "value": value} for name, value in values.items()])
