"""Tests of the mean and of the spread of coverage over repeated trials."""

from __future__ import annotations

import math
from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_confidence.conformal.bands import Trial, covered_mean, covered_pmf, covered_variance
from rag_confidence.conformal.validation.trials import mean_coverage_test, mean_test, spread_test, total_band


def convolved(trials: list[Trial]) -> np.ndarray:
    """Distribution of the total, one trial after the other."""
    return reduce(np.convolve, [covered_pmf(*trial) for trial in trials])


def simulated(trials: list[Trial], rng: np.random.Generator) -> np.ndarray:
    """Counts that trials of these sizes give when everything is in order."""
    coverages = [rng.beta(rank, n - rank + 1) for n, rank, _ in trials]
    return np.array([rng.binomial(t.n_test, c) for t, c in zip(trials, coverages, strict=True)])


@st.composite
def some_trials(draw: st.DrawFn) -> list[Trial]:
    """Up to twelve trials of different sizes, some with an infinite threshold."""
    trials = []
    for _ in range(draw(st.integers(1, 12))):
        n = draw(st.integers(1, 60))
        rank = draw(st.one_of(st.integers(1, n), st.just(math.inf)))
        trials.append(Trial(n, rank, draw(st.integers(1, 60))))
    return trials


@given(some_trials(), st.data())
def test_tails_are_those_of_the_convolution(trials: list[Trial], data: st.DataObject) -> None:
    """Both tails of the total equal those of one convolution after the other."""
    covered = np.array([data.draw(st.integers(0, trial.n_test)) for trial in trials])
    found, law, total = mean_test(covered, trials, 0.95), convolved(trials), int(covered.sum())
    assert found.p_low == pytest.approx(law[: total + 1].sum(), abs=1e-11)
    assert found.p_high == pytest.approx(law[total:].sum(), abs=1e-11)
    assert found.mean == total / sum(t.n_test for t in trials)
    assert found.expected == pytest.approx(law @ np.arange(len(law)) / found.tested, abs=1e-11)


@given(some_trials())
def test_band_of_the_total_keeps_both_tails(trials: list[Trial]) -> None:
    """No more than 2.5 % lies beyond either end, and more would if the end moved in."""
    (low, high), below = total_band(trials, 0.95), np.cumsum(convolved(trials))
    assert below[low - 1] <= 0.025 + 1e-9 or low == 0
    assert below[low] >= 0.025 - 1e-9
    assert below[high] >= 0.975 - 1e-9
    assert high == 0 or below[high - 1] <= 0.975 + 1e-9


def test_the_mean_is_held_against_the_spread_of_a_mean() -> None:
    """A mean of 100 trials 1.7 points too low is rejected, though one such trial would be within its band."""
    one = mean_coverage_test([0.883], 1000, 0.1, n_test=1000)
    many = mean_coverage_test([0.883] * 100, 1000, 0.1, n_test=1000)
    assert one.within
    assert (one.low, one.high) == (0.873, 0.925)
    assert not many.within
    assert many.p_low < 1e-12
    assert many.high - many.low == pytest.approx((one.high - one.low) / 10, rel=0.05)


def test_the_band_is_that_of_a_normal_mean_for_many_trials() -> None:
    """At n = n_test = 1,000 and 100 trials the exact band agrees with the normal one to .0001."""
    found = mean_coverage_test([0.9] * 100, 1000, 0.1, n_test=1000)
    deviation = math.sqrt(covered_variance(1000, 901, 1000) / 100) / 1000
    assert deviation == pytest.approx(0.00134, abs=5e-6)
    assert found.low == pytest.approx(901 / 1001 - 1.96 * deviation, abs=1e-4)
    assert found.high == pytest.approx(901 / 1001 + 1.96 * deviation, abs=1e-4)


@pytest.mark.parametrize("mean", [0.0, 1.0])
def test_a_mean_far_away_has_probability_nought(mean: float) -> None:
    """Coverage far outside the range that is worked out is rejected, not an error."""
    found = mean_coverage_test([mean] * 50, 1000, 0.1, n_test=1000)
    assert found.p_value < 1e-12
    assert (found.p_low < 0.5) == (mean < 0.5)


