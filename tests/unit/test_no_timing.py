"""Tests assert results, never durations: a shared machine decides those."""

from __future__ import annotations

import ast
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
CLOCKS = {"process_time", "perf_counter", "monotonic", "thread_time", "process_time_ns", "perf_counter_ns"}


def test_no_test_reads_a_clock() -> None:
    """No test module names a clock of `time`: a claim about speed belongs to a script that prints a ratio."""
    readers = [
        f"{path.relative_to(TESTS)}:{node.lineno}"
        for path in sorted(TESTS.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in CLOCKS
    ]
    assert readers == []
