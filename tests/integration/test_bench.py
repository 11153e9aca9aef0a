"""The benchmarks run and print their tables; what they measure is for people to read, not for tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "scripts" / "bench"


def run(script: str, *options: str) -> str:
    """What a benchmark prints when it is run as a user runs it."""
    command = [sys.executable, str(BENCH / script), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def table(text: str) -> list[list[str]]:
    """Cells of the Markdown table in `text`, header included."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_score_latency_shows_the_floor_and_the_target_beside_each_figure() -> None:
    """Every call has its time, the NumPy floor of the same run, their ratio, and its target if it has one."""
    tiny = ("--rounds", "1", "--seconds", "0.0001", "--queries", "20", "--largest", "30", "--dimension", "16")
    header, *rows = table(run("score_latency.py", *tiny))
    assert [row[0] for row in rows] == [
        "score, n = 10, perturb=False",
        "score, n = 10, perturb=True",
        "score, n = 20, perturb=False",
        "score, n = 20, perturb=True",
        "score, n = 30, perturb=False",
        "score, n = 30, perturb=True",
        "score_many, k = 10, perturb=False",
        "score_many, k = 10, perturb=True",
        "score_many, k = 20, perturb=False",
        "score_many, k = 20, perturb=True",
    ]
    target, ratio = header.index("target"), header.index("over floor")
    for row in rows:
        assert float(row[ratio]) > 0.0
        assert row[target + 1] in (("yes", "no") if row[target] else ("",))


@pytest.mark.needs_extra("topology")
def test_score_latency_times_the_seed_in_the_same_run() -> None:
    """--reference-seed adds the seed's definitions, without and with its jitter."""
    tiny = ("--rounds", "1", "--seconds", "0.0001", "--queries", "4", "--largest", "30", "--dimension", "16")
    names = [row[0] for row in table(run("score_latency.py", *tiny, "--reference-seed"))]
    assert [name for name in names if name.startswith("seed's")] == [
        f"seed's score, n = {n}, perturb={perturb}" for n in (10, 20) for perturb in (False, True)
    ]


def test_import_time_compares_with_numpy_and_names_what_is_heavy() -> None:
    """Both imports are timed, and the list of heavy modules that came along is empty."""
    text = run("import_time.py", "--rounds", "1")
    assert [row[0] for row in table(text)] == ["import", "numpy", "rag_confidence"]
    assert "heavy modules loaded: none" in text


@pytest.mark.needs_extra("topology")
def test_distances_are_compared_with_persim() -> None:
    """Both distances, on shared and on free deaths; the bottleneck distances agree."""
    text = run("distances.py", "--rounds", "1", "--seconds", "0.0001", "--bars", "6")
    header, *rows = table(text)
    assert [row[:3] for row in rows] == [
        [name, "6", deaths] for deaths in ("shared", "free") for name in ("bottleneck", "wasserstein")
    ]
    difference = header.index("largest difference")
    assert all(float(row[difference]) < 1e-9 for row in rows if row[0] == "bottleneck")


def test_distances_run_without_persim(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where persim is missing the script says so and times its own distances alone."""
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util as u\nfound = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name == 'persim' else found(name, *rest)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    text = run("distances.py", "--rounds", "1", "--seconds", "0.0001", "--bars", "6")
    assert "persim is not installed" in text
    assert len(table(text)) == 5
