"""A guarantee says what is bounded, for whom and by which rows, and claims nothing that is not proven."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import numpy as np
import pytest
from histories import LEVELS, History, few, histories
from hypothesis import given
from hypothesis import strategies as st
from refusals import quiet

from rag_confidence._types import Guarantee
from rag_confidence.conformal.gate.fit import fit_conformal_gate
from rag_confidence.conformal.gate.fitted import ConformalGate

FIELDS = {field.name for field in dataclasses.fields(Guarantee)}


def gate_of(n0: int = 60, n1: int = 50, alpha: Any = 0.1, **options: Any) -> ConformalGate:
    """A gate on well separated raw scores."""
    rng = np.random.default_rng([65, n0, n1])
    scores, labels = np.r_[rng.normal(0, 1, n0), rng.normal(5, 1, n1)], [0] * n0 + [1] * n1
    with quiet():
        return fit_conformal_gate(scores, labels, alpha, score_kind="raw", **options)


def words(stated: Guarantee) -> str:
    """Everything that a reader of a guarantee reads."""
    return " ".join(
        [stated.event, stated.conditioning, stated.assumption, stated.sentence, *stated.not_claimed]
    )


# --- what is claimed


def test_a_marginal_guarantee() -> None:
    """Event, bound, conditioning, assumption, levels and counts of a marginal gate, each in its field."""
    stated = gate_of(alpha="0.1", alpha_reject="0.2").guarantee
    assert (stated.kind, stated.holds, stated.bound) == ("marginal", True, 0.1)
    assert (stated.alpha, stated.alpha_reject, stated.delta) == (0.1, 0.2, None)
    assert (stated.n0, stated.n1, stated.group) == (60, 50, None)
    assert "ACCEPT" in stated.event
    assert "insufficient" in stated.event
    assert "given that the evidence is insufficient" in stated.conditioning
    assert "average over calibration sets" in stated.conditioning
    assert "exchangeable" in stated.assumption
    for number in ("10 %", "20 %", "60", "50"):
        assert number in stated.sentence


def test_a_pac_guarantee() -> None:
    """A pac gate holds for most calibration sets, needs independent rows, and names delta."""
    stated = gate_of(guarantee="pac", delta="0.05").guarantee
    assert (stated.kind, stated.holds, stated.bound, stated.delta) == ("pac", True, 0.1, 0.05)
    assert "independent" in stated.assumption
    assert "average" not in stated.conditioning
    assert "0.05" in stated.conditioning
    for number in ("10 %", "95 %", "60", "50"):
        assert number in stated.sentence
    marginal = gate_of().guarantee
    assert any("calibration set" in claim for claim in marginal.not_claimed)
    assert not any("on average" in claim for claim in stated.not_claimed)


@pytest.mark.parametrize("guarantee", ["marginal", "pac"])
def test_no_claim_without_thresholds(guarantee: str) -> None:
    """Infinite thresholds claim nothing: no bound, no levels, and the counts that are needed and there."""
    stated = gate_of(5, 6, guarantee=guarantee).guarantee
    assert (stated.kind, stated.holds, stated.bound) == ("none", False, None)
    assert (stated.alpha, stated.alpha_reject, stated.delta) == (None, None, None)
    assert (stated.n0, stated.n1) == (5, 6)
    needed = "9" if guarantee == "marginal" else "29"
    for part in (needed, "5", "6", "abstain"):
        assert part in stated.sentence
    assert "at most" not in stated.sentence


@pytest.mark.parametrize(("n0", "n1", "claimed"), [(60, 5, "accepted"), (5, 60, "rejected")])
def test_one_threshold_is_claimed_alone(n0: int, n1: int, claimed: str) -> None:
    """With one infinite threshold only the other error is claimed, and it is said what never happens."""
    stated = gate_of(n0, n1).guarantee
    other = {"accepted": "rejected", "rejected": "accepted"}[claimed]
    assert stated.holds
    assert stated.bound == 0.1
    assert (stated.alpha is not None, stated.alpha_reject is not None) == (claimed == "accepted", n1 == 60)
    assert f"insufficient evidence are {other}" not in stated.sentence
    assert f"sufficient evidence are {claimed}" in stated.sentence
    assert f"None is {other}" in stated.sentence
    assert ("ACCEPT" if claimed == "accepted" else "REJECT") in stated.event


@few
@given(histories(), LEVELS, LEVELS, st.sampled_from(["marginal", "pac"]))
def test_a_claim_goes_with_a_finite_threshold(
    history: History, alpha: Any, reject: Any, guarantee: str
) -> None:
    """Each level is claimed if and only if its threshold is finite, and every field is filled and JSON."""
    with quiet():
        gate = fit_conformal_gate(
            history.scores,
            history.labels,
            alpha,
            alpha_reject=reject,
            guarantee=guarantee,
            score_kind=history.score_kind,
        )
    stated = gate.guarantee
    assert (stated.alpha is None) == math.isinf(gate.q0)
    assert (stated.alpha_reject is None) == math.isinf(gate.t1)
    assert stated.holds == (stated.bound is not None) == (stated.kind != "none")
    assert stated.bound in {None, gate.alpha, gate.alpha_reject}
    written = json.loads(json.dumps(stated.to_dict(), allow_nan=False))
    assert set(written) == FIELDS
    assert all(isinstance(text, str) and text for text in written["not_claimed"])
    assert stated.sentence.endswith(".")
    assert "nan" not in stated.sentence
    assert "inf " not in stated.sentence


# --- what is not claimed


def test_what_is_not_claimed_is_said() -> None:
    """Selective risk, truth of answers, changed data, single groups, several tries: each is disclaimed."""
    said = " ".join(gate_of().guarantee.not_claimed)
    for part in ("accepted retrievals are insufficient", "answer is true", "changed", "groups", "tries"):
        assert part in said


@pytest.mark.parametrize(
    ("negatives", "knows"),
    [
        (None, "unknown"),
        ({"topic_gap": 60}, "none"),
        ({"topic_gap": 30, "ranking_failure": 30}, "none"),
        ({"topic_gap": 30, "unknown": 30}, "unknown"),
        ({"near_miss": 1, "topic_gap": 59}, "some"),
        (["near_miss"] * 60 + [None] * 50, "some"),
        (["topic_gap"] * 60 + ["near_miss"] * 50, "none"),
    ],
    ids=str,
)
def test_near_misses_are_claimed_only_where_there_are_some(negatives: Any, knows: str) -> None:
    """Without near misses among the insufficient rows, or without knowing, the guarantee says so."""
    stated = gate_of(negatives=negatives).guarantee
    said = [claim for claim in stated.not_claimed if "ear miss" in claim]
    assert bool(said) == (knows != "some")
    assert ("ear misses" in stated.sentence) == (knows != "some")
    if knows == "unknown":
        assert "not recorded" in said[0]
    assert sum(count for _, count in stated.negatives) == 60


def test_the_mix_of_negatives_is_recorded() -> None:
    """Counts of each kind of insufficient row travel with the guarantee, given as counts or row by row."""
    counts = {"near_miss": 20, "topic_gap": 30, "unknown": 10}
    rows = ["near_miss"] * 20 + ["topic_gap"] * 30 + ["unknown"] * 10 + [None] * 50
    for negatives in (counts, rows, np.array(rows, dtype=object)):
        stated = gate_of(negatives=negatives).guarantee
        assert dict(stated.negatives) == counts
        assert stated.to_dict()["negatives"] == counts


# --- where the rows came from


def test_dates_and_source_are_stated() -> None:
    """Days and labelling source are in their fields and in the sentence."""
    stated = gate_of(collected=("2026-01-05", "2026-03-01"), labeling_source="two annotators").guarantee
    assert stated.collected == ("2026-01-05", "2026-03-01")
    assert stated.labeling_source == "two annotators"
    for part in ("2026-01-05", "2026-03-01", "two annotators"):
        assert part in stated.sentence


def test_unknown_dates_and_source_are_stated_as_unknown() -> None:
    """Nothing is filled in for a source or a day that was not given: not today, not the strongest source."""
    stated = gate_of().guarantee
    assert stated.collected is None
    assert stated.labeling_source is None
    assert "not recorded" in stated.sentence
    assert "20" + "26" not in stated.sentence


def test_a_group_and_an_attempt_state_their_own_numbers() -> None:
    """The guarantee of a group counts its rows, that of an attempt has the level of the attempt."""
    gate = gate_of(60, 60, groups=["a"] * 30 + ["b"] * 30 + ["a"] * 30 + ["b"] * 30)
    stated = gate.guarantee_of("a")
    assert (stated.group, stated.n0, stated.n1) == ("a", 30, 30)
    assert "'a'" in words(stated)
    second = gate_of().for_attempt(2, 2).guarantee
    assert (second.alpha, second.bound) == (0.05, 0.05)
    assert "5 %" in second.sentence


def test_decisions_carry_the_guarantee() -> None:
    """Each decision has the guarantee of its gate, whatever it decides."""
    gate = gate_of()
    for score in (-3.0, 2.5, 8.0):
        assert gate.predict_one(score).guarantee == gate.guarantee
    assert gate.predict([1.0, 9.0])[1].guarantee == gate.guarantee


@pytest.mark.parametrize("alpha", ["1/3", "0.123456789", "1/1000"])
def test_a_sentence_never_understates_the_level(alpha: str) -> None:
    """A level that is rounded for people is not rounded below itself by more than its last digit."""
    gate = gate_of(1200, 1200, alpha)
    number = float(gate.guarantee.sentence.split("at most ")[1].split(" %")[0])
    assert number == pytest.approx(100 * gate.alpha, rel=1e-5)
    assert gate.guarantee.bound == gate.alpha
