"""Rules of the paired bootstrap: weights are repeated rows, draws are shared, Holm adjusts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from evaluation.arrays import packed, unpacked
from evaluation.bootstrap import compared, draws, holm, replicates
from evaluation.metrics import acceptance, area, aurc
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize("decimals", [1, 8])
def test_a_weighted_row_is_a_repeated_row(decimals: int) -> None:
    """Every metric of every round is that of the rows repeated by their weights, with and without ties."""
    rng = np.random.default_rng(decimals)
    scores, good = rng.standard_normal(70).round(decimals), rng.random(70) < 0.4
    weights = draws("set", 70, rounds=40, seed=0)
    found = replicates(scores, good, weights)
    for at in range(40):
        rows = np.repeat(np.arange(70), weights[:, at].astype(int))
        for name, metric in (("auroc", area), ("aurc", aurc), ("acceptance", acceptance)):
            assert found[name][at] == pytest.approx(metric(scores[rows], good[rows]), abs=2e-6)


def test_a_round_of_one_class_is_undefined() -> None:
    """AUROC and acceptance are nan where only one class was drawn; AURC is not."""
    found = replicates(
        np.array([0.2, 0.8]), np.array([True, False]), np.array([[2.0], [0.0]], dtype=np.float32)
    )
    assert math.isnan(found["auroc"][0])
    assert math.isnan(found["acceptance"][0])
    assert found["aurc"][0] == 0.0


def test_draws_belong_to_a_set() -> None:
    """Equal sets and seeds give equal draws; each round draws as many queries as there are."""
    first = draws("squad2", 30, rounds=5, seed=1)
    assert np.array_equal(first, draws("squad2", 30, rounds=5, seed=1))
    assert not np.array_equal(first, draws("clapnq", 30, rounds=5, seed=1))
    assert first.sum(axis=0).tolist() == [30.0] * 5


def test_an_interval_is_the_middle_of_the_rounds() -> None:
    """Percentiles of the differences; rounds in which a score is undefined do not count."""
    ours = np.append(np.arange(101.0), np.nan)
    found = compared(50.0, ours, np.zeros(102))
    assert (found.low, found.high) == (2.5, 97.5)
    assert found.p == pytest.approx(2 * 2 / 102)


def test_without_rounds_there_is_no_interval() -> None:
    """The difference stays, its ends are nan."""
    found = compared(0.1, np.array([np.nan]), np.array([1.0]))
    assert found.difference == 0.1
    assert math.isnan(found.low)


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=8))
def test_holm_is_the_step_down_rule(p_values: list[float]) -> None:
    """At every level, adjusted p-values reject exactly what stepping down rejects."""
    named = {str(at): p for at, p in enumerate(p_values)}
    adjusted = holm(named)
    for level in (0.01, 0.05, 0.2, 0.7):
        rejected = set()
        for at, (p, name) in enumerate(sorted((p, name) for name, p in named.items())):
            if p * (len(named) - at) > level:
                break
            rejected.add(name)
        assert {name for name, p in adjusted.items() if p <= level} == rejected


def test_holm_leaves_out_what_was_not_tested() -> None:
    """A nan stays nan and does not count as a comparison."""
    found = holm({"a": 0.01, "b": float("nan")})
    assert found["a"] == 0.01
    assert math.isnan(found["b"])


def test_rounds_survive_as_text() -> None:
    """Single precision comes back, nan included."""
    values = np.array([0.1, np.nan, 1.0])
    np.testing.assert_allclose(unpacked(packed({"x": values})["x"]), values, atol=1e-7)
