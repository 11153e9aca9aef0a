"""Summaries of a corpus sample, against direct computation."""

from __future__ import annotations

import numpy as np
import pytest
import reference_profile as ref
from hypothesis import given
from hypothesis import strategies as st
from reference_profile import Array
from strategies import generator, rotations

from rag_confidence.engine.profile.fitting import (
    MOST_ROWS,
    PASSAGE_LEVELS,
    chosen_rows,
    duplicate_ids,
    effective_dimension,
    n_distinct,
    norm_summary,
    passage_quantiles,
    principal_axes,
    shuffled,
)


def rows(seed: int, m: int = 30, d: int = 5) -> Array:
    """Unit rows, stretched along the first axes."""
    found = generator(seed).standard_normal((m, d)) * np.arange(d, 0, -1) + 0.5
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True))


seeds = st.integers(0, 2**32 - 1)


@given(seeds, st.sampled_from([(30, 5), (6, 9), (9, 9)]))
def test_effective_dimension_is_a_participation_ratio(seed: int, shape: tuple[int, int]) -> None:
    """It is (sum)^2 / (sum of squares) of the covariance spectrum, with more rows than columns or fewer."""
    unit = rows(seed, *shape)
    assert effective_dimension(unit) == pytest.approx(ref.participation_ratio(unit), rel=1e-9)
    assert 1.0 - 1e-9 <= effective_dimension(unit) <= min(shape[0] - 1, shape[1]) + 1e-9


@given(st.data(), seeds)
def test_dimension_ignores_rotation_and_order(data: st.DataObject, seed: int) -> None:
    """A rotation of the space and a permutation of the rows change neither dimension nor cosines."""
    unit = rows(seed)
    turned = unit[generator(1).permutation(30)] @ data.draw(rotations(5))
    assert effective_dimension(turned) == pytest.approx(effective_dimension(unit), rel=1e-9)
    np.testing.assert_allclose(passage_quantiles(turned), passage_quantiles(unit), rtol=0, atol=1e-12)


@given(seeds)
def test_passage_quantiles_are_of_all_pairs(seed: int) -> None:
    """The cosines are those of every pair of different rows, each pair once."""
    unit = rows(seed, m=9)
    pairs = [ref.cosine(unit[i], unit[j]) for i in range(9) for j in range(i)]
    np.testing.assert_allclose(passage_quantiles(unit), np.quantile(pairs, PASSAGE_LEVELS), atol=1e-12)


@pytest.mark.parametrize("shape", [(40, 6), (5, 12)])
def test_principal_axes_hold_the_most_energy(shape: tuple[int, int]) -> None:
    """They are orthonormal and span what the right singular vectors of largest singular value span."""
    unit = rows(3, *shape)
    axes = principal_axes(unit, 3)
    expected = np.linalg.svd(unit)[2][:3]
    np.testing.assert_allclose(axes @ axes.T, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(axes.T @ axes, expected.T @ expected, atol=1e-10)


def test_axes_of_low_rank_are_still_orthonormal() -> None:
    """Rows on a line in many dimensions give orthonormal axes, the first along the line."""
    line = np.zeros((6, 12))
    line[:, 2] = 1.0
    axes = principal_axes(line, 4)
    np.testing.assert_allclose(axes @ axes.T, np.eye(4), atol=1e-12)
    assert abs(axes[0, 2]) == pytest.approx(1.0)
    assert principal_axes(line, 0).shape == (0, 12)


def test_large_samples_are_thinned_by_the_seed() -> None:
    """Up to the cap all rows are kept; above it as many distinct ones, the same for the same seed."""
    np.testing.assert_array_equal(chosen_rows(MOST_ROWS, 0), np.arange(MOST_ROWS))
    kept = chosen_rows(3 * MOST_ROWS, 0)
    assert len(kept) == len(set(kept.tolist())) == MOST_ROWS
    assert (np.diff(kept) > 0).all()
    np.testing.assert_array_equal(kept, chosen_rows(3 * MOST_ROWS, 0))
    assert not np.array_equal(kept, chosen_rows(3 * MOST_ROWS, 1))
    assert sorted(shuffled(10, 0)) == list(range(10))


def test_distinct_rows_are_counted() -> None:
    """Copies, and copies but for rounding, count once; -0.0 is 0.0."""
    unit = rows(4)
    assert n_distinct(np.concatenate([unit, unit[:7]])) == 30
    assert n_distinct(np.concatenate([unit, unit[:7].astype(np.float32).astype(float)])) <= 32
    assert n_distinct(np.array([[1.0, 0.0], [1.0, -0.0]])) == 1


def test_norms_and_duplicate_ids() -> None:
    """Norms are summed up by their quantiles .01, .5 and .99; repeated ids are named in order."""
    assert norm_summary(np.arange(101.0)) == pytest.approx((1.0, 50.0, 99.0))
    assert duplicate_ids(("b", "a", "b", 1, "a", 2)) == ["b", "a"]
