"""Reading files that SQLite may have open in this process, without taking its locks away.

A POSIX lock belongs to a process and a file: closing any descriptor of the file drops all locks that the
process has on it. SQLite would not notice, and another process could then remove the log of a store that is
open here, with all that was committed to it. So what was opened to look at a SQLite file stays open as long
as the store does.

References
----------
How To Corrupt An SQLite Database File, section 2.2, https://www.sqlite.org/howtocorrupt.html
"""

from __future__ import annotations

import os
from collections import Counter, deque
from threading import Lock

MAGIC = b"SQLite format 3\x00"

_FLAGS = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
# Elsewhere locks belong to the descriptor, and a file that is open cannot be deleted.
_KEEPS = os.name == "posix"

_File = tuple[int, int]


class Handles:
    """Descriptors by device and inode, for all stores of a process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: dict[_File, int] = {}
        self._users: Counter[_File] = Counter()
        self._left: deque[_File] = deque()

    def start_of(self, path: str, length: int) -> bytes:
        """The first bytes of a file."""
        with self._lock:
            self._forget_left()
            known = self._kept.get(_file_of(os.stat(path)))
            if known is not None:
                return _read(known, length)
            handle = os.open(path, os.O_RDONLY | _FLAGS)
            raw = b""
            try:
                raw = _read(handle, length)
            finally:
                # Of an empty file another thread may be making a store.
                self._settle(handle, keep=not raw or raw.startswith(MAGIC))
            return raw

    def make(self, path: str) -> None:
        """Make an empty file where there is none."""
        with self._lock:
            if not os.path.exists(path):
                self._settle(os.open(path, os.O_RDWR | os.O_CREAT | _FLAGS, 0o644), keep=True)

    def enter(self, path: str) -> _File:
        """Note that a store of this file is open; what `leave` wants."""
        with self._lock:
            file = _file_of(os.stat(path))
            self._users[file] += 1
            return file

    def leave(self, file: _File) -> None:
        """Note that it was closed: after the last one nothing is locked, and nothing need stay open.

        The garbage collector may call this within another method, so that it must not wait for the lock.
        """
        self._left.append(file)
        if self._lock.acquire(blocking=False):
            try:
                self._forget_left()
            finally:
                self._lock.release()

    def _forget_left(self) -> None:
        while self._left:
            file = self._left.popleft()
            self._users[file] -= 1
            if self._users[file] > 0:
                continue
            del self._users[file]
            handle = self._kept.pop(file, None)
            if handle is not None:
                os.close(handle)

    def is_open(self, path: str | os.PathLike[str]) -> bool:
        """Whether a store of this file is open in this process."""
        with self._lock:
            self._forget_left()
            return _file_of(os.stat(path)) in self._users

    def is_at(self, path: str, file: _File) -> bool:
        """Whether a path still leads to the file that `enter` was told of."""
        try:
            return _file_of(os.stat(path)) == file
        except FileNotFoundError:
            return False

    def after_fork(self) -> None:
        """Free the lock, which a thread of the parent may have held."""
        self._lock = Lock()

    def _settle(self, handle: int, *, keep: bool) -> None:
        file = _file_of(os.fstat(handle))
        if keep and _KEEPS:
            self._kept[file] = handle
        else:
            os.close(handle)


HANDLES = Handles()


def _read(handle: int, length: int) -> bytes:
    os.lseek(handle, 0, os.SEEK_SET)
    return os.read(handle, length)


def _file_of(status: os.stat_result) -> _File:
    return status.st_dev, status.st_ino


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=HANDLES.after_fork)
