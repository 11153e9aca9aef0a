"""The words that every layer shares."""

from __future__ import annotations

import json
import pickle
from typing import get_args

import pytest

from rag_confidence._types import Backend, Decision, InvalidRows, LoopTest, ReasonCode, Signal, Verdict


def test_words_are_plain_strings() -> None:
    """A word equals, prints, hashes and serialises as its string, so that serving code may compare either."""
    for word in (*Verdict, *ReasonCode, *Decision, *Signal):
        assert word == str(word) == f"{word}" == word.value
        assert json.loads(json.dumps(word)) == word.value
        assert {word.value: 1}[word] == 1
        assert pickle.loads(pickle.dumps(word)) is word


def test_the_vocabulary_is_frozen() -> None:
    """Records in the wild hold these words."""
    assert [*Verdict] == ["ANSWER", "REVIEW", "ABSTAIN", "ESCALATE"]
    assert [*ReasonCode] == [
        "no_passages",
        "degenerate_query",
        "off_topic",
        "conflicting",
        "weak",
        "ambiguous",
        "driver_floor",
        "shape_only",
        "healthy",
        "gate_accept",
        "gate_reject",
        "gate_ambiguous",
        "gate_empty_set",
        "gate_unfit_group",
        "gate_infinite",
    ]
    assert [*Decision] == ["accept", "reject", "abstain"]
    assert [*Signal] == [
        "topical_grounding",
        "answer_localization",
        "support_cohesion",
        "evidence_consistency",
        "query_robustness",
    ]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (InvalidRows, {"raise", "drop"}),
        (LoopTest, {"off", "ratio", "surrogate"}),
        (Backend, {"precomputed", "lexical"}),
    ],
)
def test_options_are_those_of_the_contract(options: object, words: set[str]) -> None:
    """Restricted options are literals, checked once."""
    assert set(get_args(options)) == words


def test_unknown_words_are_refused() -> None:
    """A misspelt word is an error, not a new verdict."""
    with pytest.raises(ValueError, match="answer"):
        Verdict("answer")
