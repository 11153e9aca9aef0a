"""Rules and histories that break a bound on the selective risk: each must be caught by the same count."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from refusals import quiet
from risk_designs import constant, mixture, slope, true_risks
from scipy.stats import binom

from rag_confidence.conformal.binomial import tail_within
from rag_confidence.conformal.risk.fit import fit_risk_gate
from rag_confidence.conformal.risk.rank_grid import rank_grid

TARGET, DELTA, N, TRIALS = 0.2, 0.1, 200, 400
BEYOND_CHANCE = binom.ppf(1 - 1e-4, TRIALS, DELTA)


def sorted_errors(scores: NDArray[np.float64], labels: NDArray[np.bool_]) -> tuple[NDArray, NDArray]:
    """Scores from high to low, and the number of insufficient rows among the first r."""
    order = np.argsort(-scores, kind="stable")
    return scores[order], np.cumsum(~labels[order])


def test_the_largest_set_with_a_low_observed_risk_breaks_the_target() -> None:
    """The lowest threshold with an observed risk of at most 20 % exceeds it in nearly half of all draws."""
    design, rng, broken = slope(), np.random.default_rng([74, 1]), 0
    for _ in range(TRIALS):
        ordered, errors = sorted_errors(*design.draw(rng, N))
        good = np.flatnonzero(errors <= TARGET * np.arange(1, N + 1))
        broken += len(good) > 0 and design.risk(float(ordered[good[-1]])) > TARGET
    assert broken > 2 * BEYOND_CHANCE


def test_testing_every_rank_at_full_delta_breaks_it() -> None:
    """Without an order and without shares of delta, some rank passes far too often."""
    design, rng, broken = constant(0.201), np.random.default_rng([74, 2]), 0
    target, delta = Fraction(1, 5), Fraction(1, 10)
    ranks = rank_grid(N, target, delta, "sequence").ranks
    for _ in range(TRIALS):
        _, errors = sorted_errors(*design.draw(rng, N))
        broken += any(tail_within(int(errors[rank - 1]), rank, target, delta) for rank in ranks)
    assert broken > 1.5 * BEYOND_CHANCE


def test_another_mix_of_questions_breaks_it() -> None:
    """Calibrated on half insufficient, met by four fifths: nearly every certificate is wrong."""
    fitted_on, met_by = mixture(0.5), mixture(0.8)
    rng, broken, held = np.random.default_rng([74, 3]), 0, 0
    for _ in range(TRIALS):
        gate = fit_risk_gate(*fitted_on.draw(rng, 500), TARGET / 2, DELTA)
        broken += met_by.risk_of(gate) > TARGET / 2
        held += fitted_on.risk_of(gate) <= TARGET / 2
    assert broken > 0.9 * TRIALS
    assert TRIALS - held <= BEYOND_CHANCE


def test_copies_of_rows_break_it() -> None:
    """Ten rows of each query are not ten draws: certificates come too easily."""
    design, rng, broken = constant(0.25), np.random.default_rng([74, 4]), 0
    with quiet():
        for _ in range(TRIALS):
            scores, labels = design.draw(rng, N // 10)
            near = np.repeat(scores, 10) * (1.0 - 1e-9 * np.tile(np.arange(10), len(scores)))
            broken += fit_risk_gate(near, np.repeat(labels, 10), TARGET, DELTA).certified
    assert broken > 1.5 * BEYOND_CHANCE


def test_cutting_through_ties_in_a_lucky_order_breaks_it() -> None:
    """One score for all rows, sufficient ones listed first: the first rows are no sample of the accepted."""
    target, delta = Fraction(1, 5), Fraction(1, 10)
    labels = np.array([True] * 100 + [False] * 100)
    _, errors = sorted_errors(np.full(N, 0.5), labels)
    assert tail_within(int(errors[99]), 100, target, delta)
    with quiet():
        assert not fit_risk_gate(np.full(N, 0.5), labels, target, delta).certified


def test_the_count_itself_is_quiet_on_the_real_gate() -> None:
    """The same count on the same design passes for `fit_risk_gate`: the alarms above are not its fault."""
    risks, _ = true_risks(slope(), TRIALS, N, 5, target_risk=TARGET, delta=DELTA)
    assert np.count_nonzero(risks > TARGET) <= BEYOND_CHANCE
