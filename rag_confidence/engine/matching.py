"""Cheapest pairings of bars: the kernels behind the distances between barcodes.

Inputs are checked by the caller: finite bars with births above deaths. A bar may always go to the diagonal,
which costs half its length.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rag_confidence._types import FloatArray, Mask


def same_death_bottleneck(x: FloatArray, y: FloatArray, death_gap: ArrayLike = 0.0) -> FloatArray:
    """Bottleneck distance between bars that share one death, from their lengths.

    The closed form that makes a star probe cheap: leading axes broadcast, so all probes of all queries
    are one call.

    Parameters
    ----------
    x, y : ndarray, shape (..., m) and (..., n)
        Lengths >= 0 in any order. Zeros are harmless padding.
    death_gap : array_like, shape (...)
        Death of ``x`` minus death of ``y``, for births above deaths.

    Returns
    -------
    ndarray, shape (...)
        Distances >= 0; 0 where both sides have no bar.

    Notes
    -----
    With lengths sorted, g the gap and h_k = max(x_k, y_k) / 2:
    min(max_k h_k, max(abs(g), max_k min(abs(x_k - y_k + g), h_k))). Below abs(g) no pair is possible; from
    there on, a bar longer than twice the level can only be paired rank by rank. Cost O(n log n).

    Examples
    --------
    >>> float(same_death_bottleneck(np.array([1.0, 0.25]), np.array([0.75])))
    0.25
    """
    size = max(x.shape[-1], y.shape[-1])
    x, y = _longest_first(x, size), _longest_first(y, size)
    gap = np.asarray(death_gap, dtype=np.float64)
    half = np.maximum(x, y) / 2
    paired = np.minimum(np.abs(x - y + gap[..., None]), half).max(axis=-1, initial=0.0)
    return np.asarray(np.minimum(half.max(axis=-1, initial=0.0), np.maximum(np.abs(gap), paired)))


def bottleneck(a: FloatArray, b: FloatArray) -> float:
    """Bottleneck distance between finite bars (m, 2) and (n, 2).

    Parameters
    ----------
    a, b : ndarray, shape (m, 2) and (n, 2)
        Bars with births above deaths.

    Returns
    -------
    float
        Distance >= 0; half the longest bar when one side is empty.

    Notes
    -----
    The closed form where each side shares one death, or one birth ((birth, death) -> (-death, -birth)
    keeps all distances). Otherwise the smallest level at which all bars longer than twice the level can be
    paired; the level is one of the m n + m + n costs, so nothing is approximated. O(m n) memory; a level
    is tested by two maximum matchings, O(m n sqrt(m + n)) each.

    References
    ----------
    N. S. Mendelsohn and A. L. Dulmage (1958), Some generalizations of the problem of distinct
    representatives: two matchings, one for the long bars of each side, give one that pairs them all.
    """
    half_a, half_b = _halves(a), _halves(b)
    if not (len(a) and len(b)):
        return float(max(half_a.max(initial=0.0), half_b.max(initial=0.0)))
    shared_birth, shared_death = (a == a[0]).all(axis=0) & (b == b[0]).all(axis=0)
    if shared_death:
        return float(same_death_bottleneck(2 * half_a, 2 * half_b, a[0, 1] - b[0, 1]))
    if shared_birth:
        return float(same_death_bottleneck(2 * half_a, 2 * half_b, b[0, 0] - a[0, 0]))
    return _Pairing(_costs(a, b), half_a, half_b).smallest_level()


def wasserstein(a: FloatArray, b: FloatArray) -> float:
    """Wasserstein distance (p = 1) between finite bars (m, 2) and (n, 2).

    Parameters
    ----------
    a, b : ndarray, shape (m, 2) and (n, 2)
        Bars with births above deaths.

    Returns
    -------
    float
        Distance >= 0; half the total length when one side is empty.

    Notes
    -----
    Both ends of a pair at the diagonal cost the sum of their halves, so only what a pair saves has to be
    assigned: an (m, n) problem, not (m + n, m + n). Pairing the k-th longest with the k-th longest would be
    wrong even for bars that share a death. Worst case O(n^3).
    """
    from scipy.optimize import linear_sum_assignment

    half_a, half_b = _halves(a), _halves(b)
    diagonal = half_a[:, None] + half_b
    cost = np.minimum(_costs(a, b), diagonal)
    rows, columns = linear_sum_assignment(cost - diagonal)
    unpaired = np.delete(half_a, rows).sum() + np.delete(half_b, columns).sum()
    return float(cost[rows, columns].sum() + unpaired)


@dataclass(frozen=True)
class _Pairing:
    """Costs of pairs (m, n) and of the diagonal (m,), (n,)."""

    cost: FloatArray
    half_a: FloatArray
    half_b: FloatArray

    def smallest_level(self) -> float:
        """Double a lower bound until all long bars can be paired, then bisect the costs in between."""
        low = high = self._lower_bound()
        while not self.pairs_long_bars(high):
            low, high = high, 2 * high or self._longest_half()
        if low == high:
            return low
        levels = self._levels(low, high)
        return float(levels[bisect_left(levels, True, hi=len(levels) - 1, key=self.pairs_long_bars)])

    def pairs_long_bars(self, level: float) -> bool:
        rows = self.cost[self.half_a > level]
        columns = self.cost[:, self.half_b > level].T
        return _pairs_rows(rows, level) and _pairs_rows(columns, level)

    def _lower_bound(self) -> float:
        """The dearest bar when each takes its nearest partner or the diagonal."""
        cheapest_a = np.minimum(self.half_a, self.cost.min(axis=1))
        cheapest_b = np.minimum(self.half_b, self.cost.min(axis=0))
        return float(max(cheapest_a.max(), cheapest_b.max()))

    def _longest_half(self) -> float:
        return float(max(self.half_a.max(), self.half_b.max()))

    def _levels(self, low: float, high: float) -> FloatArray:
        values = np.concatenate([self.cost.ravel(), self.half_a, self.half_b])
        return np.sort(values[(values > low) & (values <= high)])


def _pairs_rows(cost: FloatArray, level: float) -> bool:
    """Whether every row can have a column of its own at a cost of at most ``level``."""
    rows = len(cost)
    if rows == 0 or rows > cost.shape[1]:
        return rows == 0
    # After a small move the nearest partners differ; no row's nearest is dearer than a level asked for.
    if len(set(cost.argmin(axis=1).tolist())) == rows:
        return bool(cost.min(axis=1).max() <= level)
    return _matched_rows(np.asarray(cost <= level)) == rows


def _matched_rows(allowed: Mask) -> int:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    return int(np.count_nonzero(maximum_bipartite_matching(csr_array(allowed), perm_type="column") >= 0))


def _halves(bars: FloatArray) -> FloatArray:
    return np.asarray((bars[:, 0] - bars[:, 1]) / 2)


def _costs(a: FloatArray, b: FloatArray) -> FloatArray:
    births = np.abs(a[:, None, 0] - b[:, 0])
    return np.maximum(births, np.abs(a[:, None, 1] - b[:, 1]))


def _longest_first(lengths: FloatArray, size: int) -> FloatArray:
    padded = np.zeros((*lengths.shape[:-1], size))
    padded[..., : lengths.shape[-1]] = lengths
    return -np.sort(-padded, axis=-1)
