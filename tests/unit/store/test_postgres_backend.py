"""What is particular to a database server: URLs, passwords, and missing packages."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from refusals import refuse
from store_places import a_schema

from rag_confidence.errors import StoreError
from rag_confidence.store import CalibrationStore


@pytest.fixture
def url() -> Iterator[str]:
    """The URL of an empty schema."""
    yield from a_schema()


@pytest.mark.needs_extra("postgres")
@pytest.mark.parametrize(
    ("address", "pattern"),
    [
        ("mysql://user:secret@host/db", "got one of 'mysql'"),
        ("sqlite:///calls.db", "got one of 'sqlite'"),
        ("://user:secret@host", "got neither"),
        ("postgresql://user:secret@127.0.0.1:1/db", "answers within 0.5 s; got 'connection"),
    ],
)
def test_a_url_that_leads_nowhere_is_refused_without_its_password(address: str, pattern: str) -> None:
    """The message names the host and not the secret."""
    message = refuse(StoreError, pattern, lambda: CalibrationStore(address, wait=0.5))
    assert "secret" not in message


@pytest.mark.parametrize("module", ["sqlalchemy", "psycopg"])
@pytest.mark.needs_extra("postgres")
def test_a_missing_package_names_the_extra(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The install command is in the message."""
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=r"rag-confidence\[postgres\]"):
        CalibrationStore("postgresql://user@127.0.0.1:1/db")


@pytest.mark.needs_postgres
@pytest.mark.needs_extra("postgres")
def test_a_short_url_means_psycopg_3(url: str) -> None:
    """postgresql:// needs no other driver than the one of the extra."""
    with CalibrationStore(url.replace("+psycopg", "")) as store:
        assert store.count() == 0


@pytest.mark.needs_postgres
@pytest.mark.needs_extra("postgres")
def test_a_schema_that_does_not_exist_is_refused(url: str) -> None:
    """Nothing is made in another schema instead."""
    refuse(StoreError, "schema that exists", lambda: CalibrationStore(f"{url}_no"))


@pytest.mark.needs_postgres
@pytest.mark.needs_extra("postgres")
def test_a_table_of_another_program_is_refused(url: str) -> None:
    """A table of our name without our version in it is not touched."""
    with CalibrationStore(url) as store, store._access._backend.writing() as transaction:
        transaction.run("DELETE FROM rag_confidence_meta WHERE name = 'schema_version'")
    refuse(StoreError, "schema version from 1 to 2; got .* has 0", lambda: CalibrationStore(url))


@pytest.mark.needs_postgres
@pytest.mark.needs_extra("postgres")
def test_a_connection_lost_in_a_commit_leaves_it_open_what_was_kept(url: str) -> None:
    """Nobody can know then, and the message does not say that nothing was kept."""
    with CalibrationStore(url) as store:
        backend = store._access._backend

        def lose_the_connection() -> None:
            with backend.writing() as transaction:
                ((server,),) = transaction.rows("SELECT pg_backend_pid()")
                with backend.reading() as other:
                    other.rows("SELECT pg_terminate_backend(:server)", {"server": server})

        message = refuse(StoreError, "lost during a commit", lose_the_connection)
        assert "Nothing of this write was kept" not in message
        assert store.count() == 0


def is_gone(store: CalibrationStore, server: int) -> bool:
    """Whether a process of the server ends, as another connection sees it."""
    sql = "SELECT 1 FROM pg_stat_activity WHERE pid = :server"
    return any(not store._access.rows(sql, {"server": server}) for _ in range(2000))


@pytest.mark.needs_postgres
@pytest.mark.needs_extra("postgres")
def test_a_server_that_was_restarted_is_asked_again(url: str) -> None:
    """Idle connections that it closed are replaced, and no call fails for them."""
    with CalibrationStore(url) as store:
        ((server,),) = store._access.rows("SELECT pg_backend_pid()", {})
        with CalibrationStore(url) as other:
            other._access.rows("SELECT pg_terminate_backend(:server)", {"server": server})
            while other._access.rows(
                "SELECT 1 FROM pg_stat_activity WHERE pid = :server", {"server": server}
            ):
                pass
        assert store.count() == 0


@pytest.mark.needs_postgres
@pytest.mark.needs_extra("postgres")
def test_a_connection_in_use_is_closed_when_it_comes_back(url: str) -> None:
    """Closing the store waits for nobody, and leaves no connection behind."""
    store = CalibrationStore(url)
    with store._access._backend.reading() as transaction:
        ((server,),) = transaction.rows("SELECT pg_backend_pid()")
        store.close()
    with CalibrationStore(url) as other:
        assert is_gone(other, server)
