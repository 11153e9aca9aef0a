"""Error rates of whole guards on fresh calls, against exact bands of their means."""

from __future__ import annotations

import pytest
from guard_trials import mean_band, ratchet, rates


@pytest.mark.parametrize(
    ("n", "alpha"), [(9, "0.1"), (30, "0.2"), (100, "0.1"), (100, "0.05"), (1000, "0.1")]
)
def test_good_calls_are_stopped_as_rarely_as_promised(n: int, alpha: str) -> None:
    """The mean share of good calls that are stopped lies in its exact band, and so below alpha."""
    low, high = mean_band(n, float(alpha))
    assert low <= rates(n, 0, alpha=alpha, seed=n).good_stopped <= high


@pytest.mark.parametrize("n", [20, 100])
def test_with_two_kinds_both_errors_are_as_rare_as_promised(n: int) -> None:
    """Bad calls are accepted at most at beta, good ones rejected at most at alpha, each by its own calls."""
    found = rates(n, 2 * n, alpha="0.1", beta="0.2", seed=n)
    low, high = mean_band(2 * n, 0.2)
    assert low <= found.bad_accepted <= high
    assert found.good_rejected <= mean_band(n, 0.1)[1]
    assert found.good_rejected > 0.05


@pytest.mark.parametrize("failing", [0.02, 0.08, 0.15])
def test_failing_scorers_keep_the_bound(failing: float) -> None:
    """P(finite threshold and a good call is stopped) stays below alpha, however often scorers fail."""
    found = rates(100, 0, failing=failing, alpha="0.1", seed=5)
    assert found.good_stopped <= mean_band(100, 0.1)[1]
    assert found.finite < (1.0 if failing > 0.05 else 1.01)


def test_fresh_calls_of_every_round_keep_the_coverage() -> None:
    """Calibrating again on calls that nobody selected changes nothing."""
    low, high = mean_band(1000, 0.1, 1)
    assert all(low <= 1.0 - share <= high for share in ratchet(10, selected=False))
