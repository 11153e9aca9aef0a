"""Exact inputs and right values of the kernel and the gate: a test for each published case and its notes."""

from __future__ import annotations

import math
import warnings
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from refusals import quiet, refuse

from rag_confidence._types import Decision
from rag_confidence.conformal.gate.fit import fit_conformal_gate
from rag_confidence.conformal.gate.fitted import ConformalGate
from rag_confidence.conformal.quantile import conformal_rank, pac_rank
from rag_confidence.errors import SmallCalibrationWarning

S9_INSUFFICIENT = [0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45]
S9_SUFFICIENT = [0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95]


def fitted(class0: Any, class1: Any, alpha: Any = "0.1", **options: Any) -> ConformalGate:
    """A gate on the scores of two classes, where warnings are not the subject."""
    labels = [0] * len(class0) + [1] * len(class1)
    with quiet():
        return fit_conformal_gate([*class0, *class1], labels, alpha, **options)


# --- ranks


@pytest.mark.parametrize(
    ("n", "alpha", "k"),
    [
        (9, "0.7", 3),
        (9, "0.3", 7),
        (999, "0.059", 941),
        (2, "1/3", 2),
        (9, "0.1", 9),
        (249, "0.172", 207),
        (19, "0.1", 18),
        (8, "0.1", math.inf),
        (9, "0.05", math.inf),
        (18, "0.05", math.inf),
        (19, "0.05", 19),
        (98, "0.01", math.inf),
        (99, "0.01", 99),
    ],
)
def test_ranks(n: int, alpha: str, k: float) -> None:
    """The rank is right for the level as text, fraction and float alike."""
    level = Fraction(alpha)
    assert conformal_rank(n, alpha) == conformal_rank(n, level) == conformal_rank(n, float(level)) == k
    if "/" not in alpha:
        assert conformal_rank(n, Decimal(alpha)) == k


def test_one_minus_nine_tenths_means_one_tenth() -> None:
    """The float 1 - 0.9 is meant as 1/10: nine rows support it."""
    assert 1 - 0.9 == 0.09999999999999998
    assert conformal_rank(9, 1 - 0.9) == 9


def test_a_third_as_a_float_means_a_third() -> None:
    """The float 1/3 is meant as the fraction: two rows support it."""
    assert conformal_rank(2, 1 / 3) == 2
    assert conformal_rank(2, 0.333) == math.inf


@pytest.mark.parametrize(
    ("alpha", "delta", "n", "k"),
    [(0.1, 0.05, 29, 29), (0.1, 0.05, 100, 96), (0.1, 0.05, 200, 188), (0.05, 0.05, 59, 59)],
)
def test_pac_ranks(alpha: float, delta: float, n: int, k: int) -> None:
    """The pac rank is right, and one row fewer than the least has none."""
    assert pac_rank(n, alpha, delta) == k
    if k == n:
        assert pac_rank(n - 1, alpha, delta) == math.inf


# --- gates


def test_gate_s9() -> None:
    """Nine rows a class: both thresholds finite, the gap between them an empty set and not {0, 1}."""
    gate = fitted(S9_INSUFFICIENT, S9_SUFFICIENT)
    assert (gate.q0, gate.t1) == (0.45, 0.55)
    between, accepted, rejected = map(gate.predict_one, (0.5, 0.55, 0.45))
    assert (between.decision, between.prediction_set, between.reason_code) == (
        "abstain",
        (),
        "gate_empty_set",
    )
    assert (accepted.decision, accepted.prediction_set) == (Decision.ACCEPT, (1,))
    assert (rejected.decision, rejected.prediction_set) == (Decision.REJECT, (0,))


@pytest.mark.parametrize("alpha", ["0.7", 0.7, Fraction(7, 10), Decimal("0.7"), 1 - 0.3])
def test_gate_s9_at_seven_tenths(alpha: Any) -> None:
    """Where a product of floats is one rank too high, the thresholds are exact."""
    gate = fitted(S9_INSUFFICIENT, S9_SUFFICIENT, alpha)
    assert (gate.q0, gate.t1) == (0.15, 0.85)


def test_gate_small() -> None:
    """Eight rows a class at one tenth: every score abstains with {0, 1}, and one warning says why."""
    labels = [0] * 8 + [1] * 8
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gate = fit_conformal_gate(S9_INSUFFICIENT[:8] + S9_SUFFICIENT[:8], labels, 0.1)
    small = [str(w.message) for w in caught if w.category is SmallCalibrationWarning]
    assert len(small) == 1
    for part in ("insufficient", "sufficient", "8", "9"):
        assert part in small[0]
    assert (gate.q0, gate.q1, gate.t1) == (math.inf, math.inf, -math.inf)
    for score in (0.0, 0.3, 0.5, 1.0):
        found = gate.predict_one(score)
        assert (found.decision, found.prediction_set) == (Decision.ABSTAIN, (0, 1))
        assert found.reason_code == "gate_infinite"


