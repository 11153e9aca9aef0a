"""CorpusProfile: what cosines look like in one corpus and embedder when nothing is special."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rag_confidence import _artefact
from rag_confidence._types import FloatArray, IntArray
from rag_confidence.engine.profile import checks, storage
from rag_confidence.engine.profile.embedder import EmbedderTest, embedder_test, foreign_rows
from rag_confidence.engine.profile.fitting import (
    MOST_ROWS,
    background_level,
    chosen_rows,
    effective_dimension,
    norm_summary,
    passage_quantiles,
    shuffled,
    traffic_of,
)
from rag_confidence.engine.profile.reference import contrast_cap
from rag_confidence.engine.profile.sample import Sample
from rag_confidence.engine.profile.words import count_documents
from rag_confidence.errors import CalibrationMismatch

__all__ = ["MOST_ROWS", "CorpusProfile"]


@dataclass(frozen=True, eq=False, repr=False)
class CorpusProfile:
    """A frozen sample of a corpus, and what was seen in it; made by `fit`, without labels.

    It makes cosines comparable: how high the cosines of this query to the corpus are when nothing is special
    is one product with the sample.

    Attributes
    ----------
    vectors : ndarray, shape (m, d)
        Unit rows of the sample, float32, read-only.
    ids : tuple, or None
        Passage id of each row.
    embedder : str or None
        Name of the model that made the vectors.
    duplicate_cosine : float
        Cosine from which a sampled vector counts as a copy of a served passage.
    n_corpus : int
        Corpus vectors that `fit` was given, of which m are kept.
    centroid : ndarray, shape (d,)
        Mean of all unit rows: its length is near 1 where an embedder puts everything in one cone.
    norms : tuple of float
        Low, median and high (1, 50, 99 %) length of the raw rows.
    effective_dimension : float
        Participation ratio of the covariance spectrum of the unit rows.
    passage_cosines : tuple of float
        Quantiles (`fitting.PASSAGE_LEVELS`) of the cosines between passages.
    background_level : float
        Median upper tail of the background cosines, likewise: what is usual for the best of them.
    background_scale : float
        Median standard deviation of background cosines, over the queries of the sample or, without any,
        over its rows: the unit in which excess is measured.
    embedder_test : EmbedderTest
        What tells vectors of this embedder from those of another.
    typical_companionship : float or None
        Mean of the signal ``companionship`` over the lists that were served for the sampled queries.
    contrast_units : tuple of float, or None
        Centre and scale of the saturated contrast of these lists; see `reference.contrast_units`.
    query_centroid : ndarray, shape (d,), or None
        Mean of the unit queries.
    n_queries : int
        Queries in the query sample.
    document_frequencies : mapping of str to int, or None
        Number of sampled texts that hold each word.
    n_texts : int
        Texts that were counted.
    """

    vectors: FloatArray
    ids: tuple[Hashable, ...] | None
    embedder: str | None
    duplicate_cosine: float
    n_corpus: int
    centroid: FloatArray
    norms: tuple[float, float, float]
    effective_dimension: float
    passage_cosines: tuple[float, ...]
    background_level: float
    background_scale: float
    embedder_test: EmbedderTest
    typical_companionship: float | None = None
    contrast_units: tuple[float, float] | None = None
    query_centroid: FloatArray | None = None
    n_queries: int = 0
    document_frequencies: Mapping[str, int] | None = None
    n_texts: int = 0

    @classmethod
    def fit(
        cls,
        corpus_sample: ArrayLike,
        query_sample: ArrayLike | None = None,
        *,
        query_passages: ArrayLike | None = None,
        embedder: str | None = None,
        texts: Sequence[str] | None = None,
        ids: Sequence[Hashable] | None = None,
        duplicate_cosine: float = 0.995,
        seed: int = 0,
    ) -> CorpusProfile:
        """The profile of a corpus from a few hundred to a few thousand of its vectors, without labels.

        Parameters
        ----------
        corpus_sample : array_like, shape (n, d)
            Vectors of passages drawn at random from the corpus, at least 50 of them distinct; of any length.
        query_sample : array_like, shape (q, d), optional
            At least 20 queries as users ask them, without labels.
        query_passages : array_like, shape (q, k, d), optional
            The passages that were served for each of these queries, k at least 6 to be of use. They show how
            closely the passages of this corpus accompany each other, which tells how far a single good
            passage can be trusted; a sample of the corpus cannot show it.
        embedder : str, optional
            Name of the model that made the vectors; `score` refuses another name.
        texts : sequence of str, length n, optional
            Texts of the sampled passages, for word frequencies.
        ids : sequence of str or int, length n, optional
            Passage ids, so that retrieved passages can be left out of the background by id.
        duplicate_cosine : float
            Cosine from which two passages are the same.
        seed : int
            Of the rows that are kept when there are more than `fitting.MOST_ROWS`.

        Returns
        -------
        CorpusProfile

        Raises
        ------
        TypeError, ValueError
            For arrays that are no finite rows of one dimension, for too few distinct vectors or queries, and
            for texts or ids that do not go with the rows.

        Notes
        -----
        Centroid, norms, dimension and word frequencies rest on all n rows, everything else on those kept.
        Cost O(n d^2 + m^2 d). The sample must be drawn at random: of the first rows of a sorted corpus
        nothing is promised.

        Examples
        --------
        >>> import numpy as np
        >>> profile = CorpusProfile.fit(np.random.default_rng(0).standard_normal((200, 8)))
        >>> profile.size, profile.dimension, round(profile.background_scale, 2)
        (200, 8, 0.35)
        """
        given = checks.check_sample(corpus_sample, query_sample, texts=texts, ids=ids, embedder=embedder)
        served = checks.check_served(query_passages, given.queries)
        limit = checks.check_limit(duplicate_cosine)
        rows = chosen_rows(len(given.unit), checks.check_seed(seed))
        unit = given.unit[rows]
        checks.refuse_few(unit)
        kept_ids = None if given.ids is None else tuple(given.ids[row] for row in rows)
        queries = given.queries
        sample = Sample.of(unit, duplicate_cosine=limit)
        level, scale = background_level(sample, queries, served)
        traffic = traffic_of(sample, queries, served)
        checks.refuse_flat(scale)
        return cls(
            vectors=frozen(unit.astype(np.float32)),
            ids=kept_ids,
            embedder=embedder,
            duplicate_cosine=limit,
            n_corpus=len(given.unit),
            centroid=frozen(given.unit.mean(axis=0)),
            norms=norm_summary(given.norms),
            effective_dimension=effective_dimension(given.unit),
            passage_cosines=passage_quantiles(unit),
            background_level=level,
            background_scale=scale,
            typical_companionship=traffic.typical_companionship,
            contrast_units=traffic.contrast_units,
            embedder_test=embedder_test(unit, shuffled(len(unit), seed)),
            query_centroid=None if queries is None else frozen(queries.mean(axis=0)),
            n_queries=0 if queries is None else len(queries),
            document_frequencies=None if given.texts is None else count_documents(given.texts),
            n_texts=0 if given.texts is None else len(given.texts),
        )

    @property
    def dimension(self) -> int:
        """Length d of the vectors."""
        return int(self.vectors.shape[1])

    @property
    def size(self) -> int:
        """Number m of sampled vectors."""
        return len(self.vectors)

    @cached_property
    def contrast_cap(self) -> float:
        """Contrast beyond which a better best passage is no better sign; see `reference.contrast_cap`."""
        return contrast_cap(self.typical_companionship)

    @cached_property
    def fingerprint(self) -> str:
        """Short hash of everything in the profile: equal profiles, and no others, have equal ones."""
        return _artefact.digest(self._payload())[:16]

    @cached_property
    def sample(self) -> Sample:
        """The vectors as the kernels read them."""
        return Sample.of(
            self.vectors,
            duplicate_cosine=self.duplicate_cosine,
            ids=self.ids,
            query_centroid=self.query_centroid,
        )

    def check(
        self,
        queries: FloatArray,
        passages: FloatArray,
        embedder: str | None = None,
        *,
        rows: IntArray | None = None,
    ) -> None:
        """Refuse vectors that were not made by the embedder of the profile.

        Parameters
        ----------
        queries : ndarray, shape (Q, d)
            Only their dimension is looked at: a query may be off every topic.
        passages : ndarray, shape (Q, k, d)
            Served passages, finite, no zero row.
        embedder : str, optional
            Name given with the call; without one, or without one in the profile, names are not compared.
        rows : ndarray of int, shape (Q,), optional
            What a refusal calls the retrievals, where they are some of a larger batch.

        Raises
        ------
        CalibrationMismatch
            For another dimension, another name, and lists of passages whose vectors lie as an unrelated
            embedder's would.

        Notes
        -----
        See `embedder.foreign_rows`. A list of fewer than five distinct passages is not judged by its
        vectors. An embedder that shares the axes of the profile's, such as a later version of it, is not
        told apart; passages of a corpus of quite another kind may be refused.
        """
        checks.refuse_other_dimension(self.dimension, queries, passages)
        if embedder is not None and self.embedder is not None and embedder != self.embedder:
            raise CalibrationMismatch(
                f"`embedder` must be {self.embedder!r}, which made the profile; got {embedder!r}. "
                "Fit a profile of the vectors of this model."
            )
        found = foreign_rows(self.embedder_test, passages)
        alone = rows is None and len(passages) == 1
        checks.refuse_foreign(found if rows is None else rows[found], alone=alone)

    def __repr__(self) -> str:
        name = "" if self.embedder is None else f", embedder={self.embedder!r}"
        extras = [f"n_queries={self.n_queries}"] * (self.n_queries > 0)
        extras += [f"n_texts={self.n_texts}"] * (self.n_texts > 0)
        more = "".join(f", {extra}" for extra in extras)
        return (
            f"CorpusProfile(size={self.size}, dimension={self.dimension}{name}{more}, "
            f"fingerprint={self.fingerprint!r})"
        )

    def to_dict(self) -> dict[str, Any]:
        """The profile as plain values for JSON, with versions and a digest."""
        return _artefact.wrap(storage.KIND, self._payload())

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> CorpusProfile:
        """The profile that `to_dict` wrote, to the last bit; ArtefactError for anything else."""
        return cls._restored("document", _artefact.unwrap("document", storage.KIND, document))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the profile to a file: compact if its name ends in ``.npz``, JSON if in ``.json``."""
        storage.write(path, self._payload())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> CorpusProfile:
        """The profile that `save` wrote, to the last bit; ArtefactError for anything else."""
        return cls._restored("path", storage.read(path))

    def _payload(self) -> dict[str, Any]:
        return storage.encoded(self)

    @classmethod
    def _restored(cls, name: str, payload: Mapping[str, Any]) -> CorpusProfile:
        return _artefact.restored(
            name,
            storage.KIND,
            payload=payload,
            build=lambda stored: cls(**storage.decoded(stored)),
            written=cls._payload,
        )


def frozen(array: FloatArray) -> FloatArray:
    """The same array, read-only."""
    array.flags.writeable = False
    return array
