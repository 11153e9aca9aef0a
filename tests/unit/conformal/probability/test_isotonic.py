"""The isotonic map is the max-min formula at the scores, straight between them, constant outside."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import reference_probability as ref
from histories import History, histories
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_confidence.conformal.probability.isotonic import fit_isotonic

few = histories(most=8)


def test_ties_are_pooled_first() -> None:
    """Two rows of one score count as one of weight 2: the exact values of a worked case."""
    chance = fit_isotonic([0, 1, 1, 2, 3], [0, 0, 1, 0, 1])
    assert [chance(x) for x in (0, 1, 2, 3)] == [0.0, 1 / 3, 1 / 3, 1.0]
    assert chance(2.5) == pytest.approx(2 / 3, abs=1e-15)


def test_outside_the_rows_the_ends_go_on() -> None:
    """Beyond the fitted scores the map is clipped, never nan: the exact values of a worked case."""
    chance = fit_isotonic([0, 0.1, 0.3, 0.4], [0, 0, 1, 1])
    assert (chance(0.5), chance(-1)) == (1.0, 0.0)
    assert (chance(1e308), chance(-1e308)) == (1.0, 0.0)


@given(h=few)
def test_at_the_scores_it_is_the_max_min_formula(h: History) -> None:
    """Each fitted value is the correctly rounded fraction."""
    fitted = ref.isotonic(h.scores, h.labels)
    chance = fit_isotonic(h.scores, h.labels)
    assert [chance(float(x)) for x in fitted] == [float(p) for p in fitted.values()]


@given(h=few)
def test_between_the_scores_it_is_straight(h: History) -> None:
    """Between two scores the map is the line through both fits, outside it is constant."""
    fitted = ref.isotonic(h.scores, h.labels)
    chance = fit_isotonic(h.scores, h.labels)
    for probe in h.probes.astype(np.float64).tolist():
        assert chance(probe) == pytest.approx(float(ref.between(fitted, probe)), abs=1e-12)


@given(h=few, points=st.lists(st.floats(-2.0, 2.0), max_size=20))
def test_it_never_falls(h: History, points: list[float]) -> None:
    """A higher score never has a lower probability, not even by rounding."""
    everywhere = np.sort(np.concatenate([h.scores.astype(float), h.probes.astype(float), points]))
    assert (np.diff(fit_isotonic(h.scores, h.labels)(everywhere)) >= 0.0).all()


@settings(max_examples=20)
@given(h=few)
def test_the_mean_probability_of_the_rows_is_their_share_of_ones(h: History) -> None:
    """Over its own rows the map is calibrated as a whole: each block has the mean of its labels."""
    chances = fit_isotonic(h.scores, h.labels)(h.scores.astype(np.float64))
    assert chances.mean() == pytest.approx(np.mean(h.labels), abs=1e-12)


@settings(max_examples=20)
@given(h=few)
def test_the_best_order_is_kept_exactly(h: History) -> None:
    """Rows whose labels already rise with the score are fitted without error."""
    order = np.argsort(h.scores, kind="stable")
    x = np.arange(len(order), dtype=float)
    y = np.sort(np.array(h.labels)[order])
    assert fit_isotonic(x, y)(x).tolist() == y.tolist()


@settings(max_examples=20)
@given(h=few, exponent=st.integers(-40, 40), shift=st.integers(-3, 3))
def test_only_the_order_of_the_scores_decides(h: History, exponent: int, shift: int) -> None:
    """A rising change of scale leaves the value of each row as it was."""
    places = np.unique(h.scores.astype(np.float64), return_inverse=True)[1]
    moved = np.ldexp(places + float(shift), exponent)
    fits = [fit_isotonic(x, h.labels)(x) for x in (h.scores.astype(np.float64), moved)]
    assert fits[0].tolist() == fits[1].tolist()


def test_equal_scores_give_the_share_of_ones() -> None:
    """Where all scores are tied the map is constant: the degenerate case."""
    chance = fit_isotonic([0.5] * 4, [0, 1, 1, 1])
    assert chance([-1.0, 0.5, 2.0]).tolist() == [0.75] * 3


def test_reversed_scores_give_the_share_of_ones() -> None:
    """Scores that rank backwards are pooled into one block."""
    chance = fit_isotonic([1, 2, 3, 4], [1, 1, 0, 0])
    assert chance.knots.tolist() == [1.0, 4.0]
    assert chance.values.tolist() == [0.5, 0.5]


def test_knots_are_the_ends_of_blocks_only() -> None:
    """A block of many scores is kept as its first and last score."""
    x = np.arange(100.0)
    chance = fit_isotonic(x, x >= 50)
    assert chance.knots.tolist() == [0.0, 49.0, 50.0, 99.0]
    assert chance(49.5) == 0.5


def test_a_large_fit_is_exact() -> None:
    """With 20,000 tied rows each block is still the fraction of its counts."""
    rng = np.random.default_rng([26, 2])
    x = rng.integers(0, 400, 20_000)
    y = rng.random(20_000) < x / 400
    chance = fit_isotonic(x, y)
    for low, high in zip(chance.knots[:-1], chance.knots[1:], strict=True):
        if chance(low) == chance(high):
            block = (x >= low) & (x <= high)
            assert Fraction(chance(low)).limit_denominator(20_000) == Fraction(
                int(y[block].sum()), int(block.sum())
            )
