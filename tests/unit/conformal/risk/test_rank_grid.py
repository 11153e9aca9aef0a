"""Candidate ranks, against tails summed term by term."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from math import isqrt

import pytest
import reference_risk as ref
from hypothesis import given
from hypothesis import strategies as st

from rag_confidence.conformal.risk.rank_grid import RiskMethod, least_rank, rank_grid, tolerated

targets = st.sampled_from([Fraction(1, 20), Fraction(1, 10), Fraction(1, 5), Fraction(1, 3), Fraction(1, 2)])
levels = st.sampled_from(
    [Fraction(1, 100), Fraction(1, 20), Fraction(1, 10), Fraction(1, 4), Fraction(9, 10)]
)


@given(st.integers(1, 60), targets, levels)
def test_the_errors_tolerated_are_the_most_with_a_small_tail(
    rank: int, target: Fraction, level: Fraction
) -> None:
    """`tolerated` counts up to the last tail that the level allows."""
    assert tolerated(rank, target, level) == ref.most_errors(rank, target, level)


@given(st.integers(0, 8), targets, levels)
def test_the_least_rank_is_the_first_that_tolerates_the_errors(
    errors: int, target: Fraction, level: Fraction
) -> None:
    """One row fewer does not suffice."""
    rank = least_rank(errors, target, level)
    assert ref.tail(errors, rank, target) <= level
    assert rank - 1 <= errors or ref.tail(errors, rank - 1, target) > level


def test_levels_that_are_met_exactly_count_as_met() -> None:
    """(1/2)^2 = 1/4 and (1/10)^2 = 1/100: two rows suffice, although floats may say three."""
    assert least_rank(0, Fraction(1, 2), Fraction(1, 4)) == 2
    assert least_rank(0, Fraction(9, 10), Fraction(1, 100)) == 2


@pytest.mark.parametrize(
    ("target", "delta", "rows"), [("1/10", "1/10", 22), ("1/20", "1/20", 59), ("1/5", "1/10", 11)]
)
def test_rows_that_suffice_without_an_error(target: str, delta: str, rows: int) -> None:
    """ceil(log delta / log(1 - target)) rows."""
    assert least_rank(0, Fraction(target), Fraction(delta)) == rows


@pytest.mark.parametrize("method", ["sequence", "bonferroni"])
@given(n=st.integers(1, 200), target=targets, delta=levels)
def test_a_grid_is_empty_exactly_when_no_rows_can_certify(
    method: RiskMethod, n: int, target: Fraction, delta: Fraction
) -> None:
    """Ranks ascend within 1..n, end at n, and exist if n rows without an error would do."""
    grid = rank_grid(n, target, delta, method)
    assert bool(grid.ranks) == (ref.tail(0, n, target) <= delta)
    assert len(grid.ranks) == len(grid.levels)
    assert all(low < high for low, high in pairwise(grid.ranks))
    assert not grid.ranks or (grid.ranks[0] >= 1 and grid.ranks[-1] == n)
    assert all(ref.tail(0, r, target) <= level for r, level in zip(grid.ranks, grid.levels, strict=True))


@given(n=st.integers(1, 120), target=targets, delta=levels)
def test_a_sequence_tests_where_one_more_error_is_tolerated(
    n: int, target: Fraction, delta: Fraction
) -> None:
    """Every rank but n is the least for its number of errors, all at delta, from 2 sqrt(n) on."""
    grid = rank_grid(n, target, delta, "sequence")
    assert grid.stops
    assert set(grid.levels) <= {delta}
    for rank in grid.ranks[:-1]:
        errors = tolerated(rank, target, delta)
        assert ref.tail(errors, rank, target) <= delta < ref.tail(errors, rank - 1, target)
    if len(grid.ranks) > 2:
        assert grid.ranks[0] >= isqrt(4 * n)


@given(n=st.integers(1, 5000), target=targets, delta=levels)
def test_bonferroni_divides_delta(n: int, target: Fraction, delta: Fraction) -> None:
    """Levels add up to delta exactly and fall with the rank, and every rank is tested."""
    grid = rank_grid(n, target, delta, "bonferroni")
    assert not grid.stops
    assert not grid.ranks or sum(grid.levels) == delta
    assert all(low > high for low, high in pairwise(grid.levels))


@pytest.mark.parametrize("method", ["sequence", "bonferroni"])
def test_extreme_targets_and_exact_ties_take_a_moment(method: RiskMethod) -> None:
    """Tiny and huge levels, and tails that equal their level exactly, are decided without long integers."""
    tiny, half = Fraction(1, 10**12), Fraction(1, 2)
    for n in (200, 4000, 49_999):
        for target, delta in ((tiny, tiny), (1 - tiny, tiny), (half, 1 - tiny), (half, half)):
            assert bool(rank_grid(n, target, delta, method).ranks) == (target > tiny)
    assert least_rank(0, tiny, half) == pytest.approx(math.log(2) * 1e12, rel=1e-9)


@pytest.mark.parametrize("method", ["sequence", "bonferroni"])
def test_a_large_history_has_few_ranks(method: RiskMethod) -> None:
    """Steps of at least 2 % keep the grid of a million rows to some hundred tests."""
    assert len(rank_grid(10**6, Fraction(1, 10), Fraction(1, 10), method).ranks) < 400
