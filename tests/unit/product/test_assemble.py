"""Columns become records: display, words and reasons agree with the unrounded numbers."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_confidence import MetricPolicy, RagConfidenceMetrics
from rag_confidence._types import Signal
from rag_confidence.engine.signals import SIGNAL_NAMES
from rag_confidence.product.assemble import Call, Row, build_record
from rag_confidence.product.drivers import Drivers
from rag_confidence.product.record import KEY_NAMES
from rag_confidence.product.verdict import Situation, decide, primary_risks

NAN = math.nan
POLICIES = [
    MetricPolicy(),
    MetricPolicy.seed(),
    MetricPolicy(answer_at=72.4, review_at=51.7, grounding_min=33.3, grounding_cuts=(88.8, 44.4)),
    MetricPolicy(kpi_cuts=(99.9, 50.1, 0.1), confidence_cuts=(50.2, 50.1), cohesion_cuts=(60.1, 60.0)),
]
DISPLAYED = ("retrieval_confidence", *(s.value for s in Signal))


def record(
    kpi: float,
    values: tuple[float, ...],
    policy: MetricPolicy | None = None,
    contradiction: float = NAN,
    signals: dict[str, float] | None = None,
) -> dict[str, Any]:
    """The record of one retrieval with these drivers, decided by the table."""
    policy = policy or MetricPolicy()
    drivers = Drivers(np.array(values)[:, None], np.full((4, 1), 0.25), np.array([kpi]))
    no, measured = np.array([False]), dict.fromkeys(SIGNAL_NAMES, NAN) | (signals or {})
    seen = Situation(no, no, np.array([contradiction]), np.array([measured["n_loops"]]))
    row = Row(
        measured=measured,
        values=values,
        weights=[0.25] * 4,
        kpi=kpi,
        code=int(decide(drivers, seen, policy)[0]),
        risk=int(primary_risks(drivers, policy)[0]),
        k_requested=None,
        k_returned=4,
        n_dropped=0,
        contradiction=contradiction,
        p_sufficient=NAN,
        warnings=[],
    )
    return build_record(row, Call(policy, "precomputed", None))


def cuts_of(policy: MetricPolicy) -> dict[str, tuple[float, ...]]:
    """All thresholds that each displayed number meets."""
    cuts = {s.value: (*policy.signal_cuts[s], policy.signal_floors[s]) for s in Signal}
    kpi = (*policy.kpi_cuts, *policy.confidence_cuts, policy.answer_at, policy.review_at)
    return {"retrieval_confidence": kpi} | cuts


@st.composite
def near_cuts(draw: st.DrawFn, cuts: tuple[float, ...]) -> float:
    """A fraction at a cut, a hair or a rounding step away from it, or anywhere."""
    if draw(st.booleans()):
        return draw(st.floats(0, 1))
    cut = draw(st.sampled_from(cuts))
    away = draw(st.sampled_from([0.0, 1e-14, -1e-14, 1e-9, -1e-9, 0.049, -0.049, 0.05, -0.05, 0.051, -0.051]))
    return min(max((cut + away) / 100, 0.0), 1.0)


@st.composite
def situations(draw: st.DrawFn) -> tuple[float, tuple[float, ...], MetricPolicy]:
    """A KPI and five signals near the cuts of a policy, some of them not assessed."""
    policy = draw(st.sampled_from(POLICIES))
    cuts = cuts_of(policy)
    values = [draw(near_cuts(cuts[name])) for name in DISPLAYED]
    missing = draw(st.lists(st.integers(1, 5), max_size=2))
    return values[0], tuple(NAN if i in missing else values[i] for i in range(1, 6)), policy


@given(situations(), st.sampled_from([NAN, 0.0, 0.4999, 0.5, 1.0]))
def test_displayed_numbers_cross_no_cut(
    found: tuple[float, tuple[float, ...], MetricPolicy], contradiction: float
) -> None:
    """Each displayed number is on the same side of every threshold as the unrounded one."""
    kpi, values, policy = found
    got = record(kpi, values, policy, contradiction)
    for name, value in zip(DISPLAYED, (kpi, *values), strict=True):
        if math.isnan(value):
            assert got[name] is None
            continue
        assert abs(got[name] - 100 * value) <= 0.1 + 1e-9
        for cut in cuts_of(policy)[name]:
            assert (got[name] >= cut) == (100 * value >= cut), (name, cut)


@given(situations(), st.sampled_from([NAN, 0.0, 0.4999, 0.5, 0.50001, 1.0]))
def test_the_numbers_of_the_reason_bear_it_out(
    found: tuple[float, tuple[float, ...], MetricPolicy], contradiction: float
) -> None:
    """A sentence that says "below" shows a smaller number, one that says "reaches" does not."""
    kpi, values, policy = found
    text = record(kpi, values, policy, contradiction)["verdict_reason"]
    number = r"(\d+(?:\.\d+)?(?:e-?\d+)?)"
    for a, b in re.findall(rf"{number} is below (?:its floor of )?{number}", text):
        assert float(a) < float(b)
    for a, b in re.findall(rf"{number} reaches {number}", text):
        assert float(a) >= float(b)
    for a, low, high in re.findall(rf"{number} lies between {number} and {number}", text):
        assert float(low) <= float(a) < float(high)


@given(situations())
def test_words_come_from_unrounded_numbers(found: tuple[float, tuple[float, ...], MetricPolicy]) -> None:
    """Bands are read off the numbers under kpi and signals.*, and agree with what is displayed."""
    kpi, values, policy = found
    got = record(kpi, values, policy)
    bands = {
        "retrieval_confidence_band": (kpi, policy.kpi_cuts, ("strong", "good", "mixed", "weak")),
        "confidence_band": (kpi, policy.confidence_cuts, ("HIGH", "MEDIUM", "LOW")),
        "support_cohesion_band": (values[2], policy.cohesion_cuts, ("compact", "split", "scattered")),
    }
    for key, (value, cuts, words) in bands.items():
        wanted = None if math.isnan(value) else words[sum(100 * value < cut for cut in cuts)]
        assert got[key] == wanted


@given(situations(), st.sampled_from([NAN, 0.7]))
def test_every_record_follows_the_contract(
    found: tuple[float, tuple[float, ...], MetricPolicy], contradiction: float
) -> None:
    """All keys in their order, nan as null, and `from_dict` accepts what was written."""
    got = record(*found, contradiction)
    assert tuple(got) == KEY_NAMES
    assert not any(isinstance(v, float) and math.isnan(v) for v in got.values())
    assert RagConfidenceMetrics.from_dict(got).to_dict() == got


def test_what_is_null_everywhere_else() -> None:
    """Signals that were not measured are null, counts that were not made 0 or null; none is 0 by accident."""
    got = record(0.0, (NAN,) * 5)
    for key, value in got.items():
        if key.startswith("signals."):
            assert value is None, key
    assert (got["effective_k"], got["evidence.n_shape"], got["evidence.n_nodes"]) == (0, 0, None)
    assert (got["grounding_assessed"], got["contradiction_assessed"]) == (False, False)
    assert got["primary_risk"] == "none"


def test_measured_signals_are_passed_through_unrounded() -> None:
    """Numbers under signals.* and evidence.* are the engine's own."""
    signals = {name: 0.123456789 + i / 1000 for i, name in enumerate(SIGNAL_NAMES)}
    counts = dict.fromkeys(
        ("n_components", "n_nodes", "effective_k", "n_shape", "n_loops", "n_minor_loops"), 3.0
    )
    got = record(0.5, (0.5,) * 5, signals=signals | counts)
    for name in ("max_cosine", "second_bar", "lambda_2", "flip_angle", "dirichlet_energy", "top_gap"):
        assert got[f"signals.{name}"] == signals[name]
    assert got["evidence.sheaf_consistency"] == 1.0 - signals["dirichlet_energy"]
    assert got["evidence.topical_match_cosine"] == signals["mean_top3_cosine"]
    assert got["evidence.n_relevance_clusters"] == 3
    assert type(got["evidence.n_nodes"]) is int


@pytest.mark.parametrize(
    ("policy", "signals", "kind"),
    [
        (MetricPolicy(), {"stability_move": 0.1}, "bound"),
        (MetricPolicy(), {"stability_move": 0.1, "focus_depth": 0.0}, "bottleneck"),
        (MetricPolicy.seed(), {"stability_move": 0.1, "focus_depth": 0.0}, "bottleneck"),
        (MetricPolicy(), {"focus_depth": 0.0}, None),
    ],
)
def test_the_kind_of_movement_is_said(
    policy: MetricPolicy, signals: dict[str, float], kind: str | None
) -> None:
    """Flat lists report a bound, trees and the seed an exact distance; without a probe there is no kind."""
    assert record(0.5, (0.5,) * 5, policy, signals=signals)["evidence.stability_move_kind"] == kind
