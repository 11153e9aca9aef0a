"""calibrate(): the threshold of good calls, by the definition, whatever the order and the way of scoring."""

from __future__ import annotations

import asyncio
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from guard_calls import INF, call, labelled, quietly, reader, readers
from hypothesis import given
from hypothesis import strategies as st
from refusals import quiet

from rag_confidence._calls import CallRecord, ToolCallContext
from rag_confidence.errors import RowsReused
from rag_confidence.guard.calibration import acalibrate, calibrate, calibrate_multi_check, decide_multi_check
from rag_confidence.guard.scorers import Scorer

SCORES = st.lists(
    st.one_of(st.floats(-5, 5), st.integers(0, 3).map(float), st.just(INF)), min_size=1, max_size=30
)
ALPHAS = st.sampled_from(["0.5", "1/3", "0.2", "0.1", "0.07"])


@given(SCORES, ALPHAS)
def test_the_threshold_is_the_exact_order_statistic(good: list[float], alpha: str) -> None:
    """The k-th smallest score of the good calls, k = ceil((n + 1)(1 - alpha)) in fractions."""
    k = math.ceil((len(good) + 1) * (1 - Fraction(alpha)))
    expected = sorted(good)[k - 1] if k <= len(good) else INF
    assert quietly(good, alpha=alpha).threshold == expected


@given(SCORES, st.lists(st.floats(-5, 5), max_size=10), st.randoms())
def test_neither_order_nor_bad_calls_change_the_threshold(
    good: list[float], bad: list[float], random: Any
) -> None:
    """Calls can come in any order, and bad ones only say how many are stopped."""
    data = labelled(good, bad)
    random.shuffle(data)
    with quiet():
        shuffled = calibrate(reader(0), data, "0.2")
    plain = quietly(good, alpha="0.2")
    assert shuffled.threshold == plain.threshold
    assert np.array_equal(shuffled.good, plain.good)
    assert (shuffled.n_good, shuffled.n_bad) == (len(good), len(bad))


@given(SCORES, st.lists(st.floats(-5, 5), min_size=1, max_size=10))
def test_awaited_scorers_give_the_same_calibrator(good: list[float], bad: list[float]) -> None:
    """`acalibrate` with an async scorer equals `calibrate` with the plain one."""

    async def slow(context: ToolCallContext) -> float:
        await asyncio.sleep(0)
        return reader(0).function(context)  # type: ignore[return-value]

    data = labelled(good, bad)
    with quiet():
        plain = calibrate(reader(0), data, "0.2", beta="0.3")
        awaited = asyncio.run(acalibrate(Scorer("check_0", slow, version="1"), data, "0.2", beta="0.3"))
    assert (awaited.fingerprint, awaited.notes) == (plain.fingerprint, plain.notes)


@given(st.lists(st.floats(-5, 5), min_size=4, max_size=20), ALPHAS)
def test_of_all_good_calls_left_out_in_turn_few_abstain(good: list[float], alpha: str) -> None:
    """The proof by exchangeability: at most alpha (n + 1) of n + 1 calls are stopped by the other n."""
    stopped = 0
    for at, score in enumerate(good):
        calibrator = quietly([*good[:at], *good[at + 1 :]], alpha=alpha)
        stopped += calibrator.thresholds.accepts and not calibrator.decide(call(score)).accepted
    assert stopped <= Fraction(alpha) * len(good)


@given(
    st.lists(st.floats(-5, 5), min_size=3, max_size=12), st.lists(st.floats(-5, 5), min_size=3, max_size=12)
)
def test_of_all_bad_calls_left_out_in_turn_few_are_accepted(good: list[float], bad: list[float]) -> None:
    """The same for bad calls with beta, and for good calls that are rejected."""
    accepted = sum(
        quietly(good, [*bad[:at], *bad[at + 1 :]], "0.2", beta="1/3").decide(call(score)).accepted
        for at, score in enumerate(bad)
    )
    rejected = sum(
        quietly([*good[:at], *good[at + 1 :]], bad, "0.2", beta="1/3").decide(call(score)).decision
        == "reject"
        for at, score in enumerate(good)
    )
    assert accepted <= Fraction(1, 3) * len(bad)
    assert rejected <= Fraction(1, 5) * len(good)


