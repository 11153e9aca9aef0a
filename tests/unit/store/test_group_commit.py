"""Writes that wait are committed together, each gets its own outcome, and nobody waits for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from refusals import refuse
from store_places import call, plain

from rag_confidence.errors import StoreError
from rag_confidence.store import CalibrationStore
from rag_confidence.store.group_commit import GroupCommit, Pending


class Recorder:
    """Transactions that note how many writes they held; the first waits until it may go on."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.sizes: list[int] = []
        self.entered, self.go_on = threading.Event(), threading.Event()
        self.error = error

    def __call__(self, batch: Sequence[Pending]) -> None:
        self.sizes.append(len(batch))
        if len(self.sizes) == 1:
            self.entered.set()
            self.go_on.wait()
        elif self.error is not None:
            raise self.error
        for pending in batch:
            pending.result = pending.work(None)  # type: ignore[arg-type]


def behind_a_first(recorder: Recorder, alone: Sequence[bool]) -> list[Future[Any]]:
    """The outcomes of a first write, and of others that came one by one while it was being committed."""
    queue = GroupCommit(recorder)
    with ThreadPoolExecutor(len(alone) + 1) as pool:
        futures = [pool.submit(queue.run, lambda _: "first")]
        recorder.entered.wait()
        for at, by_itself in enumerate(alone):
            futures.append(pool.submit(queue.run, lambda _, at=at: at, alone=by_itself))
            while len(queue._waiting) <= at:
                threading.Event().wait(0.001)
        recorder.go_on.set()
    return futures


def test_those_who_wait_are_committed_together() -> None:
    """Six writes that came during a commit share the next one, and each gets its own result."""
    recorder = Recorder()
    futures = behind_a_first(recorder, [False] * 6)
    assert [future.result() for future in futures] == ["first", *range(6)]
    assert recorder.sizes == [1, 6]


def test_a_write_that_wants_to_be_alone_is_alone() -> None:
    """Nothing is committed with it, and the order of arrival stays."""
    recorder = Recorder()
    futures = behind_a_first(recorder, [False, False, True, False, False])
    assert [future.result() for future in futures] == ["first", *range(5)]
    assert recorder.sizes == [1, 2, 1, 2]


@pytest.mark.parametrize(
    "error", [StoreError("`path` must work; got an error. Mend it."), KeyboardInterrupt()]
)
def test_a_failed_transaction_gives_all_its_writers_the_error(error: BaseException) -> None:
    """The leader raises what happened, the others a StoreError of their own, and the queue goes on."""
    futures = behind_a_first(Recorder(error), [False] * 3)
    raised = [future.exception() for future in futures]
    assert raised[0] is None
    assert raised[1] is error
    assert [type(other) for other in raised[2:]] == [StoreError, StoreError]
    assert raised[2] is not raised[3]
    assert all(other is not None and other.__cause__ is error for other in raised[2:])


def test_the_queue_is_empty_and_idle_afterwards() -> None:
    """After any outcome the next write leads at once."""
    recorder = Recorder(ValueError("odd"))
    queue = GroupCommit(recorder)
    recorder.go_on.set()
    assert queue.run(lambda _: 1) == 1
    for _ in range(2):
        with pytest.raises(ValueError, match="odd"):
            queue.run(lambda _: 2)
    assert (queue._busy, len(queue._waiting)) == (False, 0)


class Interrupted:
    """An event whose wait is broken off, after something else happened."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        self._meanwhile = meanwhile

    def wait(self) -> None:
        self._meanwhile()
        raise KeyboardInterrupt

    def set(self) -> None:
        """Nobody waits any more."""


def test_a_writer_that_is_interrupted_withdraws() -> None:
    """What waited and was broken off is not committed later."""
    queue = GroupCommit(Recorder())
    mine = Pending(lambda _: None, alone=False)
    mine.wake = Interrupted(lambda: None)  # type: ignore[assignment]
    queue._busy = True
    queue._waiting.append(mine)
    with pytest.raises(KeyboardInterrupt):
        queue._wait(mine)
    assert len(queue._waiting) == 0
    assert queue._busy


def test_a_writer_that_is_interrupted_hands_on_its_turn() -> None:
    """Broken off just when it was to lead, it leaves the lead to the next."""
    queue = GroupCommit(Recorder())
    mine, following = Pending(lambda _: None, alone=False), Pending(lambda _: None, alone=False)
    queue._busy = True
    queue._waiting.extend([mine, following])
    mine.wake = Interrupted(queue._hand_on)  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        queue._wait(mine)
    assert following.leads
    assert following.wake.is_set()


def test_a_label_of_an_unknown_call_harms_no_one_beside_it(tmp_path: Path) -> None:
    """It is refused by itself; the writes that share its transaction are kept."""
    with CalibrationStore(tmp_path / "calls.db") as store, ThreadPoolExecutor(3) as pool:
        with store._access._backend.writing():
            futures: list[Future[Any]] = [
                pool.submit(store.add, call("a")),
                pool.submit(store.label, 77, True, "human"),
                pool.submit(store.add, call("b")),
            ]
            while len(store._access._commits._waiting) < 2:
                threading.Event().wait(0.001)
        refuse(ValueError, "`call_id` must be a call in this store", lambda: futures[1].result())
        assert {futures[0].result(), futures[2].result()} == {1, 2}
        assert sorted(plain(store.query())) == ["a", "b"]
