"""Drivers and the KPI from the engine's numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_confidence import DriverValues, MetricPolicy
from rag_confidence._types import Signal
from rag_confidence.engine.signals import Signals
from rag_confidence.product.drivers import Drivers, default_drivers, default_drivers_of_one

NAN = math.nan
ORDINARY = {
    "mean_top3_cosine": 0.7,
    "second_bar": 0.05,
    "lambda_2": 0.8,
    "dirichlet_energy": 0.1,
    "flip_angle": 1.0,
}


def drivers(policy: MetricPolicy | None = None, grounded: bool = True, **changed: float) -> Drivers:
    """Drivers of one retrieval with ordinary signals, some of them changed."""
    signals = Signals.of(1, ORDINARY | changed)
    return default_drivers(signals, policy or MetricPolicy(), grounded=grounded)


def test_the_formulas_of_the_contract() -> None:
    """tau / (l + tau), min(lambda, 1), 1 - E, phi / (phi + phi0), and the sigmoid."""
    policy = MetricPolicy(localization_tau=0.1, robustness_angle=3.0)
    got = drivers(policy)
    assert got.of(Signal.ANSWER_LOCALIZATION)[0] == pytest.approx(0.1 / 0.15)
    assert got.of(Signal.SUPPORT_COHESION)[0] == 0.8
    assert got.of(Signal.EVIDENCE_CONSISTENCY)[0] == 0.9
    assert got.of(Signal.QUERY_ROBUSTNESS)[0] == 0.25
    assert got.of(Signal.TOPICAL_GROUNDING)[0] == pytest.approx(1 / (1 + math.exp(-3)))
    shape = 0.35 * 2 / 3 + 0.25 * 0.8 + 0.25 * 0.9 + 0.15 * 0.25
    assert got.kpi[0] == pytest.approx(shape / (1 + math.exp(-3)))


def test_the_ends_of_the_scales() -> None:
    """No second bar is 1, a tie is 0, lambda_2 above 1 is clipped."""
    best = drivers(second_bar=0.0, lambda_2=2.0, dirichlet_energy=0.0, flip_angle=90.0)
    assert best.values[1:4, 0].tolist() == [1.0, 1.0, 1.0]
    assert 0.99 < best.values[4, 0] < 1.0
    worst = drivers(second_bar=2.0, lambda_2=0.0, dirichlet_energy=1.0, flip_angle=0.0)
    assert worst.values[2:, 0].tolist() == [0.0, 0.0, 0.0]
    assert 0.0 < worst.values[1, 0] < 0.1


numbers = st.one_of(st.just(NAN), st.floats(0, 1))


@given(st.tuples(numbers, numbers, numbers, numbers), st.tuples(*[st.integers(0, 5)] * 4), st.floats(-1, 1))
def test_the_kpi_is_a_renormalised_mean_times_the_gate(
    shape: tuple[float, ...], weights: tuple[int, ...], cosine: float
) -> None:
    """Weights of what was not assessed go to the rest in proportion; nothing left gives a KPI of 0."""
    if not any(weights):
        return
    policy = MetricPolicy(weights=DriverValues(*map(float, weights)))
    bars = {
        "second_bar": shape[0],
        "lambda_2": shape[1],
        "dirichlet_energy": shape[2],
        "flip_angle": shape[3],
    }
    got = drivers(policy, mean_top3_cosine=cosine, **bars)
    used = [w if not math.isnan(v) else 0 for w, v in zip(weights, got.values[1:, 0], strict=True)]
    total = sum(used)
    assert got.weights[:, 0].tolist() == pytest.approx([w / total if total else 0.0 for w in used])
    parts = [w * v for w, v in zip(used, got.values[1:, 0], strict=True) if w]
    wanted = got.values[0, 0] * sum(parts) / total if total else 0.0
    assert got.kpi[0] == pytest.approx(wanted, abs=1e-12)
    assert 0.0 <= got.kpi[0] <= 1.0


def test_one_passage_keeps_two_drivers() -> None:
    """Without cohesion and robustness the weights are .35 and .25 over .60."""
    got = drivers(lambda_2=NAN, flip_angle=NAN)
    assert got.weights[:, 0].tolist() == pytest.approx([0.35 / 0.6, 0.0, 0.25 / 0.6, 0.0])


def test_without_a_scale_the_gate_is_open_and_grounding_null() -> None:
    """A lexical backend scores shape only."""
    got = drivers(grounded=False, mean_top3_cosine=-0.9)
    assert np.isnan(got.of(Signal.TOPICAL_GROUNDING)[0])
    assert got.kpi[0] == pytest.approx(float(got.weights[:, 0] @ got.values[1:, 0]))


def test_nothing_measured_is_a_kpi_of_zero() -> None:
    """No passages: every driver is null, every weight 0, and there is no nan in the KPI."""
    for grounded in (True, False):
        got = default_drivers(Signals.of(2, {}), MetricPolicy(), grounded=grounded)
        assert np.isnan(got.values).all()
        assert got.weights.tolist() == np.zeros((4, 2)).tolist()
        assert got.kpi.tolist() == [0.0, 0.0]


def test_weights_of_any_sum_mean_the_same() -> None:
    """35 / 25 / 25 / 15 is .35 / .25 / .25 / .15."""
    assert drivers(MetricPolicy(weights=DriverValues(35, 25, 25, 15))).kpi[0] == pytest.approx(
        drivers().kpi[0]
    )


@pytest.mark.parametrize(
    ("name", "worse", "better"),
    [
        ("mean_top3_cosine", 0.5, 0.6),
        ("second_bar", 0.2, 0.1),
        ("lambda_2", 0.5, 0.6),
        ("dirichlet_energy", 0.3, 0.2),
        ("flip_angle", 0.5, 2.0),
    ],
)
def test_high_is_good(name: str, worse: float, better: float) -> None:
    """Each signal moves the KPI in its direction, the rest fixed."""
    changed: list[dict[str, Any]] = [{name: worse}, {name: better}]
    low, high = (drivers(**c).kpi[0] for c in changed)
    assert low < high


def test_best_values_give_one_and_not_more() -> None:
    """Rounding of the weights does not push the KPI beyond 1."""
    for weights in ((0.1, 0.2, 0.3, 0.4), (1e-9, 3, 7, 11), (0.35, 0.25, 0.25, 0.15)):
        policy = MetricPolicy(weights=DriverValues(*weights), grounding_center=-1, robustness_angle=1e-6)
        best = {"mean_top3_cosine": 1.0, "second_bar": 0.0, "lambda_2": 1.0, "dirichlet_energy": 0.0}
        assert drivers(policy, **best, flip_angle=90.0).kpi[0] <= 1.0


@given(
    st.tuples(numbers, numbers, numbers, numbers),
    st.tuples(*[st.integers(0, 5)] * 4),
    st.floats(-1, 1),
    st.booleans(),
)
def test_one_retrieval_is_a_block_of_one(
    shape: tuple[float, ...], weights: tuple[int, ...], cosine: float, grounded: bool
) -> None:
    """The plain path of a single call gives the columns' numbers, nan in the same places."""
    policy = MetricPolicy(weights=DriverValues(*map(float, weights))) if any(weights) else MetricPolicy()
    measured = ORDINARY | {
        "mean_top3_cosine": cosine,
        "second_bar": shape[0],
        "lambda_2": shape[1],
        "dirichlet_energy": shape[2],
        "flip_angle": shape[3],
    }
    block = default_drivers(Signals.of(1, measured), policy, grounded=grounded)
    alone = default_drivers_of_one(measured, policy, grounded=grounded)
    np.testing.assert_allclose(alone.values, block.values[:, 0], rtol=1e-14)
    np.testing.assert_allclose(alone.weights, block.weights[:, 0], rtol=1e-14)
    assert alone.kpi == pytest.approx(block.kpi[0], rel=1e-13)
    assert 0.0 <= alone.kpi <= 1.0


@pytest.mark.parametrize("cosine", [-1.0, 0.0, 1.0])
@pytest.mark.parametrize("scale", [1e-6, 1e-3, 2.0])
def test_a_steep_gate_does_not_overflow(cosine: float, scale: float) -> None:
    """Neither path raises or warns where the sigmoid is a step."""
    policy = MetricPolicy(grounding_scale=scale)
    alone = default_drivers_of_one(ORDINARY | {"mean_top3_cosine": cosine}, policy, grounded=True)
    assert alone.values[0] == drivers(policy, mean_top3_cosine=cosine).values[0, 0]
