"""Comparisons by rank: correlation, pairs won within strata, and two AUROCs on the same rows.

All of them take rows as independent and count ties exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from rag_confidence._types import FloatArray, IntArray, Mask

# Two-sided 95 % of the normal distribution.
_Z = 1.959963984540054


@dataclass(frozen=True)
class PairsWon:
    """How often the sufficient one of two comparable rows has the larger value.

    Attributes
    ----------
    auroc : float
        Share of pairs won, ties counted one half, in [0, 1].
    pairs : int
        Pairs of a sufficient and an insufficient row of one stratum.
    p_value : float
        Two-sided, of labels that were dealt out at random within each stratum.
    """

    auroc: float
    pairs: int
    p_value: float


@dataclass(frozen=True)
class Difference:
    """AUROC of one score minus that of another on the same rows.

    Attributes
    ----------
    value, low, high : float
        The difference and its 95 % interval.
    p_value : float
        Two-sided, of no difference.
    n : int
        Rows that have both scores.
    """

    value: float
    low: float
    high: float
    p_value: float
    n: int

    def to_dict(self) -> dict[str, float | int]:
        """Plain values, ready for JSON."""
        return asdict(self)


def midranks(values: FloatArray) -> FloatArray:
    """Ranks from 1 on, shape (n,); tied values share the mean of theirs."""
    return within_ranks(values, np.zeros(len(values), dtype=np.intp))[0]


def within_ranks(values: FloatArray, strata: IntArray) -> tuple[FloatArray, FloatArray]:
    """Midranks of `values` within their stratum, and the size of the tie of each, both of shape (n,)."""
    order = np.lexsort((values, strata))
    group, ordered = strata[order], values[order]
    new_group = np.append(True, group[1:] != group[:-1])
    new_run = new_group | np.append(True, ordered[1:] != ordered[:-1])
    starts = np.flatnonzero(new_run)
    sizes = np.diff(np.append(starts, len(order)))
    offset = np.flatnonzero(new_group)[np.cumsum(new_group) - 1]
    run = np.cumsum(new_run) - 1
    ranks, ties = np.empty(len(order)), np.empty(len(order))
    ranks[order] = (starts + (sizes + 1) / 2)[run] - offset
    ties[order] = sizes[run]
    return ranks, ties


def rank_correlation(a: FloatArray, b: FloatArray) -> float | None:
    """Spearman's correlation with ties, in [-1, 1]; None where a column does not vary or has no rows."""
    if not len(a):
        return None
    x, y = midranks(a), midranks(b)
    x, y = x - x.mean(), y - y.mean()
    scale = math.sqrt(float(x @ x) * float(y @ y))
    return min(max(float(x @ y) / scale, -1.0), 1.0) if scale else None


def strata_of(values: FloatArray, rows: int) -> IntArray:
    """Strata of about `rows` neighbouring values, shape (n,); equal values share one."""
    return np.asarray(np.searchsorted(np.sort(values), values, side="left") // rows)


def pairs_won(values: FloatArray, sufficient: Mask, strata: IntArray) -> PairsWon | None:
    """Pairs of one stratum in which the sufficient row has the larger value; None without such a pair.

    Parameters
    ----------
    values : ndarray, shape (n,)
    sufficient : ndarray of bool, shape (n,)
    strata : ndarray of int, shape (n,)
        Rows are compared with those of their own stratum only; all zeros compares everything.

    Returns
    -------
    PairsWon or None

    Notes
    -----
    With U the number of pairs won, its mean under random labels is half the pairs, and its variance the sum
    over strata of n0 n1 / 12 * (N + 1 - sum(t^3 - t) / (N (N - 1))) for ties of size t. The p-value is
    normal, with a continuity correction of one half. O(n log n).

    References
    ----------
    Mann and Whitney (1947); van Elteren (1960), with strata weighted by their pairs.
    """
    ranks, ties = within_ranks(values, strata)
    sizes = np.bincount(strata)
    ones = np.bincount(strata, weights=sufficient)
    pairs = ones * (sizes - ones)
    total = pairs.sum()
    if not total:
        return None
    won = float((ranks[sufficient]).sum() - (ones * (ones + 1) / 2).sum())
    # Summed over rows, t^2 - 1 is t^3 - t a tie.
    tied = np.bincount(strata, weights=ties * ties - 1)
    correction = tied / np.maximum(sizes * (sizes - 1.0), 1.0)
    variance = float((pairs / 12 * (sizes + 1 - correction)).sum())
    excess = max(abs(won - total / 2) - 0.5, 0.0)
    return PairsWon(won / float(total), int(total), two_sided(excess, variance))


def paired_difference(a: FloatArray, b: FloatArray, sufficient: Mask) -> Difference | None:
    """AUROC of `a` minus AUROC of `b` with a 95 % interval; None where it cannot be estimated.

    Needs two rows of each class. Where both separate all of these rows alike, nothing varies and there is
    no interval.

    Notes
    -----
    V(i) is the share of the other class that row i beats, ties counted one half. The variance of the
    difference is var(Va - Vb over sufficient rows) / n1 plus the same over insufficient rows / n0.
    O(n log n).

    References
    ----------
    DeLong, DeLong and Clarke-Pearson (1988), Biometrics 44.
    """
    n1 = int(np.count_nonzero(sufficient))
    n0 = len(sufficient) - n1
    if min(n0, n1) < 2:
        return None
    over_ones = _beaten(a, sufficient) - _beaten(b, sufficient)
    over_zeros = _beaten(-a, ~sufficient) - _beaten(-b, ~sufficient)
    variance = float(over_ones.var(ddof=1)) / n1 + float(over_zeros.var(ddof=1)) / n0
    if not variance:
        return None
    value, half = float(over_ones.mean()), _Z * math.sqrt(variance)
    p_value = two_sided(abs(value), variance)
    return Difference(value, max(value - half, -1.0), min(value + half, 1.0), p_value, n0 + n1)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values, in the order given.

    References
    ----------
    Holm (1979), Scandinavian Journal of Statistics 6.
    """
    adjusted, running = [0.0] * len(p_values), 0.0
    for place, at in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        running = max(running, min((len(p_values) - place) * p_values[at], 1.0))
        adjusted[at] = running
    return adjusted


def two_sided(distance: float, variance: float) -> float:
    """Chance that a centred normal of this variance lies at least `distance` from 0; 1 for variance 0."""
    return math.erfc(distance / math.sqrt(2 * variance)) if variance > 0.0 else 1.0


def _beaten(values: FloatArray, own: Mask) -> FloatArray:
    """Share of the other class that each row of `own` beats, ties counted one half."""
    mine, others = values[own], np.sort(values[~own])
    below = np.searchsorted(others, mine, side="left") + np.searchsorted(others, mine, side="right")
    return np.asarray(below / (2 * len(others)))
