"""Labelled scores collapsed to their distinct values: what is computed from these cannot split a tie."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rag_confidence._types import FloatArray, IntArray, Mask


@dataclass(frozen=True, eq=False)
class Distinct:
    """Distinct scores with their rows: a sufficient statistic of a labelled history.

    The order of rows is gone, so that no result can depend on it, and tied rows are one entry.

    Attributes
    ----------
    scores : ndarray, shape (c,)
        Distinct scores, ascending, of the precision they came in.
    counts : ndarray of int, shape (c,)
        Rows with that score, at least 1.
    ones : ndarray of int, shape (c,)
        How many of these carry label 1.
    """

    scores: FloatArray
    counts: IntArray
    ones: IntArray

    @property
    def n(self) -> int:
        """Rows in all."""
        return int(self.counts.sum())

    @property
    def values(self) -> FloatArray:
        """The scores in double precision, for sums."""
        return self.scores.astype(np.float64)


def distinct(scores: FloatArray, labels: Mask) -> Distinct:
    """Collapse checked columns (n,), n >= 1. O(n log n)."""
    order = np.argsort(scores)
    # Adding 0.0 makes -0.0 the 0.0 that it equals.
    ordered = scores[order] + 0.0
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    return Distinct(
        scores=ordered[starts],
        counts=np.diff(np.append(starts, len(ordered))),
        ones=np.add.reduceat(labels[order].astype(np.int64), starts),
    )
