"""The grounding gate and how it is fitted."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_confidence import MetricPolicy, score
from rag_confidence.product.grounding import _separation, fit_gate, grounding

FORM = r"^`[\w.\[\]]+` must .+; got .+\. .+\.$"
HIGH, LOW = np.linspace(0.5, 0.9, 40), np.linspace(0.1, 0.3, 40)


@given(st.floats(-1, 1), st.floats(-1, 1), st.floats(-1, 1), st.floats(1e-6, 2))
def test_the_gate_is_a_monotone_fraction(a: float, b: float, center: float, scale: float) -> None:
    """In [0, 1], never falling, one half at the centre, and without overflow at any scale."""
    low, high = grounding(np.array([min(a, b), max(a, b)]), center, scale)
    assert 0.0 <= low <= high <= 1.0
    assert grounding(np.array([center]), center, scale)[0] == 0.5


def test_the_gate_of_the_source() -> None:
    """The sigmoid of (cosine - .46) / .08."""
    got = grounding(np.array([0.46, 0.54, 0.38]), 0.46, 0.08)
    assert got.tolist() == pytest.approx([0.5, 1 / (1 + math.exp(-1)), 1 / (1 + math.exp(1))])


def test_what_was_not_measured_is_not_assessed() -> None:
    """nan in, nan out."""
    assert np.isnan(grounding(np.array([np.nan]), 0.46, 0.08)).all()


@given(st.integers(0, 2**32 - 1), st.floats(0.1, 0.5), st.floats(0.02, 0.15))
def test_the_fit_separates_what_is_separate(seed: int, gap: float, spread: float) -> None:
    """The centre lies between the medians, and the median on-topic retrieval has a grounding of 90."""
    rng = np.random.default_rng(seed)
    low = rng.normal(0.3, spread, 50).clip(-1, 1)
    high = rng.normal(0.3 + gap + 2 * spread, spread, 50).clip(-1, 1)
    center, scale, _ = fit_gate(high, low, 1.0, 3)
    assert np.median(low) <= center < np.median(high)
    assert grounding(np.array([np.median(high)]), center, scale)[0] == pytest.approx(0.9)
    wrong = np.mean(high < center), np.mean(low >= center)
    assert abs(wrong[0] - wrong[1]) <= 1 / 50 + 1e-9


def test_a_gap_is_cut_in_its_middle() -> None:
    """Where nothing overlaps the cut is halfway."""
    assert fit_gate(HIGH, LOW, 3.0, 3)[0] == pytest.approx(0.4)
    assert fit_gate(np.full(10, 0.9), np.full(10, 0.1), 3.0, 3)[0] == pytest.approx(0.5)


def test_the_three_best_of_each_row_count() -> None:
    """Two axes are reduced as the gate reduces them; order within a row is no matter."""
    rng = np.random.default_rng(0)
    high, low = rng.uniform(0.5, 0.9, (30, 7)), rng.uniform(0.1, 0.3, (30, 7))
    wanted = fit_gate(np.sort(high)[:, -3:].mean(axis=1), np.sort(low)[:, -3:].mean(axis=1), 3.0, 3)
    assert fit_gate(high, low, 3.0, 3) == pytest.approx(wanted)
    assert fit_gate(high[:, :2], low[:, :2], 3.0, 3)[0] > 0.0
    with pytest.raises(ValueError, match=r"^`off_topic` must have rows as long"):
        fit_gate(high[:, :2], low[:, :1], 3.0, 3)


@pytest.mark.parametrize("start", [1, 3])
def test_the_gate_reads_what_tells_the_two_kinds_apart(start: int) -> None:
    """Rows that differ in their best cosine alone give a gate on the best; in the mean, on the mean."""
    rng = np.random.default_rng(0)
    level = rng.uniform(0.2, 0.4, (60, 1))
    noise = rng.uniform(0.0, 0.3, (2, 60, 5))
    peaked = np.hstack([np.full((60, 1), 0.9), noise[0]])
    flat = np.hstack([level + 0.3, noise[1]])
    assert fit_gate(peaked, flat, 3.0, start)[2] == 1
    swing = rng.uniform(-0.1, 0.1, (2, 60, 1)) * [1.0, -0.5, -0.5]
    assert fit_gate(0.6 + swing[0], 0.5 + swing[1], 3.0, start)[2] == 3
    assert fit_gate(peaked[:, 0], flat[:, 0], 3.0, start)[2] == start


@given(st.integers(0, 10_000))
def test_separation_is_the_auroc(seed: int) -> None:
    """Every pair is compared, and ties count half."""
    rng = np.random.default_rng(seed)
    high, low = rng.integers(0, 5, 7) / 5, rng.integers(0, 5, 9) / 5
    pairs = [(a > b) + 0.5 * (a == b) for a in high for b in low]
    assert _separation(high, low) == pytest.approx(np.mean(pairs))


def test_order_and_kind_of_the_cosines_do_not_matter() -> None:
    """Lists, float32 and any order give the same gate."""
    wanted = fit_gate(HIGH, LOW, 3.0, 3)
    assert fit_gate(HIGH[::-1].tolist(), LOW.tolist(), 3.0, 3) == wanted
    assert fit_gate(HIGH.astype(np.float32), LOW.astype(np.float32), 3.0, 3) == pytest.approx(
        wanted, abs=1e-6
    )


@pytest.mark.parametrize(
    ("high", "low", "name"),
    [
        (HIGH[:9], LOW, "on_topic"),
        (HIGH, LOW[:9], "off_topic"),
        ([], LOW, "on_topic"),
        (0.5, LOW, "on_topic"),
        (np.ones((2, 20, 3)), LOW, "on_topic"),
        (np.ones((20, 0)), LOW, "on_topic"),
        ([*HIGH, np.nan], LOW, "on_topic"),
        (HIGH, [*LOW, np.inf], "off_topic"),
        (HIGH, [*LOW, 1.02], "off_topic"),
        (2 - 2 * HIGH, 2 - 2 * LOW, "off_topic"),
        (1 - HIGH, 1 - LOW, "on_topic"),
        (LOW, HIGH, "on_topic"),
        (HIGH, HIGH, "on_topic"),
        (np.full(20, 0.4), np.full(20, 0.4), "on_topic"),
        (100 * HIGH, 100 * LOW, "on_topic"),
        (["a"] * 20, LOW, "on_topic"),
        ([None] * 20, LOW, "on_topic"),
        (None, LOW, "on_topic"),
        (np.full(20, 0.9), np.full(20, 0.9 - 1e-7), "on_topic"),
    ],
)
def test_what_cannot_be_fitted_is_refused(high: Any, low: Any, name: str) -> None:
    """Too few, reversed, inseparable, missing, distances and percentages name the argument at fault."""
    with pytest.raises((ValueError, TypeError), match=f"^`{name}` must"):
        MetricPolicy.fit_grounding(high, low)
    with pytest.raises((ValueError, TypeError), match=FORM):
        MetricPolicy.fit_grounding(high, low)


def test_a_fitted_gate_moves_the_verdict() -> None:
    """An embedder with low cosines is usable once its gate is fitted."""
    rows = np.array([[0.36, 0.93, 0.05], [0.33, 0.94, 0.0], [0.31, 0.95, 0.02]])
    query = [1.0, 0.0, 0.0]
    fitted = MetricPolicy.fit_grounding(np.linspace(0.2, 0.4, 30), np.linspace(-0.1, 0.1, 30))
    assert score(query, rows).reason_code == "off_topic"
    assert score(query, rows, policy=fitted).reason_code != "off_topic"
    assert score(query, rows, policy=fitted).topical_grounding > 90.0


def test_cosines_just_above_one_are_rounding() -> None:
    """1.0000002 is a cosine."""
    assert fit_gate([*HIGH, 1.0000002], LOW, 3.0, 3)[0] == pytest.approx(0.4)
