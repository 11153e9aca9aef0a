"""Rules of learned scores: stratified draws, and tests on rows that were not learned from."""

from __future__ import annotations

import numpy as np
from evaluation.bootstrap import draws, replicates
from evaluation.budgets import is_possible, learn, measure, training_rows
from evaluation.metrics import area, brier
from hypothesis import given
from hypothesis import strategies as st


@given(st.integers(20, 200), st.integers(6, 30), st.integers(0, 99))
def test_a_draw_keeps_the_share_of_each_class(size: int, ones: int, seed: int) -> None:
    """Half of the rows at most, each class within one row of its share, and three of each at least."""
    good = np.zeros(size, dtype=bool)
    good[: min(ones, size - 6)] = True
    budget = size // 2
    if is_possible(good, budget):
        train = training_rows(good, budget, seed=seed, name="set")
        assert len(set(train.tolist())) == budget
        found = int(good[train].sum())
        assert found >= 3
        assert budget - found >= 3
        assert found == 3 or abs(found - budget * good.mean()) <= 3


def test_a_budget_needs_as_many_rows_to_test_on() -> None:
    """Twice the budget, and six rows of the rarer class."""
    assert is_possible(np.arange(50) < 25, 25)
    assert not is_possible(np.arange(49) < 25, 25)
    assert not is_possible(np.arange(50) < 5, 25)


def test_scores_are_measured_where_they_did_not_learn() -> None:
    """A learner that knows its training rows by heart gains nothing: means over draws of the other rows."""
    rng = np.random.default_rng(0)
    good = rng.random(60) < 0.5
    signal = rng.random(60)
    chosen = [training_rows(good, 20, seed=seed, name="set") for seed in range(3)]

    def by_heart(train: np.ndarray, seed: int) -> np.ndarray:
        told = signal.copy()
        told[train] = good[train]
        return told

    told = learn({"heart": by_heart}, good, chosen, {"signal": signal})
    weights = draws("set", 60, rounds=10, seed=0)
    stratum = np.arange(60) % 5 != 0
    found = measure(told, good, stratum, weights)
    tested = [stratum & ~np.isin(np.arange(60), train) for train in chosen]
    expected = np.mean([area(signal[rows], good[rows]) for rows in tested])
    assert np.isclose(found.values["heart"]["auroc"], expected)
    assert found.values["heart"]["auroc"] == found.values["signal"]["auroc"]
    assert np.isclose(found.values["heart"]["brier"], np.mean([brier(signal[r], good[r]) for r in tested]))
    assert "brier" not in found.values["signal"]
    each = [replicates(signal[r], good[r], weights[r])["auroc"] for r in tested]
    np.testing.assert_allclose(found.rounds["heart"]["auroc"], np.mean(each, axis=0), rtol=1e-6)
