"""Isotonic probability map: the best rising function of the score, straight between its steps."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from rag_confidence import _artefact
from rag_confidence._types import FloatArray, Provenance
from rag_confidence.conformal.probability.pooled import (
    Made,
    Pooled,
    RowIds,
    Scores,
    check_points,
    frozen,
    plain,
    pool,
    pool_again,
    position,
)
from rag_confidence.conformal.rows import Rows

KIND = "isotonic_map"


@dataclass(frozen=True, eq=False)
class IsotonicMap:
    """A rising map from scores to probabilities of a sufficient retrieval, made by `fit_isotonic`.

    It stands beside the gate and never before it on the same rows: hand `rows` to the fit of a gate,
    which refuses rows that trained the map. A probability is only as good as its rows.

    Attributes
    ----------
    knots : ndarray, shape (b,)
        Scores at which the blocks of the fit begin and end, ascending.
    values : ndarray, shape (b,)
        Probability at each knot, in [0, 1], never falling.
    n0, n1 : int
        Insufficient and sufficient rows it was fitted on.
    rows : Rows
        Those rows.
    """

    knots: FloatArray
    values: FloatArray
    n0: int
    n1: int
    rows: Rows

    @property
    def provenance(self) -> Provenance | None:
        """How the scores were made that it was fitted on."""
        return self.rows.provenance

    @overload
    def __call__(self, score: float) -> float: ...
    @overload
    def __call__(self, score: Scores) -> FloatArray: ...
    def __call__(self, score: Any) -> Any:
        """Probability of a sufficient retrieval: a float for a number, else an array of the same shape.

        Beyond the fitted scores it stays at the first and the last value. Raises TypeError for what is
        not a number and ValueError for nan and infinities.
        """
        points = np.clip(check_points(score), self.knots[0], self.knots[-1])
        left = np.searchsorted(self.knots, points, side="right") - 1
        right = np.minimum(left + 1, len(self.knots) - 1)
        share = position(points, self.knots[left], self.knots[right])
        start, end = self.values[left], self.values[right]
        # A rounded sum must not exceed the knot that ends the line.
        return plain(np.minimum(start + share * (end - start), end))

    def to_dict(self) -> dict[str, Any]:
        """The map as plain values for JSON, with versions and a digest."""
        return _artefact.wrap(KIND, self._payload())

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> IsotonicMap:
        """The map that `to_dict` wrote, to the last bit; ArtefactError for anything else."""
        return cls._restored("document", _artefact.unwrap("document", KIND, document))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the map to a JSON file."""
        _artefact.write(path, KIND, self._payload())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> IsotonicMap:
        """The map that `save` wrote, to the last bit; ArtefactError for anything else."""
        return cls._restored("path", _artefact.read(path, KIND))

    def _payload(self) -> dict[str, Any]:
        return {
            "knots": _artefact.encode_floats(self.knots),
            "values": _artefact.encode_floats(self.values),
            "n0": self.n0,
            "n1": self.n1,
            "rows": self.rows.to_dict(),
        }

    @classmethod
    def _restored(cls, name: str, payload: Mapping[str, Any]) -> IsotonicMap:
        return _artefact.restored(name, KIND, payload=payload, build=_built, written=cls._payload)


def _built(payload: Mapping[str, Any]) -> IsotonicMap:
    pooled = pool_again(payload)
    knots, values = _artefact.decode_floats(payload["knots"]), _artefact.decode_floats(payload["values"])
    if not _is_best(knots, values, pooled):
        raise ValueError("a map that does not follow from the rows")
    return IsotonicMap(knots, values, pooled.n0, pooled.n1, pooled.rows)


