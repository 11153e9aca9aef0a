"""The interval is where the evidence reaches its limit, and is not much wider than for one sample size."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

from rag_confidence.conformal.monitor.risk_interval import risk_interval


def evidence_above(risk: float, n_bad: int, n_seen: int) -> float:
    """Mean over the tilts of e^(h k) (1 + (e^h - 1) m)^-n, by exact products."""
    terms = [
        Fraction(math.exp(h)) ** n_bad / (1 + (Fraction(math.exp(h)) - 1) * Fraction(risk)) ** n_seen
        for h in (2.0**power for power in range(-8, 3))
    ]
    return float(sum(terms) / len(terms))


@pytest.mark.parametrize(("n_bad", "n_seen"), [(1, 1), (3, 10), (10, 20), (40, 40), (30, 200)])
def test_the_interval_ends_where_the_evidence_reaches_its_limit(n_bad: int, n_seen: int) -> None:
    """At each end the evidence is 2 / error_rate, unless that end is 0 or 1."""
    low, high = risk_interval(n_bad, n_seen, error_rate=0.05)
    if low > 0.0:
        assert evidence_above(low, n_bad, n_seen) == pytest.approx(40.0, rel=1e-6)
    if high < 1.0:
        assert evidence_above(1.0 - high, n_seen - n_bad, n_seen) == pytest.approx(40.0, rel=1e-6)


@given(st.integers(0, 300), st.integers(1, 300), st.floats(0.001, 0.5))
def test_the_interval_holds_the_rate_and_grows_with_confidence(n_bad: int, n_seen: int, error: float) -> None:
    """0 <= low <= rate <= high <= 1, and a smaller error rate never narrows it."""
    n_bad = min(n_bad, n_seen)
    low, high = risk_interval(n_bad, n_seen, error_rate=error)
    wide_low, wide_high = risk_interval(n_bad, n_seen, error_rate=error / 2)
    assert 0.0 <= wide_low <= low <= n_bad / n_seen <= high <= wide_high <= 1.0


@given(st.integers(0, 100), st.integers(1, 100))
def test_good_and_bad_are_mirror_images(n_bad: int, n_seen: int) -> None:
    """Calling the good outcomes bad mirrors the interval."""
    n_bad = min(n_bad, n_seen)
    low, high = risk_interval(n_bad, n_seen, error_rate=0.1)
    mirrored = risk_interval(n_seen - n_bad, n_seen, error_rate=0.1)
    assert mirrored == pytest.approx((1.0 - high, 1.0 - low), abs=1e-12)


@pytest.mark.parametrize("n_seen", [100, 1000, 10_000, 100_000])
def test_the_interval_is_not_much_wider_than_for_one_sample_size(n_seen: int) -> None:
    """At most two and a half times the width of the exact interval that may be looked at once."""
    n_bad = n_seen // 10
    low, high = risk_interval(n_bad, n_seen, error_rate=0.05)
    once = beta.ppf(0.975, n_bad + 1, n_seen - n_bad) - beta.ppf(0.025, n_bad, n_seen - n_bad + 1)
    assert once < high - low < 2.5 * once
