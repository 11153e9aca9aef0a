"""The grounding gate: is the question about these passages at all?"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from rag_confidence._inputs import numbers
from rag_confidence._types import FloatArray

_LEAST = 10
_TYPICAL = 0.9
_LEAST_SCALE = 1e-6


def grounding(match: FloatArray, center: float, scale: float) -> FloatArray:
    """Sigmoid of the distance of the topical match from `center`, in units of `scale`.

    Parameters
    ----------
    match : ndarray, shape (Q,)
        Mean of the three largest raw cosines of each query, or the largest (`MetricPolicy.grounding_top`).
    center, scale : float
        Where grounding is one half, and over which distance it changes; `scale` > 0.

    Returns
    -------
    ndarray, shape (Q,)
        In [0, 1], increasing in every cosine.
    """
    # Beyond 500 the sigmoid is 0 in float64, and exp would overflow.
    exponent = np.minimum((center - match) / scale, 500.0)
    return np.asarray(1.0 / (1.0 + np.exp(exponent)))


def grounding_of_one(match: float, center: float, scale: float) -> float:
    """`grounding` of a single retrieval."""
    return 1.0 / (1.0 + math.exp(min((center - match) / scale, 500.0)))


def fit_gate(
    on_topic: ArrayLike, off_topic: ArrayLike, off_topic_cost: float, top: int
) -> tuple[float, float, int]:
    """Centre, scale and number of cosines of the gate; see `MetricPolicy.fit_grounding`."""
    on, off = _cosines("on_topic", on_topic), _cosines("off_topic", off_topic)
    if on.ndim == off.ndim == 2:
        if min(on.shape[1], 3) != min(off.shape[1], 3):
            raise ValueError(
                f"`off_topic` must have rows as long as `on_topic`; got {off.shape[1]} and {on.shape[1]}. "
                "Retrieve as many passages for both."
            )
        top = (
            1
            if _separation(_match(on, 1), _match(off, 1)) > _separation(_match(on, 3), _match(off, 3))
            else 3
        )
    high, low = np.sort(_match(on, top)), np.sort(_match(off, top))
    center = _balanced_cut(high, low, off_topic_cost)
    typical = float(np.median(high))
    if typical <= center:
        raise ValueError(
            f"`on_topic` must lie above `off_topic`; got medians {typical:.3f} and {np.median(low):.3f}, and "
            "most of it would be turned away. Check that both are cosines of one embedder, or lower the cost."
        )
    scale = (typical - center) / math.log(_TYPICAL / (1.0 - _TYPICAL))
    if scale < _LEAST_SCALE:
        raise ValueError(
            f"`on_topic` must lie clearly above `off_topic`; got medians {typical!r} and "
            f"{float(np.median(low))!r}. Check that the two differ in more than rounding."
        )
    return center, scale, top


def _match(cosines: FloatArray, top: int) -> FloatArray:
    """Mean of the `top` largest of each row (m, k); a single axis holds matches already."""
    if cosines.ndim == 1:
        return cosines
    return np.asarray((-np.sort(-cosines, axis=1))[:, :top].mean(axis=1))


def _separation(high: FloatArray, low: FloatArray) -> float:
    """Probability that one of `high` exceeds one of `low`, ties counting half (AUROC)."""
    ranked = np.sort(low)
    below = np.searchsorted(ranked, high, side="left") + np.searchsorted(ranked, high, side="right")
    return float(below.mean()) / (2 * len(low))


def _balanced_cut(high: FloatArray, low: FloatArray, cost: float) -> float:
    """Cut at which the share of `high` below equals `cost` times the share of `low` not below."""
    levels = np.unique(np.concatenate([high, low]))
    turned_away = np.searchsorted(high, levels, side="right") / len(high)
    let_through = 1.0 - np.searchsorted(low, levels, side="right") / len(low)
    at = int(np.argmax(turned_away >= cost * let_through))
    return float(levels[at : at + 2].mean())


def _cosines(name: str, cosines: ArrayLike) -> FloatArray:
    values = numbers(name, cosines).astype(np.float64)
    if values.ndim not in (1, 2) or len(values) < _LEAST or values.shape[-1] == 0:
        raise ValueError(
            f"`{name}` must have shape (m,) or (m, k) with m at least {_LEAST}; got {values.shape}. "
            "Collect more retrievals."
        )
    if not (np.abs(values) <= 1.0 + 1e-3).all():
        raise ValueError(f"`{name}` must hold cosines in [-1, 1]; got others. Do not pass distances.")
    return np.asarray(values)
