"""The script that times the gate runs, and knows a named difference from one that nobody can explain."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

BENCH = Path(__file__).resolve().parents[2] / "scripts" / "bench"


def tables(text: str) -> list[list[list[str]]]:
    """Cells of each Markdown table in `text`, without the line below its header."""
    parts = [part.splitlines() for part in text.split("\n\n") if part.startswith("| ")]
    return [
        [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
        for lines in parts
    ]


def test_each_call_stands_beside_what_it_cannot_do_without() -> None:
    """Arrays have a ratio to bare NumPy, single scores what they add, libraries a line or a way to one."""
    command = [sys.executable, str(BENCH / "gate_kernels.py"), "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    (header, *arrays), (_, *single), (_, *libraries), *_ = tables(done.stdout)
    assert [(row[0], row[3]) for row in arrays] == [
        ("conformal_quantile", "partition"),
        ("gate.predict", "a comparison"),
        ("gate.predict", "two comparisons"),
        ("gate.predict, raw", "a comparison"),
        ("gate.predict, raw", "two comparisons"),
        ("gate.predict, .accepted", "a mask of both"),
        ("fit_conformal_gate", "argsort"),
    ]
    assert all(float(row[header.index("ratio")]) > 0.0 for row in arrays)
    assert [row[0] for row in single] == ["gate.predict_one", "predict_one", "score, gate"]
    assert libraries[0][0] == "here"
    named = "Not installed: " if len(libraries) < 4 else "conformguard"
    assert named in done.stdout
    assert "unexplained" not in done.stdout


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module that compares the gate with other libraries."""
    spec = importlib.util.spec_from_file_location("_peers", BENCH / "_peers.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Its dataclasses look their module up by name.
    monkeypatch.setitem(sys.modules, "_peers", module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("kept_0", "said"),
    [(9, "same"), (10, "2 labels more: a cause (10 and 9)"), (8, "2 labels differ, unexplained")],
)
def test_a_difference_is_named_only_where_its_cause_explains_every_label(
    peers: ModuleType, kept_0: int, said: str
) -> None:
    """A library that keeps up to the rank that it is known to use is explained; any other set is not."""
    scores = np.arange(20) / 20
    rows = peers.Rows(scores, scores >= 0.5)
    # Two of the asked scores lie at each rank.
    asked = peers.Asked(rows, Fraction(1, 10), np.repeat(scores, 2))
    zeros, ones = np.sort(scores[:10]), np.sort(-scores[10:])

    def kept(rank_0: int, rank_1: int) -> np.ndarray:
        return np.column_stack([asked.new <= zeros[rank_0 - 1], -asked.new <= ones[rank_1 - 1]])

    peer = peers.Peer("peer", None, None, None, lambda n, level: next(ranks), "a cause")
    ranks = iter((10, 9))
    assert peers.difference(peer, kept(kept_0, 9), kept(9, 9), asked) == said
