"""What an error of SQLite means to the caller, in one sentence and with what to do."""

from __future__ import annotations

import sqlite3

from rag_confidence.errors import StoreError

_BUSY, _LOCKED, _READ_ONLY, _INPUT_OUTPUT, _CORRUPT = 5, 6, 8, 10, 11
_FULL, _CANNOT_OPEN, _NO_DATABASE = 13, 14, 26

_KEPT = "Nothing of this write was kept, and what was committed before stays."

# Code -> what must be so, what was met instead, what to do.
_MEANINGS = {
    _BUSY: (
        "free for a writer",
        "a lock that another writer held for more than {wait:g} s",
        "Try again, or open the store with a larger `wait`.",
    ),
    _READ_ONLY: ("a file that can be written", "a read-only file or folder", "Check its permissions."),
    _INPUT_OUTPUT: (
        "on a disk that can be read and written",
        "an input or output error",
        "Check the disk and the limit on the size of files.",
    ),
    _CORRUPT: ("an undamaged calibration store", "damaged pages", "Restore the file from a copy."),
    _FULL: ("on a disk with room for the write", "a full disk", "Make room and try again."),
    _CANNOT_OPEN: (
        "a file that can be opened, in a folder that can be written",
        "neither",
        "Check the path and its permissions.",
    ),
}
_MEANINGS[_LOCKED], _MEANINGS[_NO_DATABASE] = _MEANINGS[_BUSY], _MEANINGS[_CORRUPT]
_OTHER = ("usable", "an error of SQLite", "Check the file with verify().")


def explained(error: sqlite3.Error, name: str, *, writing: bool, wait: float) -> StoreError:
    """A StoreError for an error of SQLite at the file `name`."""
    code = getattr(error, "sqlite_errorcode", None)
    wanted, met, cure = _MEANINGS.get(-1 if code is None else code & 0xFF, _OTHER)
    kept = f"{_KEPT} " if writing else ""
    return StoreError(
        f"`path` must be {wanted}; got {met.format(wait=wait)} ({error}) at {name!r}. {kept}{cure}"
    )
