"""Sessions: any of several good calls being abstained on, with and without a shared budget."""

from __future__ import annotations

import math

import numpy as np

from guard.page import Section, table
from rag_confidence.guard import Calibrator, Scorer, Session, ToolCallContext, calibrate

CALIBRATION, ALPHA = 1000, "0.10"
PLANS = (1, 2, 5, 20)
_SALT = 0x60A31
_SCORER = Scorer("given", lambda call: call.metadata["score"], version="1")
_ERRORS = 2.576


def sessions(trials: int) -> Section:
    """The share of sessions in which a good call is abstained on, for plans of several sizes."""
    rows, sound = [], True
    guards = [_guard(at) for at in range(trials)]
    for calls in PLANS:
        # Scores are uniform: the chance that one of T calls lies above a threshold t is 1 - t^T.
        spent = np.array([1.0 - Session(guard, calls).threshold ** calls for guard in guards])
        each = np.array([1.0 - guard.threshold**calls for guard in guards])
        error = float(spent.std(ddof=1)) / math.sqrt(trials)
        sound &= float(spent.mean()) - _ERRORS * error <= float(ALPHA)
        rows.append((str(calls), f"{spent.mean():.4f} ± {error:.4f}", f"{each.mean():.4f}"))
    header = ("planned calls", "session: any good call abstained on", "without a session")
    text = (
        f"{trials} guards calibrated on {CALIBRATION} good calls with uniform scores, alpha {ALPHA}. All "
        "calls of a session are good here; the chance that any of them is abstained on may be alpha at most. "
        "Without a session each call has the whole alpha. The rates are exact given each threshold."
    )
    return Section("Several calls", text, table(header, rows), sound)


def _guard(at: int) -> Calibrator:
    scores = np.random.default_rng([_SALT, at]).random(CALIBRATION)
    calls = [(ToolCallContext("made_up", metadata={"score": score}), True) for score in scores.tolist()]
    return calibrate(_SCORER, calls, ALPHA)
