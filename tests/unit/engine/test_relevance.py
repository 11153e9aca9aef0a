"""Cosines, Gram matrix, duplicates and the seed's relevance, against exact sums and plain loops."""

from __future__ import annotations

import numpy as np
import pytest
import reference as ref
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import Array, Retrieval, leveled_graphs, retrievals, rotations, scales

from rag_confidence.engine.relevance import cosines_and_gram, distinct, min_max, unit_rows


def geometry(query: Array, passages: Array) -> tuple[Array, Array]:
    """Cosines (n,) and Gram matrix (n, n) of one query."""
    c, g = cosines_and_gram(np.asarray(query)[None], np.asarray(passages)[None])
    return c[0], g[0]


@given(retrievals())
def test_cosines_and_gram_match_exact_sums(r: Retrieval) -> None:
    """Cosines and mutual cosines agree with exactly summed ones to rounding."""
    c, g = geometry(r.query, r.passages)
    np.testing.assert_allclose(c, r.cosines, rtol=0, atol=1e-14)
    np.testing.assert_allclose(g, r.gram, rtol=0, atol=1e-14)


@given(retrievals())
def test_gram_is_a_clipped_symmetric_correlation_matrix(r: Retrieval) -> None:
    """The Gram matrix is symmetric to an ulp, in [-1, 1], and exactly 1 on the diagonal."""
    c, g = geometry(r.query, r.passages)
    assert c.dtype == g.dtype == np.float64
    assert np.abs(c).max() <= 1.0
    assert np.abs(g).max() <= 1.0
    np.testing.assert_array_equal(np.diagonal(g), 1.0)
    np.testing.assert_allclose(g, g.T, rtol=0, atol=2.3e-16)


@given(st.data(), retrievals())
def test_cosines_ignore_positive_scale(data: st.DataObject, r: Retrieval) -> None:
    """Rows and query scaled by anything from 1e-150 to 1e150 keep their cosines to 1e-14."""
    factor = data.draw(scales(len(r.passages) + 1))
    c, g = geometry(r.query * factor[0], r.passages * factor[1:, None])
    np.testing.assert_allclose(c, r.cosines, rtol=0, atol=1e-14)
    np.testing.assert_allclose(g, r.gram, rtol=0, atol=1e-14)


@given(st.data(), retrievals())
def test_cosines_ignore_rotation_of_the_space(data: st.DataObject, r: Retrieval) -> None:
    """An orthogonal map applied to query and passages leaves every cosine alone."""
    q = data.draw(rotations(len(r.query)))
    c, g = geometry(r.query @ q, r.passages @ q)
    np.testing.assert_allclose(c, r.cosines, rtol=0, atol=1e-13)
    np.testing.assert_allclose(g, r.gram, rtol=0, atol=1e-13)


@given(st.data(), retrievals())
def test_cosines_follow_a_permutation(data: st.DataObject, r: Retrieval) -> None:
    """Permuted passages give permuted cosines."""
    order = data.draw(st.permutations(range(len(r.passages))))
    c, g = geometry(r.query, r.passages)
    c2, g2 = geometry(r.query, r.passages[order])
    np.testing.assert_allclose(c2, c[order], rtol=0, atol=1e-15)
    np.testing.assert_allclose(g2, g[np.ix_(order, order)], rtol=0, atol=1e-15)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-6), (np.float16, 5e-3)])
def test_narrow_floats_lose_only_their_own_precision(dtype: type, tolerance: float) -> None:
    """Narrow floats are widened before they are multiplied: float32 agrees with float64 to 1e-6."""
    rng = np.random.default_rng(1)
    query, passages = rng.standard_normal(384), rng.standard_normal((20, 384))
    wide, narrow = geometry(query, passages), geometry(query.astype(dtype), passages.astype(dtype))
    for a, b in zip(wide, narrow, strict=True):
        assert b.dtype == np.float64
        np.testing.assert_allclose(b, a, rtol=0, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int64, np.uint8, np.bool_])
def test_integers_do_not_wrap(dtype: type) -> None:
    """Integer rows are widened before they are multiplied, so nothing wraps around."""
    rng = np.random.default_rng(2)
    rows = rng.integers(1, 120, size=(6, 50)).astype(dtype)
    c, g = geometry(rows[0], rows[1:])
    np.testing.assert_allclose(c, ref.cosines(rows[0], rows[1:]), atol=1e-14)
    np.testing.assert_allclose(g, ref.gram(rows[1:]), atol=1e-14)


