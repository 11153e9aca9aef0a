"""Words that a passage shares with a question."""

from __future__ import annotations

import pytest

from rag_confidence.conformal.audit.overlap import content_words, word_overlap


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("What is the Capital of France?", {"capital", "france"}),
        ("Acme's 2026 revenue, isn't it", {"acme", "2026", "revenue"}),
        ("L’été à Zürich", {"l", "été", "à", "zürich"}),
        ("Who are you?", {"who", "are", "you"}),
        ("...", set()),
    ],
)
def test_content_words(text: str, words: set[str]) -> None:
    """Case, punctuation, contracted endings and stop words go; a text of stop words keeps them."""
    assert content_words(text) == words


@pytest.mark.parametrize(
    ("query", "passage", "share"),
    [
        ("capital of France", "Paris is the capital of France.", 1.0),
        ("capital of France", "The CAPITAL of Peru", 0.5),
        ("capital capital France", "capital", 0.5),
        ("capital of France", "", 0.0),
        ("?", "anything", None),
    ],
)
def test_the_share_is_of_the_query(query: str, passage: str, share: float | None) -> None:
    """The overlap is the share of distinct content words of the query that the passage holds."""
    assert word_overlap(query, passage) == share
