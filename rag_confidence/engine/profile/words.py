"""Words of texts and how rare they are in a corpus: the share of a query's rare words that passages hold."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

_WORD = re.compile(r"[^\W_]+")


class Worded(Protocol):
    """What knows the words of a corpus: a `CorpusProfile`."""

    @property
    def document_frequencies(self) -> Mapping[str, int] | None:
        """Number of sampled texts that hold each word."""

    @property
    def n_texts(self) -> int:
        """Number of sampled texts."""


def words_of(text: str) -> frozenset[str]:
    """The distinct words of a text in lower case: runs of letters and digits of any script."""
    return frozenset(_WORD.findall(text.lower()))


def count_documents(texts: Iterable[str]) -> dict[str, int]:
    """Word -> number of texts that hold it, in alphabetical order."""
    counts = Counter(word for text in texts for word in words_of(text))
    return dict(sorted(counts.items()))


def idf_mass(profile: Worded, query_text: str, texts: Sequence[str]) -> float | None:
    """Share of the query's IDF mass found in the best single passage, in [0, 1]; high is good.

    Parameters
    ----------
    profile : CorpusProfile
        Fitted with `texts`.
    query_text : str
    texts : sequence of str
        The served passages.

    Returns
    -------
    float or None
        None without document frequencies, and when no word of the query has any weight.

    Notes
    -----
    A word in df of N sampled texts weighs log((N + 1) / (df + 1)); a word of every text weighs nothing, so no
    list of stop words is needed, and a word of none weighs most. Without passages the share is 0. Cost
    linear in the length of the texts. Synonyms and inflected forms are missed: cutting words was tried and
    gained next to nothing beside the best cosine. Words that the sample does not hold must count.

    References
    ----------
    Spaerck Jones (1972), A statistical interpretation of term specificity and its application in retrieval.
    """
    shares = idf_shares(profile, query_text, texts)
    return None if shares is None else max(shares, default=0.0)


def idf_shares(profile: Worded, query_text: str, texts: Sequence[str]) -> list[float] | None:
    """The share of the query's IDF mass found in each passage, in their order; None as for `idf_mass`."""
    weights = _weights(profile, query_text)
    return None if weights is None else [_share(weights, [text.lower()]) for text in texts]


def idf_mass_union(profile: Worded, query_text: str, texts: Sequence[str]) -> float | None:
    """`idf_mass` of all served passages together: never below that of the best one."""
    weights = _weights(profile, query_text)
    if weights is None:
        return None
    return _share(weights, [text.lower() for text in texts])


def _weights(profile: Worded, query_text: str) -> dict[str, float] | None:
    """Word of the query -> its weight, if any weighs anything."""
    known = profile.document_frequencies
    if known is None:
        return None
    top = profile.n_texts + 1
    weights = {word: math.log(top / (known.get(word, 0) + 1)) for word in sorted(words_of(query_text))}
    return weights if sum(weights.values()) > 0.0 else None


def _share(weights: Mapping[str, float], lowered: Sequence[str]) -> float:
    """Part of the weight that the words of any of the `lowered` texts make up."""
    found = [weight for word, weight in weights.items() if any(_holds(text, word) for text in lowered)]
    return math.fsum(found) / math.fsum(weights.values())


def _holds(lowered: str, word: str) -> bool:
    """Whether `word` is in `words_of` the text: looking for it is many times faster than taking all apart."""
    start = lowered.find(word)
    while start >= 0:
        end = start + len(word)
        if not (lowered[start - 1 : start].isalnum() or lowered[end : end + 1].isalnum()):
            return True
        start = lowered.find(word, start + 1)
    return False


def text_match(profile: Worded, query_text: str, texts: Sequence[str]) -> dict[str, float]:
    """Signals ``text_best``, the largest of `idf_shares`, and ``text_top3``, the mean of the three largest.

    Empty where the shares are not known.
    """
    shares = idf_shares(profile, query_text, texts)
    if not shares:
        return {}
    best = sorted(shares, reverse=True)[:3]
    return {"text_best": min(best[0], 1.0), "text_top3": min(math.fsum(best) / len(best), 1.0)}
