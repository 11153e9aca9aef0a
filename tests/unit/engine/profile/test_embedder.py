"""Vectors of another embedder of the same dimension are told from those of the profile."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference_profile import Array
from retrieval_pools import arrays
from strategies import generator

from rag_confidence.engine.profile.corpus_profile import CorpusProfile
from rag_confidence.engine.profile.embedder import (
    LEAST_PASSAGES,
    LEAST_SAMPLE,
    embedder_test,
    energy,
    foreign_rows,
)
from rag_confidence.engine.profile.fitting import shuffled
from rag_confidence.errors import CalibrationMismatch

SETS = ("squad2", "clapnq", "scifact", "pubmedqa", "bfcl_tools")
MODELS = ("minilm", "wordllama", "usem3")


def corpus_of(seed: int, m: int = 600, d: int = 64) -> Array:
    """Unit rows whose energy falls along random axes, as that of real embeddings does."""
    rng = generator(seed)
    turn = np.linalg.qr(rng.standard_normal((d, d))).Q
    found = (rng.standard_normal((m, d)) / np.sqrt(np.arange(1, d + 1))) @ turn
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True))


def turned(rows: Array, seed: int = 99) -> Array:
    """The same geometry on other axes: another embedder of the same dimension."""
    d = rows.shape[-1]
    return np.asarray(rows @ np.linalg.qr(generator(seed).standard_normal((d, d))).Q.astype(rows.dtype))


def lists_of(rows: Array, count: int = 100, k: int = 8) -> Array:
    """Lists of k different rows (count, k, d)."""
    rng = generator(5)
    return np.stack([rows[rng.choice(len(rows), k, replace=False)] for _ in range(count)])


@given(
    st.integers(0, 2**32 - 1), st.sampled_from([1e-30, 1.0, 1e30]), st.sampled_from([np.float32, np.float64])
)
def test_energy_is_the_length_of_a_projection(seed: int, scale: float, dtype: type) -> None:
    """The share is that of the squared length of the projection on the axes, whatever the length."""
    rng = generator(seed)
    axes = np.linalg.qr(rng.standard_normal((7, 3))).Q.T
    vectors = rng.standard_normal((4, 2, 7))
    expected = np.linalg.norm(vectors @ axes.T, axis=-1) ** 2 / np.linalg.norm(vectors, axis=-1) ** 2
    found = energy((vectors * scale).astype(dtype), axes)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 if dtype is np.float32 else 1e-12)


def test_lists_of_the_own_embedder_pass() -> None:
    """Lists of rows that the sample never saw are not named, whatever their lengths."""
    rows = corpus_of(0, m=1200)
    test = embedder_test(rows[:600], shuffled(600, 0))
    own = lists_of(rows[600:])
    assert len(foreign_rows(test, own)) == 0
    assert len(foreign_rows(test, own * 1e-3)) == 0
    assert 0.0 < test.floor < test.own_energy < 1.0


def test_lists_of_a_turned_embedder_are_named() -> None:
    """The same rows on other axes are named for nearly all lists; the rows of a mixed batch are listed."""
    rows = corpus_of(1, m=1200)
    test = embedder_test(rows[:600], shuffled(600, 0))
    own = lists_of(rows[600:])
    assert len(foreign_rows(test, turned(own))) >= 95
    mixed = own.copy()
    mixed[[3, 8]] = turned(own[[3, 8]])
    assert set(foreign_rows(test, mixed)) <= {3, 8}


@pytest.mark.parametrize("k", range(1, LEAST_PASSAGES))
def test_weak_evidence_names_nobody(k: int) -> None:
    """Fewer than five passages, or as many copies of fewer, are never named."""
    rows = corpus_of(2)
    test = embedder_test(rows, shuffled(600, 0))
    foreign = turned(lists_of(rows, k=k))
    assert len(foreign_rows(test, foreign)) == 0
    assert len(foreign_rows(test, np.repeat(foreign, 5, axis=1))) == 0


@pytest.mark.parametrize(("m", "d"), [(LEAST_SAMPLE - 1, 64), (600, 3), (600, 1)])
def test_small_samples_and_dimensions_name_nobody(m: int, d: int) -> None:
    """With fewer than 200 rows or fewer than four dimensions vectors prove nothing."""
    rows = corpus_of(3, m=m, d=d)
    test = embedder_test(rows, shuffled(m, 0))
    assert test.floor == 0.0
    assert len(foreign_rows(test, turned(lists_of(rows)))) == 0


def test_an_embedder_without_preferred_axes_is_not_told_apart() -> None:
    """Where energy is spread evenly, a rotation looks the same, and hardly any list is named."""
    rng = generator(4)
    rows = rng.standard_normal((1200, 64))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    test = embedder_test(rows[:600], shuffled(600, 0))
    assert len(foreign_rows(test, lists_of(rows[600:]))) == 0
    assert len(foreign_rows(test, turned(lists_of(rows[600:])))) == 0


def test_queries_are_never_judged() -> None:
    """A query off every topic raises nothing; passages on other axes do, and the message says where."""
    rows = corpus_of(6)
    profile = CorpusProfile.fit(rows)
    own = lists_of(rows, count=3)
    profile.check(turned(own[:, 0]), own, None)
    with pytest.raises(
        CalibrationMismatch, match=r"(?s)^`profile` must be of the embedder .+ at 3 rows, 0, 1, 2, "
    ):
        profile.check(own[:, 0], turned(own), None)
    with pytest.raises(CalibrationMismatch, match=r"got passages whose vectors lie"):
        profile.check(own[:1, 0], turned(own[:1]), None)


@pytest.mark.needs_data
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", SETS)
def test_real_embedders(data_dir: Path, name: str, model: str) -> None:
    """No query of the own corpus is refused; on other axes nearly all are."""
    corpus = arrays(data_dir / name / f"emb_{model}.npz")["corpus"].astype(np.float32)
    served = arrays(data_dir / name / f"topk_{model}.npz")["idx"][:1200]
    some = generator(0).choice(len(corpus), min(500, len(corpus) // 2), replace=False)
    test = embedder_test(corpus[some].astype(float), shuffled(len(some), 0))
    assert [len(foreign_rows(test, corpus[served[:, :k]])) for k in (5, 10)] == [0, 0]
    few = served[:400, :10]
    assert len(foreign_rows(test, turned(corpus)[few])) >= 0.9 * len(few)
