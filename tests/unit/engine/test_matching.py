"""Kernels of the distances against the assignment oracle."""

from __future__ import annotations

import numpy as np
import pytest
from diagram_oracle import (
    LEVELS,
    brute_force,
    oracle_bottleneck,
    oracle_wasserstein,
    superlevel_bars,
)
from hypothesis import given
from hypothesis import strategies as st

from rag_confidence.engine.matching import bottleneck, same_death_bottleneck, wasserstein

LENGTHS = st.lists(LEVELS, max_size=7).map(lambda values: np.array(values, dtype=float))


def _bars(lengths, death):
    return np.column_stack([lengths + death, np.full(len(lengths), death)])


@given(superlevel_bars(3), superlevel_bars(3))
def test_oracle_is_the_best_of_all_permutations(a, b):
    """The oracle itself equals a search through all pairings of at most six bars."""
    best_largest, best_total = brute_force(a, b)
    assert oracle_bottleneck(a, b) == best_largest
    assert oracle_wasserstein(a, b) == pytest.approx(best_total, abs=1e-12)


@given(superlevel_bars(), superlevel_bars())
def test_bottleneck_is_the_oracle(a, b):
    """The bisection over costs is exact, with ties, equal and zero-length bars and empty sides."""
    assert bottleneck(a, b) == pytest.approx(oracle_bottleneck(a, b), abs=1e-12)


@pytest.mark.parametrize("noise", [0.02, 0.5])
def test_bottleneck_is_the_oracle_on_larger_diagrams(noise):
    """Twelve to thirty bars, near each other (nearest partners) or not (matchings), agree with the oracle."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        a = np.sort(rng.random((rng.integers(12, 30), 2)))[:, ::-1]
        b = np.sort(a + rng.normal(0, noise, a.shape))[rng.integers(0, 3) :, ::-1]
        assert bottleneck(a, b) == pytest.approx(oracle_bottleneck(a, b), abs=1e-12)


def test_nearest_partners_that_collide_need_a_matching():
    """When two long bars share their nearest partner, one of them pays for the next one."""
    a = np.array([[1.0, 0.0], [1.0, 0.01]])
    b = np.array([[1.0, 0.005], [1.0, 0.2], [0.9, 0.4]])
    assert bottleneck(a, b) == pytest.approx(0.25)
    assert bottleneck(a, b[:2]) == pytest.approx(0.19)


def test_level_zero_can_be_infeasible():
    """A bar held twice on one side only must go to the diagonal although its partner is at distance 0."""
    twice = np.array([[1.0, 0.0], [1.0, 0.0], [0.7, 0.6]])
    assert bottleneck(twice, np.array([[1.0, 0.0], [0.7, 0.6]])) == 0.5


@given(LENGTHS, LENGTHS, st.one_of(st.just(0.0), st.floats(-1.0, 1.0, width=32)))
def test_same_death_closed_form_is_the_oracle(x, y, gap):
    """The closed form holds for any two families of bars that each share a death, whatever the gap."""
    expected = oracle_bottleneck(_bars(x, gap), _bars(y, 0.0))
    assert same_death_bottleneck(x, y, gap) == pytest.approx(expected, abs=1e-12)


def test_same_death_closed_form_on_many_random_cases():
    """Two thousand cases with gaps of the size of the lengths, where pairing just starts to pay."""
    rng = np.random.default_rng(2)
    for _ in range(2000):
        x, y = rng.exponential(size=rng.integers(0, 6)), rng.exponential(size=rng.integers(0, 6))
        gap = rng.normal(0, rng.choice([0.1, 0.5, 1.0]))
        expected = oracle_bottleneck(_bars(x, gap), _bars(y, 0.0))
        assert same_death_bottleneck(x, y, gap) == pytest.approx(expected, abs=1e-12)


@given(LENGTHS, LENGTHS, LEVELS, LEVELS)
def test_shared_deaths_and_shared_births_take_the_closed_form(x, y, alpha, beta):
    """Bars with one death, and their mirror image with one birth, are as far apart as the oracle says."""
    a, b = _bars(x, alpha), _bars(y, beta)
    expected = oracle_bottleneck(a, b)
    assert bottleneck(a, b) == pytest.approx(expected, abs=1e-12)
    assert bottleneck(-a[:, ::-1], -b[:, ::-1]) == pytest.approx(expected, abs=1e-12)


def test_same_death_broadcasts_over_leading_axes():
    """One call over probes equals one call per probe."""
    rng = np.random.default_rng(3)
    x, y, gap = rng.random((4, 1, 5)), rng.random((4, 8, 5)), rng.normal(0, 0.2, (4, 8))
    together = same_death_bottleneck(x, y, gap)
    one_by_one = [
        [float(same_death_bottleneck(x[q, 0], y[q, p], gap[q, p])) for p in range(8)] for q in range(4)
    ]
    np.testing.assert_array_equal(together, one_by_one)


def test_same_death_padding_with_zeros_changes_nothing():
    """Zero lengths count for nothing on either side."""
    x, y = np.array([0.9, 0.4]), np.array([0.7, 0.6, 0.1])
    padded = same_death_bottleneck(np.append(x, [0.0, 0.0]), np.append(y, 0.0), 0.05)
    assert padded == same_death_bottleneck(x, y, 0.05)


def test_same_death_without_bars_is_zero():
    """Two empty families are at distance 0, whatever the gap of their deaths."""
    assert same_death_bottleneck(np.empty(0), np.empty(0), 0.3) == 0.0


@given(superlevel_bars(), superlevel_bars())
def test_wasserstein_is_the_oracle(a, b):
    """Assigning savings on (m, n) equals assigning costs on (m + n, m + n)."""
    assert wasserstein(a, b) == pytest.approx(oracle_wasserstein(a, b), abs=1e-12)


def test_wasserstein_does_not_pair_by_rank():
    """{10, 1} against {1} costs 5: the long bar goes to the diagonal, not to the first of the other side."""
    assert wasserstein(_bars(np.array([10.0, 1.0]), 0.0), _bars(np.array([1.0]), 0.0)) == 5.0
