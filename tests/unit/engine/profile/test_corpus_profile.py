"""The fit of a profile, what it refuses, and what its check refuses."""

from __future__ import annotations

import pickle
from functools import partial
from typing import Any

import numpy as np
import pytest
import reference_profile as ref
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_profile import Array
from refusals import refuse
from strategies import generator, rotations

from rag_confidence.engine.profile.background import background_of
from rag_confidence.engine.profile.corpus_profile import CorpusProfile
from rag_confidence.engine.profile.fitting import MOST_ROWS
from rag_confidence.errors import CalibrationMismatch


def rows(m: int = 60, d: int = 6, seed: int = 0) -> Array:
    """Vectors in one cone, of different lengths."""
    rng = generator(seed)
    return np.asarray((rng.standard_normal((m, d)) + 1.0) * rng.uniform(0.5, 2.0, (m, 1)))


def unit(vectors: Array) -> Array:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))


def test_the_summaries_are_those_of_the_unit_rows() -> None:
    """Vectors, centroids, norms, dimension and counts are what direct computation gives."""
    corpus, queries = rows(), rows(25, seed=1)
    profile = CorpusProfile.fit(corpus, queries, embedder="e", texts=["a b", "a"] * 30)
    np.testing.assert_allclose(profile.vectors, unit(corpus), atol=1e-7)
    np.testing.assert_allclose(profile.centroid, unit(corpus).mean(axis=0), atol=1e-15)
    np.testing.assert_allclose(profile.query_centroid, unit(queries).mean(axis=0), atol=1e-15)
    np.testing.assert_allclose(profile.norms, np.quantile(np.linalg.norm(corpus, axis=1), [0.01, 0.5, 0.99]))
    assert profile.effective_dimension == pytest.approx(ref.participation_ratio(corpus))
    assert (profile.size, profile.dimension, profile.n_corpus) == (60, 6, 60)
    assert (profile.n_queries, profile.n_texts, profile.embedder) == (25, 60, "e")
    assert profile.document_frequencies == {"a": 60, "b": 30}
    assert profile.vectors.dtype == np.float32


@pytest.mark.parametrize("with_queries", [True, False])
def test_the_scale_is_the_median_deviation(with_queries: bool) -> None:
    """It is the median deviation of the cosines of the queries, or of the rows without themselves."""
    corpus, queries = rows(), rows(25, seed=1)
    profile = CorpusProfile.fit(corpus, queries if with_queries else None)
    asking = queries if with_queries else corpus
    served = np.zeros((25, 0, 6)) if with_queries else corpus[:, None]
    spreads = [
        ref.background(ref.remaining(corpus, query, passages, limit=0.995))["std"]
        for query, passages in zip(asking, served, strict=True)
    ]
    assert profile.background_scale == pytest.approx(np.median(spreads), abs=1e-7)


@settings(max_examples=10)
@given(st.data(), st.integers(0, 1000))
def test_rotation_scale_and_order_change_no_summary(data: st.DataObject, seed: int) -> None:
    """A turned, permuted sample with rows of other lengths has the same summaries and backgrounds."""
    corpus, queries = rows(seed=seed), rows(25, seed=seed + 1)
    turn = data.draw(rotations(6))
    rng = generator(seed)
    other = (corpus * rng.uniform(0.1, 10.0, (60, 1)))[rng.permutation(60)] @ turn
    one, two = CorpusProfile.fit(corpus, queries), CorpusProfile.fit(other, queries @ turn)
    for name in ("effective_dimension", "background_scale", "passage_cosines"):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), rtol=1e-6)
    np.testing.assert_allclose(one.centroid @ turn, two.centroid, atol=1e-12)
    empty = np.zeros((25, 0, 6)), np.zeros((25, 0))
    before, after = background_of(one, queries, *empty), background_of(two, queries @ turn, *empty)
    for name in ("mean", "std", "q50", "q98", "highest", "typicality"):
        np.testing.assert_allclose(getattr(before, name), getattr(after, name), rtol=0, atol=1e-6)