def test_bad_calls_report_how_many_are_stopped() -> None:
    """The share of bad calls that are not accepted, with its exact interval."""
    calibrator = quietly([at / 20 for at in range(20)], [0.1, 0.5, 2.0, 3.0, INF])
    found = calibrator.bad_rejection
    assert found is not None
    assert (found.count, found.total, found.rate) == (3, 5, 0.6)
    assert 0.14 < found.low < 0.15
    assert 0.94 < found.high < 0.95


def test_the_share_of_stopped_bad_calls_is_not_made_up() -> None:
    """None without bad calls, where nothing is accepted, and where these calls chose the threshold."""
    many = [at / 20 for at in range(20)]
    for calibrator in (quietly(many), quietly([0.1], [2.0]), quietly(many, [2.0] * 20, beta="0.1")):
        assert calibrator.bad_rejection is None


def test_the_quickstart_of_a_guard() -> None:
    """A function of the context, calls with outcomes and a level are all it takes."""

    def length(context: ToolCallContext) -> float:
        return len(context.args["query"])

    past = [(ToolCallContext("search", {"query": "x" * n}), True) for n in range(1, 101)]
    calibrator = calibrate(scorer=length, calibration_data=past, alpha=0.05, labeling_source="deterministic")
    assert (calibrator.threshold, calibrator.names, calibrator.alpha) == (96.0, ("length",), 0.05)
    assert calibrator.decide(ToolCallContext("search", {"query": "weather in Berlin"})).accepted
    assert not calibrator.decide(ToolCallContext("search", {"query": "x" * 97})).accepted


def test_several_checks_share_one_threshold() -> None:
    """`calibrate_multi_check` and `decide_multi_check` name the checks that failed."""
    data = labelled([[at / 20, 1 - at / 20] for at in range(20)])
    calibrator = calibrate_multi_check(readers(2), data, alpha=0.1)
    assert calibrator.threshold == 0.95
    assert decide_multi_check(calibrator, call(0.2, 0.97)).failed_checks == ("check_1",)
    assert decide_multi_check(calibrator, call(0.96, 0.97)).failed_checks == ("check_0", "check_1")
    assert decide_multi_check(calibrator, call(0.2, 0.3)).failed_checks == ()


def test_stored_scores_need_no_scoring() -> None:
    """Records with scores of the same scorer calibrate without calling it."""

    def never(context: ToolCallContext) -> float:
        raise AssertionError

    scorer = Scorer("stored", never, version="1")
    records = [
        CallRecord(call(), True, {"stored": at / 20}, {"stored": scorer.fingerprint}) for at in range(20)
    ]
    assert calibrate(scorer, records, "0.1").threshold == 0.9


def test_traffic_must_not_hold_the_calibration_calls() -> None:
    """Ranks among the calibration calls themselves would flatter them."""
    scores = np.random.default_rng(0).uniform(size=40).tolist()
    with pytest.raises(RowsReused, match="`reference` must hold other calls"):
        quietly(scores, reference=[call(score) for score in scores])


def test_traffic_on_which_a_check_never_runs_is_refused() -> None:
    """A check without a finite score in the traffic has no ranks."""
    with pytest.raises(
        ValueError, match=r"`reference` must hold a finite score of every check; got none of check_0"
    ):
        quietly([0.1] * 20, reference=[call(INF)] * 20)


def test_traffic_makes_scales_not_matter() -> None:
    """With ranks, another unit of one check changes no decision."""
    generator = np.random.default_rng(1)
    good, traffic, new = (generator.uniform(size=(n, 2)) for n in (60, 80, 40))
    found = []
    for unit in (1.0, 1024.0):
        scale = [1.0, unit]
        calibrator = quietly(
            (good * scale).tolist(), reference=[call(*row) for row in (traffic * scale).tolist()]
        )
        found.append([calibrator.decide(call(*row)).failed_checks for row in (new * scale).tolist()])
    assert found[0] == found[1]
    assert any(found[0])
