"""Ranks among unlabelled traffic: exact, strictly growing, without a unit, and apart from calibration."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
import pytest
import reference_joint as ref
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from rag_confidence.conformal.joint.traffic import TrafficRanks, fit_traffic, refuse_reuse
from rag_confidence.errors import RowsReused

INF = math.inf
Rows: TypeAlias = list[list[float]]
WILD = st.one_of(
    st.integers(-3, 5).map(float), st.floats(allow_nan=False, allow_infinity=False), st.just(INF)
)


def ranks(column: ArrayLike, scores: ArrayLike) -> list[float]:
    """Ranks of scores of one check among a column of its traffic."""
    traffic = fit_traffic(np.asarray(column, dtype=float)[:, None], ("check_0",))
    return [float(r) for r in traffic.of(np.asarray(scores, dtype=float)[:, None])[:, 0]]


@given(st.lists(WILD, min_size=1, max_size=8), st.lists(WILD, min_size=1, max_size=8))
def test_a_rank_is_the_fraction_rounded(column: list[float], scores: list[float]) -> None:
    """Each rank equals the rational one to rounding, at every size of float."""
    assume(any(v != INF for v in column))
    for s, found in zip(scores, ranks(column, scores), strict=True):
        exact = float(ref.rank(s, column))
        # Scores closer than the smallest normal float, and 2**1022 ranges away, are not told apart.
        tiny = any(0 < abs(a - b) < 1e-300 for a in [*column, s] for b in column)
        far = abs(exact) * len(column) > 1022
        assert tiny or far or found == pytest.approx(exact, abs=1e-12, rel=1e-12)


@given(st.lists(WILD, min_size=1, max_size=8), st.lists(WILD, min_size=2, max_size=12))
def test_a_higher_score_never_has_a_lower_rank(column: list[float], scores: list[float]) -> None:
    """The map grows with the score, in floats of every size, and failure is above all."""
    assume(any(v != INF for v in column))
    found = ranks(column, sorted(scores))
    assert found == sorted(found)
    assert [r == INF for r in found] == [s == INF for s in sorted(scores)]


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=20), st.data())
def test_different_scores_have_different_ranks(column: list[int], data: st.DataObject) -> None:
    """The map grows strictly, inside the range of the traffic and beyond it, unless the check is constant."""
    assume(len(set(column)) > 1)
    scores = data.draw(st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=10, unique=True))
    assert len(set(ranks(column, scores))) == len(scores)


def test_a_constant_check_knows_below_equal_and_above() -> None:
    """Without a range there is no unit: equal has rank 0, all above rank 1, all below less."""
    assert ranks([7.0] * 4, [6.0, -1e9, 7.0, 7.1, 1e9, INF]) == [-0.25, -0.25, 0.0, 1.0, 1.0, INF]


def test_extreme_scores_stay_apart_beyond_the_traffic() -> None:
    """Beyond its range the rank keeps growing, up to the largest float, and only failure is infinite."""
    sizes = np.array([1.0, 1.5, 2.0, 3.0, 1e2, 1e9, 1e10, 1e100, 1e300, 1.7e308])
    up, down = (ranks([0.0, 0.25, 1.0], sign * sizes) for sign in (1.0, -1.0))
    assert (np.diff(up) > 0).all()
    assert (np.diff(down) < 0).all()
    assert np.isfinite([*up, *down]).all()


def test_ranks_of_scores_in_the_traffic_are_one_minus_the_p_value() -> None:
    """A score that the traffic holds has as rank the share of the traffic below it; between, linearly."""
    assert ranks([0.0] * 95 + [1.0] * 5, [0.0, 1.0, 0.5, 2.0]) == pytest.approx([0.0, 0.95, 0.945, 1.0])


def test_failed_checks_in_the_traffic_are_above_its_finite_scores() -> None:
    """Calls on which the check failed count as rows of the traffic, none of them below a finite score."""
    assert ranks([0.0, 1.0, INF, INF], [0.0, 1.0, 2.0, INF]) == [0.0, 0.25, 0.5, INF]


def test_a_check_that_never_ran_is_refused() -> None:
    """Traffic without one finite score of a check cannot rank it, and the check is named."""
    with pytest.raises(ValueError, match="must hold a finite score of every check; got none of judge"):
        fit_traffic(np.array([[0.1, INF], [0.2, INF]]), ("schema", "judge"))


def test_the_map_survives_plain_values() -> None:
    """`from_dict` of `to_dict` ranks to the same last bit."""
    rng = np.random.default_rng([1, 0])
    traffic = fit_traffic(rng.standard_normal((30, 2)), ("a", "b"))
    scores = rng.standard_normal((20, 2))
    assert TrafficRanks.from_dict(traffic.to_dict()).of(scores).tolist() == traffic.of(scores).tolist()


def table(seed: int, n: int = 50) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Scores of two checks with many decimals."""
    return np.random.default_rng([2, seed]).random((n, 2))


def test_traffic_that_holds_the_calibration_rows_is_refused() -> None:
    """Ranks among the calibration rows themselves break the bound, so that traffic is an error."""
    for reference in (table(0), np.vstack([table(1), table(0)]), table(0).astype(np.float32)):
        with pytest.raises(RowsReused, match="got 50 of 50 calibration rows in both"):
            refuse_reuse(table(0), reference)
    refuse_reuse(table(0), table(1))


def test_rows_of_few_values_may_coincide() -> None:
    """Whole numbers, and rows that occur more than once, say nothing about reuse."""
    whole = np.random.default_rng([3, 0]).integers(0, 40, (100, 2)).astype(float)
    refuse_reuse(whole[:50], whole[:80])
    refuse_reuse(np.full((20, 2), 1 / 3), np.full((30, 2), 1 / 3))
    refuse_reuse(np.array([[INF, 1e300]]), np.array([[INF, 1.0]]))
