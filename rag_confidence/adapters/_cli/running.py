"""One run of a command line: what stops it becomes a line and an exit code, never a traceback."""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, suppress
from functools import cache
from typing import IO, Any

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
    with _open_stderr():
        for stream in (sys.stdout, sys.stderr):
            # A terminal that lacks a letter gets its number instead of an error.
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        try:
            with shown_warnings():
                code = _command(arguments)
        except BrokenPipeError:
            code = PIPE_CLOSED
        _settle(sys.stdout)
        _settle(sys.stderr)
    return code


@contextmanager
def _open_stderr() -> Iterator[None]:
    """Python has no stream where a shell closed it: what is told there then goes nowhere."""
    if sys.stderr is not None:
        yield
        return
    with redirect_stderr(io.StringIO()):
        yield


def _command(arguments: list[str]) -> int:
    try:
        if sys.stdout is None:
            raise OSError("standard output is closed")
        code = _invoked(arguments)
        # A disk that is full shows here, as an error like any other.
        sys.stdout.flush()
        return code
    except typer.Abort:
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except UsageError as problem:
        return _refuse(f"{_words(problem)} See {PROGRAM} --help.")
    except USER_ERRORS as problem:
        return _refuse(_told(problem))


def _invoked(arguments: list[str]) -> int:
    try:
        with _root().make_context(PROGRAM, arguments) as context:
            _root().invoke(context)
    except typer.Exit as done:
        return done.exit_code
    return 0


@cache
def _root() -> Any:
    return typer.main.get_command(application())


def _refuse(message: str) -> int:
    # Where nobody can be told, the exit code still says it.
    with suppress(OSError):
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


def _settle(stream: IO[str] | None) -> None:
    """Write what a stream still holds; where that fails, drop it, so that the exit does not fail on it."""
    if stream is None:
        return
    try:
        stream.flush()
    except OSError:
        _forget(stream)


def _forget(stream: IO[str]) -> None:
    try:
        descriptor = stream.fileno()
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
