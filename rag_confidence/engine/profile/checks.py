"""What a profile is fitted on, and is used on, becomes checked values or a refusal here."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rag_confidence._inputs import numbers
from rag_confidence._options import check_integer, check_number, check_text, entries_of
from rag_confidence._types import FloatArray, IntArray
from rag_confidence.engine.profile.fitting import duplicate_ids, n_distinct
from rag_confidence.engine.relevance import unit_rows
from rag_confidence.errors import CalibrationMismatch

LEAST_ROWS = 50
LEAST_QUERIES = 20

_SHOWN = 8
_FLAT = 1e-6


@dataclass(frozen=True, eq=False)
class Given:
    """Checked arguments of a fit: unit rows and the lengths they had, unit queries, texts and ids."""

    unit: FloatArray
    norms: FloatArray
    queries: FloatArray | None
    texts: tuple[str, ...] | None
    ids: tuple[Hashable, ...] | None


def check_sample(
    corpus_sample: ArrayLike,
    query_sample: ArrayLike | None,
    *,
    texts: Sequence[str] | None,
    ids: Sequence[Hashable] | None,
    embedder: str | None,
) -> Given:
    """The arguments of `CorpusProfile.fit` as unit rows and tuples that go with them."""
    check_text("embedder", embedder)
    corpus = _rows("corpus_sample", corpus_sample, "passage")
    unit, norms = unit_rows(corpus)
    queries = None if query_sample is None else _queries(query_sample, corpus.shape[1])
    return Given(unit, norms, queries, _texts(texts, len(corpus)), _ids(ids, len(corpus)))


def check_served(query_passages: ArrayLike | None, queries: FloatArray | None) -> FloatArray | None:
    """The passages served for the sampled unit queries, as unit rows (q, k, d)."""
    if query_passages is None:
        return None
    if queries is None:
        raise ValueError(
            "`query_passages` must be left out without `query_sample`; got some. Pass the queries they "
            "were served for."
        )
    array = numbers("query_passages", query_passages)
    wanted = (len(queries), queries.shape[1])
    if array.ndim != 3 or (array.shape[0], array.shape[2]) != wanted or array.shape[1] == 0:
        raise ValueError(
            f"`query_passages` must have shape ({wanted[0]}, k, {wanted[1]}) to match `query_sample`; "
            f"got {array.shape}. Pass as many passages for each query."
        )
    _rows("query_passages", array.reshape(-1, wanted[1]), "passage")
    return unit_rows(array)[0]


def check_limit(duplicate_cosine: Any) -> float:
    """The cosine of copies, as a float in [0.5, 1]."""
    return check_number("duplicate_cosine", duplicate_cosine, 0.5, 1.0, "0.995 is the default.")


def check_seed(seed: Any) -> int:
    """The seed as an int of at least 0."""
    return check_integer("seed", seed, 0)


def refuse_few(unit: FloatArray) -> None:
    """Refuse a sample of too few distinct vectors."""
    found = n_distinct(unit)
    if found < LEAST_ROWS:
        raise ValueError(
            f"`corpus_sample` must hold at least {LEAST_ROWS} distinct vectors; got {found} distinct of "
            f"{len(unit)}. Draw some hundred passages at random from the whole corpus."
        )


def refuse_flat(scale: float) -> None:
    """Refuse a sample in which all cosines are the same: nothing can be measured in such units."""
    if not scale > _FLAT:
        raise ValueError(
            f"`corpus_sample` must show cosines that differ; got a background deviation of {scale:.3g}. "
            "Draw real passages at random; a set of orthogonal vectors is no corpus."
        )


def refuse_other_dimension(dimension: int, queries: FloatArray, passages: FloatArray) -> None:
    """Refuse vectors of another length than the profile's."""
    if queries.shape[-1] != dimension or passages.shape[-1] != dimension:
        raise CalibrationMismatch(
            f"`profile` must have the dimension of the embeddings, {queries.shape[-1]}; got a profile of "
            f"dimension {dimension}. Fit a profile of the vectors of this model."
        )


def refuse_foreign(rows: IntArray, *, alone: bool) -> None:
    """Refuse lists of passages, at `rows` of a batch, whose vectors lie as an unrelated embedder's would."""
    if len(rows) == 0:
        return
    where = "" if alone else f" at {len(rows)} rows, {_shown(rows)},"
    raise CalibrationMismatch(
        f"`profile` must be of the embedder and the corpus that the passages come from; got passages{where} "
        "whose vectors lie as those of another embedder would. Fit a profile of this embedder's vectors of "
        "this corpus."
    )


def _rows(name: str, value: ArrayLike, thing: str) -> FloatArray:
    array = numbers(name, value)
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(f"`{name}` must have shape (n, d); got {array.shape}. Pass one row a {thing}.")
    peaks = np.maximum(array.max(axis=1, initial=0.0), -array.min(axis=1, initial=0.0))
    bad = np.flatnonzero(~((peaks > 0.0) & (peaks < np.inf)))
    if len(bad):
        raise ValueError(
            f"`{name}` must be finite and not zero in every row; got {len(bad)} bad: {_shown(bad)}. "
            f"Leave these rows out or embed them again."
        )
    return array


def _queries(query_sample: ArrayLike, dimension: int) -> FloatArray:
    queries = _rows("query_sample", query_sample, "query")
    if queries.shape[1] != dimension:
        raise ValueError(
            f"`query_sample` must have shape (q, {dimension}) to match `corpus_sample`; got {queries.shape}. "
            "Embed queries and passages with the same model."
        )
    if len(queries) < LEAST_QUERIES:
        raise ValueError(
            f"`query_sample` must hold at least {LEAST_QUERIES} queries; got {len(queries)}. "
            "Take more from the log, or pass none."
        )
    return unit_rows(queries)[0]


def _texts(texts: Sequence[str] | None, count: int) -> tuple[str, ...] | None:
    if texts is None:
        return None
    cure = "Pass the text of each sampled passage, in the order of the rows."
    entries = _aligned("texts", texts, count, cure)
    if not all(isinstance(text, str) for text in entries):
        raise TypeError(f"`texts` must be a list of strings; got other entries. {cure}")
    return entries


def _ids(ids: Sequence[Hashable] | None, count: int) -> tuple[Hashable, ...] | None:
    if ids is None:
        return None
    cure = "Pass the id of each sampled passage, in the order of the rows."
    entries = tuple(_plain_id(name) for name in _aligned("ids", ids, count, cure))
    twice = duplicate_ids(entries)
    if twice:
        shown = ", ".join(map(repr, twice[:_SHOWN])) + (", ..." if len(twice) > _SHOWN else "")
        raise ValueError(
            f"`ids` must be unique; got {len(twice)} more than once: {shown}. Pass each passage once."
        )
    return entries


def _plain_id(name: Any) -> Hashable:
    if isinstance(name, str):
        return str(name)
    if isinstance(name, (int, np.integer)) and not isinstance(name, bool):
        return int(name)
    raise TypeError(f"`ids` must be strings or whole numbers; got {name!r}. Convert them first.")


def _aligned(name: str, values: Any, count: int, cure: str) -> tuple[Any, ...]:
    entries = entries_of(name, values, "a list", cure)
    if len(entries) != count:
        raise ValueError(
            f"`{name}` must have one entry for each of the {count} rows of `corpus_sample`; "
            f"got {len(entries)}. {cure}"
        )
    return entries


def _shown(rows: IntArray) -> str:
    return ", ".join(map(str, rows[:_SHOWN].tolist())) + (", ..." if len(rows) > _SHOWN else "")
