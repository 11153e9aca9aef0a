"""Rows of a history: in how many parts it is used, and that no row is used twice."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from rag_confidence._artefact import decode_ascending, encode_floats
from rag_confidence._history import check_aligned, check_whole
from rag_confidence._options import check_integer, check_number, entries_of
from rag_confidence._types import FloatArray, IntArray, Mask, Provenance
from rag_confidence.errors import RowsReused

PARTS = ("model", "probability", "gate", "evaluation")
SHARES = {"model": 0.3, "probability": 0.1, "gate": 0.4, "evaluation": 0.2}

_SHOWN = 8
# A score with more decimals than people write down is met twice only if it is the same row. In a narrower
# float a written number is off by a little too; half precision has too few numbers to tell rows apart.
_WRITTEN_DECIMALS = 6
# Numbers of a precision in [0.5, 1): of n and m independent scores n m / as many meet by chance.
_DISTINCT = {"float64": 2.0**52, "float32": 2.0**23, "float16": 2.0**10}
_FIRST_WHOLE = 2.0**52
_SLACK = {"float64": 0.0, "float32": 1e-7, "float16": np.inf}


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows that something was fitted on.

    Attributes
    ----------
    ids : frozenset of str, or None
        Hashes of the row ids, where ids were given.
    scores0, scores1 : ndarray, shape (n0,) and (n1,)
        Scores of the insufficient and of the sufficient rows, ascending.
    precision : str
        Name of the dtype that the scores came in.
    provenance : Provenance or None
        How the scores were made.
    """

    ids: frozenset[str] | None
    scores0: FloatArray
    scores1: FloatArray
    precision: str = "float64"
    provenance: Provenance | None = None

    @cached_property
    def data_hash(self) -> str:
        """SHA-256 of the scores and labels, in whatever order they came."""
        found = hashlib.sha256(self.scores0.tobytes())
        found.update(b"|")
        found.update(self.scores1.tobytes())
        return found.hexdigest()

    @property
    def score_range(self) -> tuple[float, float]:
        """The smallest and the largest score of any row."""
        ends = [float(column[at]) for column in (self.scores0, self.scores1) if len(column) for at in (0, -1)]
        return min(ends), max(ends)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "ids": None if self.ids is None else sorted(self.ids),
            "scores0": encode_floats(self.scores0),
            "scores1": encode_floats(self.scores1),
            "precision": self.precision,
            "provenance": None if self.provenance is None else self.provenance.to_dict(),
            "data_hash": self.data_hash,
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Rows:
        """The rows that `to_dict` wrote."""
        ids = None if plain["ids"] is None else frozenset(plain["ids"])
        made = None if plain["provenance"] is None else Provenance(**plain["provenance"])
        scores = decode_ascending(plain["scores0"]), decode_ascending(plain["scores1"])
        rows = cls(ids, *scores, plain["precision"], made)
        if rows.data_hash != plain["data_hash"] or rows.precision not in _SLACK:
            raise ValueError("rows that do not match their hash")
        return rows


class Fitted(Protocol):
    """Anything that remembers the rows it was fitted on."""

    @property
    def rows(self) -> Rows:
        """The rows."""


def rows_of(
    scores: FloatArray,
    labels: Mask,
    row_ids: Sequence[Hashable] | ArrayLike | None,
    provenance: Provenance | None = None,
) -> Rows:
    """The rows of a checked history."""
    ids = None if row_ids is None else hashed_ids(row_ids)
    scores0, scores1 = sorted_classes(scores.astype(np.float64, copy=False), labels)
    return Rows(ids, scores0, scores1, scores.dtype.name, provenance)


def sorted_classes(values: FloatArray, labels: Mask) -> tuple[FloatArray, FloatArray]:
    """Scores of the insufficient and of the sufficient rows, each ascending."""
    # compress does what an index by a mask does, some four times as fast.
    return sorted_scores(np.compress(~labels, values)), sorted_scores(np.compress(labels, values))


def sorted_scores(values: FloatArray) -> FloatArray:
    """A sorted copy that nobody can change."""
    ordered = np.sort(values)
    ordered.flags.writeable = False
    return ordered


