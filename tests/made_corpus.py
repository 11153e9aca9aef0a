"""A made-up corpus with topics, questions on them and the passages retrieved for each; and its profile."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from strategies import generator

from rag_confidence import CorpusProfile

Array = NDArray[Any]


@dataclass(frozen=True)
class World:
    """A corpus sample (m, d), queries (Q, d), the passages (Q, k, d) served, and cosines (Q, 40) found."""

    corpus: Array
    queries: Array
    passages: Array
    cosines: Array

    @cached_property
    def profile(self) -> CorpusProfile:
        """Fitted with the queries and their passages."""
        return CorpusProfile.fit(self.corpus, self.queries, query_passages=self.passages, embedder="made-up")

    @cached_property
    def bare_profile(self) -> CorpusProfile:
        """Fitted on the corpus alone."""
        return CorpusProfile.fit(self.corpus, embedder="made-up")


def unit(rows: Array) -> Array:
    """Rows of length one."""
    return np.asarray(rows / np.linalg.norm(rows, axis=-1, keepdims=True))


def world(seed: int = 0, *, d: int = 24, m: int = 300, n: int = 60, k: int = 10) -> World:
    """Twelve topics in a cone; a question's passages are the nearest of a pool of 1500."""
    rng = generator(seed)
    topics = rng.standard_normal((12, d))

    def drawn(count: int, spread: float) -> Array:
        return topics[rng.integers(0, 12, count)] + spread * rng.standard_normal((count, d)) + 1.0

    corpus, queries, pool = drawn(m, 1.2), drawn(n, 1.0), drawn(1500, 1.2)
    cosines = unit(queries) @ unit(pool).T
    ranked = np.argsort(-cosines, axis=1)[:, :40]
    return World(corpus, queries, pool[ranked[:, :k]], np.take_along_axis(cosines, ranked, axis=1))
