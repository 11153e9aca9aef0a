"""What the first bytes of a file say of it, read without SQLite, which may write beside what it opens."""

from __future__ import annotations

import os
import stat
import time
from dataclasses import dataclass

from rag_confidence.errors import StoreError
from rag_confidence.store.schema import VERSION, newer
from rag_confidence.store.sqlite_handles import HANDLES, MAGIC

APPLICATION_ID = 0x52434353
_LENGTH = 100
# Another process may be writing its very first pages.
_LOOKS, _PAUSE = 5, 0.05


@dataclass(frozen=True)
class Header:
    """The fields of a SQLite header that tell whose file it is."""

    application_id: int
    version: int
    size: int


def look(path: str) -> Header | None:
    """The header of a store; None where there is no file, or an empty one.

    Raises
    ------
    StoreError
        For what is no store: a folder, another kind of file, another program's, a newer or a truncated one.
        Nothing was opened but to read these bytes.
    """
    for attempt in range(_LOOKS):
        raw, actual = _first_bytes(path)
        if not raw:
            return None
        header = _read(path, raw)
        if actual >= header.size or _has_companion(path):
            return header
        if attempt < _LOOKS - 1:
            time.sleep(_PAUSE)
    raise StoreError(
        f"`path` must be a whole calibration store; got {path!r}, truncated to {actual} of "
        f"{header.size} bytes. Restore the file from a copy."
    )


def _first_bytes(path: str) -> tuple[bytes, int]:
    """The start of a file, and its size; nothing of a file that is not there."""
    try:
        kind = os.stat(path).st_mode
        if not stat.S_ISREG(kind):
            what = "a folder" if stat.S_ISDIR(kind) else "no regular file"
            raise StoreError(
                f"`path` must be a file; got {path!r}, which is {what}. Name a file, such as calls.db."
            )
        return HANDLES.start_of(path, _LENGTH), os.stat(path).st_size
    except FileNotFoundError:
        return b"", 0
    except OSError as error:
        raise StoreError(
            f"`path` must be a file that can be read; got {path!r} ({error.strerror}). Check its permissions."
        ) from error


def _read(path: str, raw: bytes) -> Header:
    if not raw.startswith(MAGIC) or len(raw) < _LENGTH:
        raise StoreError(
            f"`path` must be a calibration store; got {path!r}, which is no whole SQLite file. "
            "It was not touched. Check the path."
        )
    page = int.from_bytes(raw[16:18], "big")
    pages = int.from_bytes(raw[28:32], "big") if raw[24:28] == raw[92:96] else 0
    header = Header(
        application_id=int.from_bytes(raw[68:72], "big"),
        version=int.from_bytes(raw[60:64], "big"),
        size=pages * (65536 if page == 1 else page),
    )
    if header.application_id != APPLICATION_ID:
        raise StoreError(
            f"`path` must be a calibration store; got {path!r}, a SQLite file of another program. "
            "It was not touched. Choose another file."
        )
    if not 1 <= header.version <= VERSION:
        raise newer(path, header.version)
    return header


def _has_companion(path: str) -> bool:
    """Whether a journal beside the file holds what the file itself still lacks."""
    return any(os.path.exists(f"{path}{suffix}") for suffix in ("-wal", "-journal"))
