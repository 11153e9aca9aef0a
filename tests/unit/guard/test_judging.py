"""Decisions on scores: every reason, and never an accept of what could not be scored."""

from __future__ import annotations

import math
from typing import Any

import pytest
from guard_calls import INF, call, quietly, reader
from hypothesis import given
from hypothesis import strategies as st
from refusals import quiet

from rag_confidence._types import Decision
from rag_confidence.conformal.joint.fit import fit_joint_gate
from rag_confidence.guard.calibrator import Calibrator
from rag_confidence.guard.result import GuardReason, GuardResult

ACCEPT, REJECT, ABSTAIN = Decision.ACCEPT, Decision.REJECT, Decision.ABSTAIN
TWENTY = [at / 20 for at in range(20)]
GRID = st.integers(-3, 5).map(float)
FAILING = st.one_of(GRID, GRID, GRID, st.just(INF))


def rows_of(checks: int, low: int = 1, high: int = 14) -> st.SearchStrategy[list[list[float]]]:
    """Score tables (n, checks)."""
    return st.lists(st.lists(FAILING, min_size=checks, max_size=checks), min_size=low, max_size=high)


def outcome(result: GuardResult) -> tuple[Decision, GuardReason]:
    """What a test asks for most often."""
    return result.decision, result.reason_code


@given(rows_of(2), rows_of(2), st.sampled_from(["0.5", "0.3", "0.1"]), st.booleans())
def test_it_decides_as_the_joint_gate_does(
    good: list[list[float]], rows: list[list[float]], alpha: str, ranked: bool
) -> None:
    """Threshold, decision, statistic and failed checks are those of the gate, raw and as ranks."""
    reference = [[at / 3, -at / 5] for at in range(-9, 18)]
    with quiet():
        gate = fit_joint_gate(
            good, alpha, reference=reference if ranked else None, names=["check_0", "check_1"]
        )
    traffic = [call(*row) for row in reference] if ranked else None
    calibrator = quietly(good, alpha=alpha, reference=traffic)
    assert calibrator.threshold == gate.threshold
    for row in rows:
        expected, found = gate.predict_one(row), calibrator.decide(call(*row))
        assert found.decision == expected.decision
        assert (found.statistic, found.threshold) == (expected.statistic, expected.threshold)
        assert found.failed_checks == expected.failed_checks


@given(st.lists(FAILING, min_size=1, max_size=14), st.lists(FAILING, min_size=1, max_size=14), st.booleans())
def test_scores_made_elsewhere_get_the_same_decision(good: list[float], rows: list[float], two: bool) -> None:
    """`decide_scores` on the scores of a call says what `decide` says, for one kind of calls and for two."""
    options: dict[str, Any] = {"bad": [0.0, 1.0, 2.0, INF], "beta": "0.5"} if two else {}
    calibrator = quietly(good, alpha="0.3", **options)
    for score in rows:
        one, other = calibrator.decide(call(score)), calibrator.decide_scores({"check_0": score})
        assert (outcome(one), one.failed_checks, one.statistic) == (
            outcome(other),
            other.failed_checks,
            other.statistic,
        )
        assert {**one.scores} == {**other.scores} == {"check_0": score}


@given(st.lists(FAILING, min_size=1, max_size=12), st.lists(FAILING, min_size=0, max_size=12), FAILING)
def test_what_could_not_be_scored_is_never_accepted(
    good: list[float], bad: list[float], score: float
) -> None:
    """A failed scorer abstains, whatever the calibration: it is neither accepted nor rejected."""
    options: dict[str, Any] = {"bad": bad, "beta": "0.5"} if bad else {}
    calibrator = quietly([[one, 0.0] for one in good], **{**options, "bad": [[one, 0.0] for one in bad]})
    result = calibrator.decide(call(score, INF))
    assert result.decision is ABSTAIN
    assert "check_1 raised ConnectionError: no answer" in result.reason
    assert [*result.failed_scorers] == [f"check_{at}" for at, one in enumerate((score, INF)) if one == INF]


@pytest.mark.parametrize("checks", [1, 2])
@pytest.mark.parametrize("odd", [math.nan, "0.1", None, True, -INF])
def test_no_odd_score_is_accepted(odd: Any, checks: int) -> None:
    """NaN, texts, None, booleans and -inf abstain, and the reason names the scorer."""
    scorers = [reader(at) for at in range(checks)]
    calibrator = quietly([[score] * checks for score in TWENTY], scorers=scorers)
    result = calibrator.decide(call(*[0.0] * (checks - 1), odd))
    assert outcome(result) == (ABSTAIN, GuardReason.SCORER_FAILED)
    assert f"check_{checks - 1} returned" in result.reason
    assert result.failed_checks == (f"check_{checks - 1}",)


def test_an_infinite_threshold_accepts_nothing() -> None:
    """With too few calls, or 15 % failed ones, every call abstains and the reason says what is missing."""
    for calibrator in (quietly(TWENTY[:5]), quietly([*TWENTY[:17], *[INF] * 3])):
        assert math.isinf(calibrator.threshold)
        for score in (-1e300, 0.0, 1e300):
            result = calibrator.decide(call(score))
            assert outcome(result) == (ABSTAIN, GuardReason.INFINITE_THRESHOLD)
            assert result.failed_checks == ()
            assert result.guarantee is not None
            assert not result.guarantee.holds
            assert "Nothing is claimed and every call abstains" in result.reason
    assert "missing: 4" in quietly(TWENTY[:5]).decide(call(0.0)).reason


