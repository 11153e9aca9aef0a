"""Rules of the metrics: each equals a plain reading of its definition."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from evaluation.metrics import (
    abstention_nauc,
    acceptance,
    area,
    aurc,
    brier,
    cross_fitted,
    excess_aurc,
    kept,
    stratified_folds,
)
from hypothesis import given
from hypothesis import strategies as st

ROWS = st.integers(4, 40).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(0, 8), min_size=n, max_size=n),
        st.lists(st.booleans(), min_size=n, max_size=n).filter(lambda y: any(y) and not all(y)),
    )
)


def columns(rows: tuple[list[int], list[bool]]) -> tuple[np.ndarray, np.ndarray]:
    """Scores with ties, and labels."""
    return np.array(rows[0], dtype=float) / 8.0, np.array(rows[1])


@given(ROWS)
def test_auroc_counts_pairs(rows: tuple[list[int], list[bool]]) -> None:
    """AUROC is the share of pairs in the right order, a tie counting one half."""
    scores, good = columns(rows)
    pairs = [(a > b) + 0.5 * (a == b) for a in scores[good] for b in scores[~good]]
    assert area(scores, good) == pytest.approx(sum(pairs) / len(pairs))


def risks(scores: np.ndarray, good: np.ndarray) -> list[float]:
    """Selective risk of the cut at the score of each row."""
    return [float(np.mean(~good[scores >= cut])) for cut in scores]


@given(ROWS)
def test_aurc_is_the_mean_risk_of_the_rows_own_cuts(rows: tuple[list[int], list[bool]]) -> None:
    """AURC averages the selective risk at each row's score; the excess takes off that of the best order."""
    scores, good = columns(rows)
    best = risks(np.argsort(np.argsort(good, kind="stable")).astype(float), good)
    assert aurc(scores, good) == pytest.approx(np.mean(risks(scores, good)))
    assert excess_aurc(scores, good) == pytest.approx(np.mean(risks(scores, good)) - np.mean(best), abs=1e-9)


def curve_area(ordered: list[bool]) -> float:
    """Area under the mean label of what is left after leaving out 0, 10, ..., 90 % of an ascending order."""
    heights = []
    for tenth in range(10):
        out = min(round(tenth * 0.1 * len(ordered)), len(ordered) - 1)
        left = ordered[out:]
        heights.append(sum(left) / len(left))
    return sum(0.1 * (a + b) / 2 for a, b in pairwise(heights))


@given(ROWS)
def test_nauc_lies_between_flat_and_best(rows: tuple[list[int], list[bool]]) -> None:
    """nAUC places the area of the abstention curve between the flat one and that of the labels' own order."""
    scores, good = columns(rows)
    labels = good.tolist()
    ordered = [labels[row] for row in sorted(range(len(labels)), key=lambda row: scores[row])]
    flat, best = 0.9 * sum(labels) / len(labels), curve_area(sorted(labels))
    expected = (curve_area(ordered) - flat) / (best - flat)
    assert abstention_nauc(scores, good) == pytest.approx(expected, abs=1e-9)


def test_nauc_of_the_best_order_is_one() -> None:
    """Scores that are the labels reach the best curve; with one class nothing is defined."""
    good = np.array([True, False, True, True, False])
    assert abstention_nauc(good.astype(float), good) == pytest.approx(1.0)
    assert math.isnan(abstention_nauc(np.arange(3.0), np.ones(3, dtype=bool)))


@given(ROWS)
def test_acceptance_tries_every_cut(rows: tuple[list[int], list[bool]]) -> None:
    """The laxest of all cuts whose false-sufficiency rate is at most .10, or 0 if there is none."""
    scores, good = columns(rows)
    allowed = [cut for cut in scores if np.mean(scores[~good] >= cut) <= 0.1]
    cut = min(allowed, default=np.inf)
    assert acceptance(scores, good) == pytest.approx(np.mean(scores >= cut))
    assert kept(scores, good) == pytest.approx(np.mean(scores[good] >= cut))


def test_brier_is_the_mean_squared_miss() -> None:
    """One row a term."""
    assert brier(np.array([0.9, 0.2]), np.array([True, False])) == pytest.approx((0.01 + 0.04) / 2)


def test_folds_hold_each_class_evenly() -> None:
    """No fold has over one row of a class more than another."""
    good = np.arange(47) < 11
    fold = stratified_folds(good, 5, np.random.default_rng(0))
    for label in (True, False):
        counts = np.bincount(fold[good == label], minlength=5)
        assert counts.max() - counts.min() <= 1


def test_a_cross_fitted_probability_has_not_seen_its_row() -> None:
    """Changing the label of one row leaves its own probability as it was."""
    rng = np.random.default_rng(1)
    scores, good = rng.random(60), rng.random(60) < 0.5
    good[0], good[1] = True, False
    swapped = good.copy()
    swapped[0], swapped[1] = False, True
    before = cross_fitted(np.where(np.arange(60) < 2, 0.5, scores), good, 0)
    assert ((before > 0) & (before < 1)).all()
    fold = stratified_folds(good, 5, np.random.default_rng([0xB51E, 0]))
    outside = fold != fold[5]
    from rag_confidence import fit_platt

    told = fit_platt(scores[outside], good[outside])(scores[5])
    assert cross_fitted(scores, good, 0)[5] == pytest.approx(told)
