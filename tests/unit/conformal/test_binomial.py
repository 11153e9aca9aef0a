"""Exact binomial tails and limits, against sums of fractions."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_confidence.conformal.binomial import (
    binomial_tail_at_most,
    binomial_upper,
    clopper_pearson,
    tail_within,
    tails_at_most,
    tails_within,
)

counts = st.integers(0, 60).flatmap(lambda n: st.tuples(st.integers(-1, n + 1), st.just(n)))
probabilities = st.fractions(0, 1, max_denominator=1000)


def tail(k: int, n: int, p: Fraction) -> Fraction:
    """The tail as a sum of fractions, term by term."""
    return sum((comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(min(k, n) + 1)), Fraction(0))


@given(counts, probabilities)
def test_the_tail_is_the_sum_of_its_terms(count: tuple[int, int], p: Fraction) -> None:
    """P(X <= k) agrees with the exact sum to twelve digits, and leaves [0, 1] nowhere."""
    found = binomial_tail_at_most(*count, float(p))
    assert found == pytest.approx(float(tail(*count, p)), rel=1e-12, abs=1e-300)
    assert 0.0 <= found <= 1.0


@given(counts, probabilities, st.fractions(0, 1, max_denominator=1000))
def test_a_level_is_compared_as_fractions_compare(
    count: tuple[int, int], p: Fraction, level: Fraction
) -> None:
    """`tail_within` is the comparison of exact numbers, at any level."""
    assert tail_within(*count, p, level) == (tail(*count, p) <= level)


@given(st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n - 1), st.just(n))), probabilities)
def test_a_level_equal_to_the_tail_is_reached_and_one_digit_below_is_not(
    count: tuple[int, int], p: Fraction
) -> None:
    """Equality counts as within; a level lower by one part in 10^30 does not."""
    exact = tail(*count, p)
    assert tail_within(*count, p, exact)
    assert tail_within(*count, p, exact * (1 - Fraction(1, 10**30))) == (exact == 0)


@given(
    st.lists(counts.filter(lambda count: 0 <= count[0] <= count[1]), min_size=1, max_size=8),
    probabilities,
    st.booleans(),
)
def test_columns_are_compared_as_single_tails(
    column: list[tuple[int, int]], p: Fraction, exact: bool
) -> None:
    """`tails_within` is `tail_within` row by row, also where every level equals its tail."""
    levels = [tail(*count, p) if exact else Fraction(1, 10) for count in column]
    k, n = np.array(column).T
    wanted = [tail_within(*count, p, level) for count, level in zip(column, levels, strict=True)]
    assert tails_within(k, n, p, levels).tolist() == wanted
    singles = [binomial_tail_at_most(*count, float(p)) for count in column]
    assert tails_at_most(k, n, float(p)).tolist() == singles


def test_floats_that_look_equal_are_told_apart() -> None:
    """(9/10)^22 against itself: within; .1^2 against .01: within, although floats have .01 below .1 * .1."""
    assert tail_within(0, 22, Fraction(1, 10), Fraction(9, 10) ** 22)
    assert tail_within(0, 2, Fraction(9, 10), Fraction(1, 100))
    assert 0.1 * 0.1 > 0.01


@pytest.mark.parametrize("n", [4001, 49_999, 10**7 + 1])
def test_near_ties_of_many_trials_count_as_not_within(n: int) -> None:
    """Beyond 4000 trials a tail equal to its level is not within it; a level just above it is."""
    half = Fraction(1, 2)
    column = np.array([n // 2]), np.array([n])
    for level, within in ((half, False), (half * (1 + Fraction(1, 10**8)), True)):
        assert tail_within(n // 2, n, half, level) == within
        assert tails_within(*column, half, [level]).tolist() == [within]


@pytest.mark.parametrize("k", [0, 1, 3])
def test_a_probability_near_one_keeps_its_digits(k: int) -> None:
    """With p = 1 - 1e-12 no float of p has nine digits of the tail; the comparison has."""
    p = 1 - Fraction(1, 10**12)
    exact = tail(k, 5, p)
    for change, within in ((Fraction(1, 10**6), True), (-Fraction(1, 10**6), False)):
        assert tail_within(k, 5, p, exact * (1 + change)) == within
        assert tails_within(np.array([k]), np.array([5]), p, [exact * (1 + change)]).tolist() == [within]


def test_a_single_power_is_compared_by_its_logarithm() -> None:
    """(1 - p)^n with a p, an n or a level that floats hardly hold: no underflow, overflow or hang."""
    p = Fraction(1, 10**30)
    assert tail_within(0, 7 * 10**29, p, Fraction(1, 2))
    assert not tail_within(0, 6 * 10**29, p, Fraction(1, 2))
    assert not tail_within(0, 4000, Fraction(1, 2), Fraction(1, 2**4001))
    assert tail_within(0, 4000, Fraction(1, 2), Fraction(1, 2**4000))


def test_many_trials_keep_their_digits() -> None:
    """A tail of 10^4 trials, four standard deviations out, has the digits of the sum in integers."""
    ways = sum(comb(10_000, i) * 99 ** (10_000 - i) for i in range(61))
    assert binomial_tail_at_most(60, 10_000, 0.01) == pytest.approx(ways / 100**10_000, rel=1e-11)


@given(counts.filter(lambda count: 0 <= count[0] <= count[1]), st.sampled_from((0.5, 0.9, 0.95, 0.99)))
def test_clopper_pearson_limits_put_half_the_error_in_each_tail(
    count: tuple[int, int], confidence: float
) -> None:
    """At the upper limit P(X <= k), at the lower limit P(X >= k) is half the error; 0 and 1 at the ends."""
    k, n = count
    low, high = clopper_pearson(k, n, confidence)
    half = (1.0 - confidence) / 2.0
    assert 0.0 <= low <= (k / n if n else 0.0) <= high <= 1.0
    assert (low == 0.0) == (k == 0)
    assert (high == 1.0) == (k == n)
    if k < n:
        assert binomial_tail_at_most(k, n, high) == pytest.approx(half, rel=1e-9)
    if k > 0:
        assert 1.0 - binomial_tail_at_most(k - 1, n, low) == pytest.approx(half, rel=1e-9)


@pytest.mark.parametrize("n", [1, 7, 40])
def test_clopper_pearson_covers_at_every_probability(n: int) -> None:
    """Summed over all counts, the exact coverage is at least the confidence at each of 99 probabilities."""
    limits = [clopper_pearson(k, n, 0.9) for k in range(n + 1)]
    for p in np.arange(1, 100) / 100:
        covered = sum(
            comb(n, k) * p**k * (1 - p) ** (n - k) for k, (a, b) in enumerate(limits) if a <= p <= b
        )
        assert covered >= 0.9 - 1e-12


def test_known_limits() -> None:
    """Values that can be checked by hand: 1 - delta^(1/n) without a hit, and no trials at all."""
    assert binomial_upper(0, 22, 0.1) == pytest.approx(1.0 - 0.1 ** (1 / 22), rel=1e-12)
    assert clopper_pearson(0, 0) == (0.0, 1.0)
    assert binomial_upper(5, 5, 0.1) == 1.0
    assert clopper_pearson(10, 10)[0] == pytest.approx(0.025**0.1, rel=1e-12)
