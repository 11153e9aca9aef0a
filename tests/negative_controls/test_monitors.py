"""Designs that ring too often are caught by the same limits that the monitors pass."""

from __future__ import annotations

import numpy as np
import pytest
import reference_monitors as ref

from rag_confidence.conformal.monitor.drift import DriftMonitor
from rag_confidence.conformal.monitor.risk_monitor import RiskMonitor
from rag_confidence.conformal.quantile import conformal_rank


@pytest.mark.parametrize("rate", [0.01, 0.05])
def test_ranks_against_a_fixed_calibration_set_ring_too_often(rate: float) -> None:
    """The same martingale on ranks among 100 fixed scores, taken as independent, exceeds the claim; on
    sequential ranks of the same scores it does not."""
    rng = np.random.default_rng(1)
    scores = rng.random((400, 100 + 500))
    fixed = ref.log_capital(ref.normal_factors(ref.fixed_p_values(scores, 100, rng)))
    joined = ref.log_capital(ref.normal_factors(ref.sequential_p_values(scores, 100, rng)))
    counts = {"fixed": ref.alarms(fixed, rate), "sequential": ref.alarms(joined, rate)}
    print(f"alarms in 400 runs of 500 at {100 * rate:g} %:", counts)
    assert ref.exceeds(counts["fixed"], 400, rate)
    assert not ref.exceeds(counts["sequential"], 400, rate)


def test_a_fixed_calibration_set_gets_worse_with_time() -> None:
    """The longer the run, the more often the fixed design has rung: its p-values share one accident."""
    rng = np.random.default_rng(2)
    evidence = ref.log_capital(ref.normal_factors(ref.fixed_p_values(rng.random((400, 550)), 50, rng)))
    shares = [ref.alarms(evidence[:, :length], 0.01) / 400 for length in (100, 200, 500)]
    print("share of runs with an alarm after 100, 200, 500 scores at 1 %:", shares)
    assert shares[0] < shares[1] < shares[2]
    assert shares[2] > 0.2


def test_a_sum_over_starting_points_without_weights_rings_too_often() -> None:
    """Shiryaev-Roberts is no martingale: Ville's limit does not hold for it."""
    p_values = np.random.default_rng(3).random((400, 500))
    alarms = ref.alarms(ref.shiryaev_roberts(ref.normal_factors(p_values)), 0.05)
    print(f"Shiryaev-Roberts: {alarms} of 400 at 5 %")
    assert ref.exceeds(alarms, 400, 0.05)


def test_ties_without_a_random_draw_ring_too_often() -> None:
    """Ranks that count all ties as above are not uniform: exchangeable scores with ties ring."""
    rng = np.random.default_rng(4)
    scores = rng.choice([0.2, 0.5, 0.9], (200, 300))
    ranks = [(scores[:, : n + 1] >= scores[:, [n]]).mean(axis=1) for n in range(300)]
    p_values = np.clip(np.stack(ranks, axis=1), 1e-6, 1.0 - 1e-6)
    assert ref.exceeds(ref.alarms(ref.log_capital(ref.normal_factors(p_values)), 0.05), 200, 0.05)


def test_a_marginal_gate_monitored_against_its_own_level_rings_too_often() -> None:
    """Almost half of these calibration sets have a false sufficiency rate above alpha; a monitor tells."""
    k = int(conformal_rank(100, "0.1"))
    rates = np.random.default_rng(5).beta(101 - k, k, 400)
    accepted = np.random.default_rng(6).random((400, 1500)) < rates[:, None]
    alarms = ref.alarms(ref.log_capital(ref.odds_factors(accepted, 0.1)), 0.05)
    print(f"{alarms} of 400 marginal gates ring at alpha; {(rates > 0.1).mean():.0%} are above it")
    assert ref.exceeds(alarms, 400, 0.05)


def test_every_score_twice_rings_too_often() -> None:
    """Scores that depend on each other, such as retries, are not exchangeable, and ring without any drift."""
    runs = np.random.default_rng(8).random((200, 200)).repeat(2, axis=1)
    alarms = sum(
        DriftMonitor(false_alarm_rate=0.05, seed=seed).update_many(run).alarm for seed, run in enumerate(runs)
    )
    print(f"pairs of equal scores: {alarms} of 200 runs ring at 5 %")
    assert ref.exceeds(alarms, 200, 0.05)


def test_outcomes_in_fives_at_the_target_ring_too_often() -> None:
    """Rows of one session share their outcome: the overall risk is the target, that given the past is not."""
    streams = (np.random.default_rng(9).random((100, 200)) < 0.1).repeat(5, axis=1)
    alarms = sum(RiskMonitor(0.1).update_many(stream).alarm for stream in streams)
    print(f"outcomes in fives: {alarms} of 100 streams ring at 5 %; {streams.mean():.3f} are bad")
    assert ref.exceeds(alarms, 100, 0.05)


def test_labels_that_come_sooner_for_bad_answers_ring_too_often() -> None:
    """At a risk that is the target, monitors ring if the bad ones of every hundred outcomes come first."""
    bad = np.random.default_rng(10).random((200, 10, 100)) < 0.1
    first = np.sort(bad, axis=2)[:, :, ::-1].reshape(200, 1000)
    as_they_came, sorted_ones = (
        ref.alarms(ref.log_capital(ref.odds_factors(stream, 0.1)), 0.05)
        for stream in (bad.reshape(200, 1000), first)
    )
    print(f"labels of bad answers first: {sorted_ones} of 200 at 5 %, and {as_they_came} as they came")
    assert ref.exceeds(sorted_ones, 200, 0.05)
    assert not ref.exceeds(as_they_came, 200, 0.05)


def test_a_risk_one_fifth_above_the_target_is_told_from_the_target() -> None:
    """The limits are sharp enough to catch streams whose risk is 1.2 times what is allowed."""
    bad = np.random.default_rng(7).random((400, 2000)) < 0.12
    alarms = ref.alarms(ref.log_capital(ref.odds_factors(bad, 0.1)), 0.05)
    print(f"{alarms} of 400 streams at 1.2 times the target")
    assert ref.exceeds(alarms, 400, 0.05)


@pytest.mark.parametrize(
    ("runs", "claimed", "least"),
    [(150, 0.05, 0.134), (250, 0.05, 0.112), (300, 0.05, 0.107), (400, 0.01, 0.04), (1000, 0.01, 0.025)],
)
def test_the_limits_see_an_excess_of_this_size(runs: int, claimed: float, least: float) -> None:
    """The smallest share of alarms that is flagged, for the numbers of runs used here."""
    assert ref.least_flagged(runs, claimed) / runs <= least
