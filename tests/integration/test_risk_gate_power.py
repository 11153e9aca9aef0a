"""The benchmark of certified risk runs and prints a line for every method."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "bench" / "risk_gate_power.py"


def test_each_method_has_a_line_for_each_distribution() -> None:
    """Acceptance with its spread, beside the grid of 100 thresholds, for both ways of testing."""
    command = [sys.executable, str(SCRIPT), "--quick", "--seeds", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.strip("|").split("|") for line in done.stdout.splitlines() if line.startswith("| ")]
    header, *rows = [[cell.strip() for cell in line] for line in lines]
    method, share = header.index("method"), header.index("acceptance")
    assert [row[method] for row in rows] == 5 * [
        "ranks, sequence",
        "ranks, bonferroni",
        "100 lambdas, sequence",
        "100 lambdas, bonferroni",
    ]
    assert all(0.0 <= float(row[share]) <= 1.0 for row in rows)
