"""Labelled retrieval sets read from folders: precomputed lists where there are any, else exact search.

A set is a folder in the layout of BEIR: `corpus.jsonl`, `queries.jsonl`, judgements in `qrels/test.tsv` or
`qrels.tsv`, and `emb_<embedder>.npz` with `queries` (Q, d) and `corpus` (N, d) in the order of the two lists.
`topk_<embedder>.npz` (`idx`, `cos`) and the least relevant grade (`rel_min` in `meta.json`) are optional.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from _data import FloatArray, IntArray, Mask, unit_rows

DEPTH = 20
_AT_ONCE = 256
_IDS = ("qid", "pid", "_id", "id")
_QRELS = (Path("qrels") / "test.tsv", Path("qrels.tsv"))


class SetProblem(Exception):
    """A folder that cannot be evaluated, with what to do about it."""


@dataclass(frozen=True)
class Collection:
    """Queries of one set under one embedder, its corpus, its judgements, and the list of every query.

    Attributes
    ----------
    queries, corpus : ndarray, shapes (Q, d) and (N, d)
        Unit rows.
    rows, cosines : ndarray, shape (Q, D)
        The nearest passages, nearest first; D = 20, or N if that is less.
    relevant : tuple of frozenset of int
        Rows of the corpus that hold the evidence of each query.
    answerable : ndarray of int, shape (Q,)
        1, 0 (someone looked and found no answer), or -1 (not judged).
    questions, passages : tuple of str
        The texts.
    """

    name: str
    embedder: str
    queries: FloatArray
    corpus: FloatArray
    rows: IntArray
    cosines: FloatArray
    relevant: tuple[frozenset[int], ...]
    answerable: IntArray
    questions: tuple[str, ...]
    passages: tuple[str, ...]

    @property
    def judged(self) -> Mask:
        """Queries that someone judged, shape (Q,)."""
        return np.asarray(self.answerable >= 0)


@dataclass(frozen=True)
class Questions:
    """Queries without a corpus: unit rows (Q, d), and their texts."""

    vectors: FloatArray
    texts: tuple[str, ...]


@dataclass(frozen=True)
class _Texts:
    ids: tuple[str, ...]
    texts: tuple[str, ...]
    lines: tuple[dict[str, Any], ...]


def find_sets(folder: Path, wanted: Sequence[str] | None = None) -> list[Path]:
    """Folders of the sets: `folder` itself if it holds vectors, else those inside it that do.

    Raises
    ------
    SetProblem
        If there is none, or one that was asked for is missing.
    """
    if not folder.is_dir():
        raise SetProblem(f"no folder {folder}. Pass a folder of sets, or the folder of one set.")
    places = [folder] if _embedders(folder) else sorted(p for p in folder.iterdir() if _embedders(p))
    if not places:
        raise SetProblem(
            f"no set in {folder}: neither it nor a folder inside it holds emb_<embedder>.npz. Write the "
            "vectors as arrays `queries` and `corpus`, in the order of queries.jsonl and corpus.jsonl."
        )
    return places if wanted is None else _chosen(wanted, {place.name: place for place in places}, "set")


def find_embedders(places: Sequence[Path], wanted: Sequence[str] | None = None) -> list[str]:
    """Names of the embedders that occur in the sets; SetProblem for one that no set has."""
    names = sorted({name for place in places for name in _embedders(place)})
    return names if wanted is None else _chosen(wanted, dict(zip(names, names, strict=True)), "embedder")


def has_embedder(place: Path, embedder: str) -> bool:
    """Whether the set has vectors of this embedder."""
    return embedder in _embedders(place)


def read_collection(place: Path, embedder: str) -> Collection:
    """The set in a folder under one embedder.

    Raises
    ------
    SetProblem
        For a missing file, and for files that do not fit together, with what to do about it.
    """
    asked, held = _lines(place / "queries.jsonl"), _lines(place / "corpus.jsonl")
    queries, corpus = _vectors(place / f"emb_{embedder}.npz", len(asked.ids), len(held.ids))
    relevant, judged = _judgements(place, asked, held)
    answerable = _answerable(asked, relevant, judged)
    rows, cosines = _lists(place / f"topk_{embedder}.npz", queries, corpus)
    return Collection(
        name=place.name,
        embedder=embedder,
        queries=queries,
        corpus=corpus,
        rows=rows,
        cosines=cosines,
        relevant=relevant,
        answerable=answerable,
        questions=asked.texts,
        passages=held.texts,
    )


def read_queries(place: Path, embedder: str) -> Questions:
    """The queries of a set alone."""
    with _opened(place / f"emb_{embedder}.npz") as file:
        return Questions(unit_rows(file["queries"].astype(np.float32)), _lines(place / "queries.jsonl").texts)


def search(queries: FloatArray, corpus: FloatArray) -> tuple[IntArray, FloatArray]:
    """Rows and cosines of the nearest unit rows of `corpus` (N, d) to each query; (Q, min(20, N)) each.

    By exact search, some queries at a time so that a large corpus fits into memory; ties in order of rows.
    """
    depth = min(DEPTH, len(corpus))
    found = [_nearest(part, corpus, depth) for part in np.array_split(queries, -(-len(queries) // _AT_ONCE))]
    return np.concatenate([rows for rows, _ in found]), np.concatenate([cosines for _, cosines in found])


def _nearest(queries: FloatArray, corpus: FloatArray, depth: int) -> tuple[IntArray, FloatArray]:
    cosines = queries @ corpus.T
    some = np.sort(np.argpartition(-cosines, depth - 1, axis=1)[:, :depth], axis=1)
    order = np.argsort(-np.take_along_axis(cosines, some, axis=1), axis=1, kind="stable")
    rows = np.take_along_axis(some, order, axis=1)
    return rows, np.take_along_axis(cosines, rows, axis=1)


def _embedders(place: Path) -> list[str]:
    return sorted(p.stem.removeprefix("emb_") for p in place.glob("emb_*.npz")) if place.is_dir() else []


def _chosen(wanted: Sequence[str], there: dict[str, Any], what: str) -> list[Any]:
    missing = [name for name in wanted if name not in there]
    if missing:
        raise SetProblem(f"no {what} {', '.join(missing)}; there are {', '.join(there)}.")
    return [there[name] for name in wanted]


def _lines(path: Path) -> _Texts:
    if not path.is_file():
        raise SetProblem(f"{path.parent.name}: {path.name} is missing. Write one JSON object a line.")
    try:
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        ids = tuple(_id(line) for line in lines)
    except (ValueError, TypeError):
        raise SetProblem(
            f"{path.parent.name}: {path.name} must hold one JSON object a line, each with an id "
            f"({', '.join(_IDS)}). Repair it."
        ) from None
    texts = tuple(" ".join(filter(None, (str(line.get("title") or ""), _text(line)))) for line in lines)
    return _Texts(ids, texts, tuple(lines))


def _id(line: dict[str, Any]) -> str:
    found = next((line[name] for name in _IDS if name in line), None)
    if found is None:
        raise ValueError("a line without an id")
    return str(found)


def _text(line: dict[str, Any]) -> str:
    return str(line.get("text") or "")


def _opened(path: Path) -> Any:
    try:
        return np.load(io.BytesIO(path.read_bytes()))
    except (OSError, ValueError, BadZipFile) as problem:
        raise SetProblem(
            f"{path.parent.name}: {path.name} cannot be read ({problem}). Write it again."
        ) from None


def _vectors(path: Path, n_queries: int, n_corpus: int) -> tuple[FloatArray, FloatArray]:
    found = {}
    with _opened(path) as file:
        for name, count in (("queries", n_queries), ("corpus", n_corpus)):
            array = file[name] if name in file.files else np.zeros(0)
            if array.ndim != 2 or len(array) != count:
                raise SetProblem(
                    f"{path.parent.name}: `{name}` in {path.name} must have shape ({count}, d), one row a "
                    f"line of {name}.jsonl; got {array.shape}. Embed every line, in the order of the file."
                )
            found[name] = array.astype(np.float32)
    for name, array in found.items():
        lengths = np.linalg.norm(array, axis=1)
        if not (np.isfinite(lengths).all() and lengths.all()):
            raise SetProblem(
                f"{path.parent.name}: `{name}` in {path.name} must be finite and never all zero. Embed again."
            )
    return unit_rows(found["queries"]), unit_rows(found["corpus"])


def _judgements(
    place: Path, asked: _Texts, held: _Texts
) -> tuple[tuple[frozenset[int], ...], frozenset[str]]:
    """Relevant rows of each query, and the queries that occur in the judgements at all."""
    path = next((place / name for name in _QRELS if (place / name).is_file()), None)
    if path is None:
        raise SetProblem(
            f"{place.name}: no judgements. Write qrels/test.tsv or qrels.tsv: query, passage and grade, "
            "separated by tabs, under a header."
        )
    meta = place / "meta.json"
    least = json.loads(meta.read_text(encoding="utf-8")).get("rel_min", 1) if meta.is_file() else 1
    row_of = {passage: row for row, passage in enumerate(held.ids)}
    found: dict[str, set[int]] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()[1:], start=2):
        query, passage, grade = _judgement(line, f"{place.name}: line {number} of {path.name}")
        rows = found.setdefault(query, set())
        if grade >= least:
            rows.add(_row(row_of, passage, place.name))
    return tuple(frozenset(found.get(query, ())) for query in asked.ids), frozenset(found)


def _judgement(line: str, where: str) -> tuple[str, str, float]:
    try:
        query, passage, grade = line.split("\t")
        return query, passage, float(grade)
    except ValueError:
        raise SetProblem(f"{where} must be query, passage and grade between tabs; got {line!r}.") from None


def _row(row_of: dict[str, int], passage: str, name: str) -> int:
    if passage not in row_of:
        raise SetProblem(f"{name}: the judgements name the passage {passage!r}, which the corpus lacks.")
    return row_of[passage]


def _answerable(asked: _Texts, relevant: tuple[frozenset[int], ...], judged: frozenset[str]) -> IntArray:
    """As the queries say themselves; else by whether the judgements name a relevant passage."""
    said = [line.get("answerable") for line in asked.lines]
    by_judgements = [
        int(bool(rows)) if name in judged else -1 for name, rows in zip(asked.ids, relevant, strict=True)
    ]
    return np.array([b if s is None else int(s) for s, b in zip(said, by_judgements, strict=True)])


def _lists(path: Path, queries: FloatArray, corpus: FloatArray) -> tuple[IntArray, FloatArray]:
    if not path.is_file():
        return search(queries, corpus)
    with _opened(path) as file:
        rows, cosines = file["idx"][:, :DEPTH], file["cos"][:, :DEPTH]
    if rows.shape != cosines.shape or len(rows) != len(queries) or rows.max(initial=0) >= len(corpus):
        raise SetProblem(
            f"{path.parent.name}: {path.name} does not fit the vectors. Delete it to search again."
        )
    return rows.astype(np.intp), cosines.astype(np.float32)
