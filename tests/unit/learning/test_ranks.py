"""Rank comparisons against counting pairs, enumerating labels, and SciPy."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_confidence.learning.ranks import (
    holm,
    midranks,
    paired_difference,
    pairs_won,
    rank_correlation,
    strata_of,
)

VALUES = st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.7, 1.0]), min_size=4, max_size=14)


def labelled(values: list[float], seed: int) -> np.ndarray[Any, Any]:
    """Labels of both classes, at least two of each."""
    y = np.random.default_rng(seed).permutation(len(values)) % 2
    return np.asarray(y == 1)


def pairs(values: Any, y: Any, strata: Any) -> list[float]:
    """1, one half or 0 for each comparable pair, one by one."""
    return [
        1.0 if values[i] > values[j] else 0.5 if values[i] == values[j] else 0.0
        for i in np.flatnonzero(y)
        for j in np.flatnonzero(~y)
        if strata[i] == strata[j]
    ]


def beaten(values: Any, y: Any) -> tuple[list[float], list[float]]:
    """DeLong's structural components, one by one."""

    def wins(a: float, b: float) -> float:
        return 1.0 if a > b else 0.5 if a == b else 0.0

    ones, zeros = values[y], values[~y]
    over_ones = [sum(wins(a, b) for b in zeros) / len(zeros) for a in ones]
    return over_ones, [sum(wins(a, b) for a in ones) / len(ones) for b in zeros]


@given(VALUES)
def test_midranks_are_scipys(values: list[float]) -> None:
    """Ties share the mean rank."""
    from scipy.stats import rankdata

    np.testing.assert_array_equal(midranks(np.array(values)), rankdata(values))


@given(VALUES, st.integers(0, 99))
def test_rank_correlation_is_spearmans(values: list[float], seed: int) -> None:
    """With ties; None where a column does not vary."""
    a = np.array(values)
    b = np.random.default_rng(seed).integers(0, 4, len(values)).astype(float)
    found = rank_correlation(a, b)
    if len(set(a)) == 1 or len(set(b)) == 1:
        assert found is None
    else:
        from scipy.stats import spearmanr

        assert found == pytest.approx(spearmanr(a, b).statistic, abs=1e-12)


@given(VALUES, st.integers(0, 99), st.integers(1, 5))
def test_pairs_won_counts_pairs_of_a_stratum(values: list[float], seed: int, rows: int) -> None:
    """The share and the number of pairs are those counted one by one."""
    a, y = np.array(values), labelled(values, seed)
    strata = strata_of(np.random.default_rng(seed).integers(0, 6, len(a)).astype(float), rows)
    found, counted = pairs_won(a, y, strata), pairs(a, y, strata)
    if not counted:
        assert found is None
    else:
        assert found is not None
        assert found.pairs == len(counted)
        assert found.auroc == pytest.approx(np.mean(counted), abs=1e-12)


def test_one_stratum_is_the_mann_whitney_test() -> None:
    """The p-value is SciPy's normal one with ties and continuity correction."""
    from scipy.stats import mannwhitneyu

    rng = np.random.default_rng(3)
    for shift in (0.0, 1.0, 3.0):
        y = rng.random(60) < 0.4
        values = np.round(rng.normal(0, 2, 60) + shift * y)
        found = pairs_won(values, y, np.zeros(60, dtype=int))
        wanted = mannwhitneyu(values[y], values[~y], method="asymptotic", use_continuity=True)
        assert found is not None
        assert found.p_value == pytest.approx(wanted.pvalue, rel=1e-9)


def test_the_variance_over_strata_is_that_of_all_labellings() -> None:
    """Enumerating every way to deal the labels within strata gives the same p-value."""
    values = np.array([1.0, 1.0, 2.0, 3.0, 1.0, 2.0, 2.0, 5.0, 4.0])
    strata = np.array([0, 0, 0, 0, 1, 1, 1, 1, 1])
    ways = [
        sum(pairs(values, np.isin(np.arange(9), first + second), strata))
        for first, second in product(combinations(range(4), 2), combinations(range(4, 9), 2))
    ]
    y = np.isin(np.arange(9), (2, 3, 7, 8))
    won = sum(pairs(values, y, strata))
    from scipy.stats import norm

    wanted = 2 * norm.sf((won - np.mean(ways) - 0.5) / np.std(ways))
    found = pairs_won(values, y, strata)
    assert found is not None
    assert found.p_value == pytest.approx(wanted, rel=1e-12)