def test_an_infinite_threshold_still_names_failed_scorers() -> None:
    """Both reasons are there where both hold."""
    result = quietly(TWENTY[:5]).decide(call(INF))
    assert outcome(result) == (ABSTAIN, GuardReason.INFINITE_THRESHOLD)
    assert "check_0 raised ConnectionError" in result.reason
    assert result.failed_scorers == {"check_0": "check_0 raised ConnectionError: no answer"}


def test_the_checks_above_the_threshold_are_named() -> None:
    """The reason and `failed_checks` name those above, in the order of the scorers."""
    calibrator = quietly([[score, score, score] for score in TWENTY])
    result = calibrator.decide(call(5.0, 0.0, 7.0))
    assert result.failed_checks == ("check_0", "check_2")
    assert (
        result.reason == "These checks find the call stranger than good calls usually are: check_0, check_2."
    )
    one = calibrator.decide(call(5.0, 0.0, 0.0))
    assert one.reason == "This check finds the call stranger than good calls usually are: check_0."


def test_two_kinds_have_a_decision_between() -> None:
    """Low scores are accepted, high ones rejected, and those that both kinds have abstain."""
    calibrator = quietly([at / 20 for at in range(20)], [0.5 + at / 20 for at in range(20)], beta="0.1")
    assert calibrator.thresholds.bad_from == 0.55
    assert calibrator.reject_above == calibrator.thresholds.good_to == 0.9
    found = [outcome(calibrator.decide(call(score))) for score in (0.5, 0.55, 0.7, 0.9, 0.95)]
    assert found == [
        (ACCEPT, GuardReason.ACCEPTED),
        *[(ABSTAIN, GuardReason.BETWEEN)] * 3,
        (REJECT, GuardReason.ABOVE_THRESHOLD),
    ]
    assert "as strange as bad calls" in calibrator.decide(call(0.95)).reason
    assert calibrator.decide(call(0.95)).failed_checks == ("check_0",)


def test_a_call_that_is_like_neither_kind_is_a_conflict() -> None:
    """Where the kinds lie apart, a score between them is excluded by both and abstains."""
    calibrator = quietly(TWENTY, [5.0 + at for at in range(20)], beta="0.1")
    found = [outcome(calibrator.decide(call(score))) for score in (0.9, 0.91, 5.99, 6.0)]
    assert found == [
        (ACCEPT, GuardReason.ACCEPTED),
        *[(ABSTAIN, GuardReason.CONFLICT)] * 2,
        (REJECT, GuardReason.ABOVE_THRESHOLD),
    ]


def test_missing_calls_of_one_kind_abstain_only_where_they_are_needed() -> None:
    """Too few bad calls: rejects go on, nothing is accepted. Too few good ones: the other way round."""
    few_bad = quietly(TWENTY, [5.0], beta="0.1")
    assert outcome(few_bad.decide(call(0.0))) == (ABSTAIN, GuardReason.INFINITE_THRESHOLD)
    assert outcome(few_bad.decide(call(0.95))) == (REJECT, GuardReason.ABOVE_THRESHOLD)
    assert "missing: 8" in few_bad.decide(call(0.0)).reason
    few_good = quietly([0.1], [5.0 + at for at in range(20)], beta="0.1")
    assert outcome(few_good.decide(call(0.0))) == (ACCEPT, GuardReason.ACCEPTED)
    assert outcome(few_good.decide(call(50.0))) == (ABSTAIN, GuardReason.INFINITE_THRESHOLD)


def test_another_tool_abstains_before_any_scorer_runs() -> None:
    """A calibrator for named tools judges no other, claims nothing about it, and asks no scorer."""
    calibrator = quietly(TWENTY, tool_names=["search"])
    result = calibrator.decide(call(0.0, tool="mail"))
    assert outcome(result) == (ABSTAIN, GuardReason.OTHER_TOOL)
    assert result.reason == "This call was not judged: the calibration is for search, and not for mail."
    assert (result.statistic, result.guarantee, {**result.scores}) == (None, None, {})
    assert outcome(calibrator.decide_scores({"check_0": 0.0}, call(0.0, tool="mail")))[0] is ABSTAIN
    assert calibrator.decide(call(0.0)).accepted


def test_results_share_nothing_that_can_be_changed() -> None:
    """Changing the mappings of one result changes no other one."""
    calibrator: Calibrator = quietly(TWENTY)
    first: Any = calibrator.decide(call(0.0))
    first.failed_scorers["x"], first.scores["x"] = "changed", 1.0
    second = calibrator.decide(call(0.0))
    assert ({**second.failed_scorers}, {**second.scores}) == ({}, {"check_0": 0.0})


def test_a_rejection_names_the_checks_that_reject() -> None:
    """A check between the cuts is above the threshold, but does not find the call as strange as bad ones."""
    calibrator = quietly([[x, x] for x in TWENTY], [[0.5 + x, 0.5 + x] for x in TWENTY], beta="0.1")
    result = calibrator.decide(call(0.7, 0.95))
    assert (result.decision, result.failed_checks) == (REJECT, ("check_0", "check_1"))
    assert "strange as bad calls are: check_1." in result.reason


def test_a_reason_compares_with_no_kind_that_is_too_small() -> None:
    """Five bad calls do not say what bad calls are like, nor does one good call for good ones."""
    few_bad = quietly(TWENTY, [5.0], beta="0.1")
    assert "bad" not in few_bad.decide(call(0.95)).reason
    few_good = quietly([0.1], [5.0 + at for at in range(20)], beta="0.1")
    assert "no stranger than good" not in few_good.decide(call(0.0)).reason
