"""Guards calibrated on good and bad calls: both errors, over fresh calibration sets."""

from __future__ import annotations

import math

import numpy as np

from guard.page import Section, table
from rag_confidence.guard import Scorer, ToolCallContext, calibrate

GOOD, BAD, TEST = 500, 200, 2000
LEVELS = (("0.10", "0.10"), ("0.10", "0.05"))
APART = 2.0
_SALT = 0x60A30
_SCORER = Scorer("given", lambda call: call.metadata["score"], version="1")
_ERRORS = 2.576


def two_kinds(trials: int) -> Section:
    """P(ACCEPT | bad) and P(REJECT | good) for normal scores two deviations apart."""
    rows, sound = [], True
    for alpha, beta in LEVELS:
        found = np.array([_trial(at, alpha, beta) for at in range(trials)])
        means = found.mean(axis=0)
        errors = found.std(axis=0, ddof=1) / math.sqrt(trials)
        sound &= bool((means[:2] - _ERRORS * errors[:2] <= [float(beta), float(alpha)]).all())
        cells = [f"{mean:.4f} ± {error:.4f}" for mean, error in zip(means, errors, strict=True)]
        rows.append((beta, cells[0], alpha, cells[1], cells[2]))
    header = ("beta", "bad accepted", "alpha", "good rejected", "abstained")
    text = (
        f"{trials} guards, each calibrated on {GOOD} good and {BAD} bad calls of its own and tried on {TEST} "
        f"fresh calls of each kind. Scores are normal, {APART:g} deviations apart. At most beta of the bad "
        "calls may be accepted and at most alpha of the good ones rejected; the others abstain. "
        "± is one standard error."
    )
    return Section("Good and bad calls", text, table(header, rows), sound)


def _trial(at: int, alpha: str, beta: str) -> tuple[float, float, float]:
    rng = np.random.default_rng([_SALT, at])
    good, bad = rng.normal(0.0, 1.0, GOOD), rng.normal(APART, 1.0, BAD)
    entries = [(_call(score), True) for score in good] + [(_call(score), False) for score in bad]
    guard = calibrate(_SCORER, entries, alpha, beta=beta)
    new_good, new_bad = rng.normal(0.0, 1.0, TEST), rng.normal(APART, 1.0, TEST)
    accepted = float((new_bad <= guard.threshold).mean())
    rejected = float((new_good > guard.reject_above).mean())
    both = np.concatenate([new_good, new_bad])
    between = float(((both > guard.threshold) & (both <= guard.reject_above)).mean())
    return accepted, rejected, between


def _call(score: float) -> ToolCallContext:
    return ToolCallContext("made_up", metadata={"score": float(score)})