def hashed_ids(row_ids: Sequence[Hashable] | ArrayLike) -> frozenset[str]:
    """Hashes of ids, which must differ: a row that stands twice would count twice."""
    entries = [_plain(entry) for entry in entries_of("row_ids", row_ids, "one id a row", "Name each row.")]
    hashes = [_hashed(entry) for entry in entries]
    if len(set(hashes)) < len(entries):
        counts = Counter(hashes)
        twice = dict.fromkeys(repr(e) for e, found in zip(entries, hashes, strict=True) if counts[found] > 1)
        raise ValueError(
            f"`row_ids` must differ from each other, as text too; got {', '.join([*twice][:_SHOWN])} more "
            "than once. Leave out copies of a row; several rows of one query share a cluster, not an id."
        )
    return frozenset(hashes)


def _plain(entry: Any, name: str = "row_ids") -> Any:
    value = entry.item() if isinstance(entry, np.generic) else entry
    if not _is_hashable(value):
        raise TypeError(f"`{name}` must be strings or numbers; got {type(value).__name__}. Name each row.")
    if _is_missing(value):
        raise ValueError(f"`{name}` must name every row; got {value!r}. Name each row.")
    return check_whole(name, value) if isinstance(value, int) else value


def _is_hashable(value: Any) -> bool:
    """Whether it has a hash: a tuple has one only if its entries do."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _is_missing(value: Any) -> bool:
    """None, and what does not equal itself: nan, NaT, and the NA of pandas, which will not even say so."""
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):
        return True


def plain_names(name: str, entries: Any) -> np.ndarray[Any, Any]:
    """Ids of rows, clusters or queries as an object array (n,) of hashable values."""
    plain = [_plain(entry, name) for entry in entries_of(name, entries, "one name a row", "Name each row.")]
    array = np.empty(len(plain), dtype=object)
    array[:] = plain
    return array


def _hashed(entry: Any, salt: str = "") -> str:
    """Hash of an id, the same for 7, 7.0 and "7": a database or a CSV file may change one into another."""
    whole = isinstance(entry, float) and entry.is_integer()
    text = f"{salt}{int(entry) if whole else entry}"
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def refuse_overlap(rows: Rows, others: Fitted | Iterable[Fitted]) -> None:
    """Refuse rows that another fit has already used.

    Parameters
    ----------
    rows : Rows
        What the gate is to be fitted on.
    others : fitted object or iterable of them
        Models, probability maps and gates whose rows may not be among them.

    Raises
    ------
    TypeError
        For what does not remember its rows.
    RowsReused
        If a row is met twice: by its id where both sides have ids, else by a score of the same label that
        has more than six decimals on both sides.

    Notes
    -----
    Scores of two precisions are compared in the coarser one; half precision tells no rows apart.
    Scores of six decimals or fewer coincide without being the same row, so rounded scores without ids
    cannot be checked.
    """
    for other in _fitted(others):
        name = type(other).__name__
        if rows.ids is not None and other.rows.ids is not None:
            count = len(rows.ids & other.rows.ids)
        else:
            count = shared_rows(rows, other.rows)
        if count:
            raise RowsReused(
                f"`disjoint_from` must have been fitted on other rows; got a {name} that shares {count} rows "
                "with this calibration set. Split the history first: see split_history."
            )


def _fitted(others: Any) -> list[Fitted]:
    found = [others] if isinstance(getattr(others, "rows", None), Rows) else others
    cure = "Pass models, probability maps or gates."
    entries = list(entries_of("disjoint_from", found, "a list of fitted objects", cure))
    odd = [entry for entry in entries if not isinstance(getattr(entry, "rows", None), Rows)]
    if odd:
        raise TypeError(f"`disjoint_from` must hold fitted objects; got {type(odd[0]).__name__}. {cure}")
    return entries


def shared_rows(rows: Rows, others: Rows) -> int:
    """How many scores with the same label both hold that tell rows apart; 0 where chance explains them."""
    precision = min(rows.precision, others.precision, key=lambda name: np.dtype(name).itemsize)
    pairs = (rows.scores0, others.scores0), (rows.scores1, others.scores1)
    told = [(_telling(a, precision), _telling(b, precision)) for a, b in pairs]
    count = sum(len(np.intersect1d(a, b)) for a, b in told)
    by_chance = sum(len(a) * len(b) for a, b in told) / _DISTINCT[precision]
    return count if count > 3.0 * by_chance else 0


def _telling(scores: FloatArray, precision: str) -> FloatArray:
    """The scores, in some precision, that only the same row would show again."""
    if np.isinf(_SLACK[precision]):
        return scores[:0]
    # A score beyond the precision becomes infinite there.
    with np.errstate(over="ignore"):
        seen = scores.astype(precision).astype(np.float64)
    # From here on a double is a whole number, and the largest would overflow when they are rounded.
    seen = seen[np.abs(seen) < _FIRST_WHOLE]
    off = np.abs(seen - np.round(seen, _WRITTEN_DECIMALS))
    return np.asarray(seen[off > _SLACK[precision] * np.maximum(1.0, np.abs(seen))])


@dataclass(frozen=True, eq=False)
class HistorySplit:
    """Positions of the rows of each part of a history, each ascending.

    Attributes
    ----------
    model, probability, gate, evaluation : ndarray of int
        For a `ConfidenceModel`, a probability map, the gate, and for measuring all three.
    """

    model: IntArray
    probability: IntArray
    gate: IntArray
    evaluation: IntArray


def split_history(
    row_ids: Sequence[Hashable] | ArrayLike,
    *,
    cluster: Sequence[Hashable] | ArrayLike | None = None,
    shares: Mapping[str, float] | None = None,
    seed: int = 0,
) -> HistorySplit:
    """Parts of a labelled history that share no row and no query.

    Parameters
    ----------
    row_ids : sequence, shape (n,)
        Query id of each row. Rows of one id come into one part.
    cluster : sequence, shape (n,), optional
        What must stay together instead: a query that was asked again, a document, a user.
    shares : mapping, optional
        Expected share of the parts "model", "probability", "gate" and "evaluation"; by default .3, .1, .4
        and .2. A part that is left out gets nothing; the others are scaled to a sum of one.
    seed : int
        Another seed gives another split.

    Returns
    -------
    HistorySplit

    Raises
    ------
    TypeError, ValueError
        For ids that are missing, unknown parts and shares that are negative or all zero.

    Notes
    -----
    The part of a row follows from the hash of its id (or cluster) alone. So a row keeps its part when the
    history grows: what trained last month's model never calibrates this month's gate. The sizes of the
    parts are random and near their shares.

    Examples
    --------
    >>> parts = split_history([f"q{i}" for i in range(100)], shares={"gate": 0.5, "evaluation": 0.5})
    >>> len(parts.gate) + len(parts.evaluation), len(parts.model)
    (100, 0)
    """
    check_aligned(row_ids=row_ids, cluster=cluster)
    kept = row_ids if cluster is None else cluster
    name = "row_ids" if cluster is None else "cluster"
    salt = f"split:{check_whole('seed', check_integer('seed', seed, 0))}:"
    entries = [_plain(entry, name) for entry in entries_of(name, kept, "one id a row", "Name each row.")]
    places = np.array([int(_hashed(entry, salt), 16) / 2.0**64 for entry in entries])
    ends = np.cumsum(_checked_shares(SHARES if shares is None else shares))
    part = np.searchsorted(ends, places, side="right").clip(max=len(PARTS) - 1)
    return HistorySplit(*(np.flatnonzero(part == at) for at in range(len(PARTS))))


def _checked_shares(shares: Mapping[str, float]) -> FloatArray:
    odd = sorted(map(str, set(shares) - set(PARTS)))
    if odd:
        raise ValueError(f"`shares` must name parts among {', '.join(PARTS)}; got {odd}. Check the spelling.")
    values = [check_number(f"shares[{p!r}]", shares.get(p, 0.0), 0.0, 1.0, "Pass shares.") for p in PARTS]
    if not sum(values):
        raise ValueError("`shares` must have a positive sum; got all zero. Give some part a share.")
    return np.array(values) / sum(values)
