"""The profile that a deployment would fit, without labels: from its corpus, its queries and what they met."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from _data import FloatArray, IntArray, K
from evaluation.collection import search

from rag_confidence import CorpusProfile

SAMPLE, ASKED = 600, 300
_CORPUS, _QUERIES = 0xC0B5, 0xA5ED


@dataclass(frozen=True)
class Lists:
    """Retrievals without labels: queries (q, d), the passages that were served (q, k, d), cosines (q, D)."""

    queries: FloatArray
    passages: FloatArray
    cosines: FloatArray


def lists_of(corpus: FloatArray, queries: FloatArray, found: IntArray) -> Lists:
    """Of the passages `found` (q, D), nearest first, k are served; all cosines are from the vectors."""
    deeper = corpus[found]
    cosines = (deeper @ queries[:, :, None])[:, :, 0]
    return Lists(queries, deeper[:, :K], cosines)


def profile_of(
    corpus: FloatArray, queries: FloatArray, embedder: str, seed: int
) -> tuple[CorpusProfile, Lists]:
    """A profile from a random sample of the corpus and these queries, and what was served for them.

    What is served is the same with and without labels: the nearest passages.
    """
    drawn = np.random.default_rng([_CORPUS, seed]).permutation(len(corpus))[:SAMPLE]
    served = lists_of(corpus, queries, search(queries, corpus)[0])
    profile = CorpusProfile.fit(
        corpus[np.sort(drawn)], queries, query_passages=served.passages, embedder=embedder, seed=seed
    )
    return profile, served


def drawn_queries(count: int, seed: int) -> IntArray:
    """Places of `ASKED` of `count` queries, ascending; all where there are fewer."""
    return np.sort(np.random.default_rng([_QUERIES, seed]).permutation(count)[:ASKED])
