"""Durable records a second of the calibration store: one thread, eight threads, several processes.

    python scripts/bench/store_throughput.py
    python scripts/bench/store_throughput.py --url postgresql+psycopg://postgres@127.0.0.1:5432/postgres

Each record is added by its own add(), which returns after its commit: with synchronous "full" the record is
then on the disk. The floor is plain sqlite3 with one commit a record of the same size, in the same run.
All take turns; figures are medians over the rounds. With --url the tables of the store in that database get
the records.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from statistics import median
from time import perf_counter

from _bench import environment, is_clean, run_again, table

from rag_confidence._calls import ToolCallContext
from rag_confidence.store import CalibrationStore

TARGET = 2000.0
THREADS = 8
PROCESSES = 4
ARGUMENTS = {"query": "weather in Berlin", "limit": 10, "units": ["celsius", "km/h"]}
SCORES, FINGERPRINTS = {"logprob": 0.731, "schema": 0.0}, {"logprob": "a" * 64, "schema": "b" * 64}
_CHILD = "--child"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    parser = argparse.ArgumentParser(description="Records a second of the calibration store.")
    parser.add_argument("--records", type=int, default=4000, help="of each round (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="(default: %(default)s)")
    parser.add_argument("--url", help="a PostgreSQL database instead of a SQLite file")
    parser.add_argument("--folder", help="where the files are made (default: a temporary folder)")
    parser.add_argument(_CHILD, nargs=2, metavar=("STORE", "RECORDS"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child is not None:
        return child(options.child[0], int(options.child[1]))
    if not is_clean():
        return run_again()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        report(measured(Path(folder), options), options)
    return 0


def measured(folder: Path, options: argparse.Namespace) -> dict[str, float]:
    """Median records a second of every way, all of which take a turn in each round."""
    jobs = ways(options.url)
    found: dict[str, list[float]] = {name: [] for name in jobs}
    for turn in range(options.rounds):
        for at, (name, job) in enumerate(jobs.items()):
            store = options.url or str(folder / f"{turn}-{at}.db")
            started = perf_counter()
            job(store, options.records)
            found[name].append(options.records / (perf_counter() - started))
    return {name: median(rates) for name, rates in found.items()}


def ways(url: str | None) -> dict[str, Callable[[str, int], None]]:
    """Name -> what writes so many records to a store."""
    jobs: dict[str, Callable[[str, int], None]] = {}
    if url is None:
        jobs["plain sqlite3, 1 thread, full"] = plain
    for synchronous in ("full", "normal"):
        for threads in (1, THREADS):
            jobs[f"store, {threads} thread{'s'[: threads > 1]}, {synchronous}"] = threaded(
                threads, synchronous
            )
    jobs[f"store, {PROCESSES} processes of 2 threads, full"] = forked
    return jobs


def plain(path: str, records: int) -> None:
    """One commit a record, as SQLite does by itself in WAL with synchronous FULL."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT)")
        for _ in range(records):
            connection.execute("INSERT INTO t (text) VALUES (?)", ("x" * 400,))


def threaded(threads: int, synchronous: str) -> Callable[[str, int], None]:
    """So many threads that share one store."""

    def job(path: str, records: int) -> None:
        opened = CalibrationStore(path, synchronous=synchronous)  # type: ignore[arg-type]
        with opened as store, ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda _: write(store, records // threads), range(threads)))

    return job


def forked(path: str, records: int) -> None:
    """Processes of their own, each with two threads."""
    command = [sys.executable, __file__, _CHILD, path, str(records // PROCESSES)]
    running = [subprocess.Popen(command, env=environment()) for _ in range(PROCESSES)]
    codes = [process.wait() for process in running]
    if any(codes):
        raise SystemExit("a writing process failed")


def child(path: str, records: int) -> int:
    """What each of those processes does."""
    threaded(2, "full")(path, records)
    return 0


def write(store: CalibrationStore, records: int) -> None:
    """Add records one by one, as a guarded tool does."""
    for _ in range(records):
        context = ToolCallContext(tool_name="search", args=ARGUMENTS)
        store.add(context, True, scores=SCORES, fingerprints=FINGERPRINTS, labeling_source="deterministic")


def report(rates: dict[str, float], options: argparse.Namespace) -> None:
    """Print the table and the verdict on the target."""
    database = "PostgreSQL" if options.url else f"SQLite {sqlite3.sqlite_version}, WAL"
    print(f"{database}; {options.records} records a round, median of {options.rounds} rounds;")
    print(f"{os.cpu_count()} cores; a label with each record; starting the processes is part of their time\n")
    print(table(("way, synchronous", "records/s"), [[name, f"{rate:.0f}"] for name, rate in rates.items()]))
    rate = rates[f"store, {THREADS} threads, full"]
    met = "yes" if rate >= TARGET else "no"
    print(f'\ntarget: {TARGET:.0f} records/s from {THREADS} threads with synchronous "full"; met: {met}')


if __name__ == "__main__":
    sys.exit(main())
