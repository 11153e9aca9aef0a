"""Exact bands of the coverage of one calibration set, held against slow references."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, betabinom

from rag_confidence.conformal.bands import (
    Trial,
    count_band,
    coverage_band,
    covered_count_band,
    covered_mean,
    covered_pmf,
    covered_variance,
)
from rag_confidence.conformal.quantile import conformal_rank


def exact_pmf(n: int, rank: int, n_test: int) -> list[Fraction]:
    """Probabilities of the covered counts by counting: where the threshold lies in the merged ranking."""
    ways = [
        math.comb(rank - 1 + c, c) * math.comb(n - rank + n_test - c, n_test - c) for c in range(n_test + 1)
    ]
    return [Fraction(way, math.comb(n + n_test, n)) for way in ways]


@pytest.mark.parametrize(
    ("n", "alpha", "low", "high"),
    [
        (100, 0.1, 0.836018, 0.950995),
        (1000, 0.1, 0.880792, 0.917895),
        (1000, 0.05, 0.935734, 0.962665),
    ],
)
def test_known_bands(n: int, alpha: float, low: float, high: float) -> None:
    """The 95 % bands of the test-conditional coverage, to six digits."""
    assert coverage_band(n, alpha) == (pytest.approx(low, abs=5e-7), pytest.approx(high, abs=5e-7))


def test_known_count_band() -> None:
    """Of 1,000 test scores at n = 1,000 and alpha = .1, 873 to 925 are covered."""
    assert covered_count_band(1000, 0.1, 1000) == (873, 925)


@given(
    st.integers(1, 3000), st.sampled_from(["0.3", "0.1", "0.05", "0.01"]), st.sampled_from([0.5, 0.9, 0.99])
)
def test_band_holds_its_probability(n: int, alpha: str, level: float) -> None:
    """Half of what is left over lies on either side of the beta band; an infinite threshold covers all."""
    rank, (low, high) = conformal_rank(n, alpha), coverage_band(n, alpha, level)
    if math.isinf(rank):
        assert (low, high) == (1.0, 1.0)
        return
    law = beta(rank, n - rank + 1)
    assert law.cdf(low) == pytest.approx((1 - level) / 2, abs=1e-9)
    assert law.sf(high) == pytest.approx((1 - level) / 2, abs=1e-9)


@given(st.integers(1, 40), st.data())
def test_counts_are_those_of_a_random_ranking(n: int, data: st.DataObject) -> None:
    """The beta-binomial probabilities equal exact counting of rankings, so they hold for one finite pool."""
    rank, n_test = data.draw(st.integers(1, n)), data.draw(st.integers(1, 40))
    exact = exact_pmf(n, rank, n_test)
    assert sum(exact) == 1
    assert covered_pmf(n, rank, n_test) == pytest.approx([float(p) for p in exact], rel=1e-9, abs=1e-15)
    mean = sum(c * p for c, p in enumerate(exact)) / n_test
    assert covered_mean(n, rank) == pytest.approx(float(mean), rel=1e-12)
    variance = sum((c - n_test * mean) ** 2 * p for c, p in enumerate(exact))
    assert covered_variance(n, rank, n_test) == pytest.approx(float(variance), rel=1e-9)


@given(st.integers(9, 2000), st.integers(1, 2000), st.sampled_from([0.8, 0.95, 0.99]))
def test_count_band_is_the_smallest_that_keeps_both_tails(n: int, n_test: int, level: float) -> None:
    """At most half of what is left over lies beyond either end, and more would if the end moved in."""
    rank = int(conformal_rank(n, "0.1"))
    low, high = covered_count_band(n, "0.1", n_test, level=level)
    law, tail = betabinom(n_test, rank, n - rank + 1), (1 - level) / 2
    assert law.cdf(low - 1) <= tail + 1e-9
    assert law.cdf(low) >= tail - 1e-9
    assert law.sf(high) <= tail + 1e-9
    assert law.sf(high - 1) >= tail - 1e-9


def test_an_infinite_threshold_covers_everything() -> None:
    """Too few calibration scores: every test score is covered, without variation."""
    assert conformal_rank(8, 0.1) == math.inf
    assert covered_count_band(8, 0.1, 50) == (50, 50)
    assert covered_pmf(8, math.inf, 3).tolist() == [0.0, 0.0, 0.0, 1.0]
    assert (covered_mean(8, math.inf), covered_variance(8, math.inf, 50)) == (1.0, 0.0)


def test_a_pac_rank_has_a_band_of_its_own() -> None:
    """A band for any rank: the pac rank 96 of 100 scores covers more than the marginal rank 91."""
    assert count_band(Trial(100, 91, 1000), 0.95) == covered_count_band(100, 0.1, 1000)
    assert count_band(Trial(100, 96, 1000), 0.95)[0] > count_band(Trial(100, 91, 1000), 0.95)[0]


def test_probabilities_add_up_where_numbers_are_large() -> None:
    """No digit is lost to the size of the binomial coefficients."""
    assert np.sum(covered_pmf(100_000, 90_001, 20_000)) == pytest.approx(1.0, abs=1e-8)


def test_errors_name_the_argument() -> None:
    """Sizes that are no counts and levels outside (0, 1) are refused by name."""
    with pytest.raises(ValueError, match=r"`n` must be an integer of at least 1; got 0\."):
        coverage_band(0, 0.1)
    with pytest.raises(ValueError, match=r"`alpha` must be strictly between 0 and 1; got 1\.5\."):
        coverage_band(10, 1.5)
    with pytest.raises(ValueError, match=r"`level` must be strictly between 0 and 1; got 1\.0\."):
        coverage_band(10, 0.1, 1.0)
    with pytest.raises(ValueError, match=r"`n_test` must be an integer of at least 1; got 0\."):
        covered_count_band(10, 0.1, 0)