def test_near_duplicates_in_the_sample_are_allowed() -> None:
    """Rows that repeat keep their places; a row and all its copies leave each other out of the scale."""
    corpus = rows()
    profile = CorpusProfile.fit(np.concatenate([corpus, corpus[:20]]))
    assert profile.size == 80
    assert np.isfinite(profile.background_scale)


def test_large_samples_are_thinned_but_summed_up_whole() -> None:
    """Above the cap that many rows are kept with their ids; centroid, norms and words rest on all."""
    corpus = rows(MOST_ROWS + 100, 4)
    texts = ["common"] * len(corpus)
    profile = CorpusProfile.fit(corpus, ids=range(len(corpus)), texts=texts, seed=3)
    assert (profile.size, profile.n_corpus, profile.n_texts) == (MOST_ROWS, len(corpus), len(corpus))
    assert profile.ids is not None
    np.testing.assert_allclose(profile.vectors, unit(corpus)[list(profile.ids)], atol=1e-7)
    np.testing.assert_allclose(profile.centroid, unit(corpus).mean(axis=0), atol=1e-15)
    assert profile.document_frequencies == {"common": len(corpus)}


def test_equal_fits_have_equal_fingerprints() -> None:
    """The same arguments give the same fingerprint, and each argument that changes a score another one."""
    corpus, queries = rows(), rows(25, seed=1)
    fit = partial(CorpusProfile.fit, corpus)
    assert fit().fingerprint == fit().fingerprint == CorpusProfile.fit(corpus.copy()).fingerprint
    assert len(fit().fingerprint) == 16
    others = [
        fit(),
        fit(queries),
        fit(embedder="e"),
        fit(texts=["a"] * 60),
        fit(texts=["b"] * 60),
        fit(ids=range(60)),
        fit(ids=[str(i) for i in range(60)]),
        fit(duplicate_cosine=0.99),
        CorpusProfile.fit(corpus[::-1]),
    ]
    assert len({profile.fingerprint for profile in others}) == len(others)


def test_a_profile_is_frozen() -> None:
    """Its arrays are read-only, its fields cannot be set, the caller's arrays stay writable and unchanged."""
    corpus = rows()
    before = corpus.copy()
    profile = CorpusProfile.fit(corpus, corpus)
    for array in (profile.vectors, profile.centroid, profile.query_centroid):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0
    with pytest.raises(AttributeError):
        profile.embedder = "other"
    corpus[0] = 0.0
    np.testing.assert_array_equal(corpus[1:], before[1:])


def test_repr_is_one_short_line() -> None:
    """The repr names size, dimension, embedder, what was counted and the fingerprint."""
    profile = CorpusProfile.fit(rows(), rows(25), embedder="e5", texts=["a"] * 60)
    assert repr(profile) == (
        "CorpusProfile(size=60, dimension=6, embedder='e5', n_queries=25, n_texts=60, "
        f"fingerprint='{profile.fingerprint}')"
    )
    plain = CorpusProfile.fit(rows())
    assert repr(plain) == f"CorpusProfile(size=60, dimension=6, fingerprint='{plain.fingerprint}')"


def test_a_profile_can_be_pickled() -> None:
    """A profile sent to another process is the same profile."""
    profile = CorpusProfile.fit(rows(), ids=range(60))
    assert pickle.loads(pickle.dumps(profile)).fingerprint == profile.fingerprint


def bad(row: int, value: float) -> Array:
    """The usual sample with one row spoiled."""
    spoiled = rows()
    spoiled[row] = value
    return spoiled


