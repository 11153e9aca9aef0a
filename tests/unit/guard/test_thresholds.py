"""Thresholds: exact ranks of good and of bad calls, and two comparisons that say what sets say."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from guard_calls import INF
from hypothesis import given
from hypothesis import strategies as st

from rag_confidence.guard.thresholds import Thresholds, calls_needed, count_failed, thresholds_of

LEVELS = st.sampled_from([Fraction(1, 2), Fraction(1, 3), Fraction(1, 5), Fraction(1, 10), Fraction(3, 7)])
SCORES = st.lists(st.one_of(st.integers(-2, 4).map(float), st.just(INF)), min_size=1, max_size=25)


def slow_cut(scores: list[float], level: Fraction) -> float:
    """The smallest calibration score that a share 1 - level of n + 1 calls does not exceed."""
    n = len(scores)
    for score in sorted(scores):
        if Fraction(sum(other <= score for other in scores), n + 1) >= 1 - level:
            return score
    return INF


def cuts(good: list[float], bad: list[float], level: Fraction, beta: Fraction | None) -> Thresholds:
    """The thresholds of unsorted scores."""
    return thresholds_of(np.sort(np.array(good)), np.sort(np.array(bad)), level, beta)


@given(SCORES, LEVELS)
def test_the_threshold_is_the_order_statistic_of_the_definition(good: list[float], level: Fraction) -> None:
    """The least calibration score that a share 1 - alpha of n + 1 calls does not exceed."""
    found = cuts(good, [], level, None)
    expected = slow_cut(good, level)
    assert found.good_to == expected
    assert found.accept_to == (expected if math.isfinite(expected) else -INF)
    assert (found.rejects, found.accepts, found.complete) == (False, *[math.isfinite(expected)] * 2)


@given(SCORES, SCORES, LEVELS, LEVELS)
def test_two_cuts_decide_as_prediction_sets_do(
    good: list[float], bad: list[float], level: Fraction, beta: Fraction
) -> None:
    """ACCEPT where good is kept and bad excluded, REJECT the other way round, on ties and beside them."""
    found = cuts(good, bad, level, beta)
    good_to, bad_from = slow_cut(good, level), -slow_cut([-score for score in bad], beta)
    near = [s for v in {*good, *bad} - {INF} for s in (v, math.nextafter(v, INF), math.nextafter(v, -INF))]
    for score in near:
        keeps_good, keeps_bad = score <= good_to, score >= bad_from
        assert (score <= found.accept_to) == (keeps_good and not keeps_bad)
        assert (score > found.reject_above) == (keeps_bad and not keeps_good)
    assert (found.good_to, found.bad_from) == (good_to, bad_from)


@pytest.mark.parametrize("level", [Fraction(1, 10), Fraction(1, 20), Fraction(3, 7), Fraction(1, 3)])
@pytest.mark.parametrize("failed", [0, 1, 4])
def test_the_calls_needed_are_the_fewest(level: Fraction, failed: int) -> None:
    """From that many on the threshold is finite, with one call fewer it is not."""
    needed = calls_needed(level, failed)
    for n in range(max(failed, 1), needed + 3):
        scores = [0.0] * (n - failed) + [INF] * failed
        assert cuts(scores, [], level, None).accepts == (n >= needed)


def test_bad_calls_that_fail_do_not_stop_others() -> None:
    """Where nearly all bad calls fail, every call that is scored differs from them."""
    found = cuts([0.0] * 20, [INF] * 20, Fraction(1, 10), Fraction(1, 10))
    assert (found.accept_to, found.bad_from) == (0.0, INF)
    assert count_failed(np.array([0.0, INF, INF])) == 2


def test_one_kind_alone_still_decides() -> None:
    """With too few good calls none is rejected, with too few bad ones none accepted, and the rest stands."""
    tenth = Fraction(1, 10)
    few_good = cuts([0.0], [*map(float, range(20))], tenth, tenth)
    assert (few_good.rejects, few_good.accepts, few_good.complete) == (False, True, False)
    few_bad = cuts([*map(float, range(20))], [5.0], tenth, tenth)
    assert (few_bad.rejects, few_bad.accepts, few_bad.complete) == (True, False, False)
    neither = cuts([0.0], [1.0], tenth, tenth)
    assert (neither.rejects, neither.accepts) == (False, False)


@given(st.permutations([0.1, 0.4, 0.2, INF, 0.3, 0.2, 0.9, 0.0, 0.5, 0.6]))
def test_only_good_calls_of_one_kind_count_each(order: list[float]) -> None:
    """Without beta bad calls change no threshold."""
    one = cuts(order, [], Fraction(1, 3), None)
    assert one == cuts(order, [5.0, -5.0], Fraction(1, 3), None)
