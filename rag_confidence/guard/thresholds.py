"""Where ACCEPT ends and REJECT begins: order statistics of good and of bad calls."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from rag_confidence._types import FloatArray
from rag_confidence.conformal.quantile import least_rank


@dataclass(frozen=True)
class Thresholds:
    """Two cuts on the statistic of a call, higher being stranger.

    Attributes
    ----------
    good_to : float
        A call passes for good up to here; +inf where good calls are too few, or too many of them failed.
    bad_from : float or None
        A call passes for bad from here on; -inf where bad calls are too few, None where they were not asked.
    accept_to : float
        ACCEPT up to here; -inf for never.
    reject_above : float
        REJECT above; +inf for never.

    Notes
    -----
    A call is accepted that passes for good and not for bad, and rejected the other way round. Since s < b
    means s <= the float before b, both rules are one comparison each. Between the cuts a call passes for
    both, or for neither: `good_to` says which.
    """

    good_to: float
    bad_from: float | None
    accept_to: float
    reject_above: float

    @property
    def accepts(self) -> bool:
        """Whether any call can be accepted."""
        return self.accept_to > -math.inf

    @property
    def rejects(self) -> bool:
        """Whether any call can be rejected."""
        return self.reject_above < math.inf

    @property
    def complete(self) -> bool:
        """Whether there are enough calls of each kind that was asked for."""
        return math.isfinite(self.good_to) and self.bad_from != -math.inf


def thresholds_of(good: FloatArray, bad: FloatArray, level: Fraction, beta: Fraction | None) -> Thresholds:
    """The cuts for ascending statistics, +inf for a call on which a check failed.

    Notes
    -----
    The k-th smallest of the good calls, k = ceil((n + 1)(1 - alpha)), and with `beta` the k-th largest of
    the bad ones. Each is a rank among calls of its own kind, so that each kind needs its own exchangeability
    only.
    """
    good_to = _at_rank(good, level)
    if beta is None:
        return Thresholds(good_to, None, good_to if math.isfinite(good_to) else -math.inf, math.inf)
    bad_from = -_at_rank(-bad[::-1], beta)
    before = math.nextafter(bad_from, -math.inf)
    return Thresholds(good_to, bad_from, min(good_to, before), max(good_to, before))


def calls_needed(level: Fraction, n_failed: int = 0) -> int:
    """Fewest calls with a finite threshold, if no more than `n_failed` of them failed."""
    return math.ceil((n_failed + 1) / level) - 1


def count_failed(statistics: FloatArray) -> int:
    """Calls on which some check failed."""
    return int(np.count_nonzero(np.isposinf(statistics)))


def _at_rank(ascending: FloatArray, level: Fraction) -> float:
    rank = least_rank(len(ascending), level)
    return float(ascending[rank - 1]) if rank <= len(ascending) else math.inf
