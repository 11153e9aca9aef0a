"""Flip angle against bisection, the probe against its definition, the bound against samples."""

from __future__ import annotations

import math

import numpy as np
import pytest
import reference as ref
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import SMALL_DIMENSIONS, Array, Retrieval, generic_retrievals, retrievals

from rag_confidence.engine.barcode import joint_barcode
from rag_confidence.engine.distances import bottleneck_distance
from rag_confidence.engine.relevance import stack
from rag_confidence.engine.stability import (
    N_PROBES,
    PROBE_ANGLE,
    flip_angle,
    mean_largest_change,
    movement_bound,
    probe_cosines,
    probe_directions,
)


def canonical_distinct(r: Retrieval) -> tuple[Array, Array, Array]:
    """Unit passages, cosines and Gram matrix of the distinct passages, best first."""
    kept = r.passages[ref.distinct_passages(r.query, r.passages)]
    distinct = Retrieval(r.query, kept)
    return np.array([ref.unit(p) for p in kept]), *distinct.canonical()


def flip(c: Array, g: Array) -> float:
    """Flip angle of one query."""
    return float(flip_angle(c[None], g[None])[0])


def probes(query: Array, passages: Array, seed: int) -> Array:
    """Cosines (8, n) of one retrieval under the probe."""
    block = stack(query[None], passages[None])
    c = np.array(ref.cosines(query, passages))
    return np.asarray(probe_cosines(block, c[None], probe_directions(len(query), seed))[0])


def turned_queries(query: Array, seed: int) -> Array:
    """The eight turned queries themselves: cosines to the coordinate axes are coordinates."""
    return probes(query, np.eye(len(query)), seed)


# --- flip angle


@given(retrievals(min_n=1))
def test_flip_angle_matches_bisection(r: Retrieval) -> None:
    """The closed form is the smallest rotation towards any other passage that ties it with the top."""
    assume(r.clear_cut())
    _, c, g = canonical_distinct(r)
    kept = r.passages[ref.distinct_passages(r.query, r.passages)]
    assert flip(c, g) == pytest.approx(ref.flip_angle(r.query, kept), abs=1e-7, nan_ok=True)


@given(generic_retrievals())
def test_flip_angle_ties_the_top_two(r: Retrieval) -> None:
    """Turning the query by the flip angle towards the nearest rival levels the top two to rounding."""
    rows, c, g = canonical_distinct(r)
    assume(len(rows) > 1)
    angle, q = flip(c, g), np.array(ref.unit(r.query))
    gaps = [(c[0] - c[b]) / np.linalg.norm(rows[0] - rows[b]) for b in range(1, len(rows))]
    rival = 1 + int(np.argmin(gaps))
    turned = np.array(ref.rotate_towards(q, rows[rival] - rows[0], angle))
    # The arcsine loses digits towards a right angle, where its slope is 1 / cos.
    tolerance = 1e-14 / max(math.cos(angle), 1e-7)
    assert turned @ rows[0] == pytest.approx(turned @ rows[rival], abs=tolerance)
    assert turned @ rows[0] >= (rows @ turned).max() - 1e-8


@given(generic_retrievals(), st.integers(0, 2**32 - 1), st.floats(0.0, 0.999))
def test_smaller_rotations_keep_the_top(r: Retrieval, seed: int, part: float) -> None:
    """No rotation by less than the flip angle, in any direction, changes the top passage."""
    rows, c, g = canonical_distinct(r)
    assume(len(rows) > 1)
    q, rng = np.array(ref.unit(r.query)), np.random.default_rng(seed)
    targets = [*rng.standard_normal((4, len(q))), *(rows[1:] - rows[0])]
    for target in targets:
        turned = np.array(ref.rotate_towards(q, target, part * flip(c, g)))
        assert turned @ rows[0] >= (rows @ turned).max() - 1e-12


def test_flip_angle_of_a_tie_is_zero() -> None:
    """Two passages at the same cosine: any rotation changes the top."""
    assert flip(np.array([0.7, 0.7, 0.2]), np.array([[1, 0.5, 0.1], [0.5, 1, 0.1], [0.1, 0.1, 1]])) == 0.0


