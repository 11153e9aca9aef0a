"""The lock-step joint filtration against the reference and against one query at a time."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
import reference as ref
from hypothesis import given
from hypothesis import strategies as st
from strategies import Array, Retrieval, leveled_graphs, retrievals

from rag_confidence.engine.barcode import joint_barcode
from rag_confidence.engine.joint import joint_deaths, summarise

LOCK_STEP = 4
"""Enough queries that a block is not handed over one by one."""


def reference_bars(c: Array, g: Array) -> Counter[ref.Bar]:
    """Multiset of (birth, death) of the joint filtration."""
    return Counter(ref.superlevel_bars(c.tolist(), ref.joint_edges(c.tolist(), g.tolist())))


def check(c: Array, g: Array, deaths: Array) -> None:
    """Deaths of one row, indexed like the cosines."""
    assert Counter(zip(c.tolist(), deaths.tolist(), strict=True)) == reference_bars(c, g)
    assert deaths[0] == -math.inf


@given(retrievals())
def test_deaths_match_thresholding(r: Retrieval) -> None:
    """In a block of any size each row has the bars of the reference, the essential one in column 0."""
    c, g = r.canonical()
    for count in (1, LOCK_STEP):
        for deaths in joint_deaths(np.tile(c, (count, 1)), np.tile(g, (count, 1, 1))):
            check(c, g, deaths)


@given(st.data(), st.integers(1, 7))
def test_rows_of_a_block_do_not_mix(data: st.DataObject, n: int) -> None:
    """Different queries full of ties, computed together, each keep their own bars."""
    graphs = [data.draw(leveled_graphs(n, n)) for _ in range(LOCK_STEP)]
    cosines, gram = np.stack([c for c, _ in graphs]), np.stack([g for _, g in graphs])
    for c, g, deaths in zip(cosines, gram, joint_deaths(cosines, gram), strict=True):
        check(c, g, deaths)


@pytest.mark.parametrize("n", [1, 2, 3, 10, 41, 60])
def test_lock_step_equals_one_at_a_time(n: int) -> None:
    """The same deaths, passage by passage, as `joint_barcode` when nothing is tied."""
    rng = np.random.default_rng(n)
    blocks = [
        Retrieval(rng.standard_normal(8) + 1, rng.standard_normal((n, 8)) + 1).canonical() for _ in range(6)
    ]
    cosines, gram = np.stack([c for c, _ in blocks]), np.stack([g for _, g in blocks])
    alone = np.stack([joint_barcode(c, g).death for c, g in blocks])
    np.testing.assert_array_equal(joint_deaths(cosines, gram), alone)


@given(st.data(), st.integers(1, 7))
def test_read_outs_equal_those_of_the_barcode(data: st.DataObject, n: int) -> None:
    """Second bar, margin, dominance, fragmentation and count agree with `Barcode` row by row."""
    graphs = [data.draw(leveled_graphs(n, n)) for _ in range(LOCK_STEP)]
    cosines, gram = np.stack([c for c, _ in graphs]), np.stack([g for _, g in graphs])
    summary = summarise(cosines, joint_deaths(cosines, gram))
    for i, (c, g) in enumerate(graphs):
        barcode = joint_barcode(c, g)
        for name in ("second_bar", "margin", "dominance", "fragmentation", "n_components"):
            assert getattr(summary, name)[i] == pytest.approx(getattr(barcode, name), abs=1e-12), name


def test_rounding_is_not_a_bar() -> None:
    """A bar of 1e-10 is rounding: it counts for nothing in either version."""
    c = np.tile([0.9, 0.8, 0.8], (LOCK_STEP, 1))
    g = np.tile(
        np.array([[1.0, 0.8, 0.9], [0.8, 1.0, 0.8 - 1e-10], [0.9, 0.8 - 1e-10, 1.0]]), (LOCK_STEP, 1, 1)
    )
    g[:, 0, 1] = g[:, 1, 0] = 0.8 - 1e-10
    summary = summarise(c, joint_deaths(c, g))
    np.testing.assert_array_equal(summary.second_bar, 0.0)
    np.testing.assert_array_equal(summary.fragmentation, 0.0)
    np.testing.assert_array_equal(summary.n_components, 1)
