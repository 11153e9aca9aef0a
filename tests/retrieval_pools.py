"""Labelled pools from the real retrieval sets, scored by the best cosine; for tests marked `needs_data`."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rag_confidence.synthetic import LabelledScores

K = 10


def arrays(path: Path) -> dict[str, np.ndarray]:
    """All arrays of a file, which is closed again; left open, it warns in whichever test comes later."""
    with np.load(path) as file:
        return dict(file)


def own_corpus(data_dir: Path, name: str, embedder: str) -> LabelledScores:
    """Queries on their own corpus: label 1 where the ten nearest passages hold the evidence.

    ``kind`` is "sufficient", "near_miss" (the corpus holds no answer) or "ranking_failure".
    """
    lists = arrays(data_dir / name / f"topk_{embedder}.npz")
    at = lists["ks"].tolist().index(K)
    labels = lists["sufficient"][:, at].astype(bool)
    lacking = np.where(lists["answerable"] == 0, "near_miss", "ranking_failure")
    pool = LabelledScores(lists["cos"][:, 0].astype(float), labels, np.where(labels, "sufficient", lacking))
    return pool.take(lists["sufficient_known"][:, at].astype(bool))


def topic_gaps(data_dir: Path, name: str, other: str, embedder: str) -> LabelledScores:
    """The queries of one set on the corpus of another: nothing there is on their topic."""
    with np.load(data_dir / name / f"emb_{embedder}.npz") as file:
        queries = unit(file["queries"])
    with np.load(data_dir / other / f"emb_{embedder}.npz") as file:
        best = (queries @ unit(file["corpus"]).T).max(axis=1)
    rows = len(queries)
    return LabelledScores(best.astype(float), np.zeros(rows, dtype=bool), np.array(["topic_gap"] * rows))


def joined(*pools: LabelledScores) -> LabelledScores:
    """The rows of several pools, one after the other."""
    columns = ([getattr(pool, name) for pool in pools] for name in ("scores", "labels", "kind"))
    return LabelledScores(*map(np.concatenate, columns))


def unit(vectors: np.ndarray) -> np.ndarray:
    """Rows of length one, in single precision."""
    wide = vectors.astype(np.float32)
    return np.asarray(wide / np.linalg.norm(wide, axis=1, keepdims=True))
