"""Labelled retrievals of one set, apart by where their negatives come from.

Three families, each with a retrieval of its own; their negatives are never pooled:

- natural: the queries on their own corpus, labelled as the set labels them; its strata are near misses (the
  set says that there is no answer) and ranking failures (there is evidence, but not among the k passages);
- withheld evidence: the relevant passages of a random half of the answerable queries are taken out;
- topic gap: queries of other sets, on other subjects, on this corpus.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from _data import RELATED, FloatArray, IntArray, Mask

from evaluation.collection import Collection, Questions, search

LEAST, LEAST_CORPUS = 25, 100
_WITHHELD, _GAP, _LIMIT = 0x817, 0x9A9, 0x51D


@dataclass(frozen=True)
class Rows:
    """Labelled retrievals from one corpus, one a row.

    Attributes
    ----------
    corpus : ndarray, shape (N, d)
    queries : ndarray, shape (n, d)
    found, cosines : ndarray, shape (n, D)
        Rows of the corpus, nearest first, and their cosines.
    sufficient : ndarray of bool, shape (n,)
    strata : mapping of str to ndarray of bool, shape (n,)
        The rows of each stratum.
    unit : ndarray of int, shape (n,)
        What a bootstrap draws: the query, the same number under every embedder.
    places : ndarray of int, shape (n,)
        Places of the queries in the set; -1 for queries of other sets.
    questions, passages : tuple of str
        Texts of the queries, shape (n,), and of the corpus.
    """

    corpus: FloatArray
    queries: FloatArray
    found: IntArray
    cosines: FloatArray
    sufficient: Mask
    strata: dict[str, Mask]
    unit: IntArray
    n_units: int
    places: IntArray
    questions: tuple[str, ...]
    passages: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.unit)


@dataclass(frozen=True)
class Family:
    """A kind of retrieval, and how its rows are made from a set, the queries of others, k and a seed."""

    name: str
    strata: tuple[str, ...]
    rows: Callable[[Collection, Sequence[Questions], Draw], Rows]


@dataclass(frozen=True)
class Draw:
    """What the rows depend on beside the set: k, the most queries, the seed."""

    k: int
    limit: int | None
    seed: int


def natural(data: Collection, foreign: Sequence[Questions], draw: Draw) -> Rows:
    """The judged queries on their own corpus."""
    asked = evaluated(data, draw)
    sufficient = _holds(data, asked, data.rows[asked, : draw.k])
    answerable = data.answerable[asked] == 1
    return Rows(
        corpus=data.corpus,
        queries=data.queries[asked],
        found=data.rows[asked],
        cosines=data.cosines[asked],
        sufficient=sufficient,
        strata={
            "natural": np.ones(len(asked), dtype=bool),
            "near miss": sufficient | ~answerable,
            "ranking failure": sufficient | answerable,
        },
        unit=asked,
        n_units=len(data.queries),
        places=asked,
        questions=_asked(data, asked),
        passages=data.passages,
    )


def withheld(data: Collection, foreign: Sequence[Questions], draw: Draw) -> Rows:
    """The answerable queries, half of them robbed of their evidence; the others if theirs is still found."""
    asked = evaluated(data, draw)
    asked = asked[[bool(data.relevant[query]) for query in asked]]
    order = _generator(_WITHHELD, data.name, draw.seed).permutation(asked)
    robbed = np.sort(order[: len(order) // 2])
    spared = np.sort(order[len(order) // 2 :])
    gone = set().union(*(data.relevant[query] for query in robbed))
    left = np.array([row for row in range(len(data.corpus)) if row not in gone])
    both = np.concatenate([spared, robbed])
    found, cosines = search(data.queries[both], data.corpus[left])
    sufficient = _holds(data, both, left[found[:, : draw.k]])
    kept = sufficient | (np.arange(len(both)) >= len(spared))
    return Rows(
        corpus=data.corpus[left],
        queries=data.queries[both][kept],
        found=found[kept],
        cosines=cosines[kept],
        sufficient=sufficient[kept],
        strata={"withheld evidence": np.ones(int(kept.sum()), dtype=bool)},
        unit=both[kept],
        n_units=len(data.queries),
        places=both[kept],
        questions=_asked(data, both[kept]),
        passages=tuple(data.passages[row] for row in left),
    )


def topic_gap(data: Collection, foreign: Sequence[Questions], draw: Draw) -> Rows:
    """Sufficient retrievals beside as many or fewer queries of other sets, on the same corpus."""
    asked = evaluated(data, draw)
    good = asked[_holds(data, asked, data.rows[asked, : draw.k])]
    texts = [text for questions in foreign for text in questions.texts]
    chosen = _generator(_GAP, data.name, draw.seed).permutation(len(texts))[: len(asked)]
    strange = np.concatenate([questions.vectors for questions in foreign])[chosen]
    found, cosines = search(strange, data.corpus)
    sufficient = np.arange(len(good) + len(strange)) < len(good)
    return Rows(
        corpus=data.corpus,
        queries=np.concatenate([data.queries[good], strange]),
        found=np.concatenate([data.rows[good], found]),
        cosines=np.concatenate([data.cosines[good], cosines]),
        sufficient=sufficient,
        strata={"topic gap": np.ones(len(sufficient), dtype=bool)},
        unit=np.concatenate([good, len(data.queries) + np.arange(len(strange))]),
        n_units=len(data.queries) + len(strange),
        places=np.concatenate([good, np.full(len(strange), -1)]),
        questions=(*_asked(data, good), *(texts[at] for at in chosen.tolist())),
        passages=data.passages,
    )


FAMILIES = (
    Family("natural", ("natural", "near miss", "ranking failure"), natural),
    Family("withheld", ("withheld evidence",), withheld),
    Family("gap", ("topic gap",), topic_gap),
)


def evaluated(data: Collection, draw: Draw) -> IntArray:
    """Places of the judged queries that are evaluated: all, or `limit` of them at random; ascending."""
    judged = np.flatnonzero(data.judged)
    if draw.limit is None or len(judged) <= draw.limit:
        return judged
    return np.sort(_generator(_LIMIT, data.name, draw.seed).permutation(judged)[: draw.limit])


def strangers(name: str, others: Sequence[str]) -> list[str]:
    """The sets whose subject is another; sets are strangers unless they are listed as related."""
    return [other for other in others if other != name and frozenset({name, other}) not in RELATED]


def enough(sufficient: Mask, n_corpus: int) -> bool:
    """Whether both classes have rows to measure on, and the corpus passages to draw a sample from."""
    return (
        n_corpus >= LEAST_CORPUS and min(np.count_nonzero(sufficient), np.count_nonzero(~sufficient)) >= LEAST
    )


def _asked(data: Collection, places: IntArray) -> tuple[str, ...]:
    return tuple(data.questions[place] for place in places.tolist())


def _holds(data: Collection, queries: IntArray, found: IntArray) -> Mask:
    """Whether the passages (n, k) hold the evidence of each query; never for one without an answer."""
    pairs = zip(queries.tolist(), found.tolist(), strict=True)
    return np.array(
        [data.answerable[query] == 1 and not data.relevant[query].isdisjoint(rows) for query, rows in pairs],
        dtype=bool,
    )


def _generator(salt: int, name: str, seed: int) -> np.random.Generator:
    return np.random.default_rng([salt, zlib.crc32(name.encode()), seed])
