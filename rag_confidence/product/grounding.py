"""The grounding gate: is the question about these passages at all?"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from rag_confidence._inputs import numbers
from rag_confidence._types import FloatArray

_LEAST = 10
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


def fit_gate(on_topic: ArrayLike, off_topic: ArrayLike) -> tuple[float, float]:
    """Centre and scale of the gate by class-balanced logistic regression; see `MetricPolicy`."""
    from scipy.optimize import minimize

    high, low = _top_means("on_topic", on_topic), _top_means("off_topic", off_topic)
    values = np.concatenate([high, low])
    middle, spread = float(values.mean()), float(values.std())
    if high.mean() <= low.mean() or spread == 0.0:
        raise ValueError(
            f"`on_topic` must be higher than `off_topic`; got means {high.mean():.3f} and {low.mean():.3f}. "
            "Check that both come from the same embedder, and that they are cosines, not distances."
        )
    x = (values - middle) / spread
    weight = np.concatenate([np.full(len(high), 0.5 / len(high)), np.full(len(low), 0.5 / len(low))])
    target = np.concatenate(
        [np.full(len(high), (len(high) + 1) / (len(high) + 2)), np.full(len(low), 1 / (len(low) + 2))]
    )

    def loss(theta: FloatArray) -> tuple[float, FloatArray]:
        logit = theta[0] * x + theta[1]
        error = weight * (1.0 / (1.0 + np.exp(-np.clip(logit, -500.0, 500.0))) - target)
        value = float(np.sum(weight * (np.logaddexp(0.0, logit) - target * logit)))
        return value, np.array([error @ x, error.sum()])

    slope, offset = minimize(loss, np.array([1.0, 0.0]), jac=True, method="BFGS").x
    return float(middle - spread * offset / slope), float(spread / slope)


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