def test_flip_angle_needs_a_rival() -> None:
    """A single passage cannot be overtaken: nan, so that it is never taken for a number."""
    assert math.isnan(flip(np.array([0.7]), np.eye(1)))


def test_flip_angle_reaches_a_right_angle() -> None:
    """The query on the top passage with its antipode as the only rival: 90 degrees."""
    g = np.array([[1.0, -1.0], [-1.0, 1.0]])
    assert flip(np.array([1.0, -1.0]), g) == pytest.approx(math.pi / 2)


@given(retrievals(min_n=2))
def test_a_worse_passage_never_raises_the_flip_angle(r: Retrieval) -> None:
    """More rivals can only lower the angle."""
    assume(r.clear_cut())
    _, c, g = canonical_distinct(r)
    assume(len(c) > 2)
    assert flip(c, g) <= flip(c[:-1], g[:-1, :-1])


def test_flip_angles_of_a_block_do_not_mix() -> None:
    """Every row of a block gives what it gives alone."""
    rng = np.random.default_rng(0)
    blocks = [Retrieval(rng.standard_normal(5), rng.standard_normal((4, 5))).canonical() for _ in range(5)]
    together = flip_angle(np.stack([c for c, _ in blocks]), np.stack([g for _, g in blocks]))
    np.testing.assert_allclose(together, [flip(c, g) for c, g in blocks], rtol=1e-14)


# --- sampled probe


@given(retrievals(dimensions=SMALL_DIMENSIONS), st.integers(0, 2**63 - 1))
def test_probes_turn_the_query_by_the_angle(r: Retrieval, seed: int) -> None:
    """Each turned query is a unit vector at exactly the probe angle from the query."""
    turned = turned_queries(r.query, seed)
    assert turned.shape == (N_PROBES, len(r.query))
    np.testing.assert_allclose(np.linalg.norm(turned, axis=1), 1.0, atol=1e-7)
    np.testing.assert_allclose(turned @ ref.unit(r.query), math.cos(PROBE_ANGLE), atol=1e-9)


@given(retrievals(), st.integers(0, 2**63 - 1))
def test_probes_are_antithetic(r: Retrieval, seed: int) -> None:
    """Probe i + 4 mirrors probe i: together they average to the query times the cosine of the angle."""
    p = probes(r.query, r.passages, seed)
    half = N_PROBES // 2
    np.testing.assert_allclose(
        (p[:half] + p[half:]) / 2, np.tile(math.cos(PROBE_ANGLE) * r.cosines, (half, 1)), atol=1e-9
    )


@given(retrievals(dimensions=SMALL_DIMENSIONS), st.integers(0, 2**63 - 1))
def test_probe_cosines_are_those_of_the_turned_queries(r: Retrieval, seed: int) -> None:
    """The one-product shortcut equals turning the query first and taking cosines after."""
    turned = turned_queries(r.query, seed)
    expected = [ref.cosines(q, r.passages) for q in turned]
    np.testing.assert_allclose(probes(r.query, r.passages, seed), expected, atol=1e-7)


@given(retrievals(), st.integers(0, 2**63 - 1))
def test_no_cosine_moves_further_than_the_query(r: Retrieval, seed: int) -> None:
    """sup|dc| <= |q - q'|, the chord of the angle; so does its mean over the probes."""
    chord = 2 * math.sin(PROBE_ANGLE / 2)
    p = probes(r.query, r.passages, seed)
    assert np.abs(p - r.cosines).max() <= chord + 1e-9
    move = mean_largest_change(r.cosines[None], p[None])
    assert move == pytest.approx(np.mean([max(abs(row - r.cosines)) for row in p]), abs=1e-15)
    assert 0.0 <= float(move[0]) <= chord + 1e-9


