"""Energies from the vectors themselves, and the spectrum of an explicit Laplacian."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import reference as ref
from hypothesis import given
from hypothesis import strategies as st
from strategies import Array, Retrieval, leveled_graphs, retrievals, rotations

from rag_confidence.engine.sheaf import algebraic_connectivity, conditioned_energy, dirichlet_energy


@given(retrievals())
def test_energy_is_the_mean_squared_distance(r: Retrieval) -> None:
    """Identity-sheaf energy: mean over pairs of |x_i - x_j|^2 / 4 of unit passages."""
    assert float(dirichlet_energy(r.gram)) == pytest.approx(ref.dirichlet_energy(r.passages), abs=1e-14)


@given(retrievals())
def test_energy_is_a_sheaf_laplacian_trace(r: Retrieval) -> None:
    """The same number is tr(X'LX) with the Laplacian of the complete graph written out."""
    assert float(dirichlet_energy(r.gram)) == pytest.approx(ref.sheaf_trace_energy(r.passages), abs=1e-13)


@given(retrievals())
def test_conditioned_energy_projects_the_query_out(r: Retrieval) -> None:
    """Query-conditioned energy is that of the unit passages without their component along the query."""
    got = float(conditioned_energy(r.cosines, r.gram))
    assert got == pytest.approx(ref.conditioned_energy(r.query, r.passages), abs=1e-13)


@given(retrievals())
def test_energies_are_ordered(r: Retrieval) -> None:
    """0 <= query-conditioned <= identity <= 1."""
    plain, conditioned = float(dirichlet_energy(r.gram)), float(conditioned_energy(r.cosines, r.gram))
    assert 0.0 <= conditioned <= plain <= 1.0


@given(st.data(), retrievals(dimensions=(2, 3, 8)))
def test_energies_ignore_rotation(data: st.DataObject, r: Retrieval) -> None:
    """Energies depend on angles alone."""
    q = data.draw(rotations(len(r.query)))
    turned = Retrieval(r.query @ q, r.passages @ q)
    assert float(dirichlet_energy(turned.gram)) == pytest.approx(float(dirichlet_energy(r.gram)), abs=1e-13)
    before, after = conditioned_energy(r.cosines, r.gram), conditioned_energy(turned.cosines, turned.gram)
    assert float(after) == pytest.approx(float(before), abs=1e-13)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_identical_passages_have_no_energy(n: int) -> None:
    """Equal passages agree exactly; so does a single one."""
    assert float(dirichlet_energy(np.ones((n, n)))) == 0.0
    assert float(conditioned_energy(np.full(n, 0.3), np.ones((n, n)))) == 0.0


def test_antipodes_have_energy_one() -> None:
    """Two opposite passages reach the largest energy."""
    assert float(dirichlet_energy(np.array([[1.0, -1.0], [-1.0, 1.0]]))) == 1.0


@given(retrievals(min_n=2))
def test_connectivity_matches_the_explicit_laplacian(r: Retrieval) -> None:
    """lambda_2 of I - D^-1/2 W D^-1/2, W the Gram matrix clipped at 0 without its diagonal."""
    g = r.gram
    assert float(algebraic_connectivity(g)) == pytest.approx(
        ref.algebraic_connectivity(g.tolist()), abs=1e-12
    )


@given(leveled_graphs(min_n=2))
def test_connectivity_with_zeros_and_isolated_vertices(graph: tuple[Array, Array]) -> None:
    """A vertex without edges has a zero row; zero and negative mutual cosines are no edges."""
    _, g = graph
    assert float(algebraic_connectivity(g)) == pytest.approx(
        ref.algebraic_connectivity(g.tolist()), abs=1e-12
    )


@given(leveled_graphs(min_n=2))
def test_connectivity_matches_networkx(graph: tuple[Array, Array]) -> None:
    """networkx builds the same Laplacian from the clipped graph."""
    weights = ref.clipped_weights(graph[1].tolist())
    laplacian = nx.normalized_laplacian_matrix(
        nx.from_numpy_array(weights), nodelist=range(len(weights))
    ).toarray()
    expected = np.linalg.eigvalsh(laplacian)[1]
    assert float(algebraic_connectivity(graph[1])) == pytest.approx(expected, abs=1e-12)


@given(leveled_graphs(min_n=2))
def test_connectivity_is_zero_iff_disconnected(graph: tuple[Array, Array]) -> None:
    """0 <= lambda_2 <= n / (n - 1), and 0 exactly when the clipped graph falls apart."""
    value, n = float(algebraic_connectivity(graph[1])), len(graph[1])
    assert 0.0 <= value <= n / (n - 1) + 1e-12
    assert (value > 1e-9) == ref.is_connected(ref.clipped_weights(graph[1].tolist()))


@given(retrievals(min_n=2))
def test_rounding_is_not_an_edge(r: Retrieval) -> None:
    """Mutual cosines of the size of rounding are no edges: nothing jumps when 0 becomes 1e-17."""
    g = r.gram
    noise = np.where(np.abs(g) < 1e-12, 1e-17, g)
    none = np.where(np.abs(g) < 1e-12, 0.0, g)
    assert float(algebraic_connectivity(noise)) == pytest.approx(
        float(algebraic_connectivity(none)), abs=1e-9
    )


def test_connectivity_is_never_above_its_range() -> None:
    """Rounding does not lift lambda_2 of a pair above 2, nor that of a clique above n / (n - 1)."""
    levels = np.random.default_rng(0).random(5000)
    for n in (2, 3, 4, 7):
        g = np.repeat(levels, n * n).reshape(-1, n, n)
        g[:, np.arange(n), np.arange(n)] = 1.0
        assert algebraic_connectivity(g).max() <= n / (n - 1)


@pytest.mark.parametrize("n", [2, 3, 10])
def test_connectivity_of_equal_resemblance_is_largest(n: int) -> None:
    """All mutual cosines equal: lambda_2 is n / (n - 1), the largest value."""
    g = np.full((n, n), 0.4)
    np.fill_diagonal(g, 1.0)
    assert float(algebraic_connectivity(g)) == pytest.approx(n / (n - 1))


def test_connectivity_falls_when_the_evidence_splits() -> None:
    """Two groups that share little are less connected than one group."""
    split = np.full((6, 6), 0.05)
    split[:3, :3] = split[3:, 3:] = 0.8
    whole = np.full((6, 6), 0.8)
    assert float(algebraic_connectivity(split)) < 0.2 < float(algebraic_connectivity(whole))


def test_one_passage_has_no_connectivity() -> None:
    """A single passage has no second eigenvalue: nan, so that it is never taken for a number."""
    assert np.isnan(algebraic_connectivity(np.eye(1)))


@given(st.data(), st.integers(1, 6))
def test_stacks_equal_single_calls(data: st.DataObject, n: int) -> None:
    """A stack of any leading shape gives what each matrix gives alone, and the stack is left as it was."""
    graphs = [data.draw(leveled_graphs(n, n)) for _ in range(6)]
    cosines, gram = np.stack([c for c, _ in graphs]), np.stack([g for _, g in graphs])
    deep = gram.reshape(2, 3, n, n)
    before = gram.copy()
    for function in (dirichlet_energy, algebraic_connectivity):
        alone = np.array([float(function(g)) for g in gram])
        np.testing.assert_allclose(function(gram), alone, atol=1e-12)
        np.testing.assert_allclose(function(deep), alone.reshape(2, 3), atol=1e-12)
    conditioned = [float(conditioned_energy(c, g)) for c, g in graphs]
    np.testing.assert_allclose(conditioned_energy(cosines, gram), conditioned, atol=1e-12)
    np.testing.assert_array_equal(gram, before)
