"""One run of a command line: what stops it becomes a line and an exit code, never a traceback."""

from __future__ import annotations

import errno
import io
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import typer

from rag_confidence.adapters._cli.application import application
from rag_confidence.adapters._cli.printing import note
from rag_confidence.errors import StoreError

PROGRAM = "rag-confidence"
BAD_USAGE = 2
INTERRUPTED = 130
# What a shell reports of a program that the closed pipe ended.
PIPE_CLOSED = 141

# Releases of typer take this from click or from a copy of click: the base of all that options can get wrong.
UsageError: type[Exception] = typer.BadParameter.__bases__[0]
USER_ERRORS = (ValueError, TypeError, OSError, ImportError, StoreError, MemoryError)


def run(arguments: list[str]) -> int:
    """Run one command line; its exit code."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that lacks a letter gets its number instead of an error.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        with shown_warnings():
            code = _command(arguments)
    except BrokenPipeError:
        _forget_output()
        return PIPE_CLOSED
    return code


def _command(arguments: list[str]) -> int:
    try:
        with _root().make_context(PROGRAM, arguments) as context:
            _root().invoke(context)
        sys.stdout.flush()
    except typer.Exit as done:
        return done.exit_code
    except typer.Abort:
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except UsageError as problem:
        return _refuse(f"{_words(problem)} See {PROGRAM} --help.")
    except USER_ERRORS as problem:
        if isinstance(problem, OSError) and problem.errno == errno.ENOSPC:
            # What could not be written would be tried again, and fail aloud, when the process ends.
            _forget_output()
        return _refuse(_told(problem))
    return 0


@cache
def _root() -> Any:
    return typer.main.get_command(application())


def _refuse(message: str) -> int:
    note(f"error: {message}")
    return BAD_USAGE


def _told(problem: Exception) -> str:
    if isinstance(problem, OSError) and problem.filename is not None and problem.strerror:
        return f"{problem.filename}: {problem.strerror}"
    return str(problem) or type(problem).__name__


def _words(problem: Exception) -> str:
    shown: Callable[[], str] = getattr(problem, "format_message", lambda: str(problem))
    words = shown()
    return words if words.endswith((".", "?", ")")) else f"{words}."


def _forget_output() -> None:
    """Point standard output at nothing, so that what is left in its buffer raises nothing at exit."""
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError):
        return
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, descriptor)
    os.close(nothing)


@contextmanager
def shown_warnings() -> Iterator[None]:
    """Warnings of the library as lines on standard error, each once."""
    told: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        if str(message) not in told:
            told.add(str(message))
            note(f"warning: {message}")

    with warnings.catch_warnings(action="always", category=UserWarning):
        warnings.showwarning = show
        yield
