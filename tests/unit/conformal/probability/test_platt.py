"""Platt's map minimises the cross-entropy against shrunken targets, in whatever units the scores are."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import reference_probability as ref
from histories import History, histories
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from refusals import refuse

from rag_confidence.conformal.probability import platt
from rag_confidence.conformal.probability.platt import fit_platt

X, Y = [0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1]
fractions = histories(kinds=("fraction",), most=12)


def test_separable_rows_meet_their_targets() -> None:
    """Two scores that separate the classes get 1/5 and 4/5: the exact values of a worked case."""
    chance = fit_platt(X, Y)
    assert chance(0) == pytest.approx(1 / 5, abs=1e-14)
    assert chance(1) == pytest.approx(4 / 5, abs=1e-14)
    assert chance.slope == pytest.approx(2.772588722239781, rel=1e-13)
    assert chance.intercept == pytest.approx(-1.3862943611198906, rel=1e-13)


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1.0, 1e9, 1e300, -1e-9, -1.0, -1e9])
@pytest.mark.parametrize("shift", [0.0, 1.0, -1e9, 1e15])
def test_an_affine_scale_changes_no_probability(scale: float, shift: float) -> None:
    """1e-9, 1e9, a large offset or a flipped sign: the same probabilities, and a slope in those units."""
    low = shift * abs(scale) if abs(scale) < 1e200 else 0.0
    high = low + scale
    chance = fit_platt([high if x else low for x in X], Y)
    assert chance(low) == pytest.approx(1 / 5, abs=1e-14)
    assert chance(high) == pytest.approx(4 / 5, abs=1e-14)
    # A large offset rounds the scores: the slope belongs to the width that is left.
    assert chance.slope == pytest.approx(math.log(16) / (high - low), rel=1e-12)
    assert chance.intercept == pytest.approx(-math.log(4) - math.log(16) * (low / (high - low)), rel=1e-12)


@given(
    h=fractions,
    exponent=st.integers(-60, 60),
    sign=st.sampled_from([-1.0, 1.0]),
    shift=st.integers(-(2**20), 2**20),
)
def test_probabilities_belong_to_the_rows_not_to_the_units(
    h: History, exponent: int, sign: float, shift: int
) -> None:
    """Any affine change of scores that are exact in both units leaves every probability where it was."""
    x = np.round(h.scores.astype(np.float64) * 1024) / 1024
    moved = np.ldexp(sign * x + shift, exponent)
    chances = fit_platt(x, h.labels)(x)
    assert fit_platt(moved, h.labels)(moved) == pytest.approx(chances, abs=1e-11)


def gradient(h: History, chances: NDArray[np.float64]) -> tuple[float, float]:
    """Derivatives of the mean cross-entropy by intercept and slope, for scores mapped to [0, 1]."""
    x = [Fraction(float(s)) for s in h.scores]
    width = max(x) - min(x) or Fraction(1)
    away = [Fraction(p) - t for p, t in zip(chances.tolist(), ref.targets(h.labels), strict=True)]
    tilt = sum(a * (s - min(x)) / width for a, s in zip(away, x, strict=True))
    return float(sum(away) / len(x)), float(tilt / len(x))


@given(h=histories(most=12))
def test_it_is_the_minimum(h: History) -> None:
    """Both derivatives vanish at the fitted probabilities; the loss is convex, so it is least there."""
    chances = fit_platt(h.scores, h.labels)(h.scores.astype(np.float64))
    assert gradient(h, chances) == pytest.approx((0.0, 0.0), abs=1e-13)


@settings(max_examples=20)
@given(h=fractions)
def test_its_logit_is_a_line_in_the_score(h: History) -> None:
    """The logit of each probability is slope * score + intercept, in the caller's units."""
    chance = fit_platt(np.round(h.scores.astype(np.float64), 2), h.labels)
    points = np.array([-0.3, 0.0, 0.25, 0.6, 1.3])
    line = chance.slope * points + chance.intercept
    plain = np.abs(line) < 20
    chances = chance(points[plain])
    assert np.log(chances / (1 - chances)) == pytest.approx(line[plain], abs=1e-6)


@settings(max_examples=20)
@given(h=histories(most=12))
def test_it_rises_or_falls_as_its_slope_says(h: History) -> None:
    """The map is monotone, to rounding, in the direction of the slope, far outside the rows as well."""
    chance = fit_platt(h.scores, h.labels)
    points = np.sort(
        np.concatenate([h.scores.astype(float), h.probes.astype(float), [-1.7e308, 0.0, 1.7e308]])
    )
    rising = chance.logit_high - chance.logit_low
    assert (np.sign(rising) * np.diff(chance(points)) >= -1e-15).all()


@pytest.mark.parametrize(
    ("labels", "mean"), [([0, 1], 0.5), ([0, 0, 0, 1], 19 / 60), ([1, 1, 1, 0], 41 / 60)]
)
def test_equal_scores_give_the_mean_target(labels: list[int], mean: float) -> None:
    """Without any difference in score the map is constant at the mean of the targets, with slope 0."""
    chance = fit_platt([0.7] * len(labels), labels)
    assert chance([-5.0, 0.7, 1e300]) == pytest.approx([mean] * 3, abs=1e-15)
    assert chance.slope == 0.0
    assert chance.intercept == pytest.approx(math.log(mean / (1 - mean)), abs=1e-14)


