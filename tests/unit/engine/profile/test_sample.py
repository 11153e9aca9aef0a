"""The sample as the kernels read it: unit rows, and where copies of a passage can be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import generator

from rag_confidence.engine.profile.sample import Sample, with_lengths

SEEDS = st.integers(0, 2**32 - 1)


def sample(limit: float, d: int = 3) -> Sample:
    """A small sample with this limit."""
    rows = generator(0).standard_normal((20, d))
    return Sample.of(rows / np.linalg.norm(rows, axis=1, keepdims=True), duplicate_cosine=limit)


@given(SEEDS, st.sampled_from([0.5, 0.9, 0.995, 0.999999, 1.0]), st.sampled_from([2, 3, 10]))
def test_no_copy_lies_below_the_bound(seed: int, limit: float, d: int) -> None:
    """What is at the limit from a passage has at least the bound as its cosine to the query."""
    rng = generator(seed)
    passage, query, side = rng.standard_normal((3, d))
    passage, query = passage / np.linalg.norm(passage), query / np.linalg.norm(query)
    # The worst direction is straight away from the query.
    for away in (-query, query, side):
        tangent = away - (away @ passage) * passage
        tangent /= np.linalg.norm(tangent)
        held = sample(limit)
        copy = held.limit * passage + np.sqrt(1.0 - held.limit**2) * tangent
        assert query @ copy >= held.lowest_copy(float(query @ passage))


def test_the_bound_is_tight() -> None:
    """Straight away from the query a copy comes within the slack of the bound."""
    query, passage = np.array([1.0, 0.0]), np.array([0.6, 0.8])
    held = sample(0.995, 2)
    angle = np.arccos(0.6) + np.arccos(held.limit)
    assert query @ passage == 0.6
    assert held.lowest_copy(0.6) == pytest.approx(np.cos(angle), abs=2e-4)
    assert held.lowest_copy(0.6) <= np.cos(angle)


@given(st.lists(st.floats(-1, 1), max_size=6), st.sampled_from([0.5, 0.995, 1.0]))
def test_bounds_of_many_are_those_of_each(cosines: list[float], limit: float) -> None:
    """The bounds of an array are those of its entries, minus infinity past the antipode included."""
    held = sample(limit)
    found = held.lowest_copies(np.array(cosines))
    np.testing.assert_allclose(found, [held.lowest_copy(cosine) for cosine in cosines], rtol=0, atol=1e-15)
    assert held.lowest_copy(-1.0) == -np.inf


@pytest.mark.parametrize("scale", [1e-40, 1e-20, 1.0, 1e18, 1e30])
def test_lengths_are_right_where_float32_cannot_square(scale: float) -> None:
    """Rows in float32 whose squares would vanish or overflow are widened first; others keep their type."""
    rows = np.array([[3.0, 4.0], [6.0, 8.0]]) * scale
    wide, lengths = with_lengths(rows.astype(np.float32))
    np.testing.assert_allclose(lengths, [5.0 * scale, 10.0 * scale], rtol=1e-4)
    assert wide.dtype == (np.float32 if scale == 1.0 else np.float64)


def test_rounded_rows_are_unit_again() -> None:
    """Rows that float32 has rounded are of length one in float64, and stay as they are in float32."""
    rows = generator(1).standard_normal((50, 64))
    narrow = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    held = Sample.of(narrow, duplicate_cosine=0.9)
    np.testing.assert_allclose(np.linalg.norm(held.vectors, axis=1), 1.0, rtol=0, atol=4e-16)
    assert held.rows_like(narrow).dtype == np.float32
    assert held.rows_like(rows) is held.vectors