def test_gate_small_from_a_quickstart() -> None:
    """Seven and five rows at one tenth can only abstain, and the warning counts both classes."""
    scores = [0.92, 0.88, 0.85, 0.79, 0.95, 0.12, 0.25, 0.31, 0.18, 0.42, 0.82, 0.77]
    with pytest.warns(SmallCalibrationWarning, match=r"(?s)(7.*5|5.*7)") as caught, quiet_others():
        gate = fit_conformal_gate(scores, [1] * 5 + [0] * 7, alpha=0.10)
    assert sum(w.category is SmallCalibrationWarning for w in caught) == 1
    assert gate.predict([0.94, 0.81, 0.52, 0.15]).decision.tolist() == ["abstain"] * 4


def quiet_others() -> Any:
    """Any other warning is not the subject."""
    return warnings.catch_warnings()


def test_gate_ties() -> None:
    """All scores equal: the tied value keeps both labels, a hair above accepts, a hair below rejects."""
    gate = fitted([0.5] * 20, [0.5] * 20)
    assert (gate.q0, gate.t1) == (0.5, 0.5)
    assert gate.predict_one(0.5).prediction_set == (0, 1)
    assert gate.predict([0.5, 0.51, 0.49]).decision.tolist() == ["abstain", "accept", "reject"]


def test_gate_one_minus_s() -> None:
    """Membership is decided on raw scores: a calibration score of class 1 is never lost to 1 - (1 - s)."""
    gate = fitted([0.01] * 9, [0.07, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])
    assert 1 - (1 - 0.07) != 0.07
    assert gate.predict_one(0.07).decision is Decision.ACCEPT


def test_every_two_decimal_score_is_kept_at_its_own_threshold() -> None:
    """The whole kind: the score at the class-1 threshold keeps label 1, and at the class-0 one label 0."""
    for score in (i / 100 for i in range(101)):
        gate = fitted([score] * 9, [score] * 9)
        assert gate.predict_one(score).prediction_set == (0, 1), score
        assert gate.predict([score]).prediction_sets == [(0, 1)], score


def test_gate_float32() -> None:
    """A float32 score and a float64 threshold are compared as float32: rounding keeps labels."""
    gate = fitted([0.1] * 9, [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95])
    assert float(np.float32(0.1)) > 0.1
    assert 0 in gate.predict_one(np.float32(0.1)).prediction_set
    assert gate.predict(np.array([0.1], dtype=np.float32)).label0_kept.all()
    assert gate.predict_one(float(np.float32(0.1))).prediction_set != (0,)


def test_every_score_in_the_other_precision_is_kept_at_its_own_threshold() -> None:
    """The whole kind: thresholds in one precision and the same score in the other keep both labels."""
    for wide in (i / 100 for i in range(101)):
        for calibration, score in (
            (np.float64(wide), np.float32(wide)),
            (np.float32(wide), np.float64(wide)),
        ):
            with quiet():
                gate = fit_conformal_gate(np.full(18, calibration), [0] * 9 + [1] * 9)
            assert gate.predict_one(score).prediction_set == (0, 1), score
            assert gate.predict(np.array([score])).prediction_sets == [(0, 1)], score


# --- labels


@pytest.mark.parametrize(
    "of",
    [bool, np.bool_, np.int64, np.uint8, int, float, np.float64, np.float32],
    ids=lambda kind: kind.__name__,
)
def test_labels_accepted(of: Any) -> None:
    """Booleans, whole numbers and floats that are 0 or 1 give the same gate."""
    labels = [of(y) for y in [0] * 9 + [1] * 9]
    gate = fit_conformal_gate(S9_INSUFFICIENT + S9_SUFFICIENT, labels)
    assert (gate.q0, gate.t1, gate.n0, gate.n1) == (0.45, 0.55, 9, 9)


@pytest.mark.parametrize("odd", ["False", "no", "0", 2, math.nan, None], ids=repr)
def test_labels_refused(odd: Any) -> None:
    """Texts, 2, nan and None are no labels, alone or among good ones."""
    scores = S9_INSUFFICIENT + S9_SUFFICIENT
    for labels in ([0] * 9 + [1] * 8 + [odd], [odd] * 18):
        refuse((TypeError, ValueError), "^`labels` must ", lambda y=labels: fit_conformal_gate(scores, y))


@pytest.mark.needs_extra("test")
def test_series_index() -> None:
    """Scores and labels with different indexes are refused, naming the index, never paired by position."""
    import pandas as pd

    scores, labels = pd.Series([0.9, 0.1], index=[0, 1]), pd.Series([0, 1], index=[1, 0])
    message = refuse(ValueError, "^`labels` must .*index", lambda: fit_conformal_gate(scores, labels))
    assert "[1, 0]" in message
