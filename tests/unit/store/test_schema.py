"""Tables of the first version become those of the present one, and nothing of them is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from refusals import refuse
from store_places import call, plain

from rag_confidence.errors import StoreError
from rag_confidence.store import CalibrationStore
from rag_confidence.store.backend import Backend
from rag_confidence.store.postgres_backend import PostgresBackend
from rag_confidence.store.schema import create_version_1
from rag_confidence.store.sqlite_backend import SqliteBackend

INSERT_1 = """INSERT INTO rag_confidence_calls
    (id, tool_name, context, scores, fingerprints, group_name, decision, calibrator, recorded_us, outcome,
    labeling_source, labeled_us)
    VALUES (:id, 'search', :context, :scores, '{}', '"g"', 'accept', NULL, :us, :outcome, :source, :us)"""
CONTEXT_1 = (
    '{"args":{"query":"%d"},"result":null,"token_logprobs":null,"judge_score":null,"call_id":null,'
    '"metadata":{}}'
)


def backend_of(place: str) -> Backend:
    """The database at a place that may hold nothing yet."""
    if "://" in place:
        return PostgresBackend(place, "full", 5.0)
    return SqliteBackend.opened(place, synchronous="full", wait=5.0, create=True)


def write_version_1(place: str) -> None:
    """A store of version 1 with a good, a bad and an unlabelled call, the last of which is number 7."""
    backend = backend_of(place)
    rows: list[dict[str, Any]] = [
        {
            "id": number,
            "context": CONTEXT_1 % number,
            "scores": '{"a":"inf"}',
            "us": number,
            "outcome": outcome,
        }
        | {"source": None if outcome is None else "human"}
        for number, outcome in [(2, 1), (5, 0), (7, None)]
    ]
    with backend.writing() as transaction:
        create_version_1(backend, transaction)
        transaction.run_many(INSERT_1, rows)
        transaction.run("UPDATE rag_confidence_meta SET value = '8' WHERE name = 'next_call'")
    backend.close()


@pytest.fixture
def old(place: str) -> Iterator[str]:
    """The place of a store of version 1."""
    write_version_1(place)
    return place


def test_opening_migrates(old: str) -> None:
    """Calls keep their numbers, labels get a table, and both go on from there."""
    with CalibrationStore(old, create=False) as store:
        assert store.schema_version == 2
        assert plain(store.query()) == ["2", "5", "7"]
        assert [(record.id, record.outcome, record.labeling_source) for record in store.query()] == [
            (2, True, "human"),
            (5, False, "human"),
            (7, None, None),
        ]
        assert {record.group for record in store.query()} == {"g"}
        store.label(7, True, "judge")
        store.label(5, True, "judge")
        assert store.add(call("8"), False) == 8
        assert [record.outcome for record in store.query()] == [True, True, True, False]
        assert store.verify() == ()
    with CalibrationStore(old) as again:
        assert again.count() == 4


def test_a_store_can_be_opened_without_migrating_it(old: str) -> None:
    """Then it only says its version, and migrates when it is told to."""
    with CalibrationStore(old, migrate=False) as store:
        assert store.schema_version == 1
        for use in (store.query, store.summary, store.verify, lambda: store.add(call())):
            refuse(StoreError, "Call migrate\\(\\) first", use)  # type: ignore[arg-type]
        assert store.migrate() == (1, 2)
        assert store.migrate() == (2, 2)
        assert store.count() == 3


def test_an_empty_old_store_is_migrated(place: str) -> None:
    """Numbers of labels start at one."""
    backend = backend_of(place)
    with backend.writing() as transaction:
        create_version_1(backend, transaction)
    backend.close()
    with CalibrationStore(place) as store:
        assert store.add(call(), True) == 1
        assert store.verify() == ()


def test_a_migration_that_fails_changes_nothing(old: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables are those of version 1 again, and the next attempt succeeds."""
    monkeypatch.setattr("rag_confidence.store.schema._COUNT_LABELS", "INSERT INTO no_such_table VALUES (1)")
    refuse(StoreError, "Nothing of this write was kept", lambda: CalibrationStore(old))
    with CalibrationStore(old, migrate=False) as store:
        assert store.schema_version == 1
    monkeypatch.undo()
    with CalibrationStore(old) as store:
        assert store.count() == 3


def test_a_newer_store_is_refused(place: str) -> None:
    """A later release may mean other things by the same tables."""
    CalibrationStore(place).close()
    backend = backend_of(place)
    with backend.writing() as transaction:
        backend.mark_version(transaction, 3)
    backend.close()
    refuse(StoreError, "schema version from 1 to 2; got .*3", lambda: CalibrationStore(place))


def test_a_store_that_fails_to_open_holds_no_connection(old: str, tmp_path: Path) -> None:
    """No log is left beside the file of a store that was refused."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rag_confidence.store.schema._COPY_CALLS", "no SQL")
        refuse(StoreError, "`path` must", lambda: CalibrationStore(old))
    assert {path.name for path in tmp_path.iterdir()} <= {"calls.db"}
