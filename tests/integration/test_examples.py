"""The two examples as a user runs them, from the root of the project and in a process of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]


def run(script: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A script, started from the root of the project."""
    return subprocess.run(
        [sys.executable, f"scripts/{script}", *arguments],
        cwd=PROJECT,
        env=os.environ | environment,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


# An agent that checks its evidence


@pytest.fixture(scope="module")
def agent() -> subprocess.CompletedProcess[str]:
    """The agent with its own questions."""
    return run("agent_audit_example.py")


@pytest.mark.needs_extra("demo")
def test_the_agent_calibrates_a_gate_for_each_try(agent: subprocess.CompletedProcess[str]) -> None:
    """Two tries share alpha, and each says what its gate rests on."""
    assert agent.returncode == 0, agent.stderr
    assert re.search(r"try 1: 4 passages, alpha 0\.05, AUROC 0\.\d{3}", agent.stdout)
    assert re.search(r"try 2: 8 passages, alpha 0\.05, AUROC 0\.\d{3}", agent.stdout)


@pytest.mark.needs_extra("demo")
def test_the_agent_answers_only_on_accept(agent: subprocess.CompletedProcess[str]) -> None:
    """After ACCEPT it stops and answers; any other decision leads to one more try, then to no answer."""
    courses = re.findall(r"^== .*\n((?:   try .*\n)+)   agent: (.*)\n", agent.stdout, re.MULTILINE)
    assert len(courses) >= 3
    for tries, said in courses:
        *before, last = re.findall(r": (ACCEPT|REJECT|ABSTAIN), verdict", tries)
        assert "ACCEPT" not in before
        assert (last == "ACCEPT") == said.startswith("I answer from ")
        assert last == "ACCEPT" or len(before) == 1
    assert any("I answer from" in said for _, said in courses)


@pytest.mark.needs_extra("demo")
def test_the_agent_states_the_guarantee_and_counts_what_it_got_wrong(
    agent: subprocess.CompletedProcess[str],
) -> None:
    """Every reply carries the sentence of its gate; held-out questions show the rate over all tries."""
    replies = agent.stdout.count("   agent: ")
    assert len(re.findall(r"^     If new retrievals are like", agent.stdout, re.MULTILINE)) == replies
    found = re.search(r"any try accepts (\d+) of (\d+) insufficient ones; alpha is 0\.1", agent.stdout)
    assert found is not None
    wrong, insufficient = map(int, found.groups())
    assert insufficient > 50
    counts = re.findall(r"try \d accepts (\d+) of \d+ sufficient and (\d+) of \d+ insufficient", agent.stdout)
    assert len(counts) == 2
    assert sum(int(right) for right, _ in counts) > 0
    for attempt, (right, amiss) in enumerate(counts, start=1):
        shown = re.findall(rf"try {attempt}: \d+ passages, KPI .*: ACCEPT, verdict", agent.stdout)
        assert int(right) + int(amiss) >= len(shown)
    assert wrong <= sum(int(amiss) for _, amiss in counts)
    assert wrong / insufficient < 0.2


@pytest.mark.needs_extra("demo")
def test_the_agent_says_that_other_questions_are_not_covered() -> None:
    """Questions of the user are decided too, with the caveat that they are not drawn like the history."""
    done = run("agent_audit_example.py", "How long does sourdough bread have to rise?")
    assert done.returncode == 0, done.stderr
    assert (
        "   agent: The documents do not hold the answer.\n     Nothing is claimed: the history" in done.stdout
    )
    assert "its guarantee does not cover your questions" in done.stdout
    assert "If new retrievals are like" not in done.stdout
    assert "== How long does sourdough bread have to rise?" in done.stdout
    assert "I answer from" not in done.stdout


@pytest.mark.needs_extra("demo")
def test_a_level_that_cannot_be_meant_ends_the_agent() -> None:
    """Exit code 2 and one line."""
    done = run("agent_audit_example.py", "--alpha", "2")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "agent_audit_example.py: `alpha` must be strictly between 0 and 1; got '2'. "
        "0.1, '0.1' and Fraction(1, 10) all mean one tenth.\n"
    )


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("agent_audit_example.py", marks=pytest.mark.needs_extra("demo")),
        pytest.param("rag_pipeline_example.py", marks=pytest.mark.needs_data),
    ],
)
def test_a_reader_that_stops_ends_an_example_quietly(script: str) -> None:
    """When `| head` has read enough there is no traceback; what warns of a weak score still may."""
    command = [sys.executable, f"scripts/{script}"]
    with subprocess.Popen(command, cwd=PROJECT, stdout=-1, stderr=-1, encoding="utf-8") as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        errors = process.stderr.read()
    assert "Traceback" not in errors
    assert "BrokenPipeError" not in errors
    assert process.returncode == 141


# An audit of a pipeline


@pytest.fixture(scope="module")
def audit() -> subprocess.CompletedProcess[str]:
    """The audit of the default set and embedder."""
    return run("rag_pipeline_example.py")


@pytest.mark.needs_data
def test_the_audit_goes_from_plan_to_serving(audit: subprocess.CompletedProcess[str]) -> None:
    """Every step has its section, in the order in which a pipeline is audited."""
    assert audit.returncode == 0, audit.stderr
    titles = re.findall(r"^== (\w+ ?\w*)", audit.stdout, re.MULTILINE)
    assert titles == [
        *("Pipeline", "Plan", "Audit of", "Lexical traps", "False sufficiency", "All rates"),
        *("Certified selective", "One query"),
    ]


@pytest.mark.needs_data
def test_a_gate_that_saw_topic_gaps_alone_lets_near_misses_through(
    audit: subprocess.CompletedProcess[str],
) -> None:
    """The table shows what a history without near misses costs, and that one with them costs less."""
    rows = re.findall(r"^   (all kinds|topic gaps) +(.*)$", audit.stdout, re.MULTILINE)
    near_misses = {name: float(re.findall(r"([\d.]+) \[", cells)[-1]) for name, cells in rows}
    assert near_misses["topic gaps"] > 2 * near_misses["all kinds"]


@pytest.mark.needs_data
def test_the_first_gate_stays_within_its_exact_band(audit: subprocess.CompletedProcess[str]) -> None:
    """Held-out rows are exchangeable with the calibration rows here, and the rates show nothing else."""
    assert "within the exact band" in audit.stdout


def test_a_missing_data_folder_is_named() -> None:
    """Without the data the exit code is 2 and one line says which folder, and how to name another."""
    done = run("rag_pipeline_example.py", RAG_CONFIDENCE_DATA="no-such-folder")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("rag_pipeline_example.py: the data folder must hold squad2")
    assert "Pass --data FOLDER or set RAG_CONFIDENCE_DATA." in done.stderr
    assert done.stderr.count("\n") == 1
