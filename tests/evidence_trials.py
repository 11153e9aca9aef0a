"""Logs without any evidence in them, and how often a rule finds some: shared by coverage and controls."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rag_confidence.learning.evidence import SignalEvidence, evidence_of

LOGS, ROWS, SIGNALS = 150, 60, 8

Rule = Callable[[SignalEvidence], bool]


def logs_with(rule: Rule, *, labels_follow_kpi: bool, seed: int) -> int:
    """In how many of `LOGS` logs some signal satisfies the rule, where no signal adds to the KPI.

    Signals are noisy copies of the KPI or pure noise; labels follow the KPI or nothing.
    """
    rng = np.random.default_rng([53, seed])
    found = 0
    for _ in range(LOGS):
        kpi = rng.standard_normal(ROWS)
        own = 0.4 * kpi if labels_follow_kpi else np.zeros(ROWS)
        columns = {f"s{i}": own + rng.standard_normal(ROWS) for i in range(SIGNALS)}
        strength = 1.5 * kpi if labels_follow_kpi else np.zeros(ROWS)
        labels = rng.random(ROWS) < 1 / (1 + np.exp(-strength))
        found += any(map(rule, evidence_of(kpi, columns, labels)[1]))
    return found
