"""Exact distances between barcodes: how far a diagram moved.

Both use the L-infinity ground metric. Essential bars are paired among themselves by sorted birth, which is
the best pairing on a line; finite bars are paired in `matching`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rag_confidence._types import FloatArray
from rag_confidence.engine.matching import bottleneck, wasserstein


def bottleneck_distance(a: ArrayLike, b: ArrayLike) -> float:
    """Bottleneck distance between two barcodes.

    The largest move that the best pairing of bars cannot avoid, in the units of the filtration: 0 for equal
    barcodes, small when a perturbation left the shape alone.

    Parameters
    ----------
    a, b : array_like, shape (m, 2) and (n, 2)
        Bars (birth, death), both with births above deaths or both below. An essential bar has an infinite
        death. Zero-length bars count for nothing; m = 0 is allowed.

    Returns
    -------
    float
        In [0, inf]; infinite if the numbers of essential bars differ.

    Raises
    ------
    ValueError
        On another shape, NaN, an infinite birth, or bars of opposite orientation.

    Notes
    -----
    min over pairings of max over pairs of max(abs(birth - birth'), abs(death - death')), where a bar left
    alone costs half its length. Exact up to the rounding of one subtraction. Cost O(n log n) when each side
    shares one death or one birth, else O(n^2) memory and a few maximum matchings.

    References
    ----------
    D. Cohen-Steiner, H. Edelsbrunner and J. Harer (2007), Stability of persistence diagrams, main theorem.

    Examples
    --------
    >>> bottleneck_distance([[1.0, 0.0], [0.5, 0.4]], [[0.75, 0.0]])
    0.25
    """
    left, right = _comparable(a, b)
    moves = _essential_moves(left, right)
    return max(float(moves.max(initial=0.0)), bottleneck(left.bars, right.bars))


def wasserstein_distance(a: ArrayLike, b: ArrayLike) -> float:
    """Wasserstein distance (p = 1) between two barcodes.

    The total of the moves of the best pairing of bars, in the units of the filtration: it adds up every
    small change where the bottleneck distance sees only the largest.

    Parameters
    ----------
    a, b : array_like, shape (m, 2) and (n, 2)
        As in `bottleneck_distance`.

    Returns
    -------
    float
        In [0, inf], at least the bottleneck distance; infinite if the numbers of essential bars differ.

    Raises
    ------
    ValueError
        As in `bottleneck_distance`.

    Notes
    -----
    min over pairings of the sum over pairs of max(abs(birth - birth'), abs(death - death')), where a bar
    left alone costs half its length. One linear assignment, O(n^3) at worst.

    References
    ----------
    D. Cohen-Steiner, H. Edelsbrunner, J. Harer and Y. Mileyko (2010), Lipschitz functions have L_p-stable
    persistence, section 2.

    Examples
    --------
    >>> wasserstein_distance([[10.0, 0.0], [1.0, 0.0]], [[1.0, 0.0]])
    5.0
    """
    left, right = _comparable(a, b)
    moves = _essential_moves(left, right)
    if np.array_equal(left.bars, right.bars):
        return float(moves.sum())  # exactly 0 where an assignment could leave a rounding error
    return float(moves.sum()) + wasserstein(left.bars, right.bars)


@dataclass(frozen=True)
class _Diagram:
    """Finite bars (m, 2), births above deaths, in one canonical order, and sorted essential births (e,)."""

    bars: FloatArray
    essential: FloatArray


def _comparable(a: ArrayLike, b: ArrayLike) -> tuple[_Diagram, _Diagram]:
    left, right = _checked("a", a), _checked("b", b)
    left_sign, right_sign = _orientation("a", left), _orientation("b", right)
    if left_sign * right_sign < 0:
        raise ValueError(
            "`b` must be oriented as `a`, births above deaths in both or below in both; got one of each. "
            "Pass (1 - birth, 1 - death) for one of them."
        )
    sign = -1.0 if left_sign + right_sign < 0 else 1.0
    return _diagram(sign * left), _diagram(sign * right)


def _checked(name: str, bars: ArrayLike) -> FloatArray:
    array = _numbers(name, bars)
    if array.ndim != 2 or array.shape[1] != 2:
        raise ValueError(
            f"`{name}` must have shape (m, 2), a birth and a death per bar; got {array.shape}. "
            "Pass np.empty((0, 2)) for no bars."
        )
    _refuse_rows(name, "hold no NaN", np.isnan(array).any(axis=1))
    _refuse_rows(name, "have finite births", np.isinf(array[:, 0]))
    return array


def _numbers(name: str, bars: ArrayLike) -> FloatArray:
    message = f"`{name}` must be an array of real numbers; got {type(bars).__name__}. Pass shape (m, 2)."
    try:
        array = np.asarray(bars)
    except (TypeError, ValueError):
        raise ValueError(message) from None
    if array.dtype.kind not in "biuf":
        raise ValueError(message)
    return array.astype(np.float64)


def _refuse_rows(name: str, constraint: str, wrong: ArrayLike) -> None:
    rows = np.flatnonzero(wrong).tolist()
    if rows:
        raise ValueError(f"`{name}` must {constraint}; got rows {rows} that break this. Drop these bars.")


def _orientation(name: str, bars: FloatArray) -> int:
    """1 for births above deaths, -1 for below, 0 when no bar has a length."""
    above, below = bool((bars[:, 0] > bars[:, 1]).any()), bool((bars[:, 0] < bars[:, 1]).any())
    if above and below:
        raise ValueError(
            f"`{name}` must have bars of one orientation; got births above and below deaths. "
            "Keep superlevel and sublevel bars apart."
        )
    return above - below


def _diagram(bars: FloatArray) -> _Diagram:
    endless = np.isinf(bars[:, 1])
    finite = bars[~endless]
    return _Diagram(finite[np.lexsort(finite.T)], np.sort(bars[endless, 0]))


def _essential_moves(a: _Diagram, b: _Diagram) -> FloatArray:
    if len(a.essential) != len(b.essential):
        return np.array([np.inf])
    return np.abs(a.essential - b.essential)
