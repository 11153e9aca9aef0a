"""The throughput script runs and prints every way of writing, with its synchronous setting."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from store_places import one_thread

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "bench" / "store_throughput.py"


def test_the_throughput_script_prints_its_table(tmp_path: Path) -> None:
    """Whatever the figures are on this machine, a few records go through every way."""
    command = [sys.executable, SCRIPT, "--records", "16", "--rounds", "1", "--folder", tmp_path]
    done = subprocess.run(command, env=one_thread(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if line.startswith("| ")]
    assert len(rows) == 7
    assert all("full" in row or "normal" in row for row in rows[1:])
    assert 'from 8 threads with synchronous "full"; met: ' in done.stdout
