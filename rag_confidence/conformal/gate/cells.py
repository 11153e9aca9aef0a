"""One group's class scores and the two thresholds that follow from them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np

from rag_confidence._history import GroupName
from rag_confidence._types import FloatArray, Mask
from rag_confidence.conformal.binomial import tail_within
from rag_confidence.conformal.quantile import least_pac_rank, least_rank
from rag_confidence.conformal.rows import sorted_classes, sorted_scores

GuaranteeKind: TypeAlias = Literal["marginal", "pac"]


@dataclass(frozen=True)
class Levels:
    """The errors that are allowed: of a false ACCEPT, of a false REJECT, and of an unlucky calibration."""

    accept: Fraction
    reject: Fraction
    delta: Fraction | None

    def rank(self, n: int, level: Fraction) -> int | float:
        """Rank of the order statistic among `n` scores, or ``inf``."""
        if self.delta is not None:
            return least_pac_rank(n, level, self.delta)
        rank = least_rank(n, level)
        return rank if rank <= n else math.inf

    def least_n(self, level: Fraction) -> int:
        """The fewest scores that support `level`."""
        if self.delta is None:
            return math.ceil(1 / level) - 1
        low, high = 0, 1
        while not tail_within(0, high, level, self.delta):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            within = tail_within(0, middle, level, self.delta)
            low, high = (low, middle) if within else (middle, high)
        return high


@dataclass(frozen=True, eq=False)
class Cell:
    """Class scores of one group, ascending, and the thresholds on them.

    Label 0 is kept for scores up to `q0`, label 1 for scores from `t1` on; ``inf`` and ``-inf`` keep a
    label always.
    """

    group: GroupName | None
    scores0: FloatArray
    scores1: FloatArray
    q0: float
    t1: float

    @classmethod
    def of(cls, group: GroupName | None, scores0: FloatArray, scores1: FloatArray, levels: Levels) -> Cell:
        """From ascending class scores."""
        rank0 = levels.rank(len(scores0), levels.accept)
        rank1 = levels.rank(len(scores1), levels.reject)
        q0 = math.inf if math.isinf(rank0) else float(scores0[int(rank0) - 1])
        t1 = -math.inf if math.isinf(rank1) else float(scores1[len(scores1) - int(rank1)])
        return cls(group, scores0, scores1, q0, t1)

    @property
    def n0(self) -> int:
        """Insufficient rows."""
        return len(self.scores0)

    @property
    def n1(self) -> int:
        """Sufficient rows."""
        return len(self.scores1)

    @property
    def is_infinite(self) -> bool:
        """Whether some label is always kept."""
        return math.isinf(self.q0) or math.isinf(self.t1)


def class_scores(
    scores: FloatArray, labels: Mask, clusters: np.ndarray[Any, Any] | None
) -> tuple[FloatArray, FloatArray]:
    """Ascending scores of both classes; of each cluster only the strangest row of a class.

    Notes
    -----
    The strangest row of a query, the highest insufficient or the lowest sufficient, is one exchangeable
    number a query. A bound on it bounds every row of a new query at once.
    """
    values = scores.astype(np.float64, copy=False)
    if clusters is None:
        return sorted_classes(values, labels)
    codes = _codes(clusters)
    highest = _extremes(values[~labels], codes[~labels], np.maximum)
    lowest = _extremes(values[labels], codes[labels], np.minimum)
    return sorted_scores(highest), sorted_scores(lowest)


def _codes(clusters: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.intp]]:
    places: dict[Hashable, int] = {}
    return np.array([places.setdefault(cluster, len(places)) for cluster in clusters], dtype=np.intp)


def _extremes(values: FloatArray, codes: Any, ufunc: np.ufunc) -> FloatArray:
    if not len(values):
        return values
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    return np.asarray(ufunc.reduceat(values[order], starts))


def by_group(groups: np.ndarray[Any, Any] | None, count: int) -> Iterator[tuple[GroupName | None, Any]]:
    """Each group and the positions of its rows, in order of first appearance; None for no groups."""
    if groups is None:
        yield None, slice(None)
        return
    rows: dict[GroupName, list[int]] = {}
    for row in range(count):
        rows.setdefault(groups[row], []).append(row)
    yield from ((group, np.array(places)) for group, places in rows.items())
