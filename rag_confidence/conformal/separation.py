"""How well a score separates the two labels: AUROC with exact ties, and an interval for it.

A gate can only certify what its score separates, so every fit and every audit starts from these numbers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from rag_confidence._history import check_history
from rag_confidence._types import FloatArray, IntArray

# Halvings of [0, A]: after 60 the bracket is narrower than the spacing of floats near 1.
HALVINGS = 60


def auroc(scores: ArrayLike, labels: ArrayLike) -> float | None:
    """Chance that a sufficient row scores above an insufficient one, ties counted one half.

    High is good: 1 separates the labels completely, 0.5 says nothing about them, below 0.5 ranks them the
    wrong way round.

    Parameters
    ----------
    scores : array_like, shape (n,)
        Finite scores on any scale; higher means more likely sufficient.
    labels : array_like, shape (n,)
        1 (sufficient) or 0 (insufficient).

    Returns
    -------
    float or None
        AUROC in [0, 1]; None where only one label occurs, because then there is no pair to compare.

    Raises
    ------
    ValueError, TypeError
        When scores or labels are not what is described above, or their lengths differ.

    Notes
    -----
    A = (number of pairs with s1 > s0, plus half the pairs with s1 = s0) / (n0 n1): the Mann-Whitney
    statistic. The pairs are counted in integers and divided once, so the value is the fraction rounded to
    the nearest float. O(n log n).

    References
    ----------
    Hanley and McNeil (1982), The meaning and use of the area under a receiver operating characteristic
    (ROC) curve.

    Examples
    --------
    >>> auroc([0.5, 0.5, 0.2, 0.8], [1, 0, 0, 1])
    0.875
    """
    values, sufficient = check_history(scores, labels)
    if sufficient.all() or not sufficient.any():
        return None
    return auroc_of_sorted(np.sort(values[~sufficient]), np.sort(values[sufficient]))


def auroc_of_sorted(scores0: FloatArray, scores1: FloatArray) -> float:
    """AUROC of two sorted, non-empty score lists: insufficient first, then sufficient.

    The distinct scores of the shorter list are looked up in the longer one; those that occur in both need a
    second look. O(m log n) for lengths m <= n, on sorted needles, which keeps the memory cache warm.
    """
    pairs = len(scores0) * len(scores1)
    if len(scores1) <= len(scores0):
        return _twice_below(scores1, scores0) / (2 * pairs)
    return (2 * pairs - _twice_below(scores0, scores1)) / (2 * pairs)


def auroc_interval(auroc: float, n0: int, n1: int, *, confidence: float = 0.95) -> tuple[float, float]:
    """Confidence interval of an AUROC measured on n0 insufficient and n1 sufficient rows.

    Parameters
    ----------
    auroc : float
        Measured AUROC in [0, 1]; 0 and 1 are allowed and give an interval of positive width.
    n0, n1 : int
        Rows of each label, at least 1.
    confidence : float, default 0.95
        Nominal two-sided coverage, between 0 and 1.

    Returns
    -------
    tuple of float
        Lower and upper end, both in [0, 1], with the measured value between them.

    Raises
    ------
    ValueError
        When an argument lies outside its range.

    Notes
    -----
    The ends solve |A - t| = z sqrt(V(t)) with V(t) = t (1 - t) [1 + N (1 - t)/(2 - t) + N t/(1 + t)]
    / (n0 n1) and N = (n0 + n1)/2 - 1, by bisection. Each side has one solution: (A - t)^2 / V(t) falls from
    t = 0 to t = A. The coverage is approximate, not a finite-sample bound, and the rows must be
    independent.

    References
    ----------
    Newcombe (2006), Confidence intervals for an effect size measure based on the Mann-Whitney statistic,
    part 2, Statistics in Medicine 25, method 5.

    Examples
    --------
    >>> low, high = auroc_interval(0.875, 20, 20)
    >>> round(low, 3), round(high, 3)
    (0.715, 0.948)
    """
    _check_interval(auroc, n0, n1, confidence)
    # Imported here: the module costs more to load than all of this package's own code.
    from statistics import NormalDist

    z = -NormalDist().inv_cdf((1 - confidence) / 2)
    return _lower_end(auroc, n0, n1, z), 1 - _lower_end(1 - auroc, n0, n1, z)


def _twice_below(needles: FloatArray, haystack: FloatArray) -> int:
    """Two for every haystack score below a needle and one for every score equal to it, summed."""
    distinct, counts = _runs(needles)
    below = np.searchsorted(haystack, distinct, side="left")
    tied = haystack.take(below, mode="clip") == distinct
    up_to = np.searchsorted(haystack, distinct[tied], side="right")
    return int(2 * (counts @ below) + counts[tied] @ (up_to - below[tied]))


def _runs(ordered: FloatArray) -> tuple[FloatArray, IntArray]:
    """Distinct values of a sorted array, and how often each occurs."""
    changes = ordered[1:] != ordered[:-1]
    if changes.all():
        # Unrounded scores, as a rule: new arrays of this size would take as long as the search.
        return ordered, np.broadcast_to(1, ordered.shape)
    starts = np.flatnonzero(np.append(True, changes))
    return ordered[starts], np.append(starts[1:], len(ordered)) - starts


def _lower_end(a: float, n0: int, n1: int, z: float) -> float:
    """Largest t in [0, a] from which the measured a is still z standard errors away."""
    low, high = 0.0, a
    extra, share = (n0 + n1) / 2 - 1, z * z / (n0 * n1)
    for _ in range(HALVINGS):
        t = (low + high) / 2.0
        gap, u = a - t, t * (1.0 - t)
        # (1 - t)/(2 - t) + t/(1 + t) = (1 + 2u)/(2 + u)
        if gap * gap > share * u * (1.0 + extra * (1.0 + 2.0 * u) / (2.0 + u)):
            low = t
        else:
            high = t
    return low


def _check_interval(auroc: float, n0: int, n1: int, confidence: float) -> None:
    """Refuse what lies outside the ranges of `auroc_interval`."""
    if not 0 <= auroc <= 1:
        raise ValueError(f"`auroc` must be between 0 and 1; got {auroc}. Pass the value of `auroc()`.")
    if min(n0, n1) < 1:
        raise ValueError(f"`n0` and `n1` must be at least 1; got {n0} and {n1}. Both labels must occur.")
    if not 0 < confidence < 1:
        raise ValueError(
            f"`confidence` must be between 0 and 1, ends excluded; got {confidence}. Use 0.95 for 95 %."
        )
