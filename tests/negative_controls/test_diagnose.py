"""What a diagnosis would say without its precautions: the checks of its rates flag that."""

from __future__ import annotations

from evidence_trials import LOGS, logs_with
from scipy.stats import binom

SURELY = 1 - 1e-4


def test_without_adjustment_noise_tells() -> None:
    """Single p-values below .05 name a useless signal in far more than 5 % of logs."""
    found = logs_with(
        lambda s: bool(s.separation and (s.separation.p_value or 0.0) < 0.05), labels_follow_kpi=False, seed=1
    )
    assert found > binom.ppf(SURELY, LOGS, 0.05)


def test_without_strata_copies_of_the_kpi_seem_to_add() -> None:
    """Evidence of a signal by itself is not evidence beyond the KPI that it copies."""
    found = logs_with(lambda s: bool(s.separation and s.separation.tells), labels_follow_kpi=True, seed=2)
    assert found > binom.ppf(SURELY, LOGS, 0.05)
