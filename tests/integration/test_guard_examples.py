"""The examples of guarded tool loops, as a user runs them: no key, no network, and no warning."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
EXAMPLES = PROJECT / "examples"


def run(script: str) -> str:
    """What an example prints, started from the root of the project in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-W", "error", f"examples/{script}"],
        cwd=PROJECT,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def answers(printed: str) -> list[tuple[str, str]]:
    """Call id and status of every answer, in order."""
    return re.findall(r"^ *(\w+_\d+) +(\w+) ", printed, re.MULTILINE)


def test_every_example_is_run_here() -> None:
    """A script that is added to the folder needs a test."""
    assert {path.name for path in EXAMPLES.glob("*.py")} == {
        *("raw_tool_loop.py", "async_agent.py", "logprob_schema_guard.py", "http_tool_server.py")
    }


def test_every_example_says_that_its_history_is_made_up() -> None:
    """Nobody takes the numbers for measured ones."""
    for path in EXAMPLES.glob("*.py"):
        assert re.search("made[- ]up", path.read_text(encoding="utf-8"), re.IGNORECASE), path.name


def test_the_raw_loop_answers_each_call_whatever_becomes_of_it() -> None:
    """One runs, one is not accepted, and broken arguments, unknown tools and exceptions lose none."""
    printed = run("raw_tool_loop.py")
    assert answers(printed) == [
        ("call_1", "executed"),
        ("call_2", "abstained"),
        ("call_3", "malformed_arguments"),
        ("call_4", "unknown_tool"),
        ("call_5", "tool_error"),
    ]
    assert "at most 10 % of them are abstained on" in printed
    assert "stock: {'tea': 8, 'rice': 3, 'salt': 40}, messages: 8" in printed


def test_the_async_agent_runs_its_calls_side_by_side() -> None:
    """The second starts before the first has ended, and the answers keep the order of the calls."""
    printed = run("async_agent.py")
    assert answers(printed) == [("toolu_0", "executed"), ("toolu_1", "abstained"), ("toolu_2", "executed")]
    assert "side by side: Oslo asked, Lima asked, Oslo answered, Lima answered." in printed
    assert "3 answers in the order of the calls, 1 marked as an error." in printed


@pytest.mark.needs_extra("schema")
def test_the_joint_guard_names_the_check_that_stopped_a_call() -> None:
    """A call stops for its log-probabilities, for its arguments, and where there is nothing to judge."""
    rows = re.findall(
        r"^(\S.*?) {2,}(\w+) +failed checks: (\w+)", run("logprob_schema_guard.py"), re.MULTILINE
    )
    assert rows == [
        ("valid, and sure", "executed", "none"),
        ("valid, and unsure", "abstained", "logprob"),
        ("invalid, and sure", "abstained", "schema"),
        ("no log-probabilities", "abstained", "logprob"),
    ]


def check_conversations(printed: str) -> None:
    """The sure calls of the first conversation run, the unsure ones of the second do not."""
    statuses = [status for _, status in answers(printed)]
    assert statuses == ["executed", "executed", "abstained", "abstained"]
    assert printed.count("model: Done. (finish reason stop)") == 2
    assert printed.endswith("The server is gone.\n")


def test_the_stub_server_is_asked_over_http() -> None:
    """With the SDK where it is installed."""
    check_conversations(run("http_tool_server.py"))


def test_the_stub_server_does_without_the_sdk(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With urllib, and neither the server nor its thread is left over."""
    monkeypatch.setitem(sys.modules, "openai", None)
    main: Callable[[], None] = runpy.run_path(str(EXAMPLES / "http_tool_server.py"))["main"]
    before = threading.active_count()
    main()
    check_conversations(capsys.readouterr().out)
    assert threading.active_count() == before
