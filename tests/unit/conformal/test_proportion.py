"""Proportions with exact intervals."""

from __future__ import annotations

import pytest
from scipy.stats import binomtest

from rag_confidence.conformal.proportion import proportion_of


@pytest.mark.parametrize(("count", "total"), [(0, 9), (3, 9), (9, 9), (1, 1), (25, 1000)])
def test_the_interval_is_the_exact_one(count: int, total: int) -> None:
    """Rate and ends are those of the exact binomial test."""
    found = proportion_of(count, total)
    wanted = binomtest(count, total).proportion_ci(0.95, method="exact")
    assert found.rate == count / total
    assert (found.low, found.high) == pytest.approx((wanted.low, wanted.high), abs=1e-12)


def test_nothing_observed_has_no_rate() -> None:
    """Of no rows nothing is known: no rate, and an interval from 0 to 1."""
    assert proportion_of(0, 0).to_dict() == {"count": 0, "total": 0, "rate": None, "low": 0.0, "high": 1.0}
