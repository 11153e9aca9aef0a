"""The prior that models start from: how coefficients vary over the five public data sets."""

from __future__ import annotations

import numpy as np

from rag_confidence.learning.prior import Prior
from rag_confidence.learning.prior_table import ROWS

LABEL_FREE = {
    "signals.max_cosine": 0.2,
    "signals.best_excess": 0.5,
    "signals.head_excess": 0.3,
    "signals.std_top20_cosine": 0.4,
    "signals.head_tail_gap": 0.2,
}
"""Weights of a label-free score on standardised signals; the mean of the prior is a multiple of them."""


def _default() -> Prior:
    covariance = np.zeros((len(ROWS), len(ROWS)))
    for row, (_, entries) in enumerate(ROWS.values()):
        covariance[row, : row + 1] = covariance[: row + 1, row] = entries
    return Prior.of(tuple(ROWS), np.array([mean for mean, _ in ROWS.values()]), covariance)


DEFAULT_PRIOR = _default()
"""Used by `ConfidenceModel.fit` unless another one is given."""
