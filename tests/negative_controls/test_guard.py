"""Broken uses of a guard that the bands of its coverage flag."""

from __future__ import annotations

import pytest
from guard_trials import mean_band, ratchet, rates


def test_the_ratchet_of_accepted_calls_fails_the_band() -> None:
    """Ten rounds of calibrating on what the guard let through leave about a third of the good calls."""
    low, high = mean_band(1000, 0.1, 1)
    shares = ratchet(10, selected=True)
    assert low <= 1.0 - shares[0] <= high
    assert all(1.0 - share > high for share in shares[1:])
    assert shares[5] == pytest.approx(0.9**6, abs=0.05)
    assert shares[10] == pytest.approx(0.9**11, abs=0.05)


def test_good_calls_that_moved_fail_the_band() -> None:
    """Calibrated on calls without failures, a guard stops too many once a tenth of them fail."""
    found = rates(1000, 0, alpha="0.1", seed=7, trials=100)
    moved = 1.0 - 0.9 * (1.0 - found.good_stopped)
    assert found.good_stopped <= mean_band(1000, 0.1, 100)[1] < moved


def test_plain_abstention_is_not_bounded_where_scorers_fail() -> None:
    """Counting infinite thresholds too, the share of good calls that are not accepted exceeds alpha."""
    found = rates(100, 0, failing=0.08, alpha="0.1", seed=5)
    not_accepted = found.good_stopped + (1.0 - found.finite)
    assert not_accepted > mean_band(100, 0.1)[1] + 0.05


def test_the_band_sees_a_level_that_is_off_by_one_rank() -> None:
    """A threshold one rank too low is outside the band of the mean."""
    found = rates(100, 0, alpha="11/101", seed=100)
    low, high = mean_band(100, 0.1)
    assert not low <= found.good_stopped <= high
