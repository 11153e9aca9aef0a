"""Logs of made-up records for tests of what reads them: a real record with the columns that a test sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rag_confidence import score

QUERY = [1.0, 0.0, 0.0]
PASSAGES = [[0.9, 0.1, 0.2], [0.8, 0.3, 0.1], [0.85, -0.2, 0.3]]
BASE = score(QUERY, PASSAGES, k_requested=3).to_dict()

Records = list[dict[str, Any]]


def log_of(n: int, columns: Mapping[str, Any] | None = None, **short: Any) -> Records:
    """`n` records that differ in these columns alone.

    A column is one value for all, or a sequence of n. In `short`, names but "kpi" are those of `signals.*`.
    """
    named = {
        **(columns or {}),
        **{name if name == "kpi" else f"signals.{name}": v for name, v in short.items()},
    }
    records = [dict(BASE) for _ in range(n)]
    for name, values in named.items():
        for record, value in zip(records, _spread(values, n), strict=True):
            record[name] = value
    return records


def _spread(values: Any, n: int) -> Sequence[Any]:
    if isinstance(values, np.ndarray):
        return [None if value != value else value for value in values.tolist()]
    return values if isinstance(values, (list, tuple)) else [values] * n


def healthy(n: int = 300, seed: int = 0, shift: float = 1.2) -> tuple[Records, np.ndarray[Any, Any]]:
    """A log in which all is well, and labels that its KPI separates: drivers follow a hidden strength."""
    rng = np.random.default_rng([7, seed])
    labels = np.arange(n) % 2 == 1
    strength = rng.standard_normal(n) + shift * labels

    def driver() -> np.ndarray[Any, Any]:
        return np.asarray(1 / (1 + np.exp(-(0.9 + 0.8 * strength + 0.8 * rng.standard_normal(n)))))

    grounding, localization, cohesion, consistency, robustness = (driver() for _ in range(5))
    kpi = grounding * (0.35 * localization + 0.25 * cohesion + 0.25 * consistency + 0.15 * robustness)
    columns: dict[str, Any] = {
        "embedder": "qwen3-embedding:0.6b",
        "profile_fingerprint": "abc",
        "verdict": np.where(kpi > 0.4, "ANSWER", "REVIEW").tolist(),
    }
    cosine = 0.5 + 0.1 * rng.standard_normal(n) + 0.05 * strength
    told = {
        "topical_grounding": grounding,
        "answer_localization": localization,
        "support_cohesion": cohesion,
        "evidence_consistency": consistency,
        "query_robustness": robustness,
        "max_cosine": cosine,
        "mean_top3_cosine": cosine - 0.1 * rng.random(n),
    }
    names = [name.removeprefix("signals.") for name in BASE if name.startswith("signals.")]
    others = {
        name: np.random.default_rng([8, at]).random(n) for at, name in enumerate(names) if name not in told
    }
    return log_of(n, columns, kpi=kpi, **told, **others), labels
