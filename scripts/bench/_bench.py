"""What the benchmarks share: a process fit for timing, medians of rounds that take turns, and a table."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from time import perf_counter

THREADS = (
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
STRAY = ("PYTHONDONTWRITEBYTECODE", "OPENBLAS_CORETYPE", "PYTHONPROFILEIMPORTTIME")
_MARK = "RAG_CONFIDENCE_BENCH"
_WARM_UP = 5


def environment() -> dict[str, str]:
    """The environment of a timed process; BLAS reads its number of threads only when it is loaded."""
    kept = {name: value for name, value in os.environ.items() if name not in STRAY}
    return kept | dict.fromkeys(THREADS, "1") | {_MARK: "1"}


def is_clean() -> bool:
    """Whether this process was started with `environment`."""
    return _MARK in os.environ


def run_again() -> int:
    """Run this script with the same arguments in a clean process; return its exit code."""
    return subprocess.run([sys.executable, *sys.argv], env=environment(), check=False).returncode


def medians(jobs: Mapping[str, Callable[[], object]], *, rounds: int, seconds: float) -> dict[str, float]:
    """Seconds a call of every job: the median over `rounds`, in each of which all jobs take a turn.

    A turn lasts about `seconds`. A disturbance of the machine then hits all jobs alike, so that the ratio of
    two medians means more than either.
    """
    repeats = {name: _repeats(job, seconds) for name, job in jobs.items()}
    found: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(rounds):
        for name, job in jobs.items():
            found[name].append(_per_call(job, repeats[name]))
    return {name: median(times) for name, times in found.items()}


def _repeats(job: Callable[[], object], seconds: float) -> int:
    once = min(_per_call(job, 1) for _ in range(_WARM_UP))
    return max(1, int(seconds / max(once, 1e-7)))


def _per_call(job: Callable[[], object], repeats: int) -> float:
    started = perf_counter()
    for _ in range(repeats):
        job()
    return (perf_counter() - started) / repeats


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with aligned columns."""
    cells = [header, *rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in cells
    ]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])


def us(seconds: float) -> str:
    """Microseconds with three digits that count, milliseconds from ten on."""
    return f"{1e6 * seconds:.3g} us" if seconds < 1e-3 else f"{1e3 * seconds:.3g} ms"
