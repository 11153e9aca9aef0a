"""Loose thresholds lie where scores do, their margins agree with their decisions, and only gates decide."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from refusals import refuse

from rag_confidence._types import Decision
from rag_confidence.conformal.gate.evaluation import evaluate_conformal_gate
from rag_confidence.conformal.gate.fit import apply_conformal_gate, predict_one
from rag_confidence.conformal.gate.fitted import ConformalGate
from rag_confidence.conformal.gate.loose import Thresholds
from rag_confidence.conformal.joint.fitted import JointGate

fractions = st.integers(0, 100).map(lambda i: i / 100) | st.floats(0.0, 1.0)


@pytest.mark.parametrize(
    "value",
    [40, 40.0, 1.0000000000000002, -0.1, np.float32(1.5), 1e308, 10**400, -(10**5000)],
    ids=["40", "40.0", "above 1", "below 0", "narrow", "large", "huge", "huge below"],
)
def test_finite_thresholds_are_fractions(value: Any) -> None:
    """Scores are fractions, so a finite threshold outside [0, 1] is a mistake, and is named as one."""
    for name in ("q0", "q1"):
        bars = {"q0": 0.5, "q1": 0.5, name: value}
        message = refuse(
            ValueError, rf"^`{name}` must be a number in \[0, 1\], or inf", lambda b=bars: Thresholds(**b)
        )
        assert ("percentages" in message) == (value == 40)
        assert len(message) < 200


def test_fractions_and_infinities_are_thresholds() -> None:
    """Both ends of [0, 1] and inf are thresholds."""
    for value in (0, 1, 0.0, 1.0, np.float32(0.5), np.int64(1), math.inf):
        assert Thresholds(value, value).q0 == float(value)


@example(q0=0.2, q1=0.7, score=0.3, narrow=False)
@given(q0=fractions, q1=fractions, score=fractions, narrow=st.booleans())
def test_the_margin_never_contradicts_the_decision(q0: float, q1: float, score: float, narrow: bool) -> None:
    """An accepted score lies at or above the bar, any other at or below it, whatever rounding does."""
    found = Thresholds(q0, q1).predict_one(np.float32(score) if narrow else score)
    assert found.margin_to_threshold is not None
    assert found.margin_to_threshold >= 0.0 if found.decision is Decision.ACCEPT else True
    assert found.margin_to_threshold <= 0.0 if found.decision is not Decision.ACCEPT else True
    assert found.margin_to_threshold == pytest.approx(found.score - max(q0, 1 - q1), abs=1e-7)


@pytest.mark.parametrize(
    "gate",
    [ConformalGate, Thresholds, object.__new__(JointGate), None, 0.5, "gate"],
    ids=["class", "loose class", "joint", "None", "number", "text"],
)
def test_only_gates_of_one_score_decide(gate: Any) -> None:
    """A class, a joint gate and what is no gate are refused by each function that takes a gate."""
    for call in (
        lambda: apply_conformal_gate([0.2, 0.9], gate),
        lambda: predict_one(0.9, gate),
        lambda: evaluate_conformal_gate([0.2, 0.9], [0, 1], gate),
    ):
        refuse(TypeError, "^`gate` must be a fitted gate or Thresholds; got ", call)
