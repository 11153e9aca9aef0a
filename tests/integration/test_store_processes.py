"""Many processes on one store: creating, migrating, writing, forking, and being killed in the middle."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from store_places import call, command, one_thread, place, plain, run_python

from rag_confidence.store import CalibrationStore
from rag_confidence.store.backend import Backend
from rag_confidence.store.postgres_backend import PostgresBackend
from rag_confidence.store.schema import create_version_1
from rag_confidence.store.sqlite_backend import SqliteBackend

__all__ = ["place"]

# Runs a function in forked children at once; they end without the clean-up of an interpreter.
FORKS = """
import os, sys, traceback
from rag_confidence._calls import ToolCallContext
from rag_confidence.store import CalibrationStore

if "://" in sys.argv[1]:
    # Once, and not in every child.
    import psycopg, sqlalchemy.dialects.postgresql.psycopg

def in_children(count, work):
    ready, go = os.pipe()
    children = []
    for child in range(count):
        pid = os.fork()
        if pid == 0:
            os.close(go)
            os.read(ready, 1)
            code = 1
            try:
                work(child)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        children.append(pid)
    os.close(go)
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]

def write(store, child, count):
    for at in range(count):
        store.add(ToolCallContext("t", {"query": f"{child}-{at}"}), True, labeling_source="human")
"""

TWELVE_WRITERS = f"""{FORKS}
def work(child):
    with CalibrationStore(sys.argv[1]) as store:
        write(store, child, 30)

print(in_children(12, work))
"""

OPENED_BEFORE_THE_FORK = f"""{FORKS}
with CalibrationStore(sys.argv[1]) as store:
    write(store, "parent", 2)
    def work(child):
        write(store, child, 5)
        store.close()
    codes = in_children(3, work)
    write(store, "parent again", 2)
    print(codes, store.count())
"""

OPEN_AT_ONCE = f"""{FORKS}
def work(child):
    with CalibrationStore(sys.argv[1]) as store:
        store.add(ToolCallContext("t", {{"query": "new"}}))

print(in_children(6, work))
"""

WRITE_UNTIL_KILLED = """
import sys, threading
from rag_confidence._calls import ToolCallContext
from rag_confidence.store import CalibrationStore

store = CalibrationStore(sys.argv[1])
lock = threading.Lock()

def write(thread):
    while True:
        number = store.add(ToolCallContext("t", {"query": "x" * 200}), True, labeling_source="human")
        with lock:
            print(number, flush=True)

for thread in range(4):
    threading.Thread(target=write, args=(thread,)).start()
"""

KILLED_IN_A_TRANSACTION = """
import sys, time
from rag_confidence.store import CalibrationStore
from rag_confidence.store.unit_of_work import UnitOfWork
from rag_confidence._calls import CallRecord, ToolCallContext
from rag_confidence.store.rows import call_row, label_row

store = CalibrationStore(sys.argv[1])
with store._access._backend.writing() as transaction:
    unit = UnitOfWork(transaction)
    for at in range(3000):
        record = CallRecord(ToolCallContext("t", {"query": "half" * 100}))
        unit.add(call_row(record, recorded_at=None), label_row(True, "human", None))
    unit.flush()
    transaction.run("DELETE FROM rag_confidence_labels WHERE seq < 10")
    print("written, not committed", flush=True)
    time.sleep(60)
"""


@contextmanager
def running(program: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A fresh interpreter, which is killed at the end without any chance to clean up."""
    process = subprocess.Popen(
        command(program, *arguments), env=one_thread(), stdout=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()


def test_twelve_processes_keep_every_record(place: str) -> None:
    """Thirty records of each: 360 of 360, in one sequence of numbers, all readable."""
    assert run_python(TWELVE_WRITERS, place).split("\n")[0] == str([0] * 12)
    with CalibrationStore(place, create=False) as store:
        records = store.query(outcome=True)
        assert [record.id for record in records] == list(range(1, 361))
        assert set(plain(records)) == {f"{child}-{at}" for child in range(12) for at in range(30)}
        assert store.verify() == ()


def test_a_store_opened_before_a_fork_works_in_parent_and_children(place: str) -> None:
    """Each process has connections of its own, and a child that closes it takes nothing from the others."""
    assert run_python(OPENED_BEFORE_THE_FORK, place) == f"{[0] * 3} 19\n"
    with CalibrationStore(place, create=False) as store:
        assert store.count() == 19
        assert store.verify() == ()


def test_processes_that_create_at_once_share_one_store(place: str) -> None:
    """One of them makes the tables, the others find them."""
    assert run_python(OPEN_AT_ONCE, place) == f"{[0] * 6}\n"
    with CalibrationStore(place, create=False) as store:
        assert store.count() == 6


def test_processes_that_migrate_at_once_migrate_once(place: str) -> None:
    """A store of version 1 keeps its calls, and everybody's new one is added."""
    backend: Backend = (
        PostgresBackend(place, "full", 5.0)
        if "://" in place
        else SqliteBackend.opened(place, synchronous="full", wait=5.0, create=True)
    )
    with backend.writing() as transaction:
        create_version_1(backend, transaction)
        transaction.run(
            "INSERT INTO rag_confidence_calls (id, tool_name, context, scores, fingerprints, outcome) VALUES "
            "(1, 't', :context, '{}', '{}', 1)",
            {
                "context": '{"args":{"query":"old"},"result":null,"token_logprobs":null,"judge_score":null,'
                '"call_id":null,"metadata":{}}'
            },
        )
        transaction.run("UPDATE rag_confidence_meta SET value = '2' WHERE name = 'next_call'")
    backend.close()
    assert run_python(OPEN_AT_ONCE, place) == f"{[0] * 6}\n"
    with CalibrationStore(place, create=False) as store:
        assert plain(store.query()) == ["old"] + ["new"] * 6
        assert plain(store.query(outcome=True)) == ["old"]
        assert store.verify() == ()


def test_a_writer_killed_at_any_moment_loses_nothing_that_was_committed(place: str) -> None:
    """Every number that add() returned is there with its label, and nothing is half there."""
    with running(WRITE_UNTIL_KILLED, place) as process:
        assert process.stdout is not None
        returned = {int(process.stdout.readline()) for _ in range(60)}
        process.send_signal(signal.SIGKILL)
        rest = process.stdout.read().split("\n")[:-1]
    with CalibrationStore(place, create=False) as store:
        assert {record.id for record in store.query(outcome=True)} >= returned | set(map(int, rest))
        assert store.count(labelled=False) == 0
        assert store.verify() == ()
        assert store.add(call()) == store.count()


def test_a_writer_killed_within_a_transaction_leaves_no_trace(place: str) -> None:
    """Readers see the state before it while it lives, and after it is gone; the next writer goes on."""
    with CalibrationStore(place) as store:
        store.add_many([(call(str(at)), True) for at in range(20)])
        before = store.query()
        with running(KILLED_IN_A_TRANSACTION, place) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "written, not committed\n"
            assert store.query() == before
        assert store.query() == before
        assert store.add(call("after")) == 21
    with CalibrationStore(place, create=False) as again:
        assert again.query()[:-1] == before
        assert again.verify() == ()
