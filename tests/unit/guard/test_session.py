"""One error budget for a planned number of calls."""

from __future__ import annotations

import asyncio
import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import pytest
from guard_calls import call, labelled, quietly, reader
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuse

from rag_confidence._types import Decision
from rag_confidence.errors import CalibrationRefused, SessionExhausted
from rag_confidence.guard.calibration import calibrate
from rag_confidence.guard.result import GuardReason
from rag_confidence.guard.session import Session
from rag_confidence.guard.wrapping import wrap

GOOD = [float(score) for score in range(1, 100)]


def session(calls: int, **options: Any) -> Session:
    """A session over 99 good calls at alpha .1."""
    return Session(quietly(GOOD), calls, **options)


@given(st.integers(1, 10))
def test_each_call_gets_its_part_of_the_level(calls: int) -> None:
    """The threshold is that of the calibrator at alpha / calls, exactly."""
    each = quietly(GOOD).at_level(Fraction(1, 10) / calls)
    assert session(calls).threshold == each.threshold
    assert session(calls).fingerprint == each.fingerprint


@pytest.mark.parametrize("n", [9, 10, 19, 99, 100, 109])
def test_a_plan_ends_where_n_supports_it(n: int) -> None:
    """T calls are possible exactly as long as T <= alpha (n + 1), and the refusal says so."""
    calibrator = quietly([float(at) for at in range(n)])
    most = (n + 1) // 10
    assert Session(calibrator, most).threshold < float("inf")
    said = refuse(CalibrationRefused, "^`calls` must be at most", lambda: Session(calibrator, most + 1))
    assert f"at most {most} with {n} good" in said
    assert f"at least {10 * (most + 1) - 1} good" in said


def test_failed_calibration_calls_shorten_the_plan() -> None:
    """With f failed calls a plan needs T <= alpha (n + 1) / (f + 1)."""
    calibrator = quietly([*GOOD, float("inf")])
    assert Session(calibrator, 5).remaining == 5
    refuse(CalibrationRefused, "on 1 of which a scorer failed", lambda: Session(calibrator, 6))


def test_bad_calls_must_support_the_plan_too() -> None:
    """With beta the bad calls are counted in the same way."""
    calibrator = quietly(GOOD, [50.0 + at for at in range(19)], beta=0.1)
    assert Session(calibrator, 2).calls == 2
    refuse(CalibrationRefused, "at most 2 with 19 bad", lambda: Session(calibrator, 3))


def test_calls_are_spent_whatever_the_decision() -> None:
    """An abstained call counts, and the call after the last raises before anything is judged."""
    asked = []

    def watched(context: Any) -> float:
        asked.append(context)
        return float(context.args["s0"])

    plan = Session(calibrate(watched, labelled(GOOD), 0.1), 2)
    asked.clear()
    assert plan.decide(call(1000.0)).decision is Decision.ABSTAIN
    assert plan.decide(call(1.0)).accepted
    assert (plan.spent, plan.remaining) == (2, 0)
    refuse(SessionExhausted, "^`calls` must be at least", lambda: plan.decide(call(1.0)))
    assert len(asked) == 2


def test_every_decision_states_the_guarantee_of_the_session() -> None:
    """Results carry the bound of all calls together, with its own words and without a claim on the task."""
    found = session(5).decide(call(1.0)).guarantee
    assert found is not None
    assert found.kind == "session"
    assert (found.holds, found.bound, found.alpha) == (True, 0.1, 0.1)
    assert "among 5 calls" in found.event
    assert "among all of them any good one is abstained on with probability 10 % at most" in found.sentence
    assert "trajectory" in found.not_claimed[0]
    assert not any("several calls" in text for text in found.not_claimed)


def test_sets_that_support_no_session_are_said_to_count_as_no_error() -> None:
    """Failing scorers let chance refuse a session, so the bound does not hold given that there is one."""
    one = session(5).guarantee
    assert "one that supports no such session counting as no error" in one.sentence
    assert "one that supports no such session counting as no error" in one.conditioning
    assert sum("scorers often fail" in text for text in one.not_claimed) == 1
    both = Session(quietly(GOOD, [50.0 + at for at in range(99)], beta=0.2), 4).guarantee
    assert "no such session" not in both.sentence
    assert not any("scorers often fail" in text for text in both.not_claimed)


