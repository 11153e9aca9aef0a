"""Signals of every set under every embedder, measured once: the grid then costs a formula a point."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from _data import FloatArray, IntArray, K, Mask
from deployed.profiles import ASKED, drawn_queries, lists_of, profile_of
from evaluation.collection import Collection, has_embedder, read_collection
from evaluation.strata import Draw, natural

from rag_confidence import MetricPolicy, auroc, score_many
from rag_confidence.engine.signals import Signals


@dataclass(frozen=True)
class Pair:
    """Labelled retrievals of one set under one embedder, assessed with a profile of its corpus.

    Attributes
    ----------
    signals : Signals
        n entries a column.
    drivers : ndarray, shape (5, n)
        Grounding and the four shape drivers, under the constants that the package has now.
    kpi, served_kpi, seed_kpi : ndarray, shape (n,)
        The KPI under these constants; the same where the ten served passages are all that is known; the KPI
        of the seed's formulas.
    sufficient : ndarray of bool, shape (n,)
    sampled_contrast : ndarray, shape (q,)
        Contrast of the lists that were served for the queries of the profile.
    typical_companionship : float
        Of the same lists.
    """

    name: str
    embedder: str
    signals: Signals
    drivers: FloatArray
    kpi: FloatArray
    served_kpi: FloatArray
    seed_kpi: FloatArray
    sufficient: Mask
    sampled_contrast: FloatArray
    typical_companionship: float

    @property
    def label(self) -> str:
        """Name for tables."""
        return f"{self.name} / {self.embedder}"

    def auroc(self, scores: FloatArray) -> float:
        """How well scores (n,) tell the sufficient retrievals from the others."""
        found = auroc(scores, self.sufficient)
        return float("nan") if found is None else found


def read_pairs(places: Sequence[Path], embedders: Sequence[str], limit: int, seed: int) -> Iterator[Pair]:
    """Every set under every embedder that it has, with at most `limit` queries."""
    for place in places:
        for embedder in (name for name in embedders if has_embedder(place, name)):
            yield _pair(read_collection(place, embedder), limit, seed)


def _pair(data: Collection, limit: int, seed: int) -> Pair:
    rows = natural(data, (), Draw(K, limit, seed))
    asked = _asked(len(data.queries), rows.places, seed)
    profile, sampled = profile_of(data.corpus, data.queries[asked], data.embedder, seed)
    if profile.typical_companionship is None:
        raise ValueError(f"{data.name} / {data.embedder}: the lists of the profile are too few or too short")
    lists = lists_of(rows.corpus, rows.queries, rows.found)
    served = lists.queries, lists.passages
    batch = score_many(*served, profile=profile, candidates=list(lists.cosines))
    sample = score_many(sampled.queries, sampled.passages, profile=profile, perturb=False)
    return Pair(
        name=data.name,
        embedder=data.embedder,
        signals=batch.signals,
        drivers=batch.drivers.values,
        kpi=batch.kpi,
        served_kpi=score_many(*served, profile=profile, perturb=False).kpi,
        seed_kpi=score_many(*served, policy=MetricPolicy.seed(), perturb=False).kpi,
        sufficient=rows.sufficient,
        sampled_contrast=sample.signals["contrast"],
        typical_companionship=profile.typical_companionship,
    )


def _asked(count: int, evaluated: IntArray, seed: int) -> IntArray:
    """Queries for the profile: such as are not evaluated if there are enough, else the same, unlabelled."""
    apart = np.setdiff1d(np.arange(count), evaluated)
    pool = apart if len(apart) >= ASKED else evaluated
    return np.asarray(pool[drawn_queries(len(pool), seed)])
