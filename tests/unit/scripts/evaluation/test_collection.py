"""Rules of reading sets: what is computed where files are missing, and what is said where they are broken."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import beir_folder
import numpy as np
import pytest
from evaluation.collection import DEPTH, SetProblem, find_embedders, find_sets, read_collection, search
from hypothesis import given
from hypothesis import strategies as st


@given(st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_search_is_a_full_sort(size: int, seed: int) -> None:
    """The nearest rows of a sort of all cosines, ties in the order of rows, at most as many as there are."""
    rng = np.random.default_rng(seed)
    corpus, queries = rng.integers(-2, 3, (size, 3)).astype(float), rng.integers(-2, 3, (5, 3)).astype(float)
    rows, cosines = search(queries, corpus)
    every = queries @ corpus.T
    depth = min(DEPTH, size)
    np.testing.assert_array_equal(cosines, -np.sort(-every, axis=1)[:, :depth])
    np.testing.assert_array_equal(np.take_along_axis(every, rows, axis=1), cosines)


def test_a_folder_in_the_layout_of_beir_is_read(tmp_path: Path) -> None:
    """Titles join the texts, grades of 0 mean that there is no answer, and lists come from exact search."""
    place = beir_folder.write_set(tmp_path, "tiny", queries=30, passages=40)
    data = read_collection(place, beir_folder.EMBEDDER)
    assert data.passages[3] == "Title 3 word3 text"
    assert data.rows.shape == (30, DEPTH)
    np.testing.assert_allclose(np.linalg.norm(data.corpus, axis=1), 1.0, rtol=1e-6)
    assert all(rows == {at} for at, rows in enumerate(data.relevant) if data.answerable[at] == 1)
    assert {bool(rows) for at, rows in enumerate(data.relevant) if data.answerable[at] == 0} == {False}


def test_queries_without_judgements_are_not_evaluated(tmp_path: Path) -> None:
    """A query that the judgements do not name is unknown, unless the queries say themselves."""
    place = beir_folder.write_set(tmp_path, "tiny", queries=3, passages=25)
    beir_folder.judgements(place, ["q0\tp0\t1"])
    records = [{"_id": f"q{i}", "text": ""} | ({"answerable": False} if i == 2 else {}) for i in range(3)]
    beir_folder.lines(place / "queries.jsonl", records)
    assert read_collection(place, beir_folder.EMBEDDER).answerable.tolist() == [1, -1, 0]


def test_stored_lists_are_used_as_they_are(tmp_path: Path) -> None:
    """With topk_*.npz nothing is searched."""
    place = beir_folder.write_set(tmp_path, "tiny", queries=3, passages=25)
    lists = {"idx": np.tile(np.arange(20), (3, 1)), "cos": np.tile(np.linspace(0.9, 0.1, 20), (3, 1))}
    np.savez(place / f"topk_{beir_folder.EMBEDDER}.npz", **lists)
    assert read_collection(place, beir_folder.EMBEDDER).rows.tolist() == lists["idx"].tolist()


def test_one_set_or_a_folder_of_them(tmp_path: Path) -> None:
    """Both name the same sets; folders without vectors are no sets; others can be left out."""
    first, second = (beir_folder.write_set(tmp_path, name, queries=2, passages=25) for name in ("a", "b"))
    (tmp_path / "raw").mkdir()
    assert find_sets(tmp_path) == [first, second]
    assert find_sets(second) == [second]
    assert find_sets(tmp_path, ["b"]) == [second]
    assert find_embedders([first, second]) == [beir_folder.EMBEDDER]


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    """A missing folder, an empty one, an unknown set and an unknown embedder each say what there is."""
    with pytest.raises(SetProblem, match=r"no folder .*absent\. Pass a folder of sets"):
        find_sets(tmp_path / "absent")
    with pytest.raises(SetProblem, match=r"no set in .*: neither it nor a folder inside it holds emb_"):
        find_sets(tmp_path)
    place = beir_folder.write_set(tmp_path, "a", queries=2, passages=25)
    with pytest.raises(SetProblem, match=r"no set c; there are a\."):
        find_sets(tmp_path, ["c"])
    with pytest.raises(SetProblem, match=r"no embedder big; there are tiny\."):
        find_embedders([place], ["big"])


def vectors(place: Path, **arrays: np.ndarray) -> None:
    """Write the vectors of a set anew."""
    np.savez(place / f"emb_{beir_folder.EMBEDDER}.npz", **arrays)


BREAKS: dict[str, tuple[Callable[[Path], object], str]] = {
    "no corpus": (
        lambda p: (p / "corpus.jsonl").unlink(),
        r"a: corpus.jsonl is missing\. Write one JSON object",
    ),
    "no judgements": (
        lambda p: (p / "qrels" / "test.tsv").unlink(),
        r"a: no judgements\. Write qrels/test.tsv",
    ),
    "no JSON": (
        lambda p: (p / "queries.jsonl").write_text("q1\n"),
        r"a: queries.jsonl must hold one JSON object",
    ),
    "no id": (
        lambda p: (p / "queries.jsonl").write_text('{"text": "x"}\n'),
        r"each with an id \(qid, pid, _id, id\)",
    ),
    "too few vectors": (
        lambda p: vectors(p, queries=np.ones((2, 3)), corpus=np.ones((4, 3))),
        r"a: `corpus` in emb_tiny.npz must have shape \(25, d\).*got \(4, 3\)",
    ),
    "no such array": (
        lambda p: vectors(p, queries=np.ones((2, 3))),
        r"`corpus` in emb_tiny.npz must have shape \(25, d\).*got \(0,\)",
    ),
    "nan": (
        lambda p: vectors(p, queries=np.full((2, 3), np.nan), corpus=np.ones((25, 3))),
        r"`queries` in emb_tiny.npz must be finite and never all zero",
    ),
    "cut off": (
        lambda p: (p / "emb_tiny.npz").write_bytes(b"PK\x03\x04"),
        r"a: emb_tiny.npz cannot be read",
    ),
    "unknown passage": (
        lambda p: beir_folder.judgements(p, ["q0\tp99\t1"]),
        r"a: the judgements name the passage 'p99', which the corpus lacks",
    ),
    "two columns": (
        lambda p: beir_folder.judgements(p, ["q0\tp0"]),
        r"a: line 2 of test.tsv must be query, passage and grade between tabs; got 'q0\\tp0'",
    ),
    "lists of others": (
        lambda p: np.savez(p / "topk_tiny.npz", idx=np.zeros((9, 20), dtype=int), cos=np.zeros((9, 20))),
        r"a: topk_tiny.npz does not fit the vectors",
    ),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_set_says_what_is_wrong(tmp_path: Path, name: str) -> None:
    """One sentence with the set, the file and the cure."""
    place = beir_folder.write_set(tmp_path, "a", queries=2, passages=25)
    damage, message = BREAKS[name]
    damage(place)
    with pytest.raises(SetProblem, match=message):
        read_collection(place, beir_folder.EMBEDDER)


def test_the_least_relevant_grade_comes_from_the_set(tmp_path: Path) -> None:
    """`rel_min` in meta.json decides which grades hold the evidence."""
    place = beir_folder.write_set(tmp_path, "a", queries=2, passages=25)
    beir_folder.judgements(place, ["q0\tp0\t1", "q0\tp1\t2", "q1\tp1\t1"])
    (place / "meta.json").write_text(json.dumps({"rel_min": 2}), encoding="utf-8")
    data = read_collection(place, beir_folder.EMBEDDER)
    assert data.relevant == (frozenset({1}), frozenset())
    assert data.answerable.tolist() == [1, 0]