@given(retrievals(min_n=2), st.integers(0, 2**63 - 1))
def test_largest_change_bounds_the_bottleneck_distance(r: Retrieval, seed: int) -> None:
    """The joint barcode moves by no more than the largest change of a cosine."""
    g = r.gram
    before = joint_barcode(r.cosines, g)
    for row in probes(r.query, r.passages, seed):
        after = joint_barcode(row, g)
        both = [np.column_stack([b.birth, b.death]) for b in (before, after)]
        assert bottleneck_distance(*both) <= np.abs(row - r.cosines).max() + 1e-12


def test_probe_directions_depend_on_the_seed_alone() -> None:
    """The same seed gives the same directions, another seed others; the global generator is not touched."""
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    first, again, other = probe_directions(16, 0), probe_directions(16, 0), probe_directions(16, 1)
    np.testing.assert_array_equal(first, again)
    assert not np.any(first == other)
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


@pytest.mark.parametrize("dimension", [2, 3, 384])
@pytest.mark.parametrize("seed", [0, 7])
def test_a_query_along_a_probe_direction_is_probed_too(dimension: int, seed: int) -> None:
    """A query drawn from default_rng(seed), or equal to a direction, still gets eight proper probes."""
    drawn = np.random.default_rng(seed).standard_normal(dimension)
    for query in (drawn, *probe_directions(dimension, seed)):
        turned = turned_queries(query, seed)
        np.testing.assert_allclose(np.linalg.norm(turned, axis=1), 1.0, atol=1e-7)
        np.testing.assert_allclose(turned @ ref.unit(query), math.cos(PROBE_ANGLE), atol=1e-9)


def test_probes_of_a_block_do_not_mix() -> None:
    """Every query of a block gives what it gives alone."""
    rng = np.random.default_rng(5)
    queries, passages = rng.standard_normal((4, 6)), rng.standard_normal((4, 3, 6))
    cosines = np.array([ref.cosines(q, p) for q, p in zip(queries, passages, strict=True)])
    together = probe_cosines(stack(queries, passages), cosines, probe_directions(6, 1))
    for i in range(4):
        np.testing.assert_allclose(together[i], probes(queries[i], passages[i], 1), atol=1e-12)


# --- analytic bound


@pytest.mark.parametrize("dimension", [2, 3, 8, 64])
@pytest.mark.parametrize("n", [1, 2, 10, 40])
def test_movement_bound_holds_on_average(dimension: int, n: int) -> None:
    """Over uniformly random rotations the mean of sup|dc| stays below the analytic bound."""
    rng = np.random.default_rng(100 * dimension + n)
    r = Retrieval(rng.standard_normal(dimension), rng.standard_normal((n, dimension)))
    q, rows, c = np.array(ref.unit(r.query)), np.array([ref.unit(p) for p in r.passages]), r.cosines
    for angle in (0.01, PROBE_ANGLE, 0.3):
        tangents = rng.standard_normal((4000, dimension))
        tangents -= np.outer(tangents @ q, q)
        tangents /= np.linalg.norm(tangents, axis=1, keepdims=True)
        changes = (math.cos(angle) * q + math.sin(angle) * tangents) @ rows.T - c
        bound = float(movement_bound(c[None], dimension, angle)[0])
        assert np.abs(changes).max(axis=1).mean() <= bound + 1e-12
        assert bound <= 2 * math.sin(angle / 2) + 1e-15


@given(retrievals())
def test_movement_bound_is_the_stated_formula(r: Retrieval) -> None:
    """Sine over root of d - 1, times tangential part, times sqrt(2 ln 2n), plus shrinkage; or the chord."""
    c, d = r.cosines, len(r.query)
    across = max(math.sqrt(max(1 - x * x, 0.0)) for x in c)
    mean = math.sin(PROBE_ANGLE) / math.sqrt(d - 1) * across * math.sqrt(2 * math.log(2 * len(c)))
    mean += (1 - math.cos(PROBE_ANGLE)) * max(abs(x) for x in c)
    expected = min(mean, 2 * math.sin(PROBE_ANGLE / 2))
    assert float(movement_bound(c[None], d)[0]) == pytest.approx(expected, rel=1e-9)
