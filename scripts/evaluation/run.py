"""Measure every part that the cache lacks, in several processes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any, Generic, TypeVar

from evaluation import histories, part
from evaluation.cache import Cache
from evaluation.plan import Effort, Part, digest_of
from evaluation.progress import progress

# BLAS reads these when it is loaded, in a new process: its threads would compete with the other processes.
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")

Key = TypeVar("Key")


@dataclass(frozen=True)
class How:
    """How a run is carried out: effort, where results are kept, processes, whether kept ones are used."""

    effort: Effort
    cache: Cache
    jobs: int
    fresh: bool


@dataclass(frozen=True)
class Task(Generic[Key]):
    """One call in some process, and what its result depends on."""

    name: Key
    label: str
    key: str
    work: Callable[..., dict[str, Any]]
    arguments: tuple[Any, ...]


def results(
    parts: Sequence[Part], deployments: Sequence[histories.Deployment], how: How
) -> list[dict[str, Any]]:
    """The results of all parts, in their order: first the priors that leave out a set, then the parts."""
    signals = [
        Task(one, one.label, histories.key(one, how.effort), histories.measured, (one, how.effort))
        for one in deployments
    ]
    priors = histories.priors(done(signals, how))
    tasks = []
    for one in parts:
        prior = priors.get((one.place.name, one.k))
        digest = digest_of(one.place, one.strangers, one.embedder, how.effort)
        key = f"{digest}_{histories.fingerprint(prior)}"
        tasks.append(Task(one, one.label, key, part.measured, (one, how.effort, prior)))
    found = done(tasks, how)
    return [found[one] for one in parts]


def done(tasks: Sequence[Task[Key]], how: How) -> dict[Key, dict[str, Any]]:
    """The result of every task by name; those in the cache are read, unless all are measured afresh."""
    paths = {task.name: how.cache.path(task.label, task.key) for task in tasks}
    kept = {} if how.fresh else {name: how.cache.read(path) for name, path in paths.items()}
    found = {name: result for name, result in kept.items() if result is not None}
    todo = [task for task in tasks if task.name not in found]
    with progress(len(tasks), len(found)) as step:
        for task, result in _work(todo, how.jobs):
            how.cache.write(paths[task.name], result)
            found[task.name] = result
            step(task.label)
    return found


def _work(todo: Sequence[Task[Key]], jobs: int) -> Iterator[tuple[Task[Key], dict[str, Any]]]:
    if jobs == 1 or not todo:
        for task in todo:
            yield task, task.work(*task.arguments)
        return
    with _one_thread(), ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(task.work, *task.arguments): task for task in todo}
        try:
            for finished in as_completed(waiting):
                yield waiting[finished], finished.result()
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
