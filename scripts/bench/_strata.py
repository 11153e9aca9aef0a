"""Labelled pools from the real retrieval sets, one for each kind of negative."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import _above  # noqa: F401  (the modules below live in scripts/)
import numpy as np
from _data import EMBEDDERS, FloatArray, IntArray, K, RetrievalSet, nearest, read_sets
from _scored import Scored, score_sets

from rag_confidence import score_many
from rag_confidence.synthetic import LabelledScores

STRATA = {
    "topic gap": "each query on a corpus on another subject, drawn at random for it",
    "ranking failure": "queries whose evidence is in the corpus, but not among the ten passages",
    "near miss": "queries on a corpus on their subject that holds no answer (natural: annotators said so)",
    "withheld evidence": "a random half of the answerable queries, whose relevant passages were taken out of "
    "the corpus before retrieval",
}
LEAST = 40


@dataclass(frozen=True)
class Pool:
    """Sufficient rows and one kind of insufficient rows of one set under one embedder.

    Attributes
    ----------
    label : str
        Set and embedder.
    stratum : str
    kpi, max_cosine : LabelledScores
        The same rows under two scores.
    query : ndarray of int, shape (n,)
        The query of each row; at most one row of each class has it.
    """

    label: str
    stratum: str
    kpi: LabelledScores
    max_cosine: LabelledScores
    query: IntArray

    @property
    def smaller_class(self) -> int:
        """Rows of the rarer class."""
        return int(min(np.count_nonzero(self.kpi.labels), np.count_nonzero(~self.kpi.labels)))


def pools(folder: Path, limit: int | None, seed: int, embedders: Sequence[str] = EMBEDDERS) -> Iterator[Pool]:
    """Every pool of every set, those with too few rows included.

    The KPI is that of the policy whose grounding gate was fitted, without labels, on half of the queries;
    the pools hold the other half only.
    """
    for embedder in embedders:
        for scored in score_sets(read_sets(folder, embedder, limit, seed), seed):
            yield from _pools_of(scored, folder / scored.data.name, seed)


def _pools_of(scored: Scored, folder: Path, seed: int) -> Iterator[Pool]:
    tested = np.flatnonzero(~scored.fit & scored.data.known)
    places = stored_places(scored.data, folder, seed)
    with np.load(folder / f"topk_{scored.data.embedder}.npz") as file:
        answerable = file["answerable"][places] == 1
    own = _columns(scored.own.batch.kpi, scored.own.batch.signals["max_cosine"])
    sufficient = tested[scored.data.sufficient[tested]]
    lacking = tested[~scored.data.sufficient[tested]]
    gaps = _gap_columns(scored, seed)
    yield _pool(scored, "topic gap", (own, sufficient), (gaps, tested))
    yield _pool(scored, "ranking failure", (own, sufficient), (own, lacking[answerable[lacking]]))
    yield _pool(scored, "near miss", (own, sufficient), (own, lacking[~answerable[lacking]]))
    asked = tested[answerable[tested]]
    yield withheld(scored, asked, _relevant(folder, places), seed)


def _pool(
    scored: Scored, stratum: str, positive: tuple[FloatArray, IntArray], negative: tuple[FloatArray, IntArray]
) -> Pool:
    """Join (columns (2, Q), queries) of both classes."""
    rows = np.concatenate([columns[:, queries] for columns, queries in (positive, negative)], axis=1)
    query = np.concatenate([positive[1], negative[1]])
    labels = np.arange(len(query)) < len(positive[1])
    kind = np.where(labels, "sufficient", stratum)
    kpi, cosine = (LabelledScores(scores, labels, kind) for scores in rows)
    return Pool(scored.data.label, stratum, kpi, cosine, query)


def _columns(kpi: FloatArray, cosine: FloatArray) -> FloatArray:
    return np.stack([kpi, np.clip(cosine, 0.0, 1.0)])


def _gap_columns(scored: Scored, seed: int) -> FloatArray:
    """Both scores of each query on one corpus on another subject, drawn at random."""
    found = np.stack([_columns(g.batch.kpi, g.batch.signals["max_cosine"]) for g in scored.gaps])
    queries = found.shape[-1]
    chosen = np.random.default_rng([0x9A9, seed]).integers(len(found), size=queries)
    return np.asarray(found[chosen, :, np.arange(queries)].T)


def stored_places(data: RetrievalSet, folder: Path, seed: int) -> IntArray:
    """Rows of the stored lists that the queries of a set come from, in their order."""
    with np.load(folder / f"topk_{data.embedder}.npz") as file:
        rows = file["idx"][:, :K]
    places = np.random.default_rng(seed).permutation(len(rows))[: len(data.queries)]
    if not np.array_equal(rows[places], data.rows):
        raise RuntimeError(f"{data.label}: the queries are not in the order that was expected")
    return np.asarray(places)


def withheld(scored: Scored, asked: IntArray, relevant: Sequence[set[int]], seed: int) -> Pool:
    """Take the evidence of half of the queries `asked` out of the corpus, and retrieve for all of them."""
    data = scored.data
    order = np.random.default_rng([0x817, seed]).permutation(asked)
    robbed, spared = order[: len(order) // 2], order[len(order) // 2 :]
    gone = set().union(*(relevant[query] for query in robbed))
    left = np.array([row for row in range(len(data.corpus)) if row not in gone])
    rows, cosines = nearest(data.queries[asked], data.corpus[left])
    kpi = score_many(data.queries[asked], data.corpus[left][rows], policy=scored.policy, perturb=False).kpi
    columns = np.zeros((2, len(data.queries)))
    columns[:, asked] = _columns(kpi, cosines[:, 0])
    served = dict(zip(asked.tolist(), left[rows].tolist(), strict=True))
    still = [query for query in spared.tolist() if relevant[query] & set(served[query])]
    return _pool(scored, "withheld evidence", (columns, np.array(still, dtype=np.intp)), (columns, robbed))


def _relevant(folder: Path, places: IntArray) -> list[set[int]]:
    """Rows of the corpus that hold the evidence, for each query of a set."""
    least = json.loads((folder / "meta.json").read_text(encoding="utf-8"))["rel_min"]
    row_of = {passage: row for row, passage in enumerate(_names(folder / "corpus.jsonl", "pid"))}
    found: dict[str, set[int]] = {}
    for line in (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        query, passage, grade = line.split("\t")
        if int(grade) >= least:
            found.setdefault(query, set()).add(row_of[passage])
    names = _names(folder / "queries.jsonl", "qid")
    return [found.get(names[place], set()) for place in places]


def _names(path: Path, key: str) -> list[str]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line)[key] for line in lines]