REFUSED: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"corpus_sample": rows(49)}, ValueError, "at least 50 distinct vectors; got 49 distinct of 49"),
    ({"corpus_sample": np.repeat(rows(10), 10, axis=0)}, ValueError, "got 10 distinct of 100"),
    ({"corpus_sample": np.eye(60)}, ValueError, "cosines that differ; got a background deviation of 0"),
    ({"corpus_sample": bad(7, np.nan)}, ValueError, "finite and not zero in every row; got 1 bad: 7"),
    ({"corpus_sample": bad(3, np.inf)}, ValueError, "got 1 bad: 3"),
    ({"corpus_sample": bad(59, 0.0)}, ValueError, "got 1 bad: 59"),
    ({"corpus_sample": rows() * np.nan}, ValueError, "got 60 bad: 0, 1, 2, 3, 4, 5, 6, 7, ..."),
    ({"corpus_sample": rows()[0]}, ValueError, r"must have shape \(n, d\); got \(6,\)"),
    ({"corpus_sample": np.zeros((60, 0))}, ValueError, r"must have shape \(n, d\); got \(60, 0\)"),
    ({"corpus_sample": [["a"]]}, TypeError, "`corpus_sample` must hold real numbers"),
    ({"query_sample": rows(25, 5)}, ValueError, r"shape \(q, 6\) to match `corpus_sample`; got \(25, 5\)"),
    ({"query_sample": rows(19)}, ValueError, "at least 20 queries; got 19"),
    ({"query_sample": bad(2, 0.0)}, ValueError, "`query_sample` must be finite and not zero .+ 1 bad: 2"),
    ({"texts": ["a"] * 59}, ValueError, "`texts` must have one entry for each of the 60 rows .+ got 59"),
    ({"texts": "a" * 60}, TypeError, "`texts` must be a list; got str"),
    ({"texts": [1] * 60}, TypeError, "`texts` must be a list of strings"),
    ({"ids": range(61)}, ValueError, "`ids` must have one entry for each of the 60 rows .+ got 61"),
    ({"ids": ["p", "q"] * 30}, ValueError, "`ids` must be unique; got 2 more than once: 'p', 'q'"),
    ({"ids": [0.5] * 60}, TypeError, "`ids` must be strings or whole numbers; got 0.5"),
    ({"ids": [True, False] * 30}, TypeError, "`ids` must be strings or whole numbers; got True"),
    ({"embedder": 3}, TypeError, "`embedder` must be a string"),
    ({"duplicate_cosine": 1.5}, ValueError, "`duplicate_cosine` must be a number in"),
    ({"seed": -1}, ValueError, "`seed` must be an integer of at least 0"),
    ({"seed": 0.5}, TypeError, "`seed` must be an integer"),
]


@pytest.mark.parametrize(("arguments", "kind", "pattern"), REFUSED, ids=[r[2][:40] for r in REFUSED])
def test_bad_input_is_refused(arguments: dict[str, Any], kind: type[Exception], pattern: str) -> None:
    """What is no sample is refused, with the rows, the constraint and a cure."""
    refuse(kind, pattern, lambda: CorpusProfile.fit(**{"corpus_sample": rows(), **arguments}))


def test_another_dimension_or_name_is_refused() -> None:
    """Embeddings of another dimension or of a model with another name do not belong to the profile."""
    profile = CorpusProfile.fit(rows(), embedder="minilm")
    queries, passages = rows(2), np.stack([rows(3), rows(3, seed=1)])
    profile.check(queries, passages, "minilm")
    profile.check(queries, passages)
    CorpusProfile.fit(rows()).check(queries, passages, "e5")
    pattern = r"`profile` must have the dimension of the embeddings, 5; got a profile of dimension 6"
    refuse(CalibrationMismatch, pattern, lambda: profile.check(queries[:, :5], passages[:, :, :5], None))
    pattern = "`embedder` must be 'minilm', which made the profile; got 'e5'"
    refuse(CalibrationMismatch, pattern, lambda: profile.check(queries, passages, "e5"))
    profile.check(queries, np.zeros((2, 0, 6)))
