"""Labelled logs for tests of the learned model: records whose model signals follow a hidden strength."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from retrieval_logs import Records, log_of

from rag_confidence.learning.prior import Prior

Array = NDArray[Any]
USED = ("max_cosine", "std_top10_cosine", "dirichlet_energy", "flip_angle")
PRIOR = Prior.of(tuple(f"signals.{name}" for name in USED), np.array([0.4, 0.3, 0.0, 0.0]), 0.2 * np.eye(4))


def labelled(n: int = 80, seed: int = 0, **columns: Any) -> tuple[Records, Array]:
    """Records of which every third is insufficient, with signals that tell so, and their labels."""
    rng = np.random.default_rng([17, seed])
    labels = np.arange(n) % 3 != 0
    signals: dict[str, Any] = {
        "max_cosine": 0.5 + 0.1 * rng.standard_normal(n) + 0.1 * labels,
        "std_top10_cosine": 0.1 + 0.02 * rng.random(n) + 0.01 * labels,
        "dirichlet_energy": rng.random(n),
        "flip_angle": 20.0 * rng.random(n),
        "kpi": rng.random(n),
    }
    return log_of(n, {"embedder": "made-up"}, **{**signals, **columns}), labels
