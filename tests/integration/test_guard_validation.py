"""The script that checks the promises of guards, and the page that it writes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
SCRIPT = PROJECT / "scripts" / "guard_validation.py"


def run(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """The script, with its data in a folder."""
    environment = {**os.environ, "RAG_CONFIDENCE_DATA": str(folder)}
    command = [sys.executable, "-W", "error", str(SCRIPT), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.needs_data
def test_the_page_is_what_the_script_writes(data_dir: Path, tmp_path: Path) -> None:
    """docs/guard_validation.md is the output of the whole run, and everything in it is as it should be."""
    page = tmp_path / "page.md"
    done = run("--data", str(data_dir), "--write", str(page), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == page.read_text(encoding="utf-8")
    assert done.stdout == (PROJECT / "docs" / "guard_validation.md").read_text(encoding="utf-8")


def test_without_data_the_sections_on_real_calls_are_left_out(tmp_path: Path) -> None:
    """A machine without the data checks the rest."""
    done = run("--trials", "20", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Left out: no data." in done.stdout
    assert "real calls |" not in done.stdout


def test_a_folder_without_the_calls_is_named(tmp_path: Path) -> None:
    """Asking for data that is not there ends in one line, and writes nothing."""
    done = run("--data", str(tmp_path), "--write", str(tmp_path / "page.md"), folder=tmp_path)
    assert done.returncode == 2
    assert done.stderr == "guard_validation.py: no bfcl_raw/live_simple.jsonl in the data folder\n"
    assert not (tmp_path / "page.md").exists()
