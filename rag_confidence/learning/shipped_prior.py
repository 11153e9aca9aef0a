"""The prior that models start from: how coefficients vary over the five public data sets."""

from __future__ import annotations

import numpy as np

from rag_confidence.learning.prior import Prior

TEXT_SIGNALS = ("signals.text_best", "signals.text_top3")
"""Signals that need the words of the query and of the passages."""

LABEL_FREE = {
    "signals.max_cosine": 0.2,
    "signals.best_excess": 0.5,
    "signals.head_excess": 0.3,
    "signals.std_top20_cosine": 0.4,
    "signals.head_tail_gap": 0.2,
}
"""Weights of the label-free score on standardised signals; the mean of the prior is a multiple of them."""

# Made by scripts/learn_prior.py: mean, then the covariances with the signals before and with itself.
_ROWS: dict[str, tuple[float, tuple[float, ...]]] = {
    "signals.max_cosine": (0.08047, (0.04284,)),
    "signals.best_excess": (0.2012, (-0.01869, 0.4886)),
    "signals.head_excess": (0.1207, (0.008931, -0.2807, 0.262)),
    "signals.std_top20_cosine": (0.1609, (-0.01162, 0.1311, -0.1029, 0.1205)),
    "signals.head_tail_gap": (0.08047, (-0.01623, -0.04961, 0.01492, -0.02426, 0.05757)),
    "signals.typicality": (0.0, (-0.00783, 0.1203, -0.08718, 0.06082, -0.003352, 0.07521)),
    "signals.query_density": (0.0, (0.002277, 0.1226, -0.08424, 0.04575, -0.01932, 0.03711, 0.06252)),
    "signals.background_mean": (
        0.0,
        (-0.001857, -0.05996, 0.04699, -0.03511, 0.00204, -0.03487, -0.02045, 0.02998),
    ),
    "signals.dirichlet_energy": (
        0.0,
        (-0.006883, 0.04157, -0.03314, 0.02409, 0.004114, 0.02247, 0.01014, -0.01294, 0.02851),
    ),
    "signals.head_coherence": (
        0.0,
        (-0.004125, 0.09426, -0.07561, 0.04352, -0.004938, 0.04046, 0.03053, -0.02217, 0.01819, 0.04868),
    ),
    "signals.tail_coherence": (
        0.0,
        (
            0.01248,
            0.01542,
            0.001556,
            -0.006463,
            -0.01776,
            -0.009496,
            0.005804,
            0.004705,
            -0.001998,
            -0.007971,
            0.03276,
        ),
    ),
    "signals.best_pair": (
        0.0,
        (
            -0.007049,
            -0.005423,
            0.0003929,
            0.0006586,
            0.007137,
            0.001552,
            -0.004674,
            -0.001247,
            0.004081,
            -0.002275,
            -0.005463,
            0.01009,
        ),
    ),
    "signals.best_nearest": (
        0.0,
        (
            -0.004613,
            -0.09055,
            0.05611,
            -0.03304,
            0.01749,
            -0.02679,
            -0.03252,
            0.01346,
            -0.005981,
            -0.02,
            -0.009202,
            0.002837,
            0.03678,
        ),
    ),
    "signals.best_partial": (
        0.0,
        (
            -0.01284,
            0.06406,
            -0.05171,
            0.03765,
            0.008131,
            0.03069,
            0.01327,
            -0.01749,
            0.01951,
            0.02213,
            -0.01512,
            0.004386,
            -0.01204,
            0.03984,
        ),
    ),
    "signals.text_best": (
        0.0,
        (
            0.03476,
            0.4999,
            -0.4286,
            0.186,
            -0.08271,
            0.1952,
            0.2153,
            -0.09285,
            0.03809,
            0.1657,
            0.01348,
            -0.03277,
            -0.1364,
            0.05935,
            1.659,
        ),
    ),
    "signals.text_top3": (
        0.0,
        (
            -0.04802,
            -0.2639,
            0.1715,
            -0.09174,
            0.07231,
            -0.09298,
            -0.1263,
            0.04652,
            -0.002145,
            -0.07609,
            -0.03578,
            0.028,
            0.08408,
            -0.002942,
            -0.7155,
            0.5304,
        ),
    ),
}


def _default() -> Prior:
    covariance = np.zeros((len(_ROWS), len(_ROWS)))
    for row, (_, entries) in enumerate(_ROWS.values()):
        covariance[row, : row + 1] = covariance[: row + 1, row] = entries
    return Prior.of(tuple(_ROWS), np.array([mean for mean, _ in _ROWS.values()]), covariance)


DEFAULT_PRIOR = _default()
