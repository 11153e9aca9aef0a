"""The mixture over bets and starting steps is the sum that defines it, never overflows, and rings once."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
import reference_monitors as ref
from hypothesis import given
from hypothesis import strategies as st

from rag_confidence.conformal.monitor.betting import Capital, grow, open_capital, reserve, restored_capital

RATE = Fraction(1, 100)
factors = st.lists(
    st.tuples(st.floats(1e-3, 30.0), st.floats(1e-3, 30.0), st.floats(1e-3, 30.0)), min_size=1, max_size=25
)


def run(steps: list[tuple[float, ...]], rate: Fraction = RATE) -> list[Capital]:
    """The capital after every step."""
    capital, found = open_capital(len(steps[0]), rate), []
    for step in steps:
        capital = grow(capital, step)
        found.append(capital)
    return found


@given(factors)
def test_the_recursion_is_the_double_sum(steps: list[tuple[float, ...]]) -> None:
    """The capital is the sum over all bets and all starting steps of weight times product of factors."""
    expected = ref.log_capital_of_one_run(np.array(steps))
    assert [capital.log_total for capital in run(steps)] == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_bets_that_pay_nothing_leave_the_reserve() -> None:
    """A capital cannot fall below what is not yet staked, so it is never zero and never negative."""
    last = run([(0.0, 0.0)] * 50)[-1]
    assert last.stakes == (0.0, 0.0)
    assert last.log_total == pytest.approx(math.log(reserve(50)))


def test_fair_bets_leave_the_capital_at_one() -> None:
    """Factors of 1 neither gain nor lose: the weights of all starting steps sum to 1."""
    assert run([(1.0, 1.0, 1.0)] * 2000)[-1].log_total == pytest.approx(0.0, abs=1e-12)


def test_the_mean_capital_is_one_in_a_fair_game() -> None:
    """Over all outcomes of fair coins the capital is 1 on average: a martingale, exactly."""
    games = [
        run([(0.25, 1.6) if head else (1.75, 0.4) for head in coins]) for coins in product((0, 1), repeat=8)
    ]
    assert np.mean([math.exp(game[-1].log_total) for game in games]) == pytest.approx(1.0, rel=1e-12)


def test_the_reserve_starts_at_one_and_falls_to_nothing() -> None:
    """All is in reserve at first, and shares of it go out at every step."""
    shares = [reserve(n) for n in range(10_000)]
    assert shares[0] == 1.0
    assert all(later < earlier for earlier, later in pairwise(shares))
    assert reserve(10**300) < 0.0011


def test_a_long_gain_does_not_overflow_and_a_long_loss_recovers() -> None:
    """After gains of e^20000 the logarithm is still exact, and after losses new bets start over."""
    capital = run([(math.e, 1.0)] * 20_000)[-1]
    assert capital.log_total == pytest.approx(20_000 + math.log((1 - reserve(1)) / 2 * 1.45), abs=0.5)
    assert all(math.isfinite(stake) for stake in capital.stakes)
    losing = run([(0.1, 0.1)] * 5000 + [(3.0, 3.0)] * 30)
    assert losing[-1].log_total > math.log(100)


@pytest.mark.parametrize("loss", [0.0, 1e-30, 0.1])
def test_what_is_left_after_a_long_gain_is_the_reserve(loss: float) -> None:
    """A capital of e^2000 that is lost ends at the reserve and the newest bets, and can grow once more."""
    capitals = run([(math.e, math.e)] * 2000 + [(loss, loss)] * 1000 + [(3.0, 3.0)] * 40)
    assert capitals[1999].log_total > 1900.0
    assert math.log(reserve(3000)) <= capitals[2999].log_total < math.log(reserve(3000)) + 0.01
    assert capitals[-1].log_total > math.log(100)


def test_the_alarm_rings_when_the_limit_is_reached_and_stays() -> None:
    """The first step at which the capital is at least 1 / rate is kept, whatever happens later."""
    capitals = run([(1.0,)] * 3 + [(10.0,)] * 4 + [(0.01,)] * 10)
    totals = [capital.log_total for capital in capitals]
    first = next(n for n, total in enumerate(totals, 1) if total >= math.log(100))
    assert [capital.alarm_at for capital in capitals] == [None] * (first - 1) + [first] * (
        len(totals) - first + 1
    )
    assert capitals[-1].log_total < 0.0 < math.log(100) <= capitals[-1].log_peak == max(totals)


def test_a_peak_is_never_below_the_opening_capital() -> None:
    """A capital that only falls peaked when it was opened."""
    assert run([(0.5,)] * 3)[-1].log_peak == 0.0


@given(factors)
def test_a_capital_reads_back_the_same(steps: list[tuple[float, ...]]) -> None:
    """Saved numbers are the numbers, to the last bit."""
    capital = run(steps)[-1]
    assert Capital.from_dict(capital.to_dict()) == capital


def test_a_capital_with_other_bets_is_refused() -> None:
    """Stakes belong to the bets they were made on."""
    payload = {"capital": open_capital(2, RATE).to_dict(), "bets": [1.0, 2.0]}
    assert restored_capital(payload, [1.0, 2.0], RATE) == open_capital(2, RATE)
    for bets in ([1.0, 3.0], [1.0, 2.0, 3.0]):
        with pytest.raises(ValueError, match="bets otherwise"):
            restored_capital(payload, bets, RATE)
    with pytest.raises(ValueError, match="bets otherwise"):
        restored_capital({**payload, "bets": [1.0]}, [1.0], RATE)
