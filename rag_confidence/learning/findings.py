"""A finding: one thing that a diagnosis says in words, with its numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from rag_confidence.learning.wording import rounded

Severity: TypeAlias = Literal["problem", "warning", "advice", "note"]
SEVERITIES: tuple[Severity, ...] = ("problem", "warning", "advice", "note")
"""From what makes scores or verdicts meaningless to what is good to know."""


@dataclass(frozen=True)
class Finding:
    """One thing that was found.

    Attributes
    ----------
    code : str
        Short name that stays the same between versions; see docs/diagnose.md for all.
    severity : {"problem", "warning", "advice", "note"}
    sentence : str
        What was found, with its numbers.
    action : str
        What to do about it; empty where nothing needs doing.
    numbers : mapping
        The numbers of the sentence, JSON-ready, floats to four digits.
    """

    code: str
    severity: Severity
    sentence: str
    action: str
    numbers: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {**vars(self), "numbers": dict(self.numbers)}


def finding(code: str, severity: Severity, sentence: str, action: str = "", **numbers: Any) -> Finding:
    """A `Finding` whose numbers are rounded; a count may open its sentence."""
    sentence = sentence.replace("all ", "All ", 1) if sentence.startswith("all ") else sentence
    return Finding(code, severity, sentence, action, rounded(numbers))


def by_severity(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The most severe first; within a severity in the order given."""
    return tuple(sorted(findings, key=lambda found: SEVERITIES.index(found.severity)))
