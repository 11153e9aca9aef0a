"""The script behind the tables of docs/monitoring.md runs and prints them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "bench" / "monitor_rates.py"


def test_rates_and_delays_are_printed() -> None:
    """Three tables: false alarms of both designs, delays of drift, and delays of risk."""
    command = [sys.executable, str(SCRIPT), "--runs", "2", "--length", "60"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    tables = [part for part in done.stdout.split("\n\n") if part.startswith("| ")]
    assert [table.count("\n") - 1 for table in map(str.rstrip, tables)] == [10, 7, 5]
    assert tables[0].count("fixed") == 4
    assert tables[0].count("sequential") == 6
