"""MetricPolicy: constants that cannot be meant are refused, and equal policies are recognised."""

from __future__ import annotations

import copy
import json
import math
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_confidence import DriverValues, MetricPolicy

FORM = r"^`[\w.\[\]]+` must .+; got .+\. .+\.$"
HIGH, LOW = np.linspace(0.5, 0.9, 40), np.linspace(0.1, 0.3, 40)
FLOORS = {
    "answer_localization": 55.0,
    "support_cohesion": 55.0,
    "evidence_consistency": 60.0,
    "query_robustness": 60.0,
}


def refuse(call: Callable[[], Any], pattern: str) -> str:
    """A refusal in the one form, as ValueError or TypeError."""
    with pytest.raises((ValueError, TypeError), match=pattern) as caught:
        call()
    with pytest.raises((ValueError, TypeError), match=FORM):
        raise caught.value
    return str(caught.value)


def test_the_defaults_are_those_that_users_rely_on() -> None:
    """Thresholds, weights, bands and the gate of the source document."""
    p = MetricPolicy()
    assert (p.answer_at, p.review_at) == (65, 45)
    assert (p.grounding_center, p.grounding_scale, p.grounding_min) == (0.46, 0.08, 50)
    assert p.weights.as_tuple() == (0.35, 0.25, 0.25, 0.15)
    assert p.floors.as_tuple() == (55, 55, 60, 60)
    assert (p.contradiction_at, p.loop_life_flag) == (0.5, 0.10)
    assert (p.confidence_cuts, p.kpi_cuts) == ((65, 45), (80, 65, 45))
    assert (p.grounding_cuts, p.localization_cuts, p.cohesion_cuts) == ((70, 40), (85, 60), (85, 55))
    assert (p.consistency_cuts, p.robustness_cuts) == ((80, 55), (80, 55))
    assert p.definitions == "default"
    assert p.version == 2
    assert MetricPolicy.seed() == MetricPolicy(definitions="seed")


def test_a_policy_is_read_otherwise_with_a_profile() -> None:
    """The weights and floors of the profile take the place of the others, and grounding reads the best."""
    p = MetricPolicy(
        profile_weights=DriverValues(3, 1, 0, 0), profile_floors=DriverValues(1, 2, 3, 4), grounding_top=3
    )
    assert p.profiled.unit_weights == (0.75, 0.25, 0.0, 0.0)
    assert p.profiled.signal_floors["query_robustness"] == 4.0
    assert p.profiled.match_signal == "max_cosine"
    assert p.profiled.profiled == p.profiled
    assert (p.weights, p.floors) == (MetricPolicy().weights, MetricPolicy().floors)
    assert MetricPolicy().contrast_units == (0.3, 0.15)


def test_the_primary_risk_is_looked_for_above_the_floors() -> None:
    """Without any floor signals compare by their values; drivers that hardly count have none to clear."""
    assert MetricPolicy().risk_floors == (50, 55, 55, 60, 60)
    assert MetricPolicy().profiled.risk_floors == (50, 50, -math.inf, -math.inf, -math.inf)
    some = MetricPolicy(
        grounding_min=40, floors=DriverValues(0, 70, 30, 0), weights=DriverValues(5, 1, 0.1, 0.1)
    )
    assert some.risk_floors == (40, 0, 70, 30, -math.inf)


def test_a_policy_is_frozen() -> None:
    """What a decision was made with cannot change after it."""
    with pytest.raises(FrozenInstanceError):
        MetricPolicy().answer_at = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("answer_at", [-1, 100.1, math.nan, math.inf, "65", None, True, [65]]),
        ("review_at", [-0.1, 101, 66, math.nan]),
        ("grounding_center", [-1.1, 1.1, math.nan, None]),
        ("grounding_scale", [0, -0.08, 1e-9, 2.1, math.nan, math.inf]),
        ("grounding_min", [-1, 101, "50"]),
        ("contradiction_at", [-0.1, 1.1, 50, math.nan]),
        ("loop_life_flag", [-0.1, 2.1, math.nan]),
        ("localization_tau", [0, -1, 2.1, math.nan]),
        ("robustness_angle", [0, -1, 90.1, math.nan]),
        ("definitions", ["default ", "source", None, 1, ["seed"]]),
        ("version", ["1", 1.5, None, -1, True]),
        ("grounding_top", [0, 2, 4, "3", 1.5, None, True]),
        ("level_center", [-100.1, 100.1, math.nan, None]),
        ("level_scale", [0, -0.15, 1e-9, 100.1, math.nan, math.inf]),
        ("contrast_center", [-0.1, 10.1, math.nan, "0.3"]),
        ("contrast_scale", [0, -0.15, 10.1, math.nan, True]),
        ("companionship_half", [0, -0.25, 10.1, math.nan, None]),
    ],
)
def test_constants_that_cannot_be_meant_are_refused(name: str, values: list[Any]) -> None:
    """A negative scale, an empty range or another type is an error when the policy is built."""
    for value in values:
        refuse(lambda value=value: MetricPolicy(**{name: value}), f"^`{name}")


