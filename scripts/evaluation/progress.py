"""Progress on standard error: a bar of `rich` where that is installed, else a line a part."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec

Step = Callable[[str], None]


@contextmanager
def progress(total: int, done: int) -> Iterator[Step]:
    """A function to call with the name of each part that is finished; `done` of `total` are already."""
    if find_spec("rich") and sys.stderr.isatty():
        with _bar(total, done) as step:
            yield step
    else:
        yield _lines(total, done)


def _lines(total: int, done: int) -> Step:
    started, finished = time.monotonic(), done

    def step(name: str) -> None:
        nonlocal finished
        finished += 1
        seconds = time.monotonic() - started
        rest = seconds / (finished - done) * (total - finished)
        print(f"{finished}/{total} {name}: {seconds:.0f} s, {rest:.0f} s to go", file=sys.stderr, flush=True)

    return step


@contextmanager
def _bar(total: int, done: int) -> Iterator[Step]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=total, completed=done)
        yield lambda name: bar.update(task, advance=1, description=name)