def test_large_half_precision_sums_do_not_overflow() -> None:
    """Half-precision rows whose squares exceed 65504 still have cosines."""
    rows = np.full((3, 384), 200.0, dtype=np.float16)
    c, g = geometry(rows[0], rows)
    np.testing.assert_allclose(c, 1.0, rtol=1e-15)
    np.testing.assert_allclose(g, 1.0, rtol=1e-15)


def test_queries_of_a_block_do_not_mix() -> None:
    """A block of queries gives what each query gives alone."""
    rng = np.random.default_rng(3)
    queries, passages = rng.standard_normal((5, 16)), rng.standard_normal((5, 7, 16))
    passages[2] *= 1e130
    queries[3] *= 1e-130
    c, g = cosines_and_gram(queries, passages)
    for i in range(5):
        np.testing.assert_allclose(c[i], ref.cosines(queries[i], passages[i]), atol=1e-14)
        np.testing.assert_allclose(g[i], ref.gram(passages[i]), atol=1e-14)


def test_inputs_are_left_alone() -> None:
    """Nothing is computed in the caller's arrays."""
    rng = np.random.default_rng(4)
    queries, passages = 1e140 * rng.standard_normal((1, 4)), rng.standard_normal((1, 3, 4))
    before = queries.copy(), passages.copy()
    cosines_and_gram(queries, passages)
    unit_rows(passages)
    np.testing.assert_array_equal(queries, before[0])
    np.testing.assert_array_equal(passages, before[1])


@given(st.data(), retrievals())
def test_unit_rows_have_length_one_and_remember_the_norm(data: st.DataObject, r: Retrieval) -> None:
    """Rows from 1e-150 to 1e150 become unit rows, and unit times norm is the row."""
    factor = data.draw(scales(len(r.passages)))
    rows = r.passages * factor[:, None]
    unit, norms = unit_rows(rows)
    np.testing.assert_allclose(unit, [ref.unit(x) for x in rows], atol=1e-15)
    np.testing.assert_allclose(unit * norms[:, None], rows, rtol=1e-14)


@given(leveled_graphs(), st.sampled_from([-0.5, 0.0, 0.3, 0.5, 0.995]))
def test_duplicates_are_dropped_greedily(graph: tuple[Array, Array], threshold: float) -> None:
    """A passage goes iff its cosine to an earlier kept one exceeds the threshold; equality keeps it."""
    _, g = graph
    assert distinct(g[None], threshold)[0].tolist() == ref.distinct(g.tolist(), threshold)


@given(retrievals(min_n=2))
def test_duplicates_of_real_vectors_are_dropped_greedily(r: Retrieval) -> None:
    """On vectors, near duplicates on both sides of .995 fall on the side the plain loops put them."""
    assume(r.clear_cut())
    _, g = r.canonical()
    assert distinct(g[None], 0.995)[0].tolist() == ref.distinct(g.tolist(), 0.995)


def test_a_chain_of_near_duplicates_keeps_both_ends() -> None:
    """Only kept passages drop others: in a chain a-b-c with a and c apart, b goes and c stays."""
    g = np.array([[1.0, 0.996, 0.98], [0.996, 1.0, 0.996], [0.98, 0.996, 1.0]])
    assert distinct(g[None], 0.995)[0].tolist() == [True, False, True]


def test_duplicates_are_judged_query_by_query() -> None:
    """Every query of a block drops its own duplicates."""
    apart, same = np.eye(3), np.ones((3, 3))
    assert distinct(np.stack([apart, same, apart]), 0.995).tolist() == [
        [True] * 3,
        [True, False, False],
        [True] * 3,
    ]


@pytest.mark.parametrize("n", [1, 2, 6])
def test_identical_passages_count_once(n: int) -> None:
    """Exact copies leave one passage, even when the threshold is 1."""
    _, g = geometry(np.array([1.0, 2.0, 3.0]), np.tile([0.3, 0.1, -0.7], (n, 1)))
    for threshold in (0.995, 1.0):
        assert distinct(g[None], threshold)[0].tolist() == [True] + [False] * (n - 1)


@given(st.lists(st.floats(-1, 1, allow_subnormal=False), min_size=1, max_size=9))
def test_min_max_is_the_seeds_relevance(values: list[float]) -> None:
    """Relevance is min-max; all 0.5 when the range is below 1e-9."""
    np.testing.assert_allclose(min_max(np.array(values)), ref.min_max(values), rtol=1e-12)


def test_min_max_of_rounding_noise_is_flat() -> None:
    """Six equal cosines with 1e-10 of noise are not stretched to [0, 1]."""
    noise = 0.7 + 1e-10 * np.linspace(0, 1, 6)
    np.testing.assert_array_equal(min_max(noise), 0.5)
