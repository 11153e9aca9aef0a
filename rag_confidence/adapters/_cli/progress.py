"""Bars for long work, on a terminal only."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from rich.console import Console
from rich.progress import Progress

Item = TypeVar("Item")


def advancing(items: Sequence[Item], what: str) -> Iterator[Item]:
    """The items, one by one, with a bar of how many are done where someone watches."""
    if not sys.stderr.isatty() or len(items) < 2:
        yield from items
        return
    with Progress(console=Console(file=sys.stderr), transient=True) as bar:
        yield from bar.track(items, description=what)


@contextmanager
def working(what: str) -> Iterator[None]:
    """A sign of life during work that does not say how far it is, where someone watches."""
    if not sys.stderr.isatty():
        yield
        return
    with Console(file=sys.stderr).status(what):
        yield
