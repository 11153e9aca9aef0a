"""Every query of a set scored on its own corpus and on the others, under a gate fitted on half of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from _data import FloatArray, Mask, RetrievalSet, nearest, other_sets

from rag_confidence import MetricPolicy, MetricsBatch, score_many


@dataclass(frozen=True)
class Retrievals:
    """Assessed retrievals, one a query, with what the gate reads of them.

    Attributes
    ----------
    batch : MetricsBatch
    cosines : ndarray, shape (Q, K)
    other_subject : bool
        Whether the corpus is on another subject than the queries.
    """

    batch: MetricsBatch
    cosines: FloatArray
    other_subject: bool

    @property
    def top3(self) -> FloatArray:
        """Mean of the three best cosines, shape (Q,)."""
        return self.batch.signals["mean_top3_cosine"]

    @property
    def shape(self) -> FloatArray:
        """Weighted mean of the shape drivers, shape (Q,): the KPI without its gate."""
        drivers = self.batch.drivers
        return np.asarray((drivers.weights * np.nan_to_num(drivers.values[1:])).sum(axis=0))

    @property
    def kept(self) -> Mask:
        """Whether the verdict is ANSWER or REVIEW, shape (Q,)."""
        return np.isin(self.batch.verdict, ("ANSWER", "REVIEW"))


@dataclass(frozen=True)
class Scored:
    """One set under one embedder: fitted on the queries `fit` (Q,), tested on the others."""

    data: RetrievalSet
    policy: MetricPolicy
    fit: Mask
    own: Retrievals
    elsewhere: dict[str, Retrievals]

    @property
    def sufficient(self) -> Mask:
        """Queries whose own passages are known to hold the evidence, shape (Q,)."""
        return self.data.sufficient & self.data.known

    @property
    def gaps(self) -> list[Retrievals]:
        """The retrievals from corpora on another subject."""
        return [found for found in self.elsewhere.values() if found.other_subject]


def random_half(count: int, seed: int) -> Mask:
    """A random half of `count` queries."""
    half = np.zeros(count, dtype=bool)
    half[np.random.default_rng(seed).permutation(count)[: count // 2]] = True
    return half


def score_sets(sets: list[RetrievalSet], seed: int) -> list[Scored]:
    """Score every set of one embedder on every corpus."""
    return [_score_set(data, sets, seed) for data in sets]


def _score_set(data: RetrievalSet, sets: list[RetrievalSet], seed: int) -> Scored:
    fit = random_half(len(data.queries), seed)
    found = {
        other.name: (other, away, *nearest(data.queries, other.corpus))
        for other, away in other_sets(data, sets)
    }
    off_topic = [cosines[fit] for _, away, _, cosines in found.values() if away]
    policy = MetricPolicy.fit_grounding(data.cosines[fit], np.concatenate(off_topic))
    elsewhere = {
        name: Retrievals(_score(data.queries, other.corpus[rows], policy), cosines, away)
        for name, (other, away, rows, cosines) in found.items()
    }
    own = Retrievals(_score(data.queries, data.passages(), policy), data.cosines, other_subject=False)
    return Scored(data, policy, fit, own, elsewhere)


def _score(queries: FloatArray, passages: FloatArray, policy: MetricPolicy) -> MetricsBatch:
    return score_many(queries, passages, policy=policy, perturb=False)
