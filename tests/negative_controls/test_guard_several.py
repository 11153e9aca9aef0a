"""Several checks, calls and groups used in ways that break their bounds, which the same bands flag."""

from __future__ import annotations

import numpy as np
from guard_calls import call, quietly, reader
from guard_sessions import failing_sessions
from guard_trials import mean_band
from joint_trials import Array, good_calls
from numpy.typing import NDArray

from rag_confidence.conformal.validation.trials import mean_coverage_test
from rag_confidence.guard import Session, calibrate_groups

LEVEL = 0.999


def test_a_guard_for_each_check_fails_the_band_of_one_for_all() -> None:
    """Three guards at alpha each stop far more good calls together than alpha."""
    rng = np.random.default_rng(0x6B8)
    shares = []
    for _ in range(40):
        rows, new = good_calls(rng, 99, 0.5), good_calls(rng, 200, 0.5)
        each = [quietly(column.tolist()).threshold for column in rows.T]
        shares.append(float((new <= each).all(axis=1).mean()))
    found = mean_coverage_test(shares, 99, "0.1", n_test=200, level=LEVEL)
    assert found.mean < found.low - 0.05


def test_a_second_session_spends_the_level_again() -> None:
    """Who begins another session when one is over makes nearly twice as many errors."""
    rng = np.random.default_rng(0x6B9)
    sessions = [Session(quietly(rng.random(99).tolist()), 5) for _ in range(200)]
    assert np.mean([1.0 - one.threshold**5 for one in sessions]) <= 0.1
    assert np.mean([1.0 - one.threshold**10 for one in sessions]) > 0.15


def test_given_that_there_is_a_session_failing_scorers_break_its_level() -> None:
    """Sets that support a session hold fewer failed calls than there are in use: the others count as kept."""
    both, given = failing_sessions(100, 5, 0.02, runs=500, seed=1)
    assert both <= 0.1 < 0.13 < given


def test_a_rule_that_was_chosen_by_its_outcome_breaks_the_level_of_its_group() -> None:
    """Of twenty rules that mean nothing, the one that gives a group its lowest threshold stops too many."""
    rng = np.random.default_rng(0x6BA)
    fixed, chosen = [], []
    for _ in range(100):
        scores = rng.random(98)
        rules = [rng.permutation(98) < 49 for _ in range(20)]
        best = min(rules, key=lambda inside: float(np.sort(scores[inside])[44]))
        fixed.append(stopped_by(scores, rules[0]))
        chosen.append(stopped_by(scores, best))
    low, high = mean_band(49, 0.1, 100)
    assert low <= np.mean(fixed) <= high
    assert np.mean(chosen) > high + 0.02


def stopped_by(scores: Array, inside: NDArray[np.bool_]) -> float:
    """Share of new calls with uniform scores that are abstained on in the group of these rows."""
    pairs = zip(scores.tolist(), inside.tolist(), strict=True)
    data = [(call(score, tool="in" if belongs else "out"), True) for score, belongs in pairs]
    found = calibrate_groups(reader(0), data, lambda one: one.tool_name, levels={"in": "0.1", "out": "0.1"})
    return 1.0 - found.calibrators["in"].threshold
