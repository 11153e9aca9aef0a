"""What a guard says it guarantees: about good calls, or good and bad ones, and never about a decision."""

from __future__ import annotations

import re
from typing import Any

import pytest
from guard_calls import INF, quietly

from rag_confidence.guard.calibrator import Calibrator

MANY = [at / 50 for at in range(50)]


def every_kind() -> list[Calibrator]:
    """Calibrators with every kind of guarantee."""
    rows = [[score, 1 - score] for score in MANY]
    return [
        quietly(MANY),
        quietly(rows),
        quietly(MANY, [score + 0.5 for score in MANY], beta="0.1"),
        quietly(MANY, [9.0], beta="0.1"),
        quietly([0.1], MANY, beta="0.1"),
        quietly([0.1], [9.0], beta="0.1"),
        quietly([0.1, 0.2]),
        quietly([*MANY, *[INF] * 10]),
    ]


def test_the_sentence_is_about_good_calls() -> None:
    """With good calls only: at most alpha of good calls are abstained on, over n, source and days."""
    guarantee = quietly(MANY, labeling_source="human", collected=("2026-01-01", "2026-02-01")).guarantee
    assert guarantee.sentence == (
        "If new good calls are like the 50 that the threshold rests on (exchangeable; judged good by human, "
        "from 2026-01-01 to 2026-02-01), at most 10 % of them are abstained on, on average over calibration "
        "sets, one whose threshold is infinite counting as no error. How many bad calls are accepted is not "
        "bounded, and nothing is said of several calls together."
    )
    assert (guarantee.kind, guarantee.event) == ("marginal", "ABSTAIN although the call is good")
    assert (guarantee.holds, guarantee.bound, guarantee.alpha, guarantee.alpha_reject) == (
        True,
        0.1,
        0.1,
        None,
    )
    assert (guarantee.n0, guarantee.n1) == (0, 50)
    assert "given that the call is good, for one call" in guarantee.conditioning


def test_several_checks_are_bounded_together() -> None:
    """The bound is on all checks at once, and says so."""
    guarantee = quietly([[score, score] for score in MANY]).guarantee
    assert guarantee.kind == "joint"
    assert "abstained on, by all 2 checks together," in guarantee.sentence


def test_with_bad_calls_both_kinds_are_bounded() -> None:
    """At most beta of bad calls are accepted and alpha of good ones rejected; abstentions are not bounded."""
    guarantee = quietly(MANY, [score + 0.5 for score in MANY], beta="0.2").guarantee
    assert guarantee.sentence == (
        "If new calls are like the 50 bad and 50 good ones that the thresholds rest on (exchangeable, each "
        "kind by itself; judged by a source that is not recorded, on days that are not recorded), at most "
        "20 % of bad calls are accepted and at most 10 % of good calls are rejected, on average over "
        "calibration sets. How many calls of either kind are abstained on is not bounded, and nothing is "
        "said of several calls together."
    )
    assert (guarantee.alpha, guarantee.alpha_reject, guarantee.bound) == (0.2, 0.1, 0.2)
    assert (guarantee.n0, guarantee.n1, guarantee.event) == (50, 50, "ACCEPT although the call is bad")
    assert any("REJECT is bounded" in text for text in guarantee.not_claimed)


def test_half_a_claim_says_what_is_missing() -> None:
    """Where one kind has too few calls only the other is claimed, and the number that is missing is named."""
    few_bad = quietly(MANY, [9.0], beta="0.1").guarantee
    assert (few_bad.alpha, few_bad.alpha_reject, few_bad.bound) == (None, 0.1, 0.1)
    assert few_bad.sentence.endswith(
        "None is accepted: at the level 10 % at least 9 bad calls are needed (known: 1, missing: 8)."
    )
    assert "bad calls are accepted" not in few_bad.sentence.split("None is accepted")[0]
    few_good = quietly([0.1], MANY, beta="0.1").guarantee
    assert (few_good.alpha, few_good.alpha_reject, few_good.bound) == (0.1, None, 0.1)
    assert "None is rejected: at the level 10 % at least 9 good calls are needed" in few_good.sentence


def test_an_infinite_threshold_claims_nothing_and_says_what_is_missing() -> None:
    """Too few calls: how many are missing. Too many failures: what to mend, to add or to change."""
    few = quietly([0.1, 0.2]).guarantee
    assert (few.holds, few.kind, few.bound, few.assumption) == (False, "none", None, "none")
    assert few.sentence == (
        "Nothing is claimed and every call abstains: at the level 10 % at least 9 good calls are needed "
        "(known: 2, missing: 7)."
    )
    failing = quietly([*MANY, *[INF] * 10]).guarantee
    assert failing.sentence == (
        "Nothing is claimed and every call abstains: at the level 10 % at most 5 of 60 good calls may have a "
        "scorer that failed, and 10 have. Mend that scorer, add 49 good calls on which it runs, or use a "
        "level of at least 18.0328 %."
    )
    both = quietly([0.1], [9.0], beta="0.2").guarantee
    assert both.sentence.endswith(
        "and at the level 20 % at least 4 bad calls are needed (known: 1, missing: 3)."
    )
    assert "or use a level" not in quietly([INF] * 20).guarantee.sentence


def test_what_it_says_to_add_is_enough() -> None:
    """With the calls that the sentence asks for, and no more failures, the threshold is finite."""
    for good in ([0.1, 0.2], [*MANY, *[INF] * 10]):
        calibrator = quietly(good)
        assert not quietly([*good, *[0.5] * (calibrator.n_missing - 1)]).guarantee.holds
        assert quietly([*good, *[0.5] * calibrator.n_missing]).guarantee.holds


@pytest.mark.parametrize("at", range(8))
def test_nothing_claims_that_a_decision_is_right(at: int) -> None:
    """No text says that decisions or accepted calls are wrong, right or correct with some probability."""
    guarantee = every_kind()[at].guarantee
    words = " ".join([guarantee.sentence, guarantee.event, guarantee.conditioning, guarantee.assumption])
    assert not re.search(r"wrong|correct|this decision|confiden", words)
    assert any(text.startswith("That an accepted call is good") for text in guarantee.not_claimed)
    assert any("several calls" in text for text in guarantee.not_claimed)
    assert any("only calls that a guard accepted" in text for text in guarantee.not_claimed)
    assert any("have changed" in text for text in guarantee.not_claimed)


@pytest.mark.parametrize("at", range(8))
def test_days_that_are_not_known_are_not_made_up(at: int) -> None:
    """Without dates there are none in the guarantee, today's neither."""
    guarantee = every_kind()[at].guarantee
    assert guarantee.collected is None
    assert not re.search(r"\d{4}-\d\d-\d\d", guarantee.sentence)


def test_the_group_and_the_traffic_are_named() -> None:
    """A bound for a group says so, and ranks add what must be true of the traffic."""
    options: dict[str, Any] = {"group": "high", "reference": [(call_, None) for call_ in traffic()]}
    guarantee = quietly(MANY, **options).guarantee
    assert guarantee.group == "high"
    assert guarantee.sentence.startswith("If new good calls of the group 'high' are like the 50")
    assert "given the traffic that fixed the ranks" in guarantee.assumption
    assert quietly([0.1], group="high").guarantee.sentence.startswith(
        "Nothing is claimed and every call of the group 'high' abstains"
    )


def traffic() -> list[Any]:
    """Unlabelled calls."""
    from guard_calls import call

    return [call(at / 7) for at in range(30)]
