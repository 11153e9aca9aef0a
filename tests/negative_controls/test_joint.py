"""What breaks the joint bound is seen by the same bands: the validator is not blind."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from joint_trials import Fitted, Outcome, Sizes, Trial, mean_band, run, trials_of, with_failures

from rag_confidence.conformal.joint.checks import fit_naive_checks
from rag_confidence.conformal.joint.fit import fit_joint_gate
from rag_confidence.conformal.joint.traffic import TrafficRanks, fit_traffic
from rag_confidence.errors import SmallCalibrationWarning

SIZES = Sizes(trials=100)


def raw(trial: Trial) -> Fitted:
    """The joint gate on raw scores."""
    return fit_joint_gate(trial.calibration, "0.1")


def naive(trial: Trial) -> Fitted:
    """Each check at alpha."""
    return fit_naive_checks(trial.calibration, "0.1")


def shifted(trial: Trial, by: float) -> Trial:
    """Good calls that have become stranger since the calibration, in every check."""
    return Trial(trial.calibration, trial.traffic, trial.good + by, trial.bad)


def one(fit: object, trials: list[Trial], sizes: Sizes = SIZES) -> Outcome:
    """What one method does."""
    return run(trials, {"it": fit}, sizes)["it"]  # type: ignore[dict-item]


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_naive_thresholds_fail_the_band(rho: float) -> None:
    """Thresholds at alpha a check cover far less than 1 - alpha, even at a correlation of .9."""
    low, _ = mean_band(SIZES.n, "0.1", SIZES)
    assert one(naive, trials_of(rho, SIZES)).coverage < low - 0.03


@pytest.mark.parametrize(("by", "seen"), [(0.0, False), (0.05, True), (0.5, True)])
def test_a_shift_of_the_good_calls_is_seen(by: float, seen: bool) -> None:
    """A shift by a twentieth of a deviation already leaves the band of the mean; no shift does not."""
    trials = [shifted(trial, by) for trial in trials_of(0.5, SIZES)]
    low, _ = mean_band(SIZES.n, "0.1", SIZES)
    assert (one(raw, trials).coverage < low) == seen


def test_the_band_of_one_trial_would_not_see_it() -> None:
    """Holding a mean of 100 trials against the band of one trial lets that shift pass: it is too wide."""
    trials = [shifted(trial, 0.05) for trial in trials_of(0.5, SIZES)]
    low, _ = mean_band(SIZES.n, "0.1", Sizes(trials=1), level=0.95)
    assert one(raw, trials).coverage > low


class RankedAmongItself:
    """The mistake that `fit_joint_gate` refuses: the calibration rows are the traffic."""

    def __init__(self, trial: Trial) -> None:
        self.ranks: TrafficRanks = fit_traffic(trial.calibration, ("a", "b", "c"))
        self.gate = fit_joint_gate(self.ranks.of(trial.calibration), "0.1")

    def predict(self, rows: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> object:
        """The decisions on ranks."""
        return self.gate.predict(self.ranks.of(rows))


def test_ranks_among_the_calibration_rows_fail_the_band() -> None:
    """Traffic that is the calibration set makes good calls look stranger than they are."""
    sizes = Sizes(n=20, test=200, trials=200)
    low, _ = mean_band(20, "0.1", sizes)
    assert one(RankedAmongItself, trials_of(0.0, sizes), sizes).coverage < low - 0.01


def test_near_copies_of_the_calibration_rows_fail_the_band() -> None:
    """Retries in the traffic, the same calls with other last digits, are not refused and break the bound."""

    def beside_retries(trial: Trial) -> Fitted:
        rng = np.random.default_rng([0x906, 0])
        retries = trial.calibration + 1e-6 * rng.standard_normal(trial.calibration.shape)
        return fit_joint_gate(trial.calibration, "0.1", reference=retries)

    sizes = Sizes(n=20, test=200, trials=200)
    low, _ = mean_band(20, "0.1", sizes)
    assert one(beside_retries, trials_of(0.0, sizes), sizes).coverage < low - 0.01


def test_infinite_thresholds_fail_the_band_where_they_count() -> None:
    """Where checks often fail to run, the plain rate of abstention exceeds alpha by far; the bound is on a
    finite threshold and an abstention together."""
    sizes = Sizes(n=100, traffic=100, test=200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SmallCalibrationWarning)
        found = one(raw, with_failures(trials_of(0.5, sizes, seed=4), 0.03), sizes)
    low, _ = mean_band(100, "0.1", sizes)
    assert found.coverage < low - 0.1
    assert found.bounded_coverage >= low


def test_calibrating_on_accepted_calls_only_fails_the_band() -> None:
    """A second calibration on what the first gate accepted covers about (1 - alpha) squared."""

    def again(trial: Trial) -> Fitted:
        accepted = fit_joint_gate(trial.traffic, "0.1").predict(trial.calibration).accepted
        return fit_joint_gate(trial.calibration[accepted], "0.1")

    low, _ = mean_band(SIZES.n, "0.1", SIZES)
    assert one(again, trials_of(0.5, SIZES)).coverage < low - 0.05
