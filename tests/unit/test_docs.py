"""The README and the pages of docs/: their code runs, prints what they show, and they cover the package."""

from __future__ import annotations

import contextlib
import io
import json
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema
import pytest

import rag_confidence as rc
from rag_confidence.product.record import KEYS

PROJECT = Path(__file__).resolve().parents[2]
README = PROJECT / "README.md"
DOCS = PROJECT / "docs"
PAGES = [README, *sorted(DOCS.glob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LANGUAGES = {"python", "text", "sh", "json"}
LONGEST_SHELL_BLOCK = 4


class Block(NamedTuple):
    """A fenced block: its language, its text, and where it starts and ends in the page."""

    language: str
    text: str
    start: int
    end: int


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    return [Block(found[1], found[2], found.start(), found.end()) for found in BLOCK.finditer(page)]


def sessions(page: str) -> list[tuple[Block, str | None]]:
    """Each Python block with the output that the page shows right below it, None if it shows none."""
    found = blocks(page)
    following = [*found, None][1:]
    return [
        (block, after.text if after and after.language == "text" and _adjacent(page, block, after) else None)
        for block, after in zip(found, following, strict=True)
        if block.language == "python"
    ]


def _adjacent(page: str, block: Block, after: Block) -> bool:
    return not page[block.end : after.start].strip()


def run(page: Path) -> list[tuple[str, str | None]]:
    """What each Python block prints, and what the page says; all blocks share one namespace."""
    text = page.read_text(encoding="utf-8")
    namespace: dict[str, Any] = {"__name__": "__main__"}
    results = []
    for block, shown in sessions(text):
        # Blank lines put the block where it stands in the page, so that a traceback names the right line.
        source = "\n" * (text.count("\n", 0, block.start) + 1) + block.text
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(source, str(page), "exec"), namespace)
        results.append((printed.getvalue(), shown))
    return results


def read(name: str) -> str:
    """Text of a page of docs/."""
    return (DOCS / name).read_text(encoding="utf-8")


def by_name(page: Path) -> str:
    """Name of a page in test reports."""
    return page.relative_to(PROJECT).as_posix()


# Code


@pytest.mark.parametrize("page", PAGES, ids=by_name)
def test_python_blocks_run_and_print_what_the_page_shows(page: Path) -> None:
    """A page is one session: its blocks run in order, and output stands below the block that prints it."""
    for printed, shown in run(page):
        assert printed == (shown or "")


@pytest.mark.parametrize("page", PAGES, ids=by_name)
def test_blocks_are_of_a_known_language_and_shell_blocks_are_short(page: Path) -> None:
    """What is not Python is output, JSON or a few lines of shell, and every fence is closed."""
    text = page.read_text(encoding="utf-8")
    found = blocks(text)
    assert {block.language for block in found} <= LANGUAGES
    assert all(block.text.count("\n") <= LONGEST_SHELL_BLOCK for block in found if block.language == "sh")
    assert text.count("```") == 2 * len(found)


# Coverage of the package


def test_readme_leads_to_every_page() -> None:
    """Nobody has to guess that a page exists."""
    linked = set(re.findall(r"\]\((docs/[\w.]+)", README.read_text(encoding="utf-8")))
    assert {by_name(page) for page in PAGES[1:]} <= linked


@pytest.mark.parametrize("key", [key.name for key in KEYS if key.name.startswith(("signals.", "evidence."))])
def test_metrics_page_explains_every_measurement(key: str) -> None:
    """Every `signals.` and `evidence.` key is explained in docs/metrics.md."""
    assert f"`{key}`" in read("metrics.md")


@pytest.mark.parametrize("page", PAGES, ids=by_name)
def test_pages_name_only_keys_that_exist(page: Path) -> None:
    """A key that left the record leaves the documents as well."""
    named = set(re.findall(r"`((?:signals|evidence|weights)\.\w+)`", page.read_text(encoding="utf-8")))
    assert named <= {key.name for key in KEYS}


@pytest.mark.parametrize("word", sorted({str(word) for key in KEYS for word in key.words}))
def test_metrics_page_knows_every_word_of_the_record(word: str) -> None:
    """Verdicts, reason codes, bands and other words of the record appear in the docs."""
    assert word in read("metrics.md") + read("json_contract.md")


@pytest.mark.parametrize("name", rc.__all__)
def test_every_public_name_is_documented(name: str) -> None:
    """Every public name appears on some page."""
    assert any(re.search(rf"\b{name}\b", page.read_text(encoding="utf-8")) for page in PAGES)


def test_constants_in_the_metrics_page_are_those_of_the_policy() -> None:
    """The table of defaults lists every field of `MetricPolicy` with its value."""
    rows = re.findall(
        r"^\| `(\w+)` \| ([^|]+) \|", read("metrics.md").partition("## Constants")[2], re.MULTILINE
    )
    policy = rc.MetricPolicy()
    assert {name: value.strip() for name, value in rows} == {
        field.name: _written(getattr(policy, field.name)) for field in fields(policy)
    }


def test_formulas_and_evidence_state_the_constants_of_the_policy() -> None:
    """Formulas use the defaults, and the figures on the evidence page were measured under them."""
    policy = rc.MetricPolicy()
    metrics, evidence = read("metrics.md"), read("evidence.md")
    assert f"tau = {policy.localization_tau:g}\n" in metrics
    assert f"φ / (φ + {policy.robustness_angle:g}°)" in metrics
    stable, floor = policy.robustness_cuts[0], policy.floors.query_robustness
    for value in (stable, floor):
        assert f"a flip angle of {policy.robustness_angle / (100.0 / value - 1.0):.4g} degree" in metrics
    assert f"localization_tau = {policy.localization_tau:g} puts" in evidence
    assert f"robustness_angle = {policy.robustness_angle:g} puts" in evidence


def test_the_evidence_page_counts_its_own_checks() -> None:
    """The totals in its text are those of the lines that it shows."""
    page = read("evidence.md")
    passed, failed = (len(re.findall(f"^{word}  ", page, re.MULTILINE)) for word in ("PASS", "FAIL"))
    assert f"closed with {passed} PASS, {failed} FAIL." in page
    reached = len(re.findall(r"\| PASS +\|$", page, re.MULTILINE))
    assert f"for {reached} of 15 sets and embedders" in " ".join(page.split())
    assert f"for {reached} of 15 real sets and embedders" in " ".join(README.read_text("utf-8").split())


def _written(value: Any) -> str:
    """A constant as the table writes it: 65, 80 / 65 / 45, `default`."""
    if isinstance(value, rc.DriverValues):
        return _written(value.as_tuple())
    if isinstance(value, tuple):
        return " / ".join(f"{number:g}" for number in value)
    return f"`{value}`" if isinstance(value, str) else f"{value:g}"


def test_verdict_table_is_in_the_order_of_the_code() -> None:
    """The rows of the verdict table in docs/metrics.md are the reason codes, in their order."""
    table = read("metrics.md").partition("\n## Verdict")[2].partition("\n## ")[0]
    named = re.findall(r"^\| \d+ \|.*\| `(\w+)` \|", table, re.MULTILINE)
    assert named == [code.value for code in rc.ReasonCode]


# The JSON contract


def test_the_json_contract_is_up_to_date() -> None:
    """docs/json_contract.md and docs/metrics.schema.json are what the script writes."""
    script = PROJECT / "scripts" / "write_json_contract.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_published_schema_is_valid_and_accepts_records() -> None:
    """The schema file is draft 2020-12 and validates a full record and an empty retrieval's."""
    schema = json.loads(read("metrics.schema.json"))
    validator = jsonschema.Draft202012Validator
    validator.check_schema(schema)
    for passages in ([[0.9, 0.1], [0.5, 0.5]], []):
        validator(schema).validate(rc.score([1.0, 0.0], passages).to_dict())
