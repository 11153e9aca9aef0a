"""Every bet is a fair one: a density on [0, 1], finite at its ends."""

from __future__ import annotations

import math

import numpy as np
import pytest
import reference_monitors as ref
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from rag_confidence.conformal.monitor.rank_bets import BETS, bet_factors, leading_change


@given(st.floats(1e-12, 1.0 - 1e-12))
def test_bets_pay_ratios_of_normal_densities(p_value: float) -> None:
    """N(z; mean, spread^2) / N(z; 0, 1) at the normal score of the p-value, with SciPy's normal score."""
    expected = ref.normal_factors(np.array([[p_value]]))[0, 0]
    assert bet_factors(p_value) == pytest.approx(expected.tolist(), rel=1e-9)


@pytest.mark.parametrize("number", range(len(BETS)))
def test_every_bet_is_a_density(number: int) -> None:
    """A bet pays 1 on average over a uniform p-value, so it cannot gain on exchangeable scores."""
    total = sum(
        quad(lambda p: bet_factors(p)[number], *part)[0] for part in [(0, 0.01), (0.01, 0.99), (0.99, 1)]
    )
    assert total == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("p_value", [5e-324, 1e-300, 2.0**-53, 0.5, 1.0 - 2.0**-53, 1.0])
def test_bets_are_finite_at_the_ends(p_value: float) -> None:
    """The smallest and the largest p-value pay a finite amount on every bet."""
    assert all(math.isfinite(factor) and factor >= 0.0 for factor in bet_factors(p_value))


def test_every_direction_has_its_mirror_image() -> None:
    """Bets on higher and on lower scores pay the same on mirrored p-values."""
    up, down = bet_factors(0.1), bet_factors(0.9)
    for (mean, spread, _), paid in zip(BETS, up, strict=True):
        mirrored = next(n for n, bet in enumerate(BETS) if bet[:2] == (-mean, spread))
        assert down[mirrored] == pytest.approx(paid, rel=1e-12)


def test_the_leading_change_adds_up_the_bets_on_it() -> None:
    """Two bets on one direction count together."""
    assert leading_change((0.0, 0.0, 3.0, 0.0, 2.0, 2.0, 0.0, 0.0)) == "wider"
