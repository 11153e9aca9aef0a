"""A logistic line on named signals: parts that add up, one retrieval like many, and its usual range."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_confidence.learning.prior import Prior
from rag_confidence.learning.terms import (
    INTERCEPT,
    Term,
    beyond_usual,
    contributions,
    fit_terms,
    predict_terms,
    probabilities,
)

NAMES = ("signals.a", "signals.b", "signals.c")
PRIOR = Prior.of(NAMES, np.array([0.5, 0.2, 0.0]), np.eye(3))
TERMS = (
    Term("signals.a", 2.0, 0.5, 0.1, 0.2, 0.8, 30),
    Term("signals.b", -0.7, 3.0, 2.0, 0.0, 9.0, 28),
)
numbers = st.floats(-1e6, 1e6) | st.none()


@given(intercept=st.floats(-5, 5), rows=st.lists(st.tuples(numbers, numbers), min_size=1, max_size=5))
def test_parts_add_up_to_the_log_odds(
    intercept: float, rows: list[tuple[float | None, float | None]]
) -> None:
    """From left to right, to the last bit, the sum is the logit of the probability, which is rounded once."""
    values = np.array([[math.nan if v is None else v for v in row] for row in rows])
    parts = contributions(intercept, TERMS, values)
    for row, probability in zip(parts.tolist(), probabilities(parts).tolist(), strict=True):
        logit = 0.0
        for part in row:
            logit += part
        exact = 1 / (1 + math.exp(-logit)) if logit > -700 else 0.0
        assert probability == pytest.approx(exact, abs=1e-12)
        assert 0.0 <= probability <= 1.0


@given(intercept=st.floats(-5, 5), a=numbers, b=numbers)
def test_one_retrieval_is_like_many(intercept: float, a: float | None, b: float | None) -> None:
    """Plain Python and columns agree to the last bit in parts, probability and range."""
    one = predict_terms(intercept, TERMS, {"signals.a": a, "signals.b": b, "kpi": 0.5})
    values = np.array([[math.nan if v is None else v for v in (a, b)]])
    parts = contributions(intercept, TERMS, values)
    assert [*one.contributions.values()] == parts[0].tolist()
    assert [*one.contributions] == [INTERCEPT, "signals.a", "signals.b"]
    if a is None and b is None:
        assert math.isnan(one.p_sufficient)
    else:
        assert one.p_sufficient == probabilities(parts)[0]
    beyond = beyond_usual(TERMS, values)[0]
    assert one.out_of_range == tuple(t.name for t, out in zip(TERMS, beyond, strict=True) if out)


def test_what_was_not_assessed_adds_nothing() -> None:
    """None, nan and a missing key are the same, and count neither for nor against."""
    for signals in (
        {"signals.a": 0.9, "signals.b": None},
        {"signals.a": 0.9, "signals.b": math.nan},
        {"signals.a": 0.9},
    ):
        one = predict_terms(0.25, TERMS, signals)
        assert one.contributions["signals.b"] == 0.0
        assert one.contributions["signals.a"] == pytest.approx(0.8)
        assert one.out_of_range == ()


@pytest.mark.parametrize(
    ("value", "beyond"), [(0.2, False), (-0.09, False), (-0.11, True), (1.09, False), (1.11, True)]
)
def test_out_of_range_is_half_a_width_beyond(value: float, beyond: bool) -> None:
    """Trained on 0.2 to 0.8: flagged below -0.1 and above 1.1."""
    assert predict_terms(0.0, TERMS, {"signals.a": value}).out_of_range == (("signals.a",) if beyond else ())


@pytest.mark.parametrize("logit", [-1e6, -745.2, -40.0, 40.0, 709.9, 1e6])
def test_extreme_log_odds_do_not_overflow(logit: float) -> None:
    """Probabilities of 0 and 1, and no exception."""
    assert probabilities(np.array([[logit]]))[0] == (1.0 if logit > 0 else pytest.approx(0.0, abs=1e-12))


def test_a_signal_that_does_not_vary_is_left_out() -> None:
    """Constant and unassessed columns have no term; the prior of the others is theirs alone."""
    rng = np.random.default_rng(0)
    values = np.column_stack([rng.standard_normal(20), np.full(20, 3.0), np.full(20, np.nan)])
    labels = rng.random(20) < 0.5
    intercept, terms = fit_terms(NAMES, values, labels, PRIOR)
    assert [term.name for term in terms] == ["signals.a"]
    alone, (only,) = fit_terms(NAMES[:1], values[:, :1], labels, PRIOR)
    assert (intercept, terms[0]) == (alone, only)


@given(
    seed=st.integers(0, 1000),
    unit=st.sampled_from([1e-6, 0.3, 7.0, 1e6]),
    offset=st.sampled_from([0.0, -4.0, 100.0]),
)
def test_units_and_offsets_change_no_prediction(seed: int, unit: float, offset: float) -> None:
    """A signal in other units, counted from elsewhere, gives the same contributions."""
    rng = np.random.default_rng([5, seed])
    values, labels = rng.standard_normal((25, 3)), rng.random(25) < 0.5
    moved = values.copy()
    moved[:, 1] = unit * (values[:, 1] + offset)
    found = [contributions(*fit_terms(NAMES, v, labels, PRIOR), v) for v in (values, moved)]
    assert found[1] == pytest.approx(found[0], abs=1e-7)


def test_a_term_in_units_of_deviations() -> None:
    """The standardised coefficient is the log-odds a standard deviation."""
    assert TERMS[1].standardised == pytest.approx(-1.4)
