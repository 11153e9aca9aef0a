"""Full disks, and files and folders that may only be read: an error, and what was committed stays."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from refusals import refuse
from store_places import call, plain, run_python

from rag_confidence.errors import StoreError
from rag_confidence.store import CalibrationStore

# A limit on the size of files stands for a full disk.
FULL_DISK = """
import os, resource, sys
from rag_confidence._calls import ToolCallContext
from rag_confidence.errors import StoreError
from rag_confidence.store import CalibrationStore

with CalibrationStore(sys.argv[1]) as store:
    store.add(ToolCallContext("t", {"query": "before"}))
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, unlimited[1]))
    kept = 0
    try:
        while True:
            store.add_many([(ToolCallContext("t", {"query": "x" * 3000}), True)] * 5)
            kept += 5
    except StoreError as error:
        print(error)
    print(kept, store.count(outcome=True))
    resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    store.add(ToolCallContext("t", {"query": "after"}))
    print(store.verify())
"""

NO_ROOM_AT_ALL = """
import resource, sys
from rag_confidence.errors import StoreError
from rag_confidence.store import CalibrationStore

limit = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limit[1]))
try:
    CalibrationStore(sys.argv[1])
except StoreError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, limit)
with CalibrationStore(sys.argv[1]) as store:
    print(store.verify())
"""


def test_a_full_disk_is_an_error_and_the_store_goes_on_when_there_is_room(tmp_path: Path) -> None:
    """The write that met it left nothing, all earlier ones are there, and later ones succeed."""
    path = str(tmp_path / "calls.db")
    message, counts, findings = run_python(FULL_DISK, path).splitlines()
    assert "Nothing of this write was kept, and what was committed before stays" in message
    kept, counted = map(int, counts.split())
    assert kept == counted > 0
    assert findings == "()"
    with CalibrationStore(path, create=False) as store:
        queries = plain(store.query())
        assert (queries[0], queries[-1], len(queries)) == ("before", "after", kept + 2)


def test_a_disk_without_room_for_the_tables_leaves_what_can_become_a_store(tmp_path: Path) -> None:
    """Creation is whole or nothing, and succeeds at the next attempt."""
    message, findings = run_python(NO_ROOM_AT_ALL, str(tmp_path / "calls.db")).splitlines()
    assert message.startswith("`path` must be on a disk")
    assert findings == "()"


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can enter, with a store that was closed."""
    folder = Path(tempfile.mkdtemp(prefix="store_"))
    folder.chmod(0o755)
    with CalibrationStore(folder / "calls.db") as store:
        store.add(call("before"))
    yield folder
    shutil.rmtree(folder)


@contextmanager
def as_nobody() -> Iterator[None]:
    """The rights of a user that owns nothing: permissions do not bind the superuser."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def protect(folder: Path, mode: int) -> None:
    """A file that may be read, in a folder of this mode."""
    (folder / "calls.db").chmod(0o444)
    folder.chmod(mode)


def test_a_read_only_file_can_be_read_and_not_written(open_folder: Path) -> None:
    """Its calls are there; a write is a StoreError that says so, and the file is as before."""
    before = (open_folder / "calls.db").read_bytes()
    protect(open_folder, 0o777)
    with as_nobody(), CalibrationStore(open_folder / "calls.db", create=False) as store:
        assert plain(store.query()) == ["before"]
        message = refuse(StoreError, "read-only", lambda: store.add(call("new")))
        assert "Nothing of this write was kept" in message
    assert (open_folder / "calls.db").read_bytes() == before


def test_a_read_only_folder_is_an_error(open_folder: Path) -> None:
    """SQLite needs room for its log beside the file, so neither reading nor making a store succeeds."""
    protect(open_folder, 0o555)
    with as_nobody():
        refuse(StoreError, "a read-only file or folder", lambda: CalibrationStore(open_folder / "calls.db"))
        refuse(
            StoreError, "a place where a file can be made", lambda: CalibrationStore(open_folder / "new.db")
        )
    assert os.listdir(open_folder) == ["calls.db"]


def test_a_file_that_may_not_be_read_is_an_error(open_folder: Path) -> None:
    """It is named with the reason."""
    (open_folder / "calls.db").chmod(0)
    with as_nobody():
        refuse(StoreError, "Permission denied", lambda: CalibrationStore(open_folder / "calls.db"))
