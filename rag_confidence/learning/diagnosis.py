"""Diagnosis: findings in words, with the tables that they rest on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rag_confidence.learning.evidence import SignalEvidence
from rag_confidence.learning.findings import SEVERITIES, Finding
from rag_confidence.learning.inert import ThresholdUse
from rag_confidence.learning.page import page
from rag_confidence.learning.wording import rounded, rows


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """What `diagnose` found; ``print(diagnosis)`` shows it as a page.

    Attributes
    ----------
    n : int
        Retrievals looked at.
    n0, n1 : int or None
        Those labelled insufficient and sufficient; None without labels.
    findings : tuple of Finding
        The most severe first.
    kpi : SignalEvidence
        What the KPI says.
    signals : tuple of SignalEvidence
        The same for each signal and driver in the records.
    thresholds : tuple of ThresholdUse
        How often each threshold of the policy fires; empty where the policy is not known.
    """

    n: int
    n0: int | None
    n1: int | None
    findings: tuple[Finding, ...]
    kpi: SignalEvidence
    signals: tuple[SignalEvidence, ...]
    thresholds: tuple[ThresholdUse, ...]

    def of(self, *codes: str) -> tuple[Finding, ...]:
        """The findings with one of these codes."""
        return tuple(found for found in self.findings if found.code in codes)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; floats to four digits."""
        plain = {
            "n": self.n,
            "n0": self.n0,
            "n1": self.n1,
            "findings": [found.to_dict() for found in self.findings],
            "kpi": self.kpi.to_dict(),
            "signals": [signal.to_dict() for signal in self.signals],
            "thresholds": [threshold.to_dict() for threshold in self.thresholds],
        }
        return {name: rounded(value) for name, value in plain.items()}

    def __repr__(self) -> str:
        counts = dict.fromkeys(SEVERITIES, 0)
        for found in self.findings:
            counts[found.severity] += 1
        tally = ", ".join(f"{count} {severity}" for severity, count in counts.items() if count)
        return f"Diagnosis({self.n} retrievals, {tally or 'nothing found'})"

    def __str__(self) -> str:
        labels = "without labels"
        if self.n0 is not None:
            labels = f"with labels, {self.n1} sufficient and {self.n0} insufficient"
        title = f"Diagnosis of {rows(self.n, 'retrieval')} {labels}"
        return page(title, self.findings, (self.kpi, *self.signals), self.thresholds)