def test_a_plan_cannot_be_made_longer() -> None:
    """The number of planned calls is fixed when the session begins."""
    with pytest.raises(AttributeError):
        session(2).calls = 3  # type: ignore[misc]


@pytest.mark.parametrize("doubled", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_session_cannot_be_spent_twice(doubled: Any) -> None:
    """Copies and pickles are refused: each would have all calls that are left."""
    refuse(TypeError, "^`session` must be shared", lambda: doubled(session(2)))


def test_a_session_of_both_kinds_bounds_bad_calls() -> None:
    """With beta the event is a bad call that is accepted."""
    calibrator = quietly(GOOD, [50.0 + at for at in range(99)], beta=0.2)
    found = Session(calibrator, 4).guarantee
    assert (found.bound, found.alpha_reject) == (0.2, 0.1)
    assert "a bad call is ACCEPTED" in found.event
    assert "any bad one is accepted with probability 20 % at most" in found.sentence


def test_another_level_may_be_asked_of_a_session() -> None:
    """alpha and beta replace those of the calibrator."""
    plan = session(2, alpha="0.2")
    assert plan.threshold == quietly(GOOD).threshold
    assert plan.guarantee.bound == 0.2


def test_threads_never_spend_more_than_the_plan() -> None:
    """Of forty calls from eight threads exactly nine are judged."""
    plan = session(9)

    def one(_: int) -> bool:
        try:
            plan.decide(call(1.0))
        except SessionExhausted:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(one, range(40))) == 9


def test_a_session_guards_a_tool() -> None:
    """wrap() takes a session, and the tool does not run beyond the plan."""
    ran = []
    tool = wrap(ran.append, session(2), context_builder=lambda score: call(score), tool_name="search")
    assert tool(1.0).executed
    assert not tool(1000.0).executed
    with pytest.raises(SessionExhausted):
        tool(1.0)
    assert ran == [1.0]


def test_a_tool_that_is_judged_afterwards_does_not_run_beyond_the_plan() -> None:
    """With mode="after" a call is spent before the tool runs, so that no output is lost."""
    ran = []
    tool = wrap(
        ran.append, session(1), context_builder=lambda score: call(score), mode="after", tool_name="search"
    )
    assert tool(1.0).executed
    with pytest.raises(SessionExhausted):
        tool(1.0)
    assert ran == [1.0]


def test_awaited_scorers_work_in_a_session() -> None:
    """adecide spends in the same way."""
    plan = session(1)
    assert asyncio.run(plan.adecide(call(1.0))).accepted
    with pytest.raises(SessionExhausted):
        asyncio.run(plan.adecide(call(1.0)))


def test_a_tool_of_another_name_gets_no_guarantee() -> None:
    """Where no calibration applies, the session adds none."""
    calibrator = quietly(GOOD, tool_names=["search"])
    found = Session(calibrator, 1).decide(call(1.0, tool="pay"))
    assert found.reason_code is GuardReason.OTHER_TOOL
    assert found.guarantee is None


@pytest.mark.parametrize("calls", [0, -1, 1.5, True, "3", None])
def test_a_plan_is_a_count(calls: Any) -> None:
    """Only integers from 1 are a plan."""
    refuse((TypeError, ValueError), "^`calls` must be an integer", lambda: session(calls))


def test_only_calibrators_have_levels_to_divide() -> None:
    """A function or another session is refused."""
    refuse(TypeError, "^`calibrator` must be a Calibrator; got function", lambda: Session(reader, 1))  # type: ignore[arg-type]
    refuse(TypeError, "got Session", lambda: Session(session(1), 1))  # type: ignore[arg-type]
    refuse(ValueError, "^`beta` must be None without bad calls", lambda: session(1, beta=0.1))