@pytest.mark.parametrize("name", ["weights", "floors", "profile_weights", "profile_floors"])
@pytest.mark.parametrize(
    "value",
    [
        {},
        None,
        [1, 2, 3, 4],
        "seed",
        {"answer_localization": 1},
        FLOORS | {"topical_grounding": 1},
        FLOORS | {"query_robustness": -1},
        FLOORS | {"query_robustness": math.nan},
        FLOORS | {"query_robustness": math.inf},
        FLOORS | {"query_robustness": "60"},
        FLOORS | {"query_robustness": None},
        DriverValues(1, 1, 1, -1),
    ],
)
def test_weights_and_floors_name_all_four_drivers(name: str, value: Any) -> None:
    """Missing, unknown, negative and non-finite values are refused."""
    refuse(lambda: MetricPolicy(**{name: value}), f"^`{name}")


def test_weights_have_a_sum_and_floors_a_scale() -> None:
    """Weights of any positive sum are renormalised in use; floors end at 100."""
    refuse(lambda: MetricPolicy(weights=DriverValues(0, 0, 0, 0)), "^`weights` must have a positive sum")
    refuse(
        lambda: MetricPolicy(profile_weights=DriverValues(0, 0, 0, 0)),
        "^`profile_weights` must have a positive sum",
    )
    refuse(lambda: MetricPolicy(floors=DriverValues(100.1, 0, 0, 0)), "^`floors.answer_localization`")
    assert MetricPolicy(weights=DriverValues(35, 25, 25, 15)).weights.answer_localization == 35.0


CUTS = {
    "kpi_cuts": 3,
    "confidence_cuts": 2,
    "grounding_cuts": 2,
    "localization_cuts": 2,
    "cohesion_cuts": 2,
    "consistency_cuts": 2,
    "robustness_cuts": 2,
}


@pytest.mark.parametrize("name", CUTS)
def test_bands_descend(name: str) -> None:
    """Bands are the right number of descending cuts in 0..100."""
    n = CUTS[name]
    good = tuple(90.0 - 10 * i for i in range(n))
    assert getattr(MetricPolicy(**{name: list(good)}), name) == good
    bad: list[Any] = [good[::-1], good[:-1], (*good, 1.0), (good[0],) * n, (), None, 5, "ab"]
    bad += [(101.0, *good[1:]), (*good[:-1], -1.0), (*good[:-1], math.nan), (*good[:-1], "1")]
    for value in bad:
        refuse(lambda value=value: MetricPolicy(**{name: value}), f"^`{name}")


def test_mappings_become_driver_values() -> None:
    """A mapping, as a configuration file has it, is the same policy."""
    assert MetricPolicy(floors=FLOORS) == MetricPolicy()  # type: ignore[arg-type]
    assert MetricPolicy(**asdict(MetricPolicy())) == MetricPolicy()


# --- fingerprints


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ({"answer_at": 65}, {"answer_at": 65.0}),
        ({"answer_at": np.float32(65)}, {"answer_at": np.int64(65)}),
        ({"floors": FLOORS}, {"floors": DriverValues(55, 55, 60, 60)}),
        ({"kpi_cuts": [80, 65, 45]}, {"kpi_cuts": (80.0, 65.0, 45.0)}),
        ({"grounding_center": 0.0}, {"grounding_center": -0.0}),
        ({"version": 2}, {"version": np.int64(2)}),
        ({}, {"definitions": "default"}),
    ],
)
def test_equal_policies_have_equal_fingerprints(a: dict[str, Any], b: dict[str, Any]) -> None:
    """How a constant was written does not matter."""
    first, second = MetricPolicy(**a), MetricPolicy(**b)
    assert first == second
    assert hash(first) == hash(second)
    assert first.fingerprint == second.fingerprint


