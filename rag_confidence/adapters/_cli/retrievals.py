"""Retrievals of a file, and their assessments, a part at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rag_confidence import MetricsBatch, score_many
from rag_confidence._types import FloatArray
from rag_confidence.adapters._cli.progress import advancing
from rag_confidence.adapters._cli.reading import Rows, check_lengths

# Read by these names where they exist, and passed to `score_many` under them.
EXTRAS = ("texts", "query_text", "candidates", "parents")
K_REQUESTED = "k_requested"
VECTORS = ("query_embeddings", "passage_embeddings")
PART = 256


@dataclass(frozen=True)
class Scored:
    """One assessment: its record, and itself in words."""

    record: dict[str, Any]
    words: str


@dataclass(frozen=True)
class Retrievals:
    """The retrievals of a file.

    Attributes
    ----------
    rows : Rows
    queries, passages : sequence of ndarray
        One vector and one matrix each.
    columns : dict
        Arguments of `score_many` by row.
    kept : dict
        Columns that go into the records as they are.
    """

    rows: Rows
    queries: Sequence[FloatArray]
    passages: Sequence[FloatArray]
    columns: dict[str, list[Any]]
    kept: dict[str, list[Any]]

    @classmethod
    def of(cls, rows: Rows, query: str, passages: str, group: str | None, keep: Sequence[str]) -> Retrievals:
        """The retrievals in rows, under these names of columns."""
        queries, matrices = _vectors(rows, query, 1), _vectors(rows, passages, 2)
        if len(queries) != len(matrices):
            raise ValueError(
                f"`{rows.name}` must hold passages for each query; got {len(queries)} queries and "
                f"{len(matrices)} of passages. Write one of either a row."
            )
        _check_dimensions(rows, query, queries)
        matrices = [
            matrix if matrix.size else np.empty((0, len(of)))
            for of, matrix in zip(queries, matrices, strict=True)
        ]
        found = {name: rows.optional(name) for name in (*EXTRAS, K_REQUESTED)}
        columns = {name: values for name, values in found.items() if values is not None}
        if group is not None:
            columns["group"] = rows.column(group)
        kept = {name: _kept(rows, name) for name in keep}
        check_lengths(rows.name, {query: queries, **columns, **kept})
        return cls(rows, queries, matrices, columns, kept)


def _kept(rows: Rows, name: str) -> list[Any]:
    """A column that goes into the records: one that no row has is a slip of the pen."""
    found = rows.optional(name)
    if found is None:
        raise ValueError(f"`--keep` must name a column of {rows.name}; got {name!r}. Leave it out.")
    return found


def scored(retrievals: Retrievals, settings: dict[str, Any], k_requested: int | None) -> Iterator[Scored]:
    """The assessment of each retrieval; one that has no result is refused by its line."""
    total = len(retrievals.queries)
    for start in advancing(range(0, total, PART), "scoring"):
        part = slice(start, min(start + PART, total))
        batch = _assess(retrievals, part, settings, k_requested)
        for row, metrics in zip(range(part.start, part.stop), batch, strict=True):
            kept = {name: values[row] for name, values in retrievals.kept.items()}
            record = metrics.to_dict()
            if taken := sorted({*kept} & {*record}):
                raise ValueError(f"`--keep` must name no key of the record; got {taken[0]!r}. Leave it out.")
            yield Scored({**kept, **record}, metrics.narrate())


def _assess(
    retrievals: Retrievals, part: slice, settings: dict[str, Any], k_requested: int | None
) -> MetricsBatch:
    try:
        return _batch(retrievals, part, settings, k_requested)
    except (TypeError, ValueError) as problem:
        if not any(f"`{name}" in str(problem) for name in (*VECTORS, *retrievals.columns)):
            raise
        if part.stop - part.start == 1:
            raise type(problem)(f"{retrievals.rows.place(part.start)}: {problem}") from problem
        # The batch counts its own rows: the one at fault is looked for by its line.
        for row in range(part.start, part.stop):
            _assess(retrievals, slice(row, row + 1), settings, k_requested)
        raise


def _batch(
    retrievals: Retrievals, part: slice, settings: dict[str, Any], k_requested: int | None
) -> MetricsBatch:
    columns: dict[str, Any] = {name: values[part] for name, values in retrievals.columns.items()}
    queries = retrievals.queries[part]
    if k_requested is not None:
        columns[K_REQUESTED] = [k_requested] * len(queries)
    return score_many(np.asarray(queries), retrievals.passages[part], **columns, **settings)


def _check_dimensions(rows: Rows, name: str, queries: Sequence[FloatArray]) -> None:
    for row, vector in enumerate(queries):
        if len(vector) != len(queries[0]):
            raise ValueError(
                f"`{name}` must have {len(queries[0])} numbers as in the first row; got {len(vector)} in "
                f"{rows.place(row)}. Embed all with one model."
            )


def _vectors(rows: Rows, name: str, dimensions: int) -> Sequence[FloatArray]:
    """One vector or matrix a row; an archive may hold those of a single retrieval."""
    stored = None if rows.arrays is None else rows.arrays.get(name)
    if isinstance(stored, np.ndarray):
        return [stored] if stored.ndim == dimensions else [*stored]
    return [_array(rows, row, name, value, dimensions) for row, value in enumerate(rows.column(name))]


def _array(rows: Rows, row: int, name: str, value: Any, dimensions: int) -> FloatArray:
    shape = "a vector" if dimensions == 1 else "a list of vectors of one length"
    try:
        found = np.asarray(value)
    except ValueError:
        found = np.empty(0, dtype=object)
    if found.dtype.kind not in "iuf" or (found.ndim != dimensions and found.size):
        raise ValueError(
            f"`{name}` must be {shape}; got something else in {rows.place(row)}. Write lists of numbers."
        )
    return found.astype(np.float64)
