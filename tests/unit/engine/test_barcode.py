"""Superlevel H0 barcodes against thresholding plus connected components at every level."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
import reference as ref
from hypothesis import given
from hypothesis import strategies as st
from strategies import Array, Retrieval, leveled_graphs, retrievals, trees

from rag_confidence.engine.barcode import Barcode, joint_barcode, star_barcode, tree_barcode

ZERO_LENGTH = 1e-9


def multiset(barcode: Barcode) -> Counter[ref.Bar]:
    """All (birth, death), zero-length ones included."""
    return Counter(zip(barcode.birth.tolist(), barcode.death.tolist(), strict=True))


def check(barcode: Barcode, values: Array, edges: ref.Edges) -> None:
    """Every part of a barcode against the reference."""
    vertices = [float(v) for v in values]
    expected = ref.superlevel_bars(vertices, edges)
    assert multiset(barcode) == Counter(expected)
    np.testing.assert_array_equal(barcode.birth, vertices)
    check_elders(barcode, vertices, edges)
    check_bars(barcode, ref.complete_level(vertices, edges), ref.long_bars(expected))
    levels = sorted({*vertices, *edges.values()})
    levels += [x + 1e-3 for x in levels] + [-2.0, 2.0]
    counts = [len(ref.components(vertices, edges, t)) for t in levels]
    assert barcode.betti_curve(np.array(levels)).tolist() == counts


def check_elders(barcode: Barcode, vertices: list[float], edges: ref.Edges) -> None:
    """A component is absorbed by an older one that lives on and is connected to it at that level."""
    assert (barcode.elder < 0).sum() == 1
    assert np.array_equal(barcode.elder < 0, np.isneginf(barcode.death))
    for i, elder in enumerate(barcode.elder.tolist()):
        if elder < 0:
            assert barcode.birth[i] == max(vertices)
            continue
        assert barcode.birth[elder] >= barcode.birth[i]
        assert barcode.death[elder] <= barcode.death[i]
        assert any({i, elder} <= c for c in ref.components(vertices, edges, barcode.death[i]))


def check_bars(barcode: Barcode, floor: float, finite: list[ref.Bar]) -> None:
    """The read-outs follow from the bars longer than ZERO_LENGTH, the essential one cut at the floor."""
    essential = float(barcode.birth.max()) - floor
    lengths = [b - d for b, d in finite]
    assert barcode.floor == floor
    assert Counter(map(tuple, barcode.finite_bars.tolist())) == Counter(finite)
    assert barcode.bars.shape == (len(finite) + 1, 2)
    assert barcode.bars[0].tolist() == [barcode.birth.max(), floor]
    measured = barcode.finite_bars[:, 0] - barcode.finite_bars[:, 1]
    assert np.all(np.diff(measured) <= 0)
    np.testing.assert_array_equal(barcode.birth[barcode.representatives], barcode.bars[:, 0])
    assert barcode.n_components == len(finite) + 1
    second = max(lengths, default=0.0)
    assert barcode.second_bar == pytest.approx(second, abs=1e-15)
    assert barcode.margin == pytest.approx(essential - second, abs=1e-14)
    assert barcode.fragmentation == pytest.approx(math.fsum(lengths), abs=1e-14)
    total = essential + math.fsum(lengths)
    assert barcode.dominance == pytest.approx(essential / total if total else 1.0, abs=1e-12)


@given(retrievals())
def test_joint_filtration_matches_thresholding(r: Retrieval) -> None:
    """Vertex value the cosine, edge value the smallest of both cosines and the mutual one."""
    c, g = r.canonical()
    check(joint_barcode(c, g), c, ref.joint_edges(c.tolist(), g.tolist()))


@given(leveled_graphs())
def test_joint_filtration_with_ties_everywhere(graph: tuple[Array, Array]) -> None:
    """Tied cosines, mutual cosines and merges give the same multiset of bars as the reference."""
    c, g = graph
    check(joint_barcode(c, g), c, ref.joint_edges(c.tolist(), g.tolist()))


@given(st.data(), leveled_graphs(min_n=2))
def test_joint_filtration_in_any_order(data: st.DataObject, graph: tuple[Array, Array]) -> None:
    """The bars are a multiset that does not depend on the order of the passages."""
    c, g = graph
    order = data.draw(st.permutations(range(len(c))))
    permuted = joint_barcode(c[order], g[np.ix_(order, order)])
    assert multiset(permuted) == multiset(joint_barcode(c, g))
    check(permuted, c[order], ref.joint_edges(c[order].tolist(), g[np.ix_(order, order)].tolist()))


@pytest.mark.parametrize("n", [39, 40, 41, 60])
def test_long_lists_take_the_same_road(n: int) -> None:
    """Lists around and above the size at which the algorithm changes still match thresholding."""
    rng = np.random.default_rng(n)
    rows = rng.integers(-2, 3, size=(n + 1, 5)).astype(float)
    rows[:, 0] += 3
    r = Retrieval(rows[0], rows[1:])
    c, g = r.canonical()
    barcode, edges = joint_barcode(c, g), ref.joint_edges(c.tolist(), g.tolist())
    assert multiset(barcode) == Counter(ref.superlevel_bars(c.tolist(), edges))
    assert barcode.floor == ref.complete_level(c.tolist(), edges)


@given(trees())
def test_tree_matches_thresholding(tree: tuple[Array, Array]) -> None:
    """On a tree an edge enters with the later of its ends."""
    values, parents = tree
    check(tree_barcode(values, parents), values, ref.tree_edges(values.tolist(), parents.tolist()))


@given(trees())
def test_star_matches_thresholding(tree: tuple[Array, Array]) -> None:
    """A star is the tree whose root, vertex 0, is the parent of all."""
    values, root = tree[0], float(tree[0][-1]) / 2
    vertices, edges = ref.star(values.tolist(), root)
    check(star_barcode(values, root), np.array(vertices), edges)


@given(trees(min_n=2))
def test_star_closed_form(tree: tuple[Array, Array]) -> None:
    """Finite bars of a star are [c_i, root) for the values above the root, all but the best."""
    values, root = tree[0][1:], float(tree[0][0])
    above = sorted((v for v in values.tolist() if v - root > ZERO_LENGTH), reverse=True)[1:]
    bars = star_barcode(values, root).finite_bars.tolist()
    assert Counter(map(tuple, bars)) == Counter((v, root) for v in above)


@given(retrievals(min_n=2))
def test_finite_bars_are_bounded_by_the_best_cosine(r: Retrieval) -> None:
    """Every finite bar of the joint filtration is at most sqrt(2 - 2 c_max) long; there are at most n - 1."""
    c, g = r.canonical()
    bars = joint_barcode(c, g).finite_bars
    assert len(bars) <= len(c) - 1
    limit = math.sqrt(max(2 - 2 * c[0], 0.0))
    assert (bars[:, 0] - bars[:, 1]).max(initial=0.0) <= limit + 1e-7


@given(st.data(), retrievals())
def test_a_duplicate_changes_no_bar(data: st.DataObject, r: Retrieval) -> None:
    """A passage served twice adds an entry of length zero and nothing else."""
    twin = data.draw(st.integers(0, len(r.passages) - 1))
    c, g = r.canonical()
    again = sorted([*range(len(c)), twin])
    doubled = joint_barcode(c[again], g[np.ix_(again, again)])
    single = joint_barcode(c, g)
    assert Counter(map(tuple, doubled.bars.tolist())) == Counter(map(tuple, single.bars.tolist()))
    assert doubled.second_bar == single.second_bar


@given(retrievals())
def test_the_query_as_a_passage_leaves_no_finite_bar(r: Retrieval) -> None:
    """With the query among the passages every other one hangs off it: no finite bar."""
    c, g = Retrieval(r.query, np.vstack([r.query, r.passages])).canonical()
    barcode = joint_barcode(c, g)
    assert len(barcode.finite_bars) == 0
    assert barcode.second_bar == 0.0
    assert barcode.n_components == 1


@pytest.mark.parametrize(
    "barcode", [joint_barcode(np.array([0.4]), np.eye(1)), tree_barcode(np.array([0.4]), np.array([-1]))]
)
def test_one_vertex_has_one_essential_bar(barcode: Barcode) -> None:
    """One passage is one component of length 0 that dominates."""
    assert barcode.bars.tolist() == [[0.4, 0.4]]
    assert barcode.finite_bars.shape == (0, 2)
    assert (barcode.margin, barcode.fragmentation, barcode.dominance, barcode.n_components) == (
        0.0,
        0.0,
        1.0,
        1,
    )


def test_two_regions_give_a_long_second_bar() -> None:
    """Two groups that both match the query and not each other: the second bar spans the gap."""
    c = np.array([0.9, 0.88, 0.85, 0.84])
    g = np.full((4, 4), 0.3)
    g[:2, :2] = g[2:, 2:] = 0.95
    np.fill_diagonal(g, 1.0)
    barcode = joint_barcode(c, g)
    assert barcode.second_bar == pytest.approx(0.55)
    assert barcode.n_components == 2
    assert set(barcode.representatives.tolist()) == {0, 2}
    assert barcode.elder[2] == 0


def test_fragmentation_grows_on_a_split_tree() -> None:
    """Two relevant branches under an irrelevant root fragment a tree; one branch does not."""
    parents = np.array([-1, 0, 1, 0, 3])
    focused = tree_barcode(np.array([0.2, 0.6, 0.9, 0.1, 0.1]), parents)
    split = tree_barcode(np.array([0.2, 0.6, 0.9, 0.5, 0.85]), parents)
    assert focused.fragmentation == 0.0
    assert split.fragmentation == pytest.approx(0.65)
    assert split.dominance < focused.dominance
    assert split.margin < focused.margin
