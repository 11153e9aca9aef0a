"""Ranks among unlabelled traffic: scores of different checks on one scale, fixed before any calibration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rag_confidence._artefact import decode_floats, encode_floats
from rag_confidence._options import check_integer
from rag_confidence._types import FloatArray, IntArray, Mask
from rag_confidence.conformal.joint.check_rows import at_single
from rag_confidence.errors import RowsReused

_LARGEST = np.finfo(np.float64).max
# A score with more decimals than people write down is met twice only if it is the same row.
_WRITTEN_DECIMALS = 6
_MIXER = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, eq=False)
class Column:
    """One check in the traffic.

    Attributes
    ----------
    levels : ndarray, shape (u,)
        Its different finite scores, halved, ascending. Halved, because then no difference of two overflows.
    below : ndarray of int, shape (u + 1,)
        Rows of the traffic below each level, and last those with a finite score.
    """

    levels: FloatArray
    below: IntArray

    def ranks(self, scores: FloatArray) -> FloatArray:
        """Rows of the traffic below each score (m,), with a fraction of a row that keeps scores apart."""
        halves = scores.astype(np.float64) * 0.5
        at = np.searchsorted(self.levels, halves, side="left")
        return np.asarray(self.below[at] - 1.0 + np.where(self._inside(at), *self._parts(halves, at)))

    def _inside(self, at: IntArray) -> FloatArray:
        return np.asarray((at > 0) & (at < len(self.levels)))

    def _parts(self, halves: FloatArray, at: IntArray) -> tuple[FloatArray, FloatArray]:
        """The fraction inside the range, and the one beyond its ends."""
        low, high = self.levels[0], self.levels[-1]
        left = self.levels[np.maximum(at - 1, 0)]
        gap = np.where(self._inside(at), self.levels[np.minimum(at, len(self.levels) - 1)] - left, 1.0)
        above = _doublings(np.maximum(halves - high, 0.0), high - low)
        beneath = 1.0 - _doublings(np.maximum(low - halves, 0.0), high - low)
        return np.asarray((halves - left) / gap), np.where(at == 0, beneath, above)


@dataclass(frozen=True, eq=False)
class TrafficRanks:
    """The map from K checks to one scale: the share of unlabelled traffic that is less strange.

    Attributes
    ----------
    rows : int
        Calls in the traffic.
    columns : tuple of Column
    """

    rows: int
    columns: tuple[Column, ...]

    def of(self, scores: FloatArray) -> FloatArray:
        """Ranks (m, K) of scores (m, K): about 0 to 1 inside the range of the traffic, +inf for +inf.

        Notes
        -----
        For a score s with c rows of the traffic below it, the rank is (c - 1 + f) / rows: one minus the
        p-value of s, less a fraction of a row that keeps scores in one gap apart. f grows linearly from 0 to
        1 across the gap. Beyond the largest score it is the distance to it, divided by the range of the
        check, and from 1 on its logarithm to base 2, linear between powers of 2, so that it grows without
        end and only failure is infinite; below the smallest score the same downwards. A constant check has
        no range: it knows below, equal and above.

        Only comparisons and ratios of differences enter, so a change of unit or origin of a check, in
        traffic and scores alike, changes nothing but rounding. Each step is monotone in floats too: a higher
        score never gets a lower rank. O(m K log rows).
        """
        ranks = [column.ranks(scores[:, at]) / self.rows for at, column in enumerate(self.columns)]
        return np.where(np.isposinf(scores), np.inf, np.stack(ranks, axis=1))

    def hidden(self, threshold: float) -> Mask:
        """Checks (K,) whose largest finite score is not above a threshold only because it is common.

        Were the rows that share it apart, the strangest of them would be above.
        """
        tied, apart = (np.array([c.below[at] for c in self.columns]) for at in (-2, -1))
        varies = np.array([len(column.levels) > 1 for column in self.columns])
        return np.asarray(varies & (tied / self.rows <= threshold) & ((apart - 1) / self.rows > threshold))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        columns = [
            {"levels": encode_floats(column.levels), "below": column.below.tolist()}
            for column in self.columns
        ]
        return {"rows": self.rows, "columns": columns}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> TrafficRanks:
        """The map that `to_dict` wrote."""
        rows = check_integer("rows", plain["rows"], 1)
        return cls(rows, tuple(_read_column(column, rows) for column in plain["columns"]))


def fit_traffic(reference: FloatArray, names: tuple[str, ...]) -> TrafficRanks:
    """The ranks among checked traffic (m, K); a check that failed on every row is refused."""
    dead = np.isposinf(reference).all(axis=0)
    if dead.any():
        raise ValueError(
            f"`reference` must hold a finite score of every check; got none of "
            f"{', '.join(names[at] for at in np.flatnonzero(dead))}. "
            "Leave out checks that never run."
        )
    return TrafficRanks(len(reference), tuple(_column(scores) for scores in reference.T))


def _column(scores: FloatArray) -> Column:
    finite = scores[np.isfinite(scores)].astype(np.float64) * 0.5
    levels, counts = np.unique(finite, return_counts=True)
    return _frozen(levels, np.concatenate([[0], np.cumsum(counts)]))


def _read_column(plain: Mapping[str, Any], rows: int) -> Column:
    levels = decode_floats(plain["levels"])
    below = np.array([check_integer("below", count, 0) for count in plain["below"]], dtype=np.int64)
    if not np.isfinite(levels).all() or (levels[1:] <= levels[:-1]).any():
        raise ValueError("levels of traffic that do not rise")
    if not 0 < len(levels) == len(below) - 1 or below[0] != 0 or (np.diff(below) <= 0).any():
        raise ValueError("counts of traffic that do not rise")
    if below[-1] > rows:
        raise ValueError("more scores than traffic")
    return _frozen(levels, below)


def _frozen(levels: FloatArray, below: IntArray) -> Column:
    levels.flags.writeable = below.flags.writeable = False
    return Column(levels, below)


def _doublings(distance: FloatArray, span: float) -> FloatArray:
    """0 at no distance, 1 at one span, and one more whenever distance plus span doubles."""
    if span == 0.0:
        return (distance > 0.0).astype(np.float64)
    with np.errstate(over="ignore"):
        spans = np.minimum(distance / span, _LARGEST)
    mantissa, exponent = np.frexp(1.0 + spans)
    return np.asarray(np.where(spans < 1.0, spans, (exponent - 1) + (2.0 * mantissa - 1.0)))


def refuse_reuse(scores: FloatArray, reference: FloatArray) -> None:
    """Refuse traffic that holds the calibration rows: a rank among themselves flatters them.

    Rows count that stand once on each side and have a score of more than six decimals: others can coincide.
    More than half of the calibration rows must do so, because some checks take few values.
    """
    single = np.float32 in (scores.dtype, reference.dtype)
    mine, theirs = (at_single(rows) if single else rows for rows in (scores, reference))
    shared = np.intersect1d(_once(mine[_telling(mine)]), _once(theirs))
    if 2 * len(shared) > len(scores):
        raise RowsReused(
            f"`reference` must hold other calls than `scores`; got {len(shared)} of {len(scores)} "
            "calibration rows in both. Keep the calibration rows out of the traffic that fixes the ranks."
        )


def _telling(rows: FloatArray) -> FloatArray:
    with np.errstate(over="ignore", invalid="ignore"):
        written = np.round(rows, _WRITTEN_DECIMALS) == rows
    return np.asarray((np.isfinite(rows) & ~written).any(axis=1))


def _once(rows: FloatArray) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Hashes of the rows that differ from all others. Adding 0.0 makes -0.0 the 0.0 that it equals."""
    bits = np.ascontiguousarray(rows.astype(np.float64) + 0.0).view(np.uint64)
    hashes = np.zeros(len(rows), dtype=np.uint64)
    for column in bits.T:
        hashes = (hashes ^ column) * _MIXER
        hashes ^= hashes >> np.uint64(29)
    values, counts = np.unique(hashes, return_counts=True)
    return np.asarray(values[counts == 1])
