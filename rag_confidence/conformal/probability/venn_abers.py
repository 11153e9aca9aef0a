"""Venn-Abers probability map: an interval from two isotonic regressions, one for each possible label."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike

from rag_confidence import _artefact
from rag_confidence._types import FloatArray, IntArray, Provenance
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
)
from rag_confidence.conformal.rows import Rows

KIND = "venn_abers_map"
_ARRAYS = ("knots", "p0", "p1")

Point: TypeAlias = tuple[int, int]


@dataclass(frozen=True, eq=False)
class VennAbersMap:
    """Probability intervals for a sufficient retrieval, made by `fit_venn_abers`.

    It stands beside the gate and never before it on the same rows: hand `rows` to the fit of a gate,
    which refuses rows that trained the map. A probability is only as good as its rows.

    Attributes
    ----------
    knots : ndarray, shape (K,)
        The distinct fitted scores, ascending.
    p0 : ndarray, shape (K + 1,)
        Lower end of the interval for a score that has 0, 1, ..., K knots at or below it; never falling.
    p1 : ndarray, shape (K + 1,)
        Upper end for a score that has 0, 1, ..., K knots below it; never falling.
    n0, n1 : int
        Insufficient and sufficient rows it was fitted on.
    rows : Rows
        Those rows.
    """

    knots: FloatArray
    p0: FloatArray
    p1: FloatArray
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
        """Merged probability p1 / (1 - p0 + p1): a float for a number, else an array of the same shape.

        It lies inside the interval, where its log loss exceeds that of the right end by the same amount
        for either label. Raises TypeError for what is not a number, ValueError for nan and infinities.
        """
        p0, p1 = self._ends(check_points(score))
        return plain(np.asarray(p1 / (1.0 - p0 + p1)))

    @overload
    def interval(self, scores: float) -> tuple[float, float]:
        """Of one score."""

    @overload
    def interval(self, scores: Scores) -> tuple[FloatArray, FloatArray]:
        """Of an array of scores."""

    def interval(self, scores: Any) -> Any:
        """Both probabilities (p0, p1) of each score; wide where rows are few. Raises like the call."""
        p0, p1 = self._ends(check_points(scores))
        return plain(p0), plain(p1)

    def _ends(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        reached = np.searchsorted(self.knots, points, side="right")
        passed = np.searchsorted(self.knots, points, side="left")
        return self.p0[reached], self.p1[passed]

    def to_dict(self) -> dict[str, Any]:
        """The map as plain values for JSON, with versions and a digest."""
        return _artefact.wrap(KIND, self._payload())

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> VennAbersMap:
        """The map that `to_dict` wrote, to the last bit; ArtefactError for anything else."""
        return cls._restored("document", _artefact.unwrap("document", KIND, document))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the map to a JSON file."""
        _artefact.write(path, KIND, self._payload())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> VennAbersMap:
        """The map that `save` wrote, to the last bit; ArtefactError for anything else."""
        return cls._restored("path", _artefact.read(path, KIND))

    def _payload(self) -> dict[str, Any]:
        arrays = {name: _artefact.encode_floats(getattr(self, name)) for name in _ARRAYS}
        return {**arrays, "n0": self.n0, "n1": self.n1, "rows": self.rows.to_dict()}

    @classmethod
    def _restored(cls, name: str, payload: Mapping[str, Any]) -> VennAbersMap:
        return _artefact.restored(name, KIND, payload=payload, build=_built, written=cls._payload)


def _built(payload: Mapping[str, Any]) -> VennAbersMap:
    """The ends of the intervals are written for people; those in use follow from the rows again."""
    return _fitted(pool_again(payload))