def test_scores_that_say_nothing_give_slope_zero() -> None:
    """Classes with the same scores get one probability, and a score far outside is no nan."""
    chance = fit_platt([0.1, 0.2, 0.1, 0.2], [0, 0, 1, 1])
    assert chance.slope == pytest.approx(0.0, abs=1e-14)
    assert chance([0.1, 0.2]) == pytest.approx([0.5, 0.5], abs=1e-15)
    assert 0.0 <= chance(1.7e308) <= 1.0


def test_a_score_that_ranks_backwards_gets_a_negative_slope() -> None:
    """Nothing forces the curve to rise: that is why it may not stand before a gate."""
    assert fit_platt([1, 2, 3, 4], [1, 1, 0, 0]).slope < 0.0


def test_far_scores_are_certain_without_overflow() -> None:
    """Logits beyond the range of exp give 0 and 1, and no warning."""
    assert fit_platt(X, Y)([-1e308, -1e4, 1e4, 1e308]).tolist() == [0.0, 0.0, 1.0, 1.0]


def test_small_probabilities_keep_their_digits() -> None:
    """Far below, the probability is exp(logit), not 1 minus a rounded number."""
    chance = fit_platt(X, Y)
    assert chance(-10) == pytest.approx(math.exp(-math.log(4) - 10 * math.log(16)), rel=1e-10)


@pytest.mark.parametrize(
    "x", [[0.0, 5e-324], [-1.7e308, 1.7e308], [1e308, 1.0000001e308], [1.0, 1.0 + 2**-52], [-5e-324, 1.7e308]]
)
def test_any_two_scores_can_be_told_apart(x: list[float]) -> None:
    """The closest, the smallest and the farthest floats are fitted like 0 and 1."""
    chance = fit_platt([x[0]] * 3 + [x[1]] * 3, Y)
    assert [chance(x[0]), chance(x[1])] == pytest.approx([1 / 5, 4 / 5], abs=1e-14)


def test_an_outlier_among_a_million_rows_is_fitted() -> None:
    """Half a million rows a class 1e-8 apart, one row at 1: Newton's method still converges."""
    y = np.arange(1_000_000) % 2
    x = np.append(y[:-1] * 1e-8, 1.0)
    chance = fit_platt(x, y)
    away = np.array([chance(0.0) - 1 / 500_002, chance(1e-8) - 500_001 / 500_002])
    assert (np.abs(away) < 1e-3).all()
    assert chance(1.0) == 1.0


WEIGHTS = st.lists(st.integers(0, 10**6), min_size=2, max_size=6)


@given(zeros=WEIGHTS, ones=WEIGHTS, gaps=st.lists(st.integers(-12, 0), min_size=6, max_size=6))
@example(zeros=[20536, 97, 6, 0], ones=[0, 0, 438234, 3], gaps=[-10, -3, -3, 0, 0, 0])
def test_the_minimum_is_found_however_skewed_the_rows(
    zeros: list[int], ones: list[int], gaps: list[int]
) -> None:
    """Counts up to 1e6 at scores up to 1e12 times closer than the range: both derivatives vanish."""
    size = min(len(zeros), len(ones))
    z, o = np.array(zeros[:size], float), np.array(ones[:size], float)
    z[0] += 1
    o[-1] += 1
    x = np.cumsum([0.0, *(10.0**g for g in gaps[: size - 1])])
    x /= x[-1]
    n0, n1 = z.sum(), o.sum()
    hits, misses = o * ((n1 + 1) / (n1 + 2)) + z / (n0 + 2), o / (n1 + 2) + z * ((n0 + 1) / (n0 + 2))
    a, b = platt._minimise(x, hits, misses)
    with np.errstate(over="ignore"):
        p, q = 1 / (1 + np.exp(-(a + b * x))), 1 / (1 + np.exp(a + b * x))
    away = misses * p - hits * q
    assert math.fsum(away) / (n0 + n1) == pytest.approx(0.0, abs=1e-12)
    assert math.fsum(away * x) / (n0 + n1) == pytest.approx(0.0, abs=1e-12)


def test_a_step_that_overshoots_is_halved() -> None:
    """Where a full Newton step would raise the loss, a shorter one lowers it."""
    data = (np.array([0.0, 1.0]), np.array([0.2, 0.8]), np.array([0.8, 0.2]))
    start, step = np.zeros(2), np.array([-400.0, 800.0])
    slope = float(step @ [0.6, 0.3])
    line = platt._backtrack(start, step, -slope, data)
    assert platt._loss(line, *data) < platt._loss(start, *data) < platt._loss(start + step, *data)


def test_a_fit_that_does_not_converge_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """No half-finished line is handed out."""
    monkeypatch.setattr(platt, "_MOST_STEPS", 1)
    refuse(ValueError, "^`scores` must admit a logistic fit", lambda: fit_platt([1, 2, 3, 5], [0, 1, 0, 1]))
