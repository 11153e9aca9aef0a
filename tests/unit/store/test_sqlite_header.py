"""What is no store of ours is told by its first bytes, and is left as it was, byte for byte."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from refusals import refuse
from store_places import call

from rag_confidence.errors import StoreError
from rag_confidence.store import CalibrationStore
from rag_confidence.store.sqlite_header import APPLICATION_ID, look


def a_store(path: Path) -> None:
    """A store with some pages."""
    with CalibrationStore(path) as store:
        store.add_many([(call("x" * 500), True)] * 40)


def changed(place: int, new: bytes) -> Callable[[Path], None]:
    """A store in which some bytes are others."""

    def make(path: Path) -> None:
        a_store(path)
        raw = bytearray(path.read_bytes())
        raw[place : place + len(new)] = new
        path.write_bytes(raw)

    return make


def cut(size: int) -> Callable[[Path], None]:
    """A store that ends too early."""

    def make(path: Path) -> None:
        a_store(path)
        os.truncate(path, size)

    return make


def foreign(path: Path) -> None:
    """A database of another program, in WAL mode."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (a)")


CASES: dict[str, tuple[Callable[[Path], object], str]] = {
    "text": (lambda path: path.write_text("id,score\n1,0.5\n" * 50), "no whole SQLite file"),
    "short text": (lambda path: path.write_text("hello"), "no whole SQLite file"),
    "other program": (foreign, "SQLite file of another program"),
    "newer version": (changed(60, (99).to_bytes(4, "big")), "schema version from 1 to 2; got .* has 99"),
    "version 0": (changed(60, bytes(4)), "schema version from 1 to 2"),
    "broken magic": (changed(3, b"?"), "no whole SQLite file"),
    "half a header": (cut(50), "no whole SQLite file"),
    "half the pages": (cut(2 * 4096), "truncated to 8192 of"),
    "half a page": (cut(2000), "truncated to 2000 of"),
    "broken schema": (changed(100, b"\xff" * 3996), "undamaged"),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_no_store_is_refused_untouched(tmp_path: Path, name: str) -> None:
    """One clear sentence; not a byte differs, and no log is left beside the file."""
    make, pattern = CASES[name]
    path = tmp_path / "calls.db"
    make(path)
    before = path.read_bytes()
    for create in (True, False):
        refuse(StoreError, pattern, lambda create=create: CalibrationStore(path, create=create))  # type: ignore[misc]
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["calls.db"]


def test_damage_below_the_header_is_found_and_left_as_it_is(tmp_path: Path) -> None:
    """Rows that lie on a broken page are a StoreError, verify() names them, and the file is not mended."""
    path = tmp_path / "calls.db"
    changed(3 * 4096, b"\xff" * 4096 * 4)(path)
    before = path.read_bytes()
    with CalibrationStore(path) as store:
        assert store.verify()
        refuse(StoreError, "undamaged", store.query)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["calls.db"]


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_a_folder_or_a_pipe_is_no_store(tmp_path: Path, make: Callable[[Path], None]) -> None:
    """Neither is opened, and no reader waits for the other end of a pipe."""
    make(tmp_path / "calls.db")
    refuse(StoreError, "`path` must be a file", lambda: CalibrationStore(tmp_path / "calls.db"))


def test_a_file_as_folder_is_refused(tmp_path: Path) -> None:
    """A path that leads through a file cannot be read."""
    (tmp_path / "file").write_text("text")
    refuse(StoreError, "`path` must be a", lambda: CalibrationStore(tmp_path / "file" / "calls.db"))


def test_an_empty_file_becomes_a_store_only_on_request(tmp_path: Path) -> None:
    """As temporary files are empty at first; create=False leaves it empty."""
    path = tmp_path / "calls.db"
    path.touch()
    refuse(StoreError, "exists", lambda: CalibrationStore(path, create=False))
    assert path.read_bytes() == b""
    with CalibrationStore(path) as store:
        assert store.add(call()) == 1


def test_a_new_file_is_ours_before_its_first_checkpoint(tmp_path: Path) -> None:
    """While its log still holds everything else, the header names the application and the version."""
    path = tmp_path / "calls.db"
    assert look(str(path)) is None
    with CalibrationStore(path) as store:
        store.add(call())
        header = look(str(path))
        assert header is not None
        assert (header.application_id, header.version) == (APPLICATION_ID, 2)
        assert path.read_bytes()[18:20] == b"\x02\x02"
