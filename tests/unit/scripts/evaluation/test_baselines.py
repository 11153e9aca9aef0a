"""Rules of the label-free baselines: each equals a plain loop over its definition."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from evaluation.baselines import BASELINES, View
from evaluation.collection import search
from evaluation.strata import Rows

K = 6


@pytest.fixture(scope="module")
def view() -> View:
    """Forty queries on a corpus of eighty passages, of which fifty are sampled."""
    rng = np.random.default_rng(0)
    corpus, queries = (
        x / np.linalg.norm(x, axis=1, keepdims=True)
        for x in (rng.standard_normal((80, 5)) + 1.0, rng.standard_normal((40, 5)) + 1.0)
    )
    found, cosines = search(queries, corpus)
    rows = Rows(
        corpus=corpus,
        queries=queries,
        found=found,
        cosines=cosines,
        sufficient=np.ones(40, dtype=bool),
        strata={},
        unit=np.arange(40),
        n_units=40,
        places=np.arange(40),
        questions=("",) * 40,
        passages=("",) * 80,
    )
    return View(rows, K, np.arange(50), queries[:0])


def mean(values: list[float]) -> float:
    """The mean of a list."""
    return sum(values) / len(values)


def deviation(values: list[float]) -> float:
    """The standard deviation of a list."""
    return math.sqrt(mean([(v - mean(values)) ** 2 for v in values]))


def background(view: View, at: int) -> list[float]:
    """Cosines of one query with the sampled passages that it was not served."""
    served = view.rows.found[at, :K].tolist()
    return [float(view.rows.queries[at] @ view.rows.corpus[row]) for row in range(50) if row not in served]


def coherence(view: View, at: int, places: range) -> float:
    """Mean of cosine x score x score over the ordered pairs of different passages."""
    rows, scores = view.rows.found[at].tolist(), view.rows.cosines[at].tolist()
    corpus = view.rows.corpus
    pairs = [(i, j) for i in places for j in places if i != j]
    return mean([float(corpus[rows[i]] @ corpus[rows[j]]) * scores[i] * scores[j] for i, j in pairs])


REFERENCE: dict[str, Callable[[View, int, list[float]], float]] = {
    "max": lambda view, at, c: max(c),
    "top3": lambda view, at, c: mean(c[:3]),
    "topk": lambda view, at, c: mean(c),
    "margin": lambda view, at, c: c[0] - c[1],
    "deviation": lambda view, at, c: deviation(c),
    "nqc": lambda view, at, c: deviation(c) / mean(background(view, at)),
    "smv": lambda view, at, c: mean([s * abs(math.log(s / mean(c))) for s in c]) / mean(background(view, at)),
    "a_ratio": lambda view, at, c: coherence(view, at, range(3)) / coherence(view, at, range(3, 6)),
    "excess": lambda view, at, c: c[0] - float(np.quantile(background(view, at), 0.98)),
}


def test_every_baseline_has_a_reference() -> None:
    """No predictor is added without one."""
    assert {one.name for one in BASELINES} == set(REFERENCE)


@pytest.mark.parametrize("name", REFERENCE)
def test_a_baseline_is_its_definition(view: View, name: str) -> None:
    """Each query's score is that of a loop over its own numbers, wherever no floor applies."""
    predictor = next(one for one in BASELINES if one.name == name)
    scores = predictor.of(view)
    rows = [
        at
        for at in range(40)
        if view.cosines[at].min() > 0.01
        and mean(background(view, at)) > 0.01
        and coherence(view, at, range(3, 6)) > 0.01
    ]
    assert len(rows) > 25
    expected = [REFERENCE[name](view, at, view.cosines[at].tolist()) for at in rows]
    np.testing.assert_allclose(scores[rows], expected, rtol=1e-9)


def test_served_passages_are_no_background(view: View) -> None:
    """They are nan there, and nothing else is."""
    for at in range(40):
        missing = np.flatnonzero(np.isnan(view.background[at])).tolist()
        assert missing == sorted(row for row in view.rows.found[at, :K].tolist() if row < 50)
