"""The traffic of a retrieval pipeline over one real set: its own queries, and queries on another subject.

A row is insufficient in one of three ways. Near miss: the set's annotators found no answer in the corpus.
Ranking failure: the evidence is in the corpus and not among the passages retrieved. Topic gap: the query
belongs to a set on another subject.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from _data import RELATED, SETS, FloatArray, IntArray, K, Mask, nearest
from numpy.typing import NDArray

Names: TypeAlias = NDArray[np.str_]

SALT = 0x919E11
KINDS = ("topic_gap", "ranking_failure", "near_miss")
GAPS = 300


@dataclass(frozen=True, eq=False)
class Traffic:
    """Queries with what was retrieved for them.

    Attributes
    ----------
    ids, texts : ndarray of str, shape (n,)
    vectors : ndarray, shape (n, d)
    rows, cosines : ndarray, shape (n, K)
        The passages found, nearest first.
    labels : ndarray of bool, shape (n,)
        Whether they hold the evidence.
    kinds : ndarray of str, shape (n,)
        The kind of insufficient row; empty for sufficient ones.
    """

    ids: Names
    texts: Names
    vectors: FloatArray
    rows: IntArray
    cosines: FloatArray
    labels: Mask
    kinds: Names

    def __len__(self) -> int:
        return len(self.ids)

    def part(self, where: IntArray | Mask) -> Traffic:
        """Some of the rows."""
        return Traffic(*(column[where] for column in vars(self).values()))

    def negatives(self) -> list[str | None]:
        """The kinds as a gate takes them: None for sufficient rows."""
        return [str(kind) or None for kind in self.kinds]


@dataclass(frozen=True, eq=False)
class Pipeline:
    """A corpus under one embedder, and the traffic over it."""

    corpus: FloatArray
    passages: Names
    traffic: Traffic


def read_pipeline(folder: Path, name: str, embedder: str, seed: int) -> Pipeline:
    """The pipeline of one set, with some queries of every set on another subject among its traffic."""
    corpus = _embeddings(folder / name, embedder)[1]
    own = _own(folder / name, embedder)
    others = [other for other in SETS if other != name and frozenset({other, name}) not in RELATED]
    gaps = [_gaps(folder / other, embedder, corpus, GAPS // len(others), seed) for other in others]
    columns = zip(*(vars(part).values() for part in (own, *gaps)), strict=True)
    traffic = Traffic(*(np.concatenate(parts) for parts in columns))
    return Pipeline(corpus, _texts(folder / name / "corpus.jsonl"), traffic)


def _own(folder: Path, embedder: str) -> Traffic:
    with np.load(folder / f"topk_{embedder}.npz") as file:
        lists = dict(file)
    at = lists["ks"].tolist().index(K)
    labels = lists["sufficient"][:, at]
    kinds = np.where(lists["answerable"] == 0, "near_miss", "ranking_failure")
    traffic = Traffic(
        ids=_ids(folder),
        texts=_texts(folder / "queries.jsonl"),
        vectors=_embeddings(folder, embedder)[0],
        rows=lists["idx"][:, :K],
        cosines=lists["cos"][:, :K],
        labels=labels,
        kinds=np.where(labels, "", kinds),
    )
    return traffic.part(lists["sufficient_known"][:, at])


def _gaps(folder: Path, embedder: str, corpus: FloatArray, count: int, seed: int) -> Traffic:
    queries = _embeddings(folder, embedder)[0]
    chosen = np.random.default_rng([SALT, seed]).permutation(len(queries))[:count]
    rows, cosines = nearest(queries[chosen], corpus)
    return Traffic(
        ids=_ids(folder)[chosen],
        texts=_texts(folder / "queries.jsonl")[chosen],
        vectors=queries[chosen],
        rows=rows,
        cosines=cosines,
        labels=np.zeros(len(chosen), dtype=bool),
        kinds=np.full(len(chosen), "topic_gap"),
    )


def _embeddings(folder: Path, embedder: str) -> tuple[FloatArray, FloatArray]:
    with np.load(folder / f"emb_{embedder}.npz") as file:
        return file["queries"].astype(np.float32), file["corpus"].astype(np.float32)


def _records(file: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def _texts(file: Path) -> Names:
    return np.array([str(record["text"]) for record in _records(file)])


def _ids(folder: Path) -> Names:
    return np.array([f"{folder.name}:{record['qid']}" for record in _records(folder / "queries.jsonl")])