def test_every_constant_is_in_the_fingerprint() -> None:
    """Changing any one field changes it."""
    base = MetricPolicy()
    changed: dict[str, Any] = {
        "answer_at": 66,
        "review_at": 44,
        "grounding_center": 0.47,
        "grounding_scale": 0.09,
        "grounding_min": 51,
        "grounding_top": 1,
        "contradiction_at": 0.6,
        "loop_life_flag": 0.2,
        "localization_tau": 0.2,
        "robustness_angle": 0.3,
        "weights": DriverValues(0.36, 0.25, 0.25, 0.15),
        "floors": DriverValues(55, 55, 60, 61),
        "kpi_cuts": (81, 65, 45),
        "definitions": "seed",
        "profile_weights": DriverValues(0.95, 0.05, 0, 0),
        "profile_floors": DriverValues(1, 0, 0, 0),
        "level_center": -0.3,
        "level_scale": 0.2,
        "contrast_center": 0.31,
        "contrast_scale": 0.16,
        "companionship_half": 0.3,
        "version": 3,
    } | {name: (99, 1) for name in CUTS if name != "kpi_cuts"}
    assert set(changed) == {field.name for field in fields(MetricPolicy)}
    prints = [replace(base, **{name: value}).fingerprint for name, value in changed.items()]
    assert len({base.fingerprint, *prints}) == len(prints) + 1
    assert all(len(p) == 16 for p in prints)


def test_policies_are_copied_and_pickled() -> None:
    """A policy survives a process boundary, used or not."""
    policy = MetricPolicy(answer_at=70)
    for used in (False, True):
        if used:
            assert policy.fingerprint
            assert policy.floor_column.shape == (5, 1)
        for twin in (pickle.loads(pickle.dumps(policy)), copy.copy(policy), copy.deepcopy(policy)):
            assert twin == policy
            assert twin.fingerprint == policy.fingerprint


def test_replacing_a_field_forgets_what_was_derived() -> None:
    """Cached columns and fingerprints belong to one policy."""
    policy = MetricPolicy()
    assert policy.floor_column[0, 0] == 50.0
    other = replace(policy, grounding_min=40)
    assert other.floor_column[0, 0] == 40.0
    assert other.fingerprint != policy.fingerprint


# --- fit_grounding


def test_fitting_keeps_the_base() -> None:
    """Only centre and scale are fitted."""
    base = MetricPolicy(answer_at=70, grounding_min=40, definitions="seed")
    fitted = base.fit_grounding(HIGH, LOW)
    assert replace(fitted, grounding_center=0.46, grounding_scale=0.08) == base
    assert 0.3 < fitted.grounding_center < 0.5


def test_fitting_on_the_class_starts_from_the_defaults() -> None:
    """`MetricPolicy.fit_grounding` and `MetricPolicy().fit_grounding` are the same policy."""
    assert MetricPolicy.fit_grounding(HIGH, LOW) == MetricPolicy().fit_grounding(HIGH, LOW)


def test_fitting_leaves_the_policy_as_it_was() -> None:
    """A new policy is returned."""
    policy = MetricPolicy()
    assert policy.fit_grounding(HIGH, LOW) != policy
    assert policy == MetricPolicy()


@pytest.mark.parametrize("cost", [0, -1, math.nan, math.inf, "3", None, True])
def test_a_cost_is_a_positive_number(cost: Any) -> None:
    """How much a wrong answer weighs must be said in a number."""
    refuse(lambda: MetricPolicy.fit_grounding(HIGH, LOW, off_topic_cost=cost), "^`off_topic_cost` must")


@given(st.integers(0, 2**32 - 1), st.floats(0.1, 10), st.floats(1, 10))
def test_a_higher_cost_never_lowers_the_centre(seed: int, cost: float, factor: float) -> None:
    """The dearer it is to let off-topic questions through, the higher the gate, until it is refused."""
    rng = np.random.default_rng(seed)
    high, low = rng.normal(0.6, 0.1, 60).clip(-1, 1), rng.normal(0.3, 0.1, 60).clip(-1, 1)

    def centre(off_topic_cost: float) -> float:
        try:
            return MetricPolicy.fit_grounding(high, low, off_topic_cost=off_topic_cost).grounding_center
        except ValueError:
            return float(np.median(high))

    assert centre(cost * factor) >= centre(cost)


def test_a_policy_survives_json() -> None:
    """What was fitted offline is loaded where it serves: equal, with the same fingerprint."""
    fitted = MetricPolicy(answer_at=70, weights=DriverValues(1, 2, 3, 4)).fit_grounding(
        np.linspace(0.5, 0.9, 40), np.linspace(0.1, 0.3, 40)
    )
    loaded = MetricPolicy.from_dict(json.loads(json.dumps(fitted.to_dict())))
    assert (loaded, loaded.fingerprint) == (fitted, fitted.fingerprint)
    with pytest.raises(ValueError, match=r"^`constants` must be"):
        MetricPolicy.from_dict({"answer_att": 70})
