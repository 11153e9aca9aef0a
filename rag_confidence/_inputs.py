"""User arrays and options become checked values here, and nowhere else.

Every rejection reads: `name` must be ...; got .... Cure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from rag_confidence._types import FloatArray, IntArray, InvalidRows, Mask

_SHOWN = 8
_SMALLEST, _LARGEST = 1e-100, 1e100
_FIRST = np.zeros(1, dtype=np.intp)
_NONE = np.zeros(1, dtype=np.intp)
_NEVER = np.zeros(1, dtype=bool)


Group: TypeAlias = tuple[IntArray, FloatArray]


@dataclass(frozen=True)
class Block:
    """Retrievals with equally many valid passages."""

    rows: IntArray
    queries: FloatArray
    passages: FloatArray


@dataclass(frozen=True)
class Batch:
    """Checked retrievals: `blocks` hold those that can be scored, the masks (Q,) the others.

    `served` lists the passages that were kept, for the queries that lost any.
    """

    blocks: tuple[Block, ...]
    served: dict[int, IntArray]
    k_returned: IntArray
    n_dropped: IntArray
    no_passages: Mask
    degenerate_query: Mask

    def __len__(self) -> int:
        return len(self.k_returned)

    def dropped(self, row: int) -> IntArray:
        """Places of the passages of one query that were dropped."""
        places = np.arange(self.k_returned[row])
        return np.setdiff1d(places, self.served[row]) if row in self.served else places[:0]


def check_retrieval(query: ArrayLike, passages: ArrayLike, invalid_rows: InvalidRows) -> Batch:
    """One query (d,) and its passages (n, d) as a batch of one."""
    row = numbers("query_embedding", query)
    if row.ndim != 1 or row.size == 0:
        raise ValueError(f"`query_embedding` must have shape (d,); got {row.shape}. Pass one vector.")
    matrix = _matrix("passage_embeddings", passages, "query_embedding", row.size)
    if len(matrix) and _all_tame(matrix) and _all_tame(row):
        return Batch(
            (Block(_FIRST, row[None], matrix[None]),), {}, np.array([len(matrix)]), _NONE, _NEVER, _NEVER
        )
    return _batch(row[None], [(_FIRST, matrix[None])], invalid_rows, "query_embedding", "passage_embeddings")


def check_retrievals(
    queries: ArrayLike, passages: ArrayLike | Sequence[ArrayLike], invalid_rows: InvalidRows
) -> Batch:
    """Q queries (Q, d) and their passages: (Q, k, d), or a list of Q arrays (k_i, d)."""
    rows = numbers("query_embeddings", queries)
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise ValueError(
            f"`query_embeddings` must have shape (Q, d); got {rows.shape}. Pass one row a query."
        )
    groups = _groups(
        rows, passages if isinstance(passages, Sequence) else numbers("passage_embeddings", passages)
    )
    return _batch(rows, groups, invalid_rows, "query_embeddings", "passage_embeddings[{}]")


def numbers(name: str, value: ArrayLike) -> FloatArray:
    """`value` as a float32 or float64 array; narrower and whole numbers are widened."""
    refuse_masked(name, value)
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, RuntimeError) as error:
        raise ValueError(
            f"`{name}` must be a rectangular array of numbers; got {type(value).__name__} that NumPy "
            f"cannot convert ({str(error).splitlines()[0]}). Make all rows equally long."
        ) from error
    if array.size == 0:
        return np.zeros(array.shape)
    if array.dtype.kind not in "fiu":
        raise TypeError(
            f"`{name}` must hold real numbers; got dtype {array.dtype}. Convert it to float first."
        )
    if array.dtype in (np.float32, np.float64):
        return array
    if array.dtype == np.float16:
        return array.astype(np.float32)
    with np.errstate(over="ignore"):
        return array.astype(np.float64)


def refuse_masked(name: str, value: ArrayLike) -> None:
    """Refuse a masked array, or a list that holds masked entries: NumPy would read what lies beneath."""
    if np.ma.is_masked(value) or (isinstance(value, (list, tuple)) and any(map(np.ma.is_masked, value))):
        raise ValueError(
            f"`{name}` must not hide entries behind a mask; got masked entries. Drop or fill them."
        )


def _groups(queries: FloatArray, passages: FloatArray | Sequence[ArrayLike]) -> list[Group]:
    count, dimension = queries.shape
    if isinstance(passages, np.ndarray) and passages.ndim == 0:
        raise ValueError(
            "`passage_embeddings` must have shape (Q, k, d); got a single number. "
            "Pass a (Q, k, d) array or a list of (k_i, d) arrays."
        )
    if len(passages) != count:
        raise ValueError(
            f"`passage_embeddings` must have one entry for each of the {count} queries; got {len(passages)}. "
            "Pass shape (Q, k, d) or a list of (k_i, d) arrays."
        )
    if isinstance(passages, np.ndarray):
        if passages.ndim != 3 or passages.shape[2] != dimension:
            raise ValueError(
                f"`passage_embeddings` must have shape (Q, k, {dimension}) to match `query_embeddings`; "
                f"got {passages.shape}. Embed queries and passages with the same model."
            )
        return [(np.arange(count), passages)]
    names = (f"passage_embeddings[{i}]" for i in range(count))
    lists = [_matrix(name, p, "query_embeddings", dimension) for name, p in zip(names, passages, strict=True)]
    lengths = np.array([len(matrix) for matrix in lists], dtype=np.intp)
    groups = [np.flatnonzero(lengths == length) for length in np.unique(lengths)]
    return [(rows, np.stack([lists[row] for row in rows])) for rows in groups]


def _matrix(name: str, value: ArrayLike, query_name: str, dimension: int) -> FloatArray:
    array = numbers(name, value)
    if array.ndim in (1, 2) and len(array) == 0:
        return np.zeros((0, dimension))
    if array.ndim != 2 or array.shape[1] != dimension:
        raise ValueError(
            f"`{name}` must have shape (n, {dimension}) to match `{query_name}`; got {array.shape}. "
            "Embed queries and passages with the same model."
        )
    return array


def _batch(
    queries: FloatArray, groups: list[Group], invalid_rows: InvalidRows, query_name: str, passage_name: str
) -> Batch:
    degenerate: Mask = np.logical_not(queries.any(axis=1))
    _refuse_queries(query_name, _usable(queries) | degenerate)
    k_returned = np.zeros(len(queries), dtype=np.intp)
    n_dropped = np.zeros(len(queries), dtype=np.intp)
    served: dict[int, IntArray] = {}
    blocks: list[Block] = []
    for rows, passages in groups:
        group = Block(rows, _tamed(queries[rows]), _tamed(passages))
        valid = _usable(group.passages)
        k_returned[group.rows] = group.passages.shape[1]
        n_dropped[group.rows] = (~valid).sum(axis=1)
        whole = valid.all(axis=1)
        blocks += _selected(group, whole & ~degenerate[group.rows])
        for at in np.flatnonzero(~whole):
            row = int(group.rows[at])
            if invalid_rows == "raise":
                cure = 'Embed these again, or pass invalid_rows="drop".'
                _refuse_rows(passage_name.format(row), valid[at], "be finite and not zero", cure)
            served[row] = np.flatnonzero(valid[at])
            rest = Block(
                group.rows[at : at + 1], group.queries[at : at + 1], group.passages[at : at + 1, valid[at]]
            )
            blocks += _selected(rest, ~degenerate[rest.rows])
    return Batch(tuple(blocks), served, k_returned, n_dropped, k_returned == n_dropped, degenerate)


def _selected(block: Block, chosen: Mask) -> list[Block]:
    if block.passages.shape[1] == 0 or not chosen.any():
        return []
    if chosen.all():
        return [block]
    return [Block(block.rows[chosen], block.queries[chosen], block.passages[chosen])]


def _usable(vectors: FloatArray) -> Mask:
    """Rows (...,) that are finite and not zero: nan and inf survive the two reductions."""
    peaks = _peaks(vectors)
    return np.asarray((peaks > 0.0) & (peaks < np.inf))


def _peaks(vectors: FloatArray) -> FloatArray:
    """Largest size of any entry of each row, without a copy of the rows; nan stays nan."""
    return np.asarray(np.maximum(vectors.max(axis=-1, initial=0.0), -vectors.min(axis=-1, initial=0.0)))


def _all_tame(vectors: FloatArray) -> bool:
    """Whether every row is finite, not zero, and of a size that can be squared: the common case."""
    peaks = np.maximum.reduce(np.abs(vectors), axis=-1)
    low, high = float(np.minimum.reduce(peaks, axis=None)), float(np.maximum.reduce(peaks, axis=None))
    return low > _SMALLEST and high < _LARGEST


def _tamed(vectors: FloatArray) -> FloatArray:
    """Rows of a size that can be squared: a positive factor changes no cosine."""
    if vectors.dtype == np.float32:
        return vectors
    peaks = _peaks(vectors)
    wild = ((peaks <= _SMALLEST) | (peaks >= _LARGEST)) & (peaks > 0.0) & (peaks < np.inf)
    if not wild.any():
        return vectors
    return np.asarray(vectors / np.where(wild, peaks, 1.0)[..., None])


def _refuse_queries(name: str, valid: Mask) -> None:
    if len(valid) != 1 or name != "query_embedding":
        _refuse_rows(name, valid, "be finite", "Embed these questions again.")
    elif not valid.all():
        raise ValueError(f"`{name}` must be finite; got nan or infinity. Embed the question again.")


def _refuse_rows(name: str, valid: Mask, constraint: str, cure: str) -> None:
    if valid.all():
        return
    rows = np.flatnonzero(~valid)
    shown = ", ".join(map(str, rows[:_SHOWN].tolist())) + (", ..." if len(rows) > _SHOWN else "")
    raise ValueError(f"`{name}` must {constraint} in every row; got {len(rows)} bad: {shown}. {cure}")
