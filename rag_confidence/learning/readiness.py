"""The finding that labels and score are good enough for a gate, and perhaps for a model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from rag_confidence.conformal.gate.planning import plan
from rag_confidence.conformal.quantile import Level
from rag_confidence.learning.findings import Finding, finding
from rag_confidence.learning.log import Log
from rag_confidence.learning.log_report import HARMLESS, SAME

# With fewer labels a third of them is too little for a model, and what is left too little for a gate.
MODEL_ROWS = 100
# What must be put right before a gate on these labels means anything.
_BLOCKING = {"near_misses_missing", *(code for _, code, _ in SAME if code not in HARMLESS)}


def about_readiness(log: Log, findings: Iterable[Finding], alpha: Level) -> Iterator[Finding]:
    """One finding where a gate at `alpha` can be fitted to these labels, given the findings so far.

    The KPI must separate the classes, both must have the rows of a finite threshold, and most retrievals must
    not have been decided by a gate already.
    """
    codes = {one.code for one in findings}
    if log.labels is None or "kpi_separates" not in codes or codes & _BLOCKING or _most(log, "gate"):
        return
    need = plan(alpha)
    # Of the rest nothing was measured.
    n0, n1 = (int(np.count_nonzero(log.scored & (log.labels == label))) for label in (False, True))
    if n0 < need.insufficient.n_finite or n1 < need.sufficient.n_finite:
        return
    level = need.insufficient.alpha
    try_model = n0 + n1 >= MODEL_ROWS and not _any(log, "model")
    yield finding(
        "ready_for_gate",
        "advice",
        f"The KPI separates the classes, and {n1} sufficient and {n0} insufficient labels are enough for a "
        f"gate at level {level:g}.",
        _action(level, cosine="cosine_beats_kpi" in codes, modelled=_any(log, "model"), try_model=try_model),
        n0=n0,
        n1=n1,
        alpha=level,
        n_finite=[need.insufficient.n_finite, need.sufficient.n_finite],
        try_model=try_model,
    )


def _action(level: float, *, cosine: bool, modelled: bool, try_model: bool) -> str:
    score = "signals.max_cosine, which does better here than the KPI," if cosine else "the KPI"
    score = "the KPI, or on predictions of the model," if modelled else score
    fit = f"Fit fit_conformal_gate on {score} with these labels and alpha={level:g}"
    if not try_model:
        return f"{fit}; rows that trained a model may not calibrate its gate."
    return (
        f"{fit}. A ConfidenceModel is worth trying on a third of the rows (split_history): rows that trained "
        "it may not calibrate its gate, so the gate then has the other two thirds."
    )


def _any(log: Log, what: str) -> bool:
    return any(word is not None for word in log.words[f"{what}_fingerprint"])


def _most(log: Log, what: str) -> bool:
    return 2 * sum(word is not None for word in log.words[f"{what}_fingerprint"]) > log.n