def test_p_values_of_the_mean_are_uniform() -> None:
    """On honest trials the one-sided p-value is below any level about that often."""
    trials, rng = [Trial(50, 46, 80)] * 10 + [Trial(30, 28, 40)] * 5, np.random.default_rng(1)
    p = np.array([mean_test(simulated(trials, rng), trials, 0.95).p_low for _ in range(400)])
    for level in (0.05, 0.25, 0.5, 0.75):
        assert (p <= level).mean() == pytest.approx(level, abs=4 * math.sqrt(0.25 / 400))


def test_spread_is_the_mean_squared_deviation() -> None:
    """The ratio is the mean of squared deviations, each in units of its exact variance."""
    trials, covered = [Trial(20, 19, 30), Trial(50, 46, 10)], np.array([25, 10])
    expected = [
        (c - t.n_test * covered_mean(t.n, t.rank)) ** 2 / covered_variance(*t)
        for c, t in zip(covered, trials, strict=True)
    ]
    assert spread_test(covered, trials, 0.95).ratio == pytest.approx(np.mean(expected), rel=1e-12)


def test_false_alarms_of_the_spread_stay_within_the_level() -> None:
    """Honest trials are rejected at 5 % in 5 % of cases, within three standard errors."""
    trials, rng = [Trial(60, 55, 60)] * 10, np.random.default_rng(2)
    rejected = [not spread_test(simulated(trials, rng), trials, 0.95).within for _ in range(200)]
    assert np.mean(rejected) == pytest.approx(0.05, abs=3 * math.sqrt(0.05 * 0.95 / 200))


def test_spread_sees_trials_that_differ_too_much_or_too_little() -> None:
    """Calibration rows that are ten copies widen the spread; trials that share everything have none."""
    trials, rng = [Trial(1000, 901, 500)] * 60, np.random.default_rng(3)
    few = rng.beta(91, 10, 60)
    wide = spread_test(rng.binomial(500, few), trials, 0.95)
    none = spread_test(np.full(60, 450), trials, 0.95)
    assert wide.ratio is not None
    assert wide.ratio > 2.0
    assert not wide.within
    assert none.ratio == pytest.approx(0.0, abs=0.01)
    assert not none.within


def test_infinite_thresholds_have_no_spread() -> None:
    """Where every threshold is infinite there is nothing to test, and where some are they are left out."""
    endless, finite = Trial(5, math.inf, 20), Trial(50, 46, 20)
    nothing = spread_test(np.array([20, 20]), [endless, endless], 0.95)
    assert (nothing.ratio, nothing.p_value, nothing.within) == (None, 1.0, True)
    both = spread_test(np.array([20, 17]), [endless, finite], 0.95)
    assert both.ratio == spread_test(np.array([17]), [finite], 0.95).ratio


def test_the_simulated_p_value_repeats() -> None:
    """The same counts and seed give the same p-value."""
    trials, covered = [Trial(30, 28, 30)] * 8, np.array([25, 30, 28, 29, 26, 30, 21, 28])
    assert spread_test(covered, trials, 0.9, seed=4) == spread_test(covered, trials, 0.9, seed=4)


@pytest.mark.parametrize("coverages", [[0.9004], [1.1], [-0.1]])
def test_coverages_must_be_counts(coverages: list[float]) -> None:
    """A coverage that is no multiple of 1 / n_test in [0, 1] is refused."""
    with pytest.raises(ValueError, match=r"`coverages` must be counts of covered scores divided by `n_test`"):
        mean_coverage_test(coverages, 100, 0.1, n_test=100)


def test_errors_name_the_argument() -> None:
    """No trials, sizes that are no counts and levels outside (0, 1) are refused by name."""
    with pytest.raises(ValueError, match="`coverages` must hold at least one"):
        mean_coverage_test([], 100, 0.1, n_test=100)
    with pytest.raises(ValueError, match="`n_test` must be an integer of at least 1"):
        mean_coverage_test([1.0], 100, 0.1, n_test=0)
    with pytest.raises(ValueError, match="`level` must be strictly between 0 and 1"):
        mean_coverage_test([1.0], 100, 0.1, n_test=10, level=0.0)
