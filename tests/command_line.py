"""Runs of the command line in this process: exit code, standard output, standard error."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from rag_confidence.adapters.cli import main


@dataclass(frozen=True)
class Ran:
    """What one command line did."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one document of strict JSON that it printed."""
        return json.loads(self.out, parse_constant=lambda word: int(f"strict JSON has no {word}"))


def run(*arguments: object, stdin: str = "") -> Ran:
    """Run one command line, 80 columns wide, off a terminal."""
    out, err = io.StringIO(), io.StringIO()
    with (
        patch.object(sys, "stdin", io.StringIO(stdin)),
        patch.dict("os.environ", {"COLUMNS": "80"}),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        code = main([str(argument) for argument in arguments])
    return Ran(code, out.getvalue(), err.getvalue())


def lines_file(path: Path, rows: Sequence[object]) -> Path:
    """A file of JSON lines."""
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path
