"""Labelled retrievals from one corpus, scored as a deployment would score them.

A set gives two worlds under each embedder: its corpus as it is (near misses and ranking failures), and a
thinner one, without the evidence of half of the answerable queries (withheld evidence). Questions on other
subjects (topic gaps) are put to both. Each world has a profile of its own, fitted on its own corpus.
"""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from _data import FloatArray, IntArray, K, Mask
from evaluation.collection import (
    Collection,
    Questions,
    find_embedders,
    find_sets,
    has_embedder,
    read_collection,
    read_queries,
    search,
)
from evaluation.strata import Draw, Rows, natural, strangers, withheld
from numpy.typing import NDArray

from deployed.profiles import ASKED, drawn_queries, lists_of, profile_of
from rag_confidence import CorpusProfile, MetricsBatch, fit_conformal_gate, score_many

SUFFICIENT, GAP, FAILURE, MISS, WITHHELD = (
    "sufficient",
    "topic gap",
    "ranking failure",
    "near miss",
    "withheld evidence",
)
STRATA = (GAP, FAILURE, MISS, WITHHELD)
_STRANGE = 0x9A9
_TRIED = 50


@dataclass(frozen=True)
class World:
    """Scored retrievals, one a row and a query.

    Attributes
    ----------
    label : str
        Set and embedder.
    thin : bool
        Whether evidence was taken out of the corpus.
    apart : bool
        Whether the queries of the profile are other queries than these.
    kpi, cosine : ndarray, shape (n,)
        The KPI with the profile, and the best cosine, clipped to [0, 1].
    kind : ndarray of str, shape (n,)
        `SUFFICIENT`, or the stratum of an insufficient row.
    same_in_score : bool
        Whether a gate passed to `score_many` decided as it does on the stored KPI.
    """

    label: str
    thin: bool
    apart: bool
    kpi: FloatArray
    cosine: FloatArray
    kind: NDArray[np.str_]
    same_in_score: bool

    @property
    def sufficient(self) -> Mask:
        """Rows whose passages hold the evidence, shape (n,)."""
        return np.asarray(self.kind == SUFFICIENT)

    def count(self, kind: str) -> int:
        """Rows of a kind."""
        return int(np.count_nonzero(self.kind == kind))


@dataclass(frozen=True)
class Asked:
    """Rows of one corpus with the stratum of each, before they are scored."""

    corpus: FloatArray
    queries: FloatArray
    found: IntArray
    kind: NDArray[np.str_]

    def take(self, rows: IntArray) -> Asked:
        """The rows of these indices."""
        return replace(self, queries=self.queries[rows], found=self.found[rows], kind=self.kind[rows])


def worlds(folder: Path, wanted: Sequence[str] | None, limit: int | None, seed: int) -> Iterator[World]:
    """Both worlds of every set under every embedder, or under the wanted ones."""
    places = find_sets(folder)
    for place in places:
        for embedder in find_embedders(places, wanted):
            if has_embedder(place, embedder):
                yield from _worlds_of(place, places, embedder, Draw(K, limit, seed))


def _worlds_of(place: Path, places: Sequence[Path], embedder: str, draw: Draw) -> Iterator[World]:
    others = {other.name: other for other in places if has_embedder(other, embedder)}
    foreign = [read_queries(others[name], embedder) for name in strangers(place.name, sorted(others))]
    data = read_collection(place, embedder)
    whole, thin = natural(data, (), draw), withheld(data, (), draw)
    kind = np.where(whole.strata["near miss"], MISS, FAILURE)
    yield _world(data, _kinds(whole, kind), foreign, draw.seed, thin=False)
    yield _world(data, _kinds(thin, np.full(len(thin), WITHHELD)), foreign, draw.seed, thin=True)


def _kinds(rows: Rows, lacking: NDArray[np.str_]) -> Asked:
    return Asked(rows.corpus, rows.queries, rows.found, np.where(rows.sufficient, SUFFICIENT, lacking))


def _world(data: Collection, asked: Asked, foreign: Sequence[Questions], seed: int, *, thin: bool) -> World:
    """The profile takes queries out of the rows where at least twice as many are left."""
    held = drawn_queries(len(asked.kind), seed)
    apart = len(asked.kind) - len(held) >= 2 * ASKED
    profile, _ = profile_of(asked.corpus, asked.queries[held], data.embedder, seed)
    own = asked.take(np.setdiff1d(np.arange(len(asked.kind)), held)) if apart else asked
    rows = _with_strangers(own, foreign, data.name, seed)
    lists = lists_of(rows.corpus, rows.queries, rows.found)
    batch = score_many(lists.queries, lists.passages, profile=profile, embedder=data.embedder, perturb=False)
    return World(
        label=f"{data.name} / {data.embedder}",
        thin=thin,
        apart=apart,
        kpi=batch.kpi,
        cosine=np.clip(batch.signals["max_cosine"], 0.0, 1.0),
        kind=rows.kind,
        same_in_score=_same_in_score(rows, batch, profile),
    )


def _with_strangers(own: Asked, foreign: Sequence[Questions], name: str, seed: int) -> Asked:
    """These rows, and as many questions on other subjects as there are of them, or fewer."""
    if not foreign:
        return own
    vectors = np.concatenate([questions.vectors for questions in foreign])
    rng = np.random.default_rng([_STRANGE, zlib.crc32(name.encode()), seed])
    strange = vectors[rng.permutation(len(vectors))[: len(own.kind)]]
    found, _ = search(strange, own.corpus)
    return Asked(
        own.corpus,
        np.concatenate([own.queries, strange]),
        np.concatenate([own.found, found]),
        np.concatenate([own.kind, np.full(len(strange), GAP)]),
    )


def _same_in_score(rows: Asked, batch: MetricsBatch, profile: CorpusProfile) -> bool:
    """Whether the first rows are decided by `score_many` with a gate as that gate decides on their KPI."""
    with warnings.catch_warnings():
        # Whether the gate is of any use is not the question here.
        warnings.simplefilter("ignore")
        gate = fit_conformal_gate(batch.kpi, rows.kind == SUFFICIENT, provenance=batch.provenance)
    lists = lists_of(rows.corpus, rows.queries[:_TRIED], rows.found[:_TRIED])
    again = score_many(
        lists.queries,
        lists.passages,
        profile=profile,
        gate=gate,
        embedder=batch.provenance.embedder,
        perturb=False,
    )
    return bool(np.array_equal(again.decision, gate.predict(batch.kpi[:_TRIED]).decision))
