"""Writes of many threads in few transactions: whoever comes first commits for all who wait."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from threading import Event, Lock
from typing import Any, TypeVar

from rag_confidence.errors import StoreError
from rag_confidence.store.unit_of_work import UnitOfWork

Result = TypeVar("Result")


class Pending:
    """One write that waits for its commit."""

    __slots__ = ("alone", "error", "leads", "result", "wake", "work")

    def __init__(self, work: Callable[[UnitOfWork], Any], *, alone: bool) -> None:
        self.work, self.alone = work, alone
        self.leads = False
        self.wake = Event()
        self.result: Any = None
        self.error: BaseException | None = None


class GroupCommit:
    """A queue of writes.

    The first writer becomes the leader and commits its own write. Whatever arrives meanwhile is committed
    together by the next leader, which is the first of those who wait. Each returns after its own commit. If
    a transaction fails, all whose writes were in it get the error.

    Parameters
    ----------
    transact : callable
        Does the work of a batch in one transaction. A refusal of a single one goes to its `error`.
    """

    def __init__(self, transact: Callable[[Sequence[Pending]], None]) -> None:
        self._transact = transact
        self._lock = Lock()
        self._busy = False
        self._waiting: deque[Pending] = deque()

    def run(self, work: Callable[[UnitOfWork], Result], *, alone: bool = False) -> Result:
        """What `work` returns, after it was committed; `alone` in a transaction of its own."""
        mine = Pending(work, alone=alone)
        with self._lock:
            mine.leads, self._busy = not self._busy, True
            if not mine.leads:
                self._waiting.append(mine)
        if not mine.leads:
            self._wait(mine)
        if mine.leads:
            self._lead(mine)
        if mine.error is not None:
            raise mine.error
        result: Result = mine.result
        return result

    def _wait(self, mine: Pending) -> None:
        try:
            mine.wake.wait()
        except BaseException:
            # Interrupted: withdraw, and do not take along the turn of the others.
            with self._lock:
                if mine in self._waiting:
                    self._waiting.remove(mine)
            if mine.leads:
                self._hand_on()
            raise

    def _lead(self, mine: Pending) -> None:
        batch = [mine]
        try:
            batch += self._companions(mine)
            self._transact(batch)
        except BaseException as error:
            for other in batch[1:]:
                other.error = _same_for_another(error)
            raise
        finally:
            self._hand_on()
            for other in batch[1:]:
                other.wake.set()

    def _companions(self, mine: Pending) -> list[Pending]:
        """Those who wait, up to the first that wants a transaction of its own."""
        found: list[Pending] = []
        with self._lock:
            while not mine.alone and self._waiting and not self._waiting[0].alone:
                found.append(self._waiting.popleft())
        return found

    def _hand_on(self) -> None:
        with self._lock:
            following = self._waiting.popleft() if self._waiting else None
            self._busy = following is not None
            if following is not None:
                following.leads = True
        if following is not None:
            following.wake.set()


def _same_for_another(error: BaseException) -> BaseException:
    """The error of a shared transaction for another thread: one exception must not be raised by two."""
    message = str(error)
    if not isinstance(error, StoreError):
        message = (
            f"`write` must be committed with those that waited beside it; got {error!r} in their "
            "transaction. Nothing of this write was kept. Try again."
        )
    copy = StoreError(message)
    copy.__cause__ = error
    return copy
