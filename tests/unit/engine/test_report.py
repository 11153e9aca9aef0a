"""The engine report: nodes, geometry, barcode, merge tree and graph of one retrieval, with nothing hidden."""

from __future__ import annotations

import math
from collections import Counter

import networkx as nx
import numpy as np
import pytest
import reference as ref
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import Retrieval, retrievals

from rag_confidence import EngineReport, report_from_embeddings, score


def flat(r: Retrieval) -> EngineReport:
    """Report of a flat list."""
    return report_from_embeddings(r.query, r.passages)


def clear(r: Retrieval) -> bool:
    """True if neither duplicates nor the order of distinct passages hang on rounding."""
    c = r.cosines
    gaps = np.abs(c[:, None] - c)[~np.eye(len(c), dtype=bool)]
    return r.clear_cut() and bool(np.all(gaps > 1e-9))


@given(retrievals())
def test_flat_nodes_are_the_distinct_passages_best_first(r: Retrieval) -> None:
    """Nodes are served positions in descending order of cosine; near duplicates are left out."""
    assume(clear(r))
    report = flat(r)
    kept = ref.distinct_passages(r.query, r.passages)
    assert report.nodes.tolist() == kept
    np.testing.assert_allclose(report.cosines, r.cosines[kept], atol=1e-14)
    np.testing.assert_allclose(report.gram, r.gram[np.ix_(kept, kept)], atol=1e-14)
    assert report.parents is None


@given(retrievals())
def test_flat_barcode_is_that_of_the_nodes(r: Retrieval) -> None:
    """The barcode is the joint filtration of exactly the cosines and Gram matrix that are reported."""
    report = flat(r)
    c, g = report.cosines.tolist(), report.gram.tolist()
    bars = Counter(zip(report.barcode.birth.tolist(), report.barcode.death.tolist(), strict=True))
    lower = [[g[max(i, j)][min(i, j)] for j in range(len(c))] for i in range(len(c))]
    upper = [[g[min(i, j)][max(i, j)] for j in range(len(c))] for i in range(len(c))]
    np.testing.assert_allclose(lower, upper, atol=3e-16)
    expected = ref.superlevel_bars(c, ref.joint_edges(c, g))
    if lower == upper:
        assert bars == Counter(expected)
    levels = [x + 1e-6 for x in c] + [-1.0, 1.1]
    counts = [len(ref.components(c, ref.joint_edges(c, g), t)) for t in levels]
    assert report.betti_curve(np.array(levels)).tolist() == counts


@given(st.data(), retrievals(dimensions=(2, 3, 8)))
def test_tree_nodes_are_all_passages_in_served_order(data: st.DataObject, r: Retrieval) -> None:
    """With parents every passage is a node, duplicates too, and the barcode is that of the tree."""
    parents = [None] + [data.draw(st.integers(0, i - 1)) for i in range(1, len(r.passages))]
    report = report_from_embeddings(r.query, r.passages, parents)
    assert report.nodes.tolist() == list(range(len(parents)))
    np.testing.assert_allclose(report.cosines, r.cosines, atol=1e-14)
    np.testing.assert_allclose(report.gram, r.gram, atol=1e-14)
    assert report.parents is not None
    assert report.parents.tolist() == [-1 if p is None else p for p in parents]
    c = report.cosines.tolist()
    bars = Counter(zip(report.barcode.birth.tolist(), report.barcode.death.tolist(), strict=True))
    assert bars == Counter(ref.superlevel_bars(c, ref.tree_edges(c, parents)))


@given(retrievals())
def test_values_are_finite_or_none(r: Retrieval) -> None:
    """Every signal is a finite number, or None where it was not assessed; nan never leaves the engine."""
    values = flat(r).values
    assert all(v is None or math.isfinite(v) for v in values.values())
    assert values["loop_p_value"] is None
    assert values["focus_depth"] is None
    assert (values["lambda_2"] is None) == (values["effective_k"] == 1)


@given(retrievals())
def test_values_are_those_of_score(r: Retrieval) -> None:
    """The engine alone measures what `score` measures."""
    values, record = flat(r).values, score(r.query, r.passages).to_dict()
    names = ("max_cosine", "mean_top3_cosine", "second_bar", "lambda_2", "dirichlet_energy", "flip_angle")
    for name in names:
        assert values[name] == record[f"signals.{name}"], name


