"""Guards over several checks, calls and groups: their decisions on fresh calls against exact bands."""

from __future__ import annotations

import numpy as np
import pytest
from guard_calls import call, quietly, reader
from guard_sessions import any_error, failing_sessions, share_band, share_with_error
from joint_trials import bad_calls, good_calls

from rag_confidence.conformal.validation.trials import mean_coverage_test
from rag_confidence.guard import Session, calibrate_groups

# A run of all these tests fails without a reason in less than 1 % of all seeds.
LEVEL = 0.999


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_all_checks_together_keep_the_level(rho: float) -> None:
    """The share of good calls that pass three checks of one guard lies in the exact band of its mean."""
    rng = np.random.default_rng([0x6B6, round(10 * rho)])
    shares, stopped = [], []
    for _ in range(100):
        guard = quietly(good_calls(rng, 99, rho).tolist())
        shares.append(float((good_calls(rng, 200, rho).max(axis=1) <= guard.threshold).mean()))
        stopped.append(float((bad_calls(rng, 200, rho).max(axis=1) > guard.threshold).mean()))
    assert mean_coverage_test(shares, 99, "0.1", n_test=200, level=LEVEL).within
    assert np.mean(stopped) > 0.5


@pytest.mark.parametrize(("n", "planned"), [(49, 5), (99, 1), (99, 2), (199, 20)])
def test_a_session_stops_any_good_call_as_rarely_as_it_says(n: int, planned: int) -> None:
    """The share of sessions that stop a good call lies in its exact band, whose centre is below alpha."""
    share = share_with_error(
        lambda rng: Session(quietly(rng.random(n).tolist()), planned),
        lambda rng: float(rng.random()),
        lambda result: not result.accepted,
        runs=400,
        seed=planned,
    )
    chance = any_error(n, "0.1", planned)
    low, high = share_band(chance, 400, LEVEL)
    assert chance <= 0.1
    assert low <= share <= high


def test_a_session_of_both_kinds_accepts_any_bad_call_as_rarely_as_it_says() -> None:
    """With beta the share of sessions that accept a bad call lies in the exact band of the bad threshold."""

    def made(rng: np.random.Generator) -> Session:
        good, bad = rng.random(99), 0.5 + rng.random(99)
        return Session(quietly(good.tolist(), bad.tolist(), beta="0.2"), 4)

    share = share_with_error(
        made, lambda rng: float(0.5 + rng.random()), lambda result: result.accepted, runs=400, seed=4
    )
    chance = any_error(99, "0.2", 4)
    low, high = share_band(chance, 400, LEVEL)
    assert chance <= 0.2
    assert low <= share <= high


def test_a_session_of_both_kinds_rejects_any_good_call_as_rarely_as_it_says() -> None:
    """Where the good threshold decides, the share of sessions that reject a good call is in its band."""

    def made(rng: np.random.Generator) -> Session:
        return Session(quietly(rng.random(99).tolist(), rng.random(99).tolist(), beta="0.8"), 4)

    share = share_with_error(
        made, lambda rng: float(rng.random()), lambda result: result.decision == "reject", runs=400, seed=5
    )
    low, high = share_band(any_error(99, "0.1", 4), 400, LEVEL)
    assert low <= share <= high


def test_sessions_with_failing_scorers_keep_the_bound_that_they_state() -> None:
    """P(there is a session and a good call of it is stopped) stays at alpha or below."""
    both, _ = failing_sessions(100, 5, 0.02, runs=500, seed=1)
    assert both <= 0.1


def test_each_group_is_stopped_as_often_as_its_level_says() -> None:
    """Of one new call a group and guard, the share that is abstained on lies in its exact band."""
    rng = np.random.default_rng(0x6B7)
    levels = {"read": "0.2", "write": "0.05"}
    stopped: dict[str, list[bool]] = {name: [] for name in levels}
    for _ in range(400):
        data = [(call(score, tool="read"), True) for score in rng.random(24).tolist()]
        data += [(call(3.0 * score, tool="write"), True) for score in rng.random(39).tolist()]
        guard = calibrate_groups(reader(0), data, lambda one: one.tool_name, levels=levels)
        stopped["read"].append(not guard.decide(call(float(rng.random()), tool="read")).accepted)
        stopped["write"].append(not guard.decide(call(float(3.0 * rng.random()), tool="write")).accepted)
    for name, level in levels.items():
        low, high = share_band(float(level), 400, LEVEL)
        assert low <= np.mean(stopped[name]) <= high
