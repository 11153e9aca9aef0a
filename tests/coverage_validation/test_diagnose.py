"""The rates behind a diagnosis, measured: evidence is seldom seen where there is none."""

from __future__ import annotations

import numpy as np
from evidence_trials import LOGS, logs_with
from scipy.stats import binom

from rag_confidence.learning.ranks import paired_difference

SURELY = 1 - 1e-4


def test_no_signal_tells_where_labels_are_noise() -> None:
    """Among eight useless signals one is said to tell in at most 5 % of logs."""
    found = logs_with(lambda s: bool(s.separation and s.separation.tells), labels_follow_kpi=False, seed=1)
    assert found <= binom.ppf(SURELY, LOGS, 0.05)


def test_no_signal_adds_where_all_that_counts_is_in_the_kpi() -> None:
    """Signals that are noisy copies of the KPI are said to add to it in at most 5 % of logs."""
    found = logs_with(lambda s: bool(s.beyond_kpi and s.beyond_kpi.tells), labels_follow_kpi=True, seed=2)
    assert found <= binom.ppf(SURELY, LOGS, 0.05)


def test_equal_scores_are_seldom_told_apart() -> None:
    """The 95 % interval of the difference of two equally good scores misses 0 in at most 6 % of logs."""
    rng, missed, logs = np.random.default_rng([53, 3]), 0, 800
    for _ in range(logs):
        labels = rng.random(100) < 0.4
        shared = labels + rng.standard_normal(100)
        first, second = shared + rng.standard_normal((2, 100))
        found = paired_difference(first, second, labels)
        missed += found is not None and not found.low <= 0.0 <= found.high
    assert missed <= binom.ppf(SURELY, logs, 0.06)
