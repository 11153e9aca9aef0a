"""Rules of the offline embedder and of the exact search."""

from __future__ import annotations

import socket
import sys

import numpy as np
import pytest
from _retrieval import load_embedder, nearest, unit_rows
from hypothesis import given
from hypothesis import strategies as st


@given(st.integers(1, 60), st.integers(1, 70), st.integers(0, 2**32 - 1))
def test_nearest_equals_brute_force(n: int, k: int, seed: int) -> None:
    """The k highest cosines of a plain loop, in its order, for any n and k."""
    rng = np.random.default_rng(seed)
    question, *passages = unit_rows(rng.standard_normal((n + 1, 5)))
    cosines = [float(np.dot(passage, question)) for passage in passages]
    expected = sorted(range(n), key=lambda row: -cosines[row])[:k]
    hits = nearest(question, np.array(passages), k)
    assert hits.rows.tolist() == expected
    np.testing.assert_allclose(hits.cosines, [cosines[row] for row in expected], atol=1e-12)


def test_ties_are_ordered_by_row() -> None:
    """Equal passages are served in the order they were read in."""
    passages = np.tile(np.eye(2)[0], (4, 1))
    assert nearest(np.eye(2)[0], passages, 3).rows.tolist() == [0, 1, 2]


def test_the_first_hits_are_the_nearest() -> None:
    """A shorter list is the head of the longer one."""
    hits = nearest(np.eye(3)[0], np.eye(3), 3)
    assert hits.first(1).rows.tolist() == [0]
    assert hits.first(9).cosines.tolist() == hits.cosines.tolist()


def test_unit_rows_keep_a_zero_row() -> None:
    """Every row gets length one; a zero row is left alone, without a warning."""
    assert unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist() == [[0.6, 0.8], [0.0, 0.0]]


def test_a_missing_embedder_is_one_install_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without wordllama the error says what to install."""
    monkeypatch.setitem(sys.modules, "wordllama", None)
    with pytest.raises(ImportError, match=r"install it with: pip install 'rag-confidence\[demo\]'"):
        load_embedder()


@pytest.mark.needs_extra("demo")
def test_the_embedder_opens_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading and embedding work while every connection and name look-up is refused."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    vectors = load_embedder()(["a question", "字", "?"])
    assert vectors.shape == (3, 256)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0)


@pytest.mark.needs_extra("demo")
def test_an_embedding_does_not_depend_on_its_batch() -> None:
    """A text has the same vector alone and beside a longer one."""
    embed = load_embedder()
    np.testing.assert_allclose(
        embed(["short", "a much longer text " * 20])[0], embed(["short"])[0], atol=1e-6
    )