@given(retrievals())
def test_distances_are_chords(r: Retrieval) -> None:
    """Distances between nodes are those of their unit vectors, never negative under the root."""
    report = flat(r)
    rows = [ref.unit(r.passages[i]) for i in report.nodes.tolist()]
    expected = [[math.sqrt(ref.squared_distance(a, b)) for b in rows] for a in rows]
    np.testing.assert_allclose(report.distances, expected, atol=1e-7)
    np.testing.assert_array_equal(np.diagonal(report.distances), 0.0)


@given(retrievals())
def test_merge_tree_lists_the_finite_bars(r: Retrieval) -> None:
    """One merge a finite bar, in descending order of level, the elder being the better passage."""
    report = flat(r)
    merges = report.merge_tree()
    levels = [m["level"] for m in merges]
    assert levels == sorted(levels, reverse=True)
    assert len(merges) == len(report.barcode.finite_bars)
    assert {m["younger"] for m in merges} <= set(report.nodes.tolist())
    cosine = dict(zip(report.nodes.tolist(), report.cosines.tolist(), strict=True))
    for m in merges:
        assert cosine[m["elder"]] >= cosine[m["younger"]]
        assert m["persistence"] == pytest.approx(cosine[m["younger"]] - m["level"], abs=1e-15)


@given(st.data(), retrievals(dimensions=(2, 3, 8)), st.booleans())
def test_graph_has_the_levels_of_the_filtration(data: st.DataObject, r: Retrieval, tree: bool) -> None:
    """Cutting the exported graph at a positive level gives the components that the Betti curve counts."""
    parents = [None] + [data.draw(st.integers(0, i - 1)) for i in range(1, len(r.passages))] if tree else None
    report = report_from_embeddings(r.query, r.passages, parents)
    graph = report.to_networkx()
    assert sorted(graph.nodes) == sorted(report.nodes.tolist())
    deaths = [d for _, d in graph.nodes(data="death")]
    assert deaths.count(None) == 1
    for level in (0.9, 0.5, 0.1, 1e-3):
        cut = nx.Graph()
        cut.add_nodes_from(v for v, cosine in graph.nodes(data="cosine") if cosine >= level)
        cut.add_edges_from((u, v) for u, v, value in graph.edges(data="level") if value >= level)
        assert nx.number_connected_components(cut) == report.betti_curve(np.array([level]))[0]


def test_a_tree_keeps_its_own_edges() -> None:
    """The graph of a tree has its edges and no others, whatever the cosines."""
    r = Retrieval(np.eye(3)[0], np.array([[1.0, 0, 0], [1, 1, 0], [1, 0, 1], [-1, 0.1, 0]]))
    graph = report_from_embeddings(r.query, r.passages, [None, 0, 1, 0]).to_networkx()
    assert {frozenset(e) for e in graph.edges} == {frozenset(e) for e in [(0, 1), (1, 2), (0, 3)]}


@given(retrievals(min_n=2))
def test_barcode_moves_no_more_than_the_cosines(r: Retrieval) -> None:
    """d_B between the barcodes of two queries over the same passages is at most sup|dc| <= |q - q'|."""
    from rag_confidence.engine.barcode import Barcode
    from rag_confidence.engine.distances import bottleneck_distance

    other = np.roll(r.query, 1) + 0.5 * r.query
    assume(np.abs(other).max() > 1e-6)
    turned = Retrieval(other, r.passages)

    def bars(barcode: Barcode) -> np.ndarray:
        return np.column_stack([barcode.birth, barcode.death])

    every = {"duplicate_cosine": 1.0}
    first = report_from_embeddings(r.query, r.passages, **every)
    second = report_from_embeddings(other, r.passages, **every)
    change = np.abs(r.cosines - turned.cosines).max()
    assert bottleneck_distance(bars(first.barcode), bars(second.barcode)) <= change + 1e-9
    chord = math.sqrt(ref.squared_distance(ref.unit(r.query), ref.unit(other)))
    assert change <= chord + 1e-12