def fit_venn_abers(
    scores: ArrayLike, labels: ArrayLike, *, row_ids: RowIds | None = None, provenance: Made = None
) -> VennAbersMap:
    """Inductive Venn-Abers predictor: an interval of probabilities that holds the calibrated one.

    The width of the interval says how much the rows leave open at that score. It stands beside the gate
    as `score(..., calibrator=map)` and never before it on the same rows; a probability is only as good
    as the rows it was fitted on.

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
    VennAbersMap
        Callable on a score or an array of scores; `interval` gives both ends.

    Raises
    ------
    TypeError, ValueError
        For scores that are no finite numbers, labels outside {0, 1}, columns that do not belong
        together, and a class without rows.

    Notes
    -----
    p0 and p1 are the values at the new score of isotonic regressions on the rows with the new score
    added under label 0 and under label 1. All of them are found once, exactly, in O(n log n) for the
    sort and O(n) for both regressions; a prediction costs O(log n). When new and old rows are
    exchangeable, the end that belongs to the true label is perfectly calibrated: E(label | p_label) =
    p_label. This is not known before the label is, it holds on average over calibration sets, and it is
    not proven of the merged probability.

    References
    ----------
    Vovk and Petej (2014), Venn-Abers predictors, Theorem 1; Vovk, Petej and Fedorova (2015), Large-scale
    probabilistic predictors with and without guarantees of validity, Algorithms 1 to 4 (the hulls) and
    section 4 (the merged probability).

    Examples
    --------
    >>> chance = fit_venn_abers([0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9], [0, 0, 1, 0, 1, 0, 1, 1])
    >>> round(chance(0.95), 6), [round(p, 3) for p in chance.interval(0.35)]
    (0.75, [0.333, 0.6])
    """
    return _fitted(pool(scores, labels, row_ids, provenance))


def _fitted(pooled: Pooled) -> VennAbersMap:
    ones, rows1 = _with_a_one(pooled.zeros, pooled.ones)
    # A new 0 is a new 1 seen from the other end with the labels exchanged.
    zeros, rows0 = _with_a_one(pooled.ones[::-1], pooled.zeros[::-1])
    # Between knots a new 1 joins the block of the next knot and a new 0 that of the knot before; where
    # there is none it is a block of its own.
    p0 = np.append(0.0, ((rows0 - zeros) / rows0)[::-1])
    p1 = np.append(ones / rows1, 1.0)
    return VennAbersMap(frozen(pooled.scores), frozen(p0), frozen(p1), pooled.n0, pooled.n1, pooled.rows)


def _with_a_one(zeros: IntArray, ones: IntArray) -> tuple[IntArray, IntArray]:
    """Ones and rows of the block that a new row of label 1 joins, if it ties with each knot in turn.

    Points are (rows, ones) summed from the left; the share of ones in a block is the slope of its chord.
    With the new row at knot i, what lies left of knot i moves by (-1, -1) against the rest, and the block
    is the edge of the lower hull that crosses from left to right. Its ends stay on a stack while i grows.
    """
    rows = [0, *np.cumsum(zeros + ones).tolist()]
    hits = [0, *np.cumsum(ones).tolist()]
    stack: list[Point] = []
    for point in [*zip(rows[:0:-1], hits[:0:-1], strict=True), (-1, -1)]:
        _push(stack, point)
    edges = [_edge(stack)]
    for after in zip(rows[1:-1], hits[1:-1], strict=True):
        moved = (after[0] - 1, after[1] - 1)
        if _below(moved, stack[-1], stack[-2]):
            stack.pop()
            _push(stack, moved)
        edges.append(_edge(stack))
    made = np.array(edges)
    return made[:, 1], made[:, 0]


def _edge(stack: list[Point]) -> Point:
    """The vector from the leftmost corner on the stack to the next."""
    (x, y), (x_next, y_next) = stack[-1], stack[-2]
    return x_next - x, y_next - y


def _push(stack: list[Point], point: Point) -> None:
    """Add a corner on the left of a lower hull, without those that it hides."""
    while len(stack) > 1 and not _below(stack[-1], point, stack[-2]):
        stack.pop()
    stack.append(point)


def _below(point: Point, start: Point, end: Point) -> bool:
    """Whether a point lies below the line through two others."""
    rise = (point[1] - start[1]) * (end[0] - start[0])
    return rise < (end[1] - start[1]) * (point[0] - start[0])