def _is_best(knots: FloatArray, values: FloatArray, pooled: Pooled) -> bool:
    """Whether this is the regression: its blocks hold all rows, at their share of ones, and none splits.

    A block that could be split has more ones than its share in rows from its start on up to some score.
    """
    if len(knots) != len(values) or (knots[1:] <= knots[:-1]).any() or (values[1:] < values[:-1]).any():
        return False
    begins = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
    starts = np.searchsorted(pooled.scores, knots[begins])
    ends = np.searchsorted(pooled.scores, knots[np.append(begins[1:], len(knots)) - 1], side="right")
    if starts[0] != 0 or ends[-1] != len(pooled.scores) or (starts[1:] != ends[:-1]).any():
        return False
    count = pooled.zeros + pooled.ones
    ones, rows = np.add.reduceat(pooled.ones, starts), np.add.reduceat(count, starts)
    block = np.repeat(np.arange(len(starts)), ends - starts)
    ones_so_far = np.cumsum(pooled.ones) - (np.cumsum(ones) - ones)[block]
    rows_so_far = np.cumsum(count) - (np.cumsum(rows) - rows)[block]
    whole = bool((ones_so_far * rows[block] >= ones[block] * rows_so_far).all())
    return whole and bool(np.isin(knots, pooled.scores).all() and (values[begins] == ones / rows).all())


def fit_isotonic(
    scores: ArrayLike, labels: ArrayLike, *, row_ids: RowIds | None = None, provenance: Made = None
) -> IsotonicMap:
    """Isotonic regression of labels on scores.

    The map rises wherever the labelled share rises and is flat elsewhere. It stands beside the gate as
    `score(..., calibrator=map)` and never before it on the same rows; a probability is only as good as
    the rows it was fitted on.

    Parameters
    ----------
    scores : array_like, shape (n,)
        Finite scores of any scale, higher is better; for `score(calibrator=...)` the unrounded `kpi`.
    labels : array_like, shape (n,)
        1 for a sufficient retrieval, 0 for an insufficient one; both must occur.
    row_ids : sequence, optional
        Identity of each row, for the check that no row is used twice.
    provenance : Provenance or mapping, optional
        How the scores were made (`MetricsBatch.provenance`); `score(calibrator=...)` refuses any other.

    Returns
    -------
    IsotonicMap
        Callable on a score or an array of scores.

    Raises
    ------
    TypeError, ValueError
        For scores that are no finite numbers, labels outside {0, 1}, columns that do not belong
        together, and a class without rows.

    Notes
    -----
    Rows of equal score are pooled first. Then p_i = max_{a <= i} min_{b >= i} (mean label of a..b) over
    the distinct scores, straight between them and constant outside. Block means are exact fractions,
    rounded once. Cost O(n log n). On few rows the map follows noise, and its ends are often exactly 0
    and 1; where that matters take `fit_venn_abers`. Nothing here is calibrated on data that differ from
    the rows.

    References
    ----------
    Robertson, Wright and Dykstra (1988), Order Restricted Statistical Inference, Theorem 1.4.4 (the max-min
    formula); Zadrozny and Elkan (2002), Transforming classifier scores into accurate multiclass
    probability estimates, section 3.2.

    Examples
    --------
    >>> chance = fit_isotonic([0.1, 0.3, 0.3, 0.5, 0.9], [0, 0, 1, 0, 1])
    >>> chance(0.9), chance(-1.0), chance([0.3, 0.5, 0.7]).round(3).tolist()
    (1.0, 0.0, [0.333, 0.333, 0.667])
    """
    pooled = pool(scores, labels, row_ids, provenance)
    knots, values = _steps(pooled)
    return IsotonicMap(frozen(knots), frozen(values), pooled.n0, pooled.n1, pooled.rows)


def _steps(pooled: Pooled) -> tuple[FloatArray, FloatArray]:
    """First and last score of each block of the regression, and the share of ones in the block."""
    from scipy.optimize import isotonic_regression

    count = pooled.zeros + pooled.ones
    blocks = isotonic_regression(pooled.ones / count, weights=count.astype(np.float64)).blocks
    starts, ends = blocks[:-1], blocks[1:] - 1
    shares = np.add.reduceat(pooled.ones, starts) / np.add.reduceat(count, starts)
    places = np.union1d(starts, ends)
    return pooled.scores[places], shares[np.searchsorted(starts, places, side="right") - 1]
