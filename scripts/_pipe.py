"""Output into a pipe whose reader may stop early, as `| head` does."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

# What a shell reports for a program that a closed pipe ended.
CLOSED_PIPE = 141


def run(main: Callable[[], int]) -> int:
    """The exit code of `main`, or that of a closed pipe when nobody reads on."""
    try:
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:
        # At its end the interpreter flushes once more, which must not fail aloud.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED_PIPE
    return code
