"""The command line on streams as shells make them: closed, full, or with nobody who reads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.needs_extra("cli")

# Python hides a full disk until the exit where it writes in blocks, as it does by default.
BLOCKS = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}


def shell(redirection: str, arguments: str, folder: Path) -> tuple[int, str]:
    """Exit code and messages of a command with this redirection."""
    program = f"exec {sys.executable} -m rag_confidence.adapters.cli {arguments} {redirection}"
    done = subprocess.run(["sh", "-c", program], cwd=folder, env=BLOCKS, capture_output=True, text=True)
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("redirection", "arguments", "told"),
    [
        (">/dev/full", "gate plan", "error: [Errno 28] No space left on device\n"),
        (">&-", "gate plan", "error: standard output is closed\n"),
        ("<&-", "audit -", "error: standard input is closed\n"),
        ("2>&-", "audit none.jsonl", ""),
        ("2>/dev/full", "audit none.jsonl", ""),
        ("", "audit none.jsonl", "error: none.jsonl: No such file or directory\n"),
    ],
)
def test_a_broken_stream_is_an_error_line(
    tmp_path: Path, redirection: str, arguments: str, told: str
) -> None:
    """Exit code 2 and at most one line, never a traceback, also where nobody can be told."""
    assert shell(redirection, arguments, tmp_path) == (2, told)
