"""Forman curvature against its published definition, edge by edge."""

from __future__ import annotations

import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_confidence.engine.curvature import MIN_LENGTH, forman_curvature, tree_curvature


def published_formula(graph, u, v):
    """Sreejith et al. 2016 with vertex weights 1: sums over the edges that share one end with e."""
    w_e, w_u, w_v = graph[u][v]["weight"], 1.0, 1.0
    at_u = sum(w_u / math.sqrt(w_e * graph[u][x]["weight"]) for x in graph[u] if x != v)
    at_v = sum(w_v / math.sqrt(w_e * graph[v][x]["weight"]) for x in graph[v] if x != u)
    return w_e * (w_u / w_e + w_v / w_e - (at_u + at_v))


def complete_graph(lengths):
    """networkx twin of a length matrix."""
    graph = nx.complete_graph(len(lengths))
    for u, v in graph.edges:
        graph[u][v]["weight"] = float(lengths[u, v])
    return graph


def random_lengths(n, seed):
    """Distances between n random points."""
    points = np.random.default_rng(seed).normal(size=(n, 3))
    return np.linalg.norm(points[:, None] - points, axis=2)


@given(st.integers(2, 9), st.integers(0, 2**32 - 1))
def test_closed_form_is_the_published_formula(n, seed):
    """Every edge of a complete graph has the curvature of the direct sum over its neighbours."""
    lengths = random_lengths(n, seed)
    graph, curvature = complete_graph(lengths), forman_curvature(lengths)
    for u, v in graph.edges:
        assert curvature[u, v] == pytest.approx(published_formula(graph, u, v), rel=1e-9, abs=1e-9)


@given(st.integers(2, 8), st.integers(0, 2**32 - 1))
def test_curvature_is_symmetric_bounded_and_free_of_scale(n, seed):
    """F(u, v) = F(v, u) <= 2, and scaling all lengths changes nothing."""
    lengths = random_lengths(n, seed)
    curvature = forman_curvature(lengths)
    edges = ~np.eye(n, dtype=bool)
    np.testing.assert_array_equal(curvature, curvature.T)
    assert (curvature[edges] <= 2 + 1e-12).all()
    np.testing.assert_allclose(forman_curvature(7 * lengths), curvature, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n", [2, 3, 10])
def test_equal_lengths_give_six_minus_two_n(n):
    """Equal weights reduce to 4 - deg u - deg v = 6 - 2n of the complete graph."""
    curvature = forman_curvature(np.full((n, n), 0.7))
    np.testing.assert_allclose(curvature[~np.eye(n, dtype=bool)], 6 - 2 * n)


def test_diagonal_is_nan_and_not_read():
    """There is no edge from a passage to itself."""
    lengths = random_lengths(4, 0)
    noisy = lengths + 1e-8 * np.eye(4)
    assert np.isnan(np.diagonal(forman_curvature(lengths))).all()
    np.testing.assert_array_equal(forman_curvature(noisy), forman_curvature(lengths))
    assert np.isnan(forman_curvature(np.zeros((1, 1)))).all()


def test_stacks_are_one_call_per_matrix():
    """Leading axes are a batch."""
    stack = np.stack([random_lengths(5, seed) for seed in range(6)]).reshape(2, 3, 5, 5)
    together = forman_curvature(stack)
    assert together.shape == stack.shape
    np.testing.assert_array_equal(together[1, 2], forman_curvature(stack[1, 2]))


def test_bridges_between_two_groups_are_the_most_negative():
    """Edges across two tight groups lie below all edges inside them."""
    lengths = np.full((6, 6), 0.1)
    lengths[:3, 3:] = lengths[3:, :3] = 1.0
    curvature = forman_curvature(lengths)
    inside = np.concatenate([curvature[:3, :3], curvature[3:, 3:]])
    assert curvature[:3, 3:].max() < np.nanmin(inside)


def test_duplicates_stay_finite():
    """A length of zero counts as the smallest length, so no edge is infinite or NaN."""
    lengths = random_lengths(4, 1)
    lengths[0, 1] = lengths[1, 0] = 0.0
    curvature = forman_curvature(lengths)
    assert np.isfinite(curvature[~np.eye(4, dtype=bool)]).all()
    lengths[0, 1] = lengths[1, 0] = MIN_LENGTH
    np.testing.assert_array_equal(curvature, forman_curvature(lengths))


@given(st.integers(2, 40), st.integers(0, 2**32 - 1))
def test_tree_edges_follow_the_degrees(n, seed):
    """Each edge of a random tree has 4 - deg u - deg v with networkx's degrees, in the order of the nodes."""
    rng = np.random.default_rng(seed)
    parents = np.array([-1] + [int(rng.integers(0, i)) for i in range(1, n)])
    edges = [(i, int(parents[i])) for i in range(1, n)]
    graph = nx.Graph(edges)
    expected = [4 - graph.degree[u] - graph.degree[v] for u, v in edges]
    assert tree_curvature(parents).tolist() == expected


def test_tree_is_the_weighted_formula_with_unit_weights():
    """The combinatorial form is the published formula at weight 1, wherever the root is."""
    parents = np.array([3, 0, 3, -1, 2, 2])
    graph = nx.Graph([(i, int(p)) for i, p in enumerate(parents) if p >= 0])
    nx.set_edge_attributes(graph, 1.0, "weight")
    expected = [published_formula(graph, i, int(p)) for i, p in enumerate(parents) if p >= 0]
    assert tree_curvature(parents).tolist() == pytest.approx(expected)


def test_a_single_node_has_no_edge():
    """A tree of one node gives an empty array."""
    assert tree_curvature(np.array([-1])).shape == (0,)
