"""The script that times the guard runs, with and without the library that it is compared with."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "bench" / "guard_latency.py"
# A library with the names of the other one, and with one rule: the first score is at most a half.
PEER = """
from types import SimpleNamespace as Space

ToolCallContext = Space


def calibrate(scorers, calls, alpha):
    for call, _ in calls:
        for scorer in scorers if isinstance(scorers, list) else [scorers]:
            scorer(call)
    return 0.5


def decide(calibrator, call):
    return Space(decision=Space(value="accept" if call.args["first"] <= calibrator else "abstain"))


def wrap(tool, calibrator):
    return lambda **given: tool(**given)


calibrate_multi_check, decide_multi_check = calibrate, decide
"""


def tables() -> tuple[list[list[list[str]]], str]:
    """Cells of both tables that a quick run prints, and the line below them."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--quick"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    parts = [part.splitlines() for part in done.stdout.split("\n\n")]
    cells = [[[cell.strip() for cell in line.strip("|").split("|")] for line in part] for part in parts[1:3]]
    return [[header, *rows] for header, _, *rows in cells], done.stdout.splitlines()[-1]


def hidden(folder: Path, name: str) -> None:
    """Make every process that starts with this folder believe that a package is not installed."""
    (folder / "sitecustomize.py").write_text(
        "import importlib.metadata as m\nfound = m.version\n"
        "def version(name):\n"
        f"    if name == {name!r}: raise m.PackageNotFoundError(name)\n"
        "    return found(name)\n"
        "m.version = version\n"
    )


def test_the_guard_is_timed_without_a_peer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Guarded calls have what they add and whether that is little, and the columns of the peer are empty."""
    hidden(tmp_path, "conformguard")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (calls, works), last = tables()
    assert [row[0] for row in calls[1:]] == ["bare", "here, 1 check", "here, 3 checks"]
    assert all(row[3] in ("yes", "no") for row in calls[2:])
    assert [row[:2] for row in works[1:]] == [[work, n] for n in "13" for work in ("calibrate", "decide")]
    assert {cell for row in works[1:] for cell in row[4:]} == {""}
    assert last == 'conformguard is not installed. To compare it: pip install "conformguard==0.2.*"'


def test_a_peer_is_timed_on_the_same_calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It has a guarded call and ratios, and the calls on which it decides otherwise are counted."""
    (tmp_path / "conformguard.py").write_text(PEER)
    (tmp_path / "conformguard-0.0.0.dist-info").mkdir()
    (tmp_path / "conformguard-0.0.0.dist-info" / "METADATA").write_text(
        "Name: conformguard\nVersion: 0.0.0\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (calls, works), last = tables()
    assert calls[-1][0] == "conformguard, 1 check"
    ratio = works[0].index("ratio")
    # A ratio is there; how large it is, is the machine's business.
    assert all(re.fullmatch(r"\d+\.\d+", row[ratio]) for row in works[1:])
    assert last.startswith("conformguard 0.0.0. Of 64 new calls other ones are accepted: ")