def test_values_that_are_all_tied_prove_nothing() -> None:
    """Every pair is half won, and the p-value is 1."""
    found = pairs_won(np.ones(6), np.arange(6) < 3, np.zeros(6, dtype=int))
    assert found is not None
    assert (found.auroc, found.p_value) == (0.5, 1.0)


@given(VALUES, st.integers(0, 99))
def test_strata_keep_equal_values_together(values: list[float], seed: int) -> None:
    """Strata rise with the values, equal values share one, and order of rows does not matter."""
    a = np.array(values)
    strata = strata_of(a, 3)
    assert all(strata[i] == strata[j] for i in range(len(a)) for j in range(len(a)) if a[i] == a[j])
    assert all(strata[i] <= strata[j] for i in range(len(a)) for j in range(len(a)) if a[i] < a[j])
    order = np.random.default_rng(seed).permutation(len(a))
    np.testing.assert_array_equal(strata_of(a[order], 3), strata[order])


@given(VALUES, st.integers(0, 99))
def test_paired_difference_is_delongs(values: list[float], seed: int) -> None:
    """Value and standard error from structural components, one by one."""
    a, y = np.array(values), labelled(values, seed)
    b = np.random.default_rng(seed + 1).integers(0, 5, len(a)).astype(float)
    (a1, a0), (b1, b0) = beaten(a, y), beaten(b, y)
    d1, d0 = np.subtract(a1, b1), np.subtract(a0, b0)
    error = np.sqrt(d1.var(ddof=1) / len(d1) + d0.var(ddof=1) / len(d0))
    found = paired_difference(a, b, y)
    if error < 1e-12:
        assert found is None or found.high - found.low < 1e-9
        return
    assert found is not None
    assert found.value == pytest.approx(d1.mean(), abs=1e-12)
    assert found.low == pytest.approx(max(d1.mean() - 1.959963984540054 * error, -1), abs=1e-12)
    assert found.high == pytest.approx(min(d1.mean() + 1.959963984540054 * error, 1), abs=1e-12)
    assert found.n == len(a)


def test_a_difference_needs_two_rows_of_each_class_and_something_that_varies() -> None:
    """One row of a class has no variance, and two perfect scores have no difference to test."""
    a = np.array([0.1, 0.2, 0.8, 0.9])
    assert paired_difference(a, a[::-1], np.array([False, True, True, True])) is None
    assert paired_difference(a, 2 * a, np.array([False, False, True, True])) is None


def test_holm_steps_down() -> None:
    """The smallest p counts m times, the next m - 1 times, and adjusted values never fall."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_lies_between_the_p_value_and_bonferroni(p_values: list[float]) -> None:
    """Adjusting never helps a signal and is never harsher than Bonferroni."""
    for p, adjusted in zip(p_values, holm(p_values), strict=True):
        assert p <= adjusted <= 1.0
        assert adjusted <= max(min(len(p_values) * q, 1.0) for q in p_values if q <= p)


def test_what_repeats_the_kpi_is_no_addition() -> None:
    """In narrow strata a noisy copy of a score is called an addition in about 5 % of logs, not more."""
    rng, found, logs = np.random.default_rng(5), 0, 300
    for _ in range(logs):
        kpi = rng.standard_normal(150)
        y = rng.random(150) < 1 / (1 + np.exp(-kpi))
        won = pairs_won(kpi + 0.3 * rng.standard_normal(150), y, strata_of(kpi, 10))
        found += won is not None and won.p_value < 0.05
    # 29 of 300 or more have a chance of .001 at a rate of .05.
    assert found < 29
