"""Measure every part that the cache lacks, in several processes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any

from evaluation.cache import Cache
from evaluation.part import measured
from evaluation.plan import Part
from evaluation.progress import progress

# BLAS reads these when it is loaded, in a new process: its threads would compete with the other processes.
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def results(parts: Sequence[Part], cache: Cache, *, jobs: int, fresh: bool) -> list[dict[str, Any]]:
    """The results of all parts, in their order; those in the cache are read, unless `fresh`."""
    paths = {part: cache.path(part) for part in parts}
    found = {} if fresh else {part: cache.read(path) for part, path in paths.items()}
    todo = [part for part in parts if found.get(part) is None]
    with progress(len(parts), len(parts) - len(todo)) as step:
        for part, result in _measure(todo, cache, jobs):
            cache.write(paths[part], result)
            found[part] = result
            step(part.label)
    return [dict(found[part] or {}) for part in parts]


def _measure(todo: Sequence[Part], cache: Cache, jobs: int) -> Iterator[tuple[Part, dict[str, Any]]]:
    if jobs == 1:
        for part in todo:
            yield part, measured(part, cache.effort)
        return
    with _one_thread(), ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(measured, part, cache.effort): part for part in todo}
        try:
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _one_thread() -> Iterator[None]:
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
