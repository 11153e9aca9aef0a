"""Contrast, its reference, its cap and its units, against formulas in plain Python."""

from __future__ import annotations

import math

import numpy as np
import pytest
import reference_contrast as slow
from hypothesis import given
from hypothesis import strategies as st
from strategies import generator

from rag_confidence.engine.profile.reference import (
    contrast_cap,
    contrast_of_one,
    contrast_to,
    contrast_units,
    reference_of,
    saturated,
    saturated_of_one,
)

NAN = math.nan
cosines = st.floats(-1.0, 1.0)
caps = st.floats(0.4, 2.0)
contrasts = st.floats(0.0, 7.0)


def one(best: float, reference: float) -> float:
    """`contrast_to` of a single pair."""
    return float(contrast_to(np.array([best]), np.array([reference]))[0])


@given(cosines, cosines)
def test_contrast_is_a_ratio_of_squared_distances(best: float, reference: float) -> None:
    """Its logarithm, and 0 where the best is no nearer than the reference."""
    assert one(best, reference) == pytest.approx(slow.contrast(best, min(reference, 1.0 - 1e-6)), abs=1e-12)
    assert one(best, reference) >= 0.0
    assert (one(best, reference) == 0.0) or best > reference - 0.005


@given(cosines, cosines, st.floats(0.0, 0.5))
def test_contrast_rises_with_the_best_and_falls_with_the_reference(
    best: float, reference: float, more: float
) -> None:
    """Nothing is lost by a better passage, nothing gained by a better crowd."""
    assert one(min(best + more, 1.0), reference) >= one(best, reference)
    assert one(best, min(reference + more, 1.0)) <= one(best, reference)


def test_a_copy_of_the_query_has_a_finite_contrast() -> None:
    """At a distance of nothing the ratio is held at a least distance; not measured stays not measured."""
    assert one(1.0, 0.5) == pytest.approx(math.log(0.5 / 0.005))
    assert one(1.0, 1.0) == 0.0
    assert math.isnan(one(NAN, 0.5))
    assert math.isnan(one(0.5, NAN))


@given(contrasts, caps)
def test_saturated_contrast_is_a_soft_minimum(value: float, cap: float) -> None:
    """As the formula says, for arrays and for one; never above the contrast or the cap, never below 0."""
    found = float(saturated(np.array([value]), cap)[0])
    assert found == pytest.approx(slow.saturated(value, cap), abs=1e-12)
    assert saturated_of_one(value, cap) == pytest.approx(found, abs=1e-14)
    assert 0.0 <= found <= min(value, cap)


@given(caps, st.lists(contrasts, min_size=2, max_size=20))
def test_saturated_contrast_keeps_the_order(cap: float, values: list[float]) -> None:
    """A higher contrast is never worth less, and below the cap it is worth more."""
    grid = np.sort(np.array(values))
    found = saturated(grid, cap)
    assert (np.diff(found) >= 0.0).all()
    inside = (grid[1:] < cap) & (grid[:-1] > 0.01) & (np.diff(grid) > 1e-6)
    assert (np.diff(found)[inside] > 0.0).all()


@pytest.mark.parametrize("cap", [0.4, 0.8, 2.0])
def test_no_contrast_stays_none(cap: float) -> None:
    """0 at 0, the cap far above it, and nan where nothing was measured."""
    assert saturated(np.array([0.0]), cap).tolist() == [0.0]
    assert float(saturated(np.array([50.0]), cap)[0]) == pytest.approx(cap, abs=1e-12)
    assert math.isnan(float(saturated(np.array([NAN]), cap)[0]))
    assert math.isnan(saturated_of_one(NAN, cap))


@pytest.mark.parametrize("n", [1, 5, 6, 7, 9, 10, 11, 19, 20, 21, 25])
@pytest.mark.parametrize("padding", [0, 3, 30])
def test_the_reference_reads_what_is_known(n: int, padding: int) -> None:
    """Five cosines leave the tail, six add ranks 6 to 10, twenty ranks 11 to 20; nan is no cosine."""
    rng = generator(n)
    values, tail = rng.uniform(-0.2, 0.9, n), 0.35
    expected = slow.reference(tail, values.tolist())
    for served in sorted({1, min(n, 5), min(n, 10), n}):
        deeper = None
        if n > served or padding:
            deeper = np.concatenate([values[served:], np.full(padding, NAN)])[None]
        found = reference_of(np.array([tail]), values[None, :served], deeper)
        assert found == pytest.approx([expected], abs=1e-12)


def test_lists_of_any_length_share_a_block() -> None:
    """Padded to one width, each has the reference that it has alone."""
    rng = generator(3)
    lengths = (1, 5, 6, 10, 19, 20, 30)
    values = rng.uniform(0.0, 0.9, (len(lengths), 30))
    for row, length in zip(values, lengths, strict=True):
        row[length:] = NAN
    tails = rng.uniform(0.1, 0.5, len(lengths))
    found = reference_of(tails, values[:, :1], values[:, 1:])
    expected = [slow.reference(t, row.tolist()) for t, row in zip(tails.tolist(), values, strict=True)]
    assert found == pytest.approx(expected, abs=1e-12)


@given(st.lists(cosines, min_size=1, max_size=25), cosines)
def test_one_list_in_plain_python(values: list[float], tail: float) -> None:
    """`contrast_of_one` is the contrast to the reference of the block, to rounding."""
    best = max(values)
    found = contrast_to(np.array([best]), reference_of(np.array([tail]), np.array([values]), None))
    assert contrast_of_one(best, tail, values) == pytest.approx(float(found[0]), abs=1e-9)


def test_without_a_background_there_is_no_contrast() -> None:
    """A tail that was not assessed makes the reference nan, however long the list is."""
    values = np.linspace(0.8, 0.2, 25)
    for n in (3, 8, 25):
        assert np.isnan(reference_of(np.array([NAN]), values[None, :n], None)).all()
        assert math.isnan(contrast_of_one(0.8, NAN, values[:n].tolist()))


@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_the_cap_falls_as_companions_get_closer(typical: float, more: float) -> None:
    """It stays between .4 and 2; where nothing is known it is .8."""
    assert contrast_cap(typical) == pytest.approx(slow.cap(typical))
    assert 0.4 <= contrast_cap(typical) <= 2.0
    assert contrast_cap(min(typical + more, 1.0)) <= contrast_cap(typical)
    assert contrast_cap(None) == 0.8


@given(st.lists(contrasts, min_size=2, max_size=40))
def test_units_put_the_median_at_seven_tenths(values: list[float]) -> None:
    """The centre has a fifth of the sample below it, unless the scale or the centre would be too small."""
    center, scale = contrast_units(np.array(values))
    assert scale >= 0.1
    assert center >= 0.0
    if center > 0.0:
        assert slow.logistic((float(np.median(values)) - center) / scale) == pytest.approx(0.7, abs=1e-3)
    if scale > 0.1:
        assert center == pytest.approx(float(np.quantile(values, 0.2)))
