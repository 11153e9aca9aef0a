"""Which of a question's words a passage holds: the evidence that a high score may rest on wording alone."""

from __future__ import annotations

import re

# English words that say nothing about the topic; in other languages every word counts.
_LISTED = """
a about after all also an and any are as at be been before but by can could did do does doing for
from had has have having he her his how i if in into is it its me more most my no not of on one or
our over she should so some such than that the their them then there these they this those to under
up was we were what when where which while who whom whose why with would you your
"""
STOP_WORDS = frozenset(re.findall(r"\w+", _LISTED))

_ENDING = re.compile(r"n['’]t\b|['’](?:s|re|ve|ll|d|m)\b")
_WORD = re.compile(r"[^\W_]+")


def content_words(text: str) -> frozenset[str]:
    """Distinct words of a text without case, contracted endings and English stop words.

    If only stop words are left, all of them are kept: "who are you" is then compared as it stands.
    """
    words = frozenset(_WORD.findall(_ENDING.sub("", text.casefold())))
    return words - STOP_WORDS or words


def word_overlap(query: str, passage: str) -> float | None:
    """Share of the query's content words that occur in the passage, in [0, 1].

    High means that the passage is worded like the question; whether it answers it is another matter. None
    for a query without words. Words are compared as written: no stemming, no synonyms.

    Examples
    --------
    >>> word_overlap("What was Acme's revenue in 2026?", "Acme reports its revenue for 2024.")
    0.6666666666666666
    """
    wanted = content_words(query)
    if not wanted:
        return None
    held = frozenset(_WORD.findall(_ENDING.sub("", passage.casefold())))
    return len(wanted & held) / len(wanted)
