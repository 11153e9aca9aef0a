"""What a risk gate claims: the words and numbers of its guarantee."""

from __future__ import annotations

from typing import Any

import pytest
from refusals import quiet

from rag_confidence._types import Guarantee
from rag_confidence.conformal.risk.fit import fit_risk_gate

SCORES = [i / 200 for i in range(200)]
LABELS = [int(i >= 100) for i in range(200)]


def guarantee(labels: Any = LABELS, **options: Any) -> Guarantee:
    with quiet():
        return fit_risk_gate(SCORES, labels, 0.1, 0.05, **options).guarantee


def test_a_certificate_bounds_the_selective_risk() -> None:
    """Kind, bound, delta and counts; alpha is the level of another bound and stays null."""
    found = guarantee(negatives={"near_miss": 100}, labeling_source="human", collected="2026-03-01")
    assert (found.kind, found.holds, found.bound, found.delta) == ("selective_risk", True, 0.1, 0.05)
    assert (found.alpha, found.alpha_reject, found.group) == (None, None, None)
    assert (found.n0, found.n1) == (100, 100)
    assert (found.labeling_source, found.collected) == ("human", ("2026-03-01", "2026-03-01"))
    assert found.negatives == (("near_miss", 100),)


def test_event_and_conditioning_are_those_of_the_accepted() -> None:
    """The error is an insufficient retrieval given ACCEPT, for all but a share delta of calibration sets."""
    found = guarantee()
    assert found.event == "the evidence is insufficient although the gate said ACCEPT"
    assert found.conditioning.startswith("given that the retrieval was accepted")
    assert "mix of questions" in found.conditioning
    assert "all but a share 0.05 of calibration sets" in found.conditioning
    assert "those that certify nothing counting as kept" in found.conditioning


def test_only_the_sequence_assumes_something_of_ties() -> None:
    """Both need independent draws; the sequence also names the monotone risk that ties require."""
    sequence, bonferroni = guarantee().assumption, guarantee(method="bonferroni").assumption
    assert sequence.startswith(bonferroni)
    assert "independent draws of one distribution" in bonferroni
    assert "scores do not tie, or a lower threshold never lowers" in sequence
    assert "tie" not in bonferroni
    assert "Where scores tie" in guarantee().sentence
    assert "tie" not in guarantee(method="bonferroni").sentence


def test_what_is_not_claimed_is_said() -> None:
    """Not the false-sufficiency rate, not another mix of questions, not near misses that nobody labelled."""
    text = " ".join(guarantee().not_claimed)
    assert "false-sufficiency rate" in text
    assert "another mix of questions" in text
    assert "near misses" in text
    assert "near misses" not in " ".join(guarantee(negatives={"near_miss": 100}).not_claimed)


def test_the_sentence_holds_the_numbers() -> None:
    """Rows, target, probability and what was seen on the calibration set."""
    gate = fit_risk_gate(SCORES, LABELS, 0.1, 0.05, negatives={"near_miss": 100}, labeling_source="human")
    sentence = gate.guarantee.sentence
    assert "like the 200 that were labelled" in sentence
    assert "labelled by human" in sentence
    assert "at most 10 % of those accepted have insufficient evidence, with probability 95 %" in sentence
    assert "over the calibration set, sets that certify nothing counting as kept." in sentence
    assert f"In the calibration set {gate.errors} of the {gate.accepted} accepted ones had." in sentence


@pytest.mark.parametrize(
    ("collected", "words"),
    [
        (None, "on days that are not recorded"),
        ("2026-03-01", "on 2026-03-01"),
        (("2026-03-01", "2026-03-09"), "from 2026-03-01 to 2026-03-09"),
    ],
)
def test_the_sentence_dates_the_labels(collected: Any, words: str) -> None:
    """One day, a span of days, or that nobody wrote them down."""
    assert words in guarantee(collected=collected).sentence


def test_nothing_certified_claims_nothing() -> None:
    """Kind "none", no bound, and the labels without an error that would be needed."""
    found = guarantee(labels=LABELS[::-1])
    assert (found.kind, found.holds, found.bound, found.delta) == ("none", False, None, None)
    assert "every retrieval abstains" in found.sentence
    assert "at least 29 labelled retrievals" in found.sentence
    assert found.not_claimed == ("Anything: no decision but ABSTAIN is made here.",)


@pytest.mark.parametrize("labels", [LABELS, LABELS[::-1]])
def test_a_guarantee_survives_json(labels: list[int]) -> None:
    """Written as plain values and read back, it is equal."""
    found = guarantee(labels=labels)
    assert Guarantee.from_dict(found.to_dict()) == found
