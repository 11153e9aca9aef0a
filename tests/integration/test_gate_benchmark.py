"""scripts/bench/gate_benchmark.py: its tables, its checks, and what it does where the data are missing."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "bench" / "gate_benchmark.py"
METHODS = [
    "fixed 0.60",
    "fixed 0.70",
    "fixed 0.80",
    "gate, marginal",
    "gate, conflicts accepted",
    "gate, pac",
    "risk gate, 0.10",
    "risk gate, 0.30",
]
STRATA = ("topic gap", "ranking failure", "near miss", "withheld evidence")


def run(*options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the script as a user does, with environment `variables`."""
    command = [sys.executable, str(SCRIPT), *options]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **variables}
    )


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[dict[str, Any]]]:
    """What --quick prints, and the sections it writes."""
    file = tmp_path_factory.mktemp("gate") / "sections.json"
    done = run("--quick", "--json", str(file))
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads(file.read_text(encoding="utf-8"))


def mean(cell: str) -> float:
    """The mean in a cell that also shows a range."""
    return float(cell.split()[0])


def column(table: dict[str, Any], name: str) -> dict[str, str]:
    """Cells of a column by the first cell of their row."""
    at = table["header"].index(name)
    return {row[0]: row[at] for row in table["rows"]}


def test_made_up_retrievals_need_no_data(tmp_path: Path) -> None:
    """Without the sets the made-up part is printed with every method, and the rest says what is missing."""
    done = run("--seeds", "3", RAG_CONFIDENCE_DATA=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert [line.split("|")[1].strip() for line in done.stdout.splitlines() if line.startswith("| ")] == [
        "method",
        *METHODS,
    ]
    assert "SKIPPED: the data folder must hold" in done.stdout
    assert done.stderr == "made-up retrievals, 3 seeds\n"


def test_a_folder_that_is_asked_for_must_be_there(tmp_path: Path) -> None:
    """With --data a missing folder is one line that names the cure, and no table."""
    done = run("--quick", "--data", str(tmp_path))
    assert done.returncode == 2
    assert done.stdout == ""
    assert re.fullmatch(r"gate_benchmark.py: the data folder must hold .*--data FOLDER.*\n", done.stderr)


@pytest.mark.parametrize("seeds", ["0", "-1", "2.5"])
def test_a_number_of_seeds_must_be_a_count(seeds: str) -> None:
    """What is no count is refused before anything runs."""
    done = run("--seeds", seeds)
    assert done.returncode == 2
    assert "must be a whole number of at least 1" in done.stderr


@pytest.mark.needs_data
def test_each_kind_of_negative_has_its_own_section(quick: tuple[str, list[dict[str, Any]]]) -> None:
    """Made-up rows first, then the four strata, never pooled."""
    titles = [section["title"] for section in quick[1]]
    assert titles == ["Made-up retrievals", *(f"Real retrievals: {name}" for name in STRATA)]
    assert all(f"## {title}" in quick[0] for title in titles)


@pytest.mark.needs_data
def test_every_method_is_measured_in_every_section(quick: tuple[str, list[dict[str, Any]]]) -> None:
    """The first table of each section has a row for each method, with rates in [0, 1]."""
    for section in quick[1]:
        table = section["tables"][0]
        assert [row[0] for row in table["rows"]] == METHODS
        for name in ("FSR", "sufficient accepted", "acceptance", "abstention", "conflict", "coverage of 0"):
            assert all(0.0 <= mean(cell) <= 1.0 for cell in column(table, name).values()), name


@pytest.mark.needs_data
def test_fixed_thresholds_fail_and_gates_do_not(quick: tuple[str, list[dict[str, Any]]]) -> None:
    """Made-up rows: FSR .33, .24 and .15 for fixed thresholds, .10 for the marginal gate, less for pac."""
    fsr = {name: mean(cell) for name, cell in column(quick[1][0]["tables"][0], "FSR").items()}
    assert [fsr[name] for name in METHODS[:3]] == pytest.approx([0.33, 0.24, 0.15], abs=0.02)
    assert fsr["gate, marginal"] == pytest.approx(0.1, abs=0.02)
    assert fsr["gate, pac"] < fsr["gate, marginal"]
    held = column(quick[1][0]["tables"][0], "truly held")
    assert [float(held[name]) for name in METHODS[:3]] == [0.0, 0.0, 0.0]
    assert float(held["gate, pac"]) >= 0.9


@pytest.mark.needs_data
def test_exact_bands_are_kept_everywhere(quick: tuple[str, list[dict[str, Any]]]) -> None:
    """Three gates in five sections: no check fails."""
    checks = [check for section in quick[1] for check in section["checks"]]
    assert len(checks) == 15
    assert all(check["passed"] for check in checks), checks
    assert quick[0].count("\nPASS  ") == 15


@pytest.mark.needs_data
def test_pools_that_are_too_small_are_named(quick: tuple[str, list[dict[str, Any]]]) -> None:
    """A stratum says which sets it leaves out for lack of rows, and shows none of them."""
    failure = next(s for s in quick[1] if s["title"].endswith("ranking failure"))
    note = failure["tables"][0]["note"]
    assert "Left out: fewer than 40 rows of one class in squad2 / minilm" in note
    assert "squad2 / minilm" not in [row[0] for row in failure["tables"][1]["rows"]]
