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
_TOP = 3


def grounding(mean_top3_cosine: FloatArray, center: float, scale: float) -> FloatArray:
    """Sigmoid of the distance of the mean top-3 cosine from `center`, in units of `scale`.

    Parameters
    ----------
    mean_top3_cosine : ndarray, shape (Q,)
        Mean of the three largest raw cosines of each query.
    center, scale : float
        Where grounding is one half, and over which distance it changes; `scale` > 0.

    Returns
    -------
    ndarray, shape (Q,)
        In [0, 1], increasing in every cosine.
    """
    # Beyond 500 the sigmoid is 0 in float64, and exp would overflow.
    exponent = np.minimum((center - mean_top3_cosine) / scale, 500.0)
    return np.asarray(1.0 / (1.0 + np.exp(exponent)))


def grounding_of_one(mean_top3_cosine: float, center: float, scale: float) -> float:
    """`grounding` of a single retrieval."""
    return 1.0 / (1.0 + math.exp(min((center - mean_top3_cosine) / scale, 500.0)))


def fit_gate(on_topic: ArrayLike, off_topic: ArrayLike, off_topic_cost: float) -> tuple[float, float]:
    """Centre and scale of the gate; see `MetricPolicy.fit_grounding`."""
    high, low = np.sort(_top_means("on_topic", on_topic)), np.sort(_top_means("off_topic", off_topic))
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
    return center, scale


def _balanced_cut(high: FloatArray, low: FloatArray, cost: float) -> float:
    """Cut at which the share of `high` below equals `cost` times the share of `low` not below."""
    levels = np.unique(np.concatenate([high, low]))
    turned_away = np.searchsorted(high, levels, side="right") / len(high)
    let_through = 1.0 - np.searchsorted(low, levels, side="right") / len(low)
    at = int(np.argmax(turned_away >= cost * let_through))
    return float(levels[at : at + 2].mean())


def _top_means(name: str, cosines: ArrayLike) -> FloatArray:
    values = numbers(name, cosines).astype(np.float64)
    if values.ndim == 2 and values.shape[1] > 0:
        values = -np.sort(-values, axis=1)[:, :_TOP].mean(axis=1)
    if values.ndim != 1 or len(values) < _LEAST:
        raise ValueError(
            f"`{name}` must have shape (m,) or (m, k) with m at least {_LEAST}; got {values.shape}. "
            "Collect more retrievals."
        )
    if not (np.abs(values) <= 1.0 + 1e-3).all():
        raise ValueError(f"`{name}` must hold cosines in [-1, 1]; got others. Do not pass distances.")
    return np.asarray(values)
