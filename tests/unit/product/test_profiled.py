"""Drivers and KPI with a profile, against their formulas; one retrieval as a batch; what may not lower it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import reference_contrast as slow
from hypothesis import given
from hypothesis import strategies as st

from rag_confidence import DriverValues, MetricPolicy
from rag_confidence._types import Signal
from rag_confidence.engine.signals import SIGNAL_NAMES, Signals
from rag_confidence.product.drivers import Drivers
from rag_confidence.product.profiled import profiled_drivers, profiled_drivers_of_one

NAN = math.nan
POLICIES = [
    MetricPolicy(),
    MetricPolicy(profile_weights=DriverValues(2, 1, 1, 0.5), level_center=1.0, companionship_half=0.6),
    MetricPolicy(profile_weights=DriverValues(0, 1, 0, 0)),
    MetricPolicy(level_scale=1e-6, contrast_scale=1e-6),
]
UNITS: list[tuple[float, float] | None] = [None, (0.4, 0.1)]


@st.composite
def measurements(draw: st.DrawFn) -> dict[str, float]:
    """Signals of one retrieval, some of which may not have been assessed."""
    found = {
        "level_excess": draw(st.floats(-30, 30)),
        "saturated_contrast": draw(st.one_of(st.just(NAN), st.floats(0, 2))),
        "companionship": draw(st.one_of(st.just(NAN), st.floats(0, 1))),
        "dirichlet_energy": draw(st.floats(0, 1)),
        "flip_angle": draw(st.one_of(st.just(NAN), st.floats(0, 90))),
    }
    return dict.fromkeys(SIGNAL_NAMES, NAN) | found


def columns(found: list[dict[str, float]], policy: MetricPolicy, **options: Any) -> Drivers:
    """`profiled_drivers` of these retrievals as a batch."""
    table = {name: np.array([one[name] for one in found]) for name in SIGNAL_NAMES}
    return profiled_drivers(
        Signals.of(len(found), table), policy, **{"units": None, "grounded": True, **options}
    )


def expected(one: dict[str, float], policy: MetricPolicy, units: tuple[float, float] | None) -> list[float]:
    """Five signals and the KPI by their formulas."""
    center, scale = units or (policy.contrast_center, policy.contrast_scale)
    gate = slow.logistic((one["level_excess"] - policy.level_center) / policy.level_scale)
    contrast, together, turn = one["saturated_contrast"], one["companionship"], one["flip_angle"]
    shape = [
        NAN if math.isnan(contrast) else slow.logistic((contrast - center) / scale),
        together / (together + policy.companionship_half),
        1.0 - one["dirichlet_energy"],
        turn / (turn + policy.robustness_angle),
    ]
    pairs = [
        (w, v) for w, v in zip(policy.profile_weights.as_tuple(), shape, strict=True) if not math.isnan(v)
    ]
    total = sum(w for w, _ in pairs)
    return [gate, *shape, gate * sum(w * v for w, v in pairs) / total if total else 0.0]


@given(st.lists(measurements(), min_size=1, max_size=4), st.sampled_from(POLICIES), st.sampled_from(UNITS))
def test_drivers_and_kpi_follow_their_formulas(
    found: list[dict[str, float]], policy: MetricPolicy, units: tuple[float, float] | None
) -> None:
    """Logistic functions of level and contrast, a saturation of companionship, the others as without."""
    drivers = columns(found, policy, units=units)
    for at, one in enumerate(found):
        values = [*drivers.values[:, at], drivers.kpi[at]]
        np.testing.assert_allclose(values, expected(one, policy, units), rtol=0, atol=1e-9)
        assert 0.0 <= drivers.kpi[at] <= 1.0


@given(st.lists(measurements(), min_size=1, max_size=4), st.sampled_from(POLICIES), st.booleans())
def test_a_batch_is_its_retrievals(
    found: list[dict[str, float]], policy: MetricPolicy, grounded: bool
) -> None:
    """One at a time in plain Python, or all as columns: the same values, weights and KPI."""
    batch = columns(found, policy, grounded=grounded)
    for at, one in enumerate(found):
        alone = profiled_drivers_of_one(one, policy, units=None, grounded=grounded)
        np.testing.assert_allclose(alone.values, batch.values[:, at], rtol=0, atol=1e-12)
        np.testing.assert_allclose(alone.weights, batch.weights[:, at], rtol=0, atol=1e-12)
        assert alone.kpi == pytest.approx(batch.kpi[at], abs=2e-12)


@given(measurements(), st.sampled_from(["level_excess", "saturated_contrast", "companionship"]), st.data())
def test_more_is_never_worse(one: dict[str, float], name: str, data: st.DataObject) -> None:
    """A higher level, contrast or companionship never lowers the KPI."""
    more = data.draw(st.floats(0, 1))
    low, high = columns([one, {**one, name: one[name] + more}], MetricPolicy()).kpi
    assert math.isnan(one[name]) or high >= low


def test_below_six_passages_cohesion_is_null_and_localization_counts_alone() -> None:
    """The weights used are those of the profile, renormalised over what was assessed."""
    one = dict.fromkeys(SIGNAL_NAMES, NAN) | {
        "level_excess": 9.0,
        "saturated_contrast": 0.5,
        "dirichlet_energy": 0.2,
    }
    drivers = columns([one, one | {"companionship": 0.25, "flip_angle": 1.0}], MetricPolicy())
    assert drivers.weights[:, 0].tolist() == [1.0, 0.0, 0.0, 0.0]
    assert drivers.weights[:, 1].tolist() == [0.96, 0.04, 0.0, 0.0]
    assert math.isnan(drivers.of(Signal.SUPPORT_COHESION)[0])
    assert drivers.of(Signal.SUPPORT_COHESION)[1] == 0.5
    assert drivers.kpi[0] == pytest.approx(drivers.of(Signal.ANSWER_LOCALIZATION)[0])


def test_lexical_vectors_have_no_grounding() -> None:
    """The KPI is then the shape alone."""
    one = dict.fromkeys(SIGNAL_NAMES, NAN) | {
        "level_excess": -5.0,
        "saturated_contrast": 0.7,
        "companionship": 0.5,
        "dirichlet_energy": 0.2,
    }
    drivers = columns([one], MetricPolicy(), grounded=False)
    assert math.isnan(drivers.of(Signal.TOPICAL_GROUNDING)[0])
    assert drivers.kpi[0] == pytest.approx(0.96 * slow.logistic(0.4 / 0.15) + 0.04 * 0.5 / 0.75)


def test_nothing_measured_is_worth_nothing() -> None:
    """Without passages no driver is assessed, no weight is used and the KPI is 0."""
    drivers = columns([dict.fromkeys(SIGNAL_NAMES, NAN)], MetricPolicy())
    assert np.isnan(drivers.values).all()
    assert drivers.weights[:, 0].tolist() == [0.0] * 4
    assert drivers.kpi.tolist() == [0.0]
