"""Reliability bins, calibration errors and the Brier decomposition, against exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_confidence._types import FloatArray
from rag_confidence.conformal.audit.reliability import (
    bin_edges,
    brier_score,
    calibration_error,
    debiased_squared_error,
    equal_mass,
    equal_width,
    width_bins,
)
from rag_confidence.conformal.distinct import Distinct, distinct

Rows = list[tuple[float, bool]]

TENTHS = st.integers(0, 20).map(lambda i: i / 20)
ROWS = st.lists(st.tuples(st.one_of(TENTHS, st.floats(0, 1)), st.booleans()), min_size=1, max_size=16)
BINS = st.integers(1, 12)


def table_of(rows: Rows) -> Distinct:
    return distinct(np.array([s for s, _ in rows]), np.array([y for _, y in rows]))


def width_place(score: float, bins: int) -> int:
    """The last bin whose lower edge, the float i/M, is not above the score."""
    return max(i for i in range(bins) if i / bins <= score)


def mass_place(score: float, rows: Rows, bins: int) -> int:
    """The bin in which the middle of the ranks of all rows with this score falls."""
    below, equal = sum(s < score for s, _ in rows), sum(s == score for s, _ in rows)
    return int((below + Fraction(equal, 2)) * bins / len(rows))


def slow_bins(rows: Rows, places: list[int]) -> dict[int, tuple[int, Fraction, Fraction]]:
    """Rows, mean score and observed rate of every filled bin."""
    found = {}
    for place in sorted(set(places)):
        inside = [row for row, at in zip(rows, places, strict=True) if at == place]
        mean = sum((Fraction(s) for s, _ in inside), Fraction(0)) / len(inside)
        found[place] = (len(inside), mean, Fraction(sum(y for _, y in inside), len(inside)))
    return found


def slow_error(rows: Rows, places: list[int]) -> Fraction:
    """ECE of the bins by exact sums."""
    bins = slow_bins(rows, places).values()
    return sum((count * abs(mean - rate) for count, mean, rate in bins), Fraction(0)) / len(rows)


def slow_debiased(rows: Rows, places: list[int]) -> Fraction | None:
    """The debiased squared error over the bins that hold two rows or more."""
    bins = [one for one in slow_bins(rows, places).values() if one[0] > 1]
    if not bins:
        return None
    total = sum(c * ((mean - rate) ** 2 - rate * (1 - rate) / (c - 1)) for c, mean, rate in bins)
    return Fraction(total) / sum(c for c, _, _ in bins)


def slow_isotonic(rows: Rows) -> dict[float, Fraction]:
    """Isotonic regression by its min-max formula over all intervals of distinct scores."""
    scores = sorted({s for s, _ in rows})

    def mean(low: float, high: float) -> Fraction:
        inside = [y for s, y in rows if low <= s <= high]
        return Fraction(sum(inside), len(inside))

    return {
        s: max(min(mean(low, high) for high in scores if high >= s) for low in scores if low <= s)
        for s in scores
    }


def slow_brier(rows: Rows, forecast: dict[float, Fraction]) -> Fraction:
    return sum(((forecast[s] - y) ** 2 for s, y in rows), Fraction(0)) / len(rows)


@pytest.mark.parametrize(
    ("scores", "labels", "error"),
    [([0.95, 1.0], [1, 0], 19 / 40), ([0.0], [1], 1.0), ([0.3, 0.35], [1, 0], 7 / 40)],
)
def test_ece_at_the_edges(scores: list[float], labels: list[int], error: float) -> None:
    """1.0 belongs to the last bin, 0.0 to the first, and 0.3 to the bin that starts at 3/10."""
    sums = equal_width(distinct(np.array(scores), np.array(labels, dtype=bool)), 10)
    assert calibration_error(sums) == pytest.approx(error, abs=1e-15)


@pytest.mark.parametrize("bins", [1, 3, 7, 10, 49, 100, 1000])
def test_edges_are_the_nearest_floats(bins: int) -> None:
    """Every edge is the fraction i/M, rounded once."""
    assert bin_edges(bins).tolist() == [float(Fraction(i, bins)) for i in range(bins + 1)]


@pytest.mark.parametrize("bins", [10, 49, 100])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_score_on_an_edge_opens_its_bin(bins: int, dtype: type) -> None:
    """A score of i/M lies in bin i, in either precision, and 1 in the last bin."""
    scores: FloatArray = (np.arange(bins + 1) / bins).astype(dtype)
    sums = equal_width(distinct(scores, np.ones(bins + 1, dtype=bool)), bins)
    assert sums.counts.tolist() == [1] * (bins - 1) + [2]


@given(ROWS, BINS)
def test_equal_width_error(rows: Rows, bins: int) -> None:
    """The ECE of equal-width bins is that of exact sums over the same bins."""
    places = [width_place(s, bins) for s, _ in rows]
    assert calibration_error(equal_width(table_of(rows), bins)) == pytest.approx(
        float(slow_error(rows, places)), abs=1e-12
    )


@given(ROWS, BINS)
def test_equal_mass_error(rows: Rows, bins: int) -> None:
    """So is the ECE of equal-mass bins, where tied rows share the bin of their middle rank."""
    places = [mass_place(s, rows, bins) for s, _ in rows]
    assert calibration_error(equal_mass(table_of(rows), bins)) == pytest.approx(
        float(slow_error(rows, places)), abs=1e-12
    )


@given(st.integers(1, 200), BINS)
def test_equal_mass_bins_are_even_without_ties(n: int, bins: int) -> None:
    """Without ties the sizes of the bins differ by at most one."""
    counts = equal_mass(distinct(np.arange(n) / n, np.zeros(n, dtype=bool)), bins).counts
    assert counts.sum() == n
    assert counts.max() - counts.min() <= 1


@given(ROWS, BINS)
def test_debiased_error(rows: Rows, bins: int) -> None:
    """The debiased squared error is the published formula over the bins that have a variance."""
    wanted = slow_debiased(rows, [mass_place(s, rows, bins) for s, _ in rows])
    found = debiased_squared_error(equal_mass(table_of(rows), bins))
    assert (found is None) == (wanted is None)
    if found is not None and wanted is not None:
        assert found == pytest.approx(float(wanted), abs=1e-12)


def test_debiased_error_needs_two_rows_in_a_bin() -> None:
    """With one row in every bin there is no variance to take off, and no estimate."""
    assert debiased_squared_error(equal_mass(table_of([(0.1, True), (0.9, False)]), 2)) is None


def test_debiased_error_has_no_bias() -> None:
    """Over every possible sample of one bin, weighted by its probability, the mean is the squared error."""
    score, rate, n = Fraction(1, 2), Fraction(1, 4), 6
    total = Fraction(0)
    for mask in range(2**n):
        labels = [bool(mask >> i & 1) for i in range(n)]
        chance = rate ** sum(labels) * (1 - rate) ** (n - sum(labels))
        sums = equal_width(table_of([(float(score), y) for y in labels]), 1)
        error = debiased_squared_error(sums)
        assert error is not None
        total += chance * Fraction(error)
    assert float(total) == pytest.approx(float((score - rate) ** 2), abs=1e-15)


def test_brier_parts_of_four_rows() -> None:
    """Scores .1 .4 .35 .8 with labels 0 0 1 1: 253/1600 = 53/1600 - 1/8 + 1/4."""
    parts = brier_score(table_of([(0.1, False), (0.4, False), (0.35, True), (0.8, True)]))
    assert parts.score == pytest.approx(253 / 1600, abs=1e-15)
    assert parts.miscalibration == pytest.approx(53 / 1600, abs=1e-15)
    assert parts.discrimination == pytest.approx(1 / 8, abs=1e-15)
    assert parts.uncertainty == pytest.approx(1 / 4, abs=1e-15)


@given(st.lists(st.tuples(st.one_of(TENTHS, st.floats(0, 1)), st.booleans()), min_size=1, max_size=10))
def test_brier_parts_are_exact(rows: Rows) -> None:
    """All four numbers are those of the min-max isotonic regression in fractions."""
    recalibrated = slow_brier(rows, slow_isotonic(rows))
    prevalence = Fraction(sum(y for _, y in rows), len(rows))
    score = slow_brier(rows, {s: Fraction(s) for s, _ in rows})
    found = brier_score(table_of(rows))
    assert found.score == pytest.approx(float(score), abs=1e-13)
    assert found.miscalibration == pytest.approx(float(score - recalibrated), abs=1e-13)
    assert found.uncertainty == pytest.approx(float(prevalence * (1 - prevalence)), abs=1e-13)
    assert found.discrimination == pytest.approx(float(found.uncertainty - recalibrated), abs=1e-13)


@given(ROWS)
def test_brier_parts_add_up_and_are_not_negative(rows: Rows) -> None:
    """Score = miscalibration - discrimination + uncertainty, and no part is below 0, up to rounding."""
    found = brier_score(table_of(rows))
    total = found.miscalibration - found.discrimination + found.uncertainty
    assert found.score == pytest.approx(total, abs=1e-14)
    assert min(found.miscalibration, found.discrimination, found.uncertainty) >= -1e-15


def test_recalibrated_scores_have_no_miscalibration() -> None:
    """Scores that equal the rate of their rows, and rise with it, are calibrated."""
    rows = [(0.0, False), (0.5, True), (0.5, False), (1.0, True)]
    assert brier_score(table_of(rows)).miscalibration == 0.0
    assert calibration_error(equal_width(table_of(rows), 10)) == 0.0


@given(ROWS, BINS)
def test_bin_records(rows: Rows, bins: int) -> None:
    """A record holds the rows, the mean score and the rate of its bin, with the rate inside its interval."""
    records = width_bins(equal_width(table_of(rows), bins))
    slow = slow_bins(rows, [width_place(s, bins) for s, _ in rows])
    assert [(one.low, one.high) for one in records] == [(i / bins, (i + 1) / bins) for i in range(bins)]
    for place, one in enumerate(records):
        count, mean, rate = slow.get(place, (0, None, None))
        assert one.count == count
        assert one.mean_score == (None if mean is None else pytest.approx(float(mean), abs=1e-13))
        assert one.observed_rate == (None if rate is None else float(rate))


def test_an_empty_bin_says_nothing() -> None:
    """A bin without rows has neither mean nor rate nor interval."""
    empty = width_bins(equal_width(table_of([(0.9, True)]), 2))[0]
    assert empty.to_dict() == {
        "low": 0.0,
        "high": 0.5,
        "count": 0,
        "mean_score": None,
        "observed_rate": None,
        "observed_low": None,
        "observed_high": None,
    }
