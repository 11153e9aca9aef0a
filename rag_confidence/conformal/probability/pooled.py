"""What the three probability maps share: labelled scores pooled by value, checked points, safe interpolation.

A probability map stands beside the gate, never before it on the same rows.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rag_confidence._history import check_aligned, check_history, check_two_classes
from rag_confidence._inputs import numbers
from rag_confidence._types import FloatArray, IntArray, Mask, Provenance
from rag_confidence.conformal.provenance import check_provenance
from rag_confidence.conformal.reading import read_rows
from rag_confidence.conformal.rows import Rows, rows_of

Scores: TypeAlias = Sequence[float] | NDArray[Any]
RowIds: TypeAlias = Sequence[Hashable] | ArrayLike
Made: TypeAlias = Provenance | Mapping[str, str | None] | None


@dataclass(frozen=True, eq=False)
class Pooled:
    """Labelled scores, those of equal value together.

    Attributes
    ----------
    scores : ndarray, shape (K,)
        The distinct scores, ascending.
    zeros, ones : ndarray of int, shape (K,)
        Insufficient and sufficient rows at each of them.
    rows : Rows
        The rows that were pooled.
    """

    scores: FloatArray
    zeros: IntArray
    ones: IntArray
    rows: Rows

    @property
    def n0(self) -> int:
        """Insufficient rows."""
        return int(self.zeros.sum())

    @property
    def n1(self) -> int:
        """Sufficient rows."""
        return int(self.ones.sum())


def pool(scores: ArrayLike, labels: ArrayLike, row_ids: RowIds | None, provenance: Made = None) -> Pooled:
    """Checked history of both classes, pooled by score, so that the order of rows cannot matter."""
    check_aligned(scores=scores, labels=labels, row_ids=row_ids)
    values, flags = check_history(scores, labels)
    check_two_classes(flags)
    # Adding 0.0 makes -0.0 the 0.0 that it equals.
    values = values.astype(np.float64) + 0.0
    return _pooled(values, flags, rows_of(values, flags, row_ids, check_provenance(provenance)))


def pool_again(payload: Mapping[str, Any]) -> Pooled:
    """The pooled rows in the payload of a saved map, which must count them."""
    rows = read_rows(payload["rows"])
    counts = len(rows.scores0), len(rows.scores1)
    if not all(counts) or counts != (payload["n0"], payload["n1"]):
        raise ValueError("counts that are not those of the rows")
    values = np.concatenate([rows.scores0, rows.scores1])
    return _pooled(values, np.arange(sum(counts)) >= counts[0], rows)


def _pooled(values: FloatArray, flags: Mask, rows: Rows) -> Pooled:
    distinct, places = np.unique(values, return_inverse=True)
    count = np.bincount(places, minlength=len(distinct))
    ones = np.bincount(places[flags], minlength=len(distinct))
    return Pooled(distinct, count - ones, ones, rows)


def check_points(score: ArrayLike) -> FloatArray:
    """The argument of a map as finite float64 numbers of any shape."""
    points = numbers("score", score).astype(np.float64)
    finite = np.isfinite(points)
    if not finite.all():
        raise ValueError(
            f"`score` must be finite; got {points[~finite][0]}. A score that is missing has no probability."
        )
    return points


def plain(values: FloatArray) -> Any:
    """A float for a single number, else the array."""
    return float(values) if values.ndim == 0 else values


def position(points: FloatArray, low: FloatArray | float, high: FloatArray | float) -> FloatArray:
    """(points - low) / (high - low), and 0 on an empty width, without overflow on the way.

    Infinite only where points lie more than 1e308 widths outside.
    """
    with np.errstate(over="ignore"):
        # Halving keeps the differences of huge numbers finite; small ones it would round.
        unit = np.where(np.subtract(high, low) > 1.0, 0.5, 1.0)
        width = high * unit - low * unit
        shifted = np.where(width > 0.0, points * unit - low * unit, 0.0)
        return np.asarray(shifted / np.where(width > 0.0, width, 1.0))


def frozen(values: FloatArray) -> FloatArray:
    """A read-only copy."""
    copy = np.array(values, dtype=np.float64)
    copy.flags.writeable = False
    return copy
