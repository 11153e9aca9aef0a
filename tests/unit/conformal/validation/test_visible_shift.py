"""The power of the coverage check against shifts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from rag_confidence.conformal.validation.visible_shift import SHIFTS, smallest_visible_shift
from rag_confidence.synthetic import skewed_scores, uniform_scores

GRID = (0.0, 0.02, 0.05, 0.1, 0.3)


def test_power_agrees_with_the_formula_for_uniform_scores() -> None:
    """A shift d costs d / sqrt(12) of coverage, and is seen as often as a normal mean would be."""
    found = smallest_visible_shift(uniform_scores, 400, 0.1, n_test=400, repeats=40, tries=150, shifts=GRID)
    mean, deviation = 361 / 401, np.sqrt(0.9 * 0.1 * 801 / (400 * 402) / 40)
    for shift, flagged, coverage in zip(GRID, found.flagged, found.coverage, strict=True):
        lost = shift / np.sqrt(12)
        z = norm.isf(0.05 / 4 / 2)
        power = norm.sf(z - lost / deviation) + norm.cdf(-z - lost / deviation)
        assert coverage == pytest.approx(mean - lost, abs=2e-3)
        assert flagged == pytest.approx(power, abs=0.12)


def test_the_smallest_shift_is_seen_and_so_is_each_larger_one() -> None:
    """From the smallest visible shift on every shift reaches the power; the one before it does not."""
    found = smallest_visible_shift(skewed_scores, 200, 0.1, n_test=200, repeats=20, tries=50)
    assert found.smallest is not None
    at = found.shifts.index(found.smallest)
    assert min(found.flagged[at:]) >= 0.95
    assert found.flagged[at - 1] < 0.95
    assert found.coverage_lost == found.coverage[0] - found.coverage[at]


def test_coverage_falls_as_the_shift_grows() -> None:
    """All shifts are tried on the same draws, so the curve of coverage never rises."""
    found = smallest_visible_shift(uniform_scores, 50, 0.1, n_test=50, repeats=5, tries=5)
    assert found.shifts == SHIFTS
    assert (np.diff(found.coverage) <= 0.0).all()


def test_a_shift_too_small_to_see_gives_none() -> None:
    """Where no shift of the grid is seen often enough there is no smallest one."""
    found = smallest_visible_shift(
        uniform_scores, 50, 0.1, n_test=50, repeats=5, tries=20, shifts=[0, 0.001, 0.002]
    )
    assert found.smallest is None
    assert found.coverage_lost is None


def test_an_infinite_threshold_sees_nothing() -> None:
    """With too few calibration scores everything is covered, whatever the shift."""
    found = smallest_visible_shift(uniform_scores, 8, 0.1, n_test=50, repeats=5, tries=3, shifts=GRID)
    assert found.coverage == (1.0,) * len(GRID)
    assert found.smallest is None


def test_the_table_has_a_line_for_each_shift() -> None:
    """Markdown with shift, coverage and power."""
    found = smallest_visible_shift(uniform_scores, 50, 0.1, n_test=50, repeats=5, tries=5, shifts=GRID)
    assert len(found.table().splitlines()) == 2 + len(GRID)
    assert found.table().splitlines()[2].startswith("| 0.0000 | 0.")


@pytest.mark.parametrize("shifts", [[0.1, 0.2], [0.0, 0.2, 0.1], [0.0, 0.0]])
def test_shifts_must_ascend_from_nought(shifts: list[float]) -> None:
    """Without shift 0 first the rate of false alarms would be missing."""
    with pytest.raises(ValueError, match="`shifts` must ascend from 0; got "):
        smallest_visible_shift(uniform_scores, 50, 0.1, n_test=50, shifts=shifts)
