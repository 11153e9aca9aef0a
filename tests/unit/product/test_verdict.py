"""The verdict table, bands, the primary risk, and how numbers are shown."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_confidence import MetricPolicy
from rag_confidence._types import ReasonCode, Verdict
from rag_confidence.product.drivers import Drivers
from rag_confidence.product.verdict import (
    CODES,
    CONFIDENCE_BANDS,
    KPI_BANDS,
    SIGNAL_BANDS,
    SIGNALS,
    VERDICT_OF,
    Situation,
    band,
    decide,
    decide_one,
    primary_risk_one,
    primary_risks,
    shown,
)

NAN = math.nan
HEALTHY = (0.9, 0.9, 0.9, 0.9, 0.9)
POLICIES = [
    MetricPolicy(),
    MetricPolicy(answer_at=100, review_at=0),
    MetricPolicy(answer_at=0, review_at=0, grounding_min=0, contradiction_at=0),
    MetricPolicy(answer_at=70.5, review_at=70.5, grounding_min=33.3, contradiction_at=0.8),
]


def one(
    kpi: float = 0.9,
    values: tuple[float, ...] = HEALTHY,
    *,
    none: bool = False,
    zero: bool = False,
    contradiction: float = NAN,
    loops: float = NAN,
) -> tuple[Drivers, Situation]:
    """One retrieval as the table sees it."""
    drivers = Drivers(np.array(values)[:, None], np.full((4, 1), 0.25), np.array([kpi]))
    seen = Situation(np.array([none]), np.array([zero]), np.array([contradiction]), np.array([loops]))
    return drivers, seen


def reason(policy: MetricPolicy, drivers: Drivers, situation: Situation) -> ReasonCode:
    """The reason code of one retrieval."""
    return CODES[int(decide(drivers, situation, policy)[0])]


def by_the_table(policy: MetricPolicy, drivers: Drivers, situation: Situation) -> str:
    """The table of the contract, row by row."""
    grounding, *shape = (100.0 * float(v) for v in drivers.values[:, 0])
    kpi, contradiction = 100.0 * float(drivers.kpi[0]), float(situation.contradiction[0])
    if situation.no_passages[0]:
        return "no_passages"
    if situation.degenerate_query[0]:
        return "degenerate_query"
    if not math.isnan(grounding) and grounding < policy.grounding_min:
        return "off_topic"
    if not math.isnan(contradiction) and contradiction >= policy.contradiction_at:
        return "conflicting"
    if kpi < policy.review_at:
        return "weak"
    if kpi < policy.answer_at:
        return "ambiguous"
    floors = policy.floors.as_tuple()
    if any(not math.isnan(v) and v < floor for v, floor in zip(shape, floors, strict=True)):
        return "driver_floor"
    return "shape_only" if math.isnan(grounding) else "healthy"


CUTS = (0.0, 33.3, 45.0, 50.0, 55.0, 60.0, 65.0, 70.5, 100.0)
near_cuts = st.one_of(
    st.sampled_from(CUTS).flatmap(
        lambda cut: st.sampled_from([cut, np.nextafter(cut, 0), np.nextafter(cut, 100)]).map(
            lambda v: float(np.clip(v / 100, 0, 1))
        )
    ),
    st.floats(0, 1),
)
maybe = st.one_of(st.just(NAN), near_cuts)


@given(
    st.sampled_from(POLICIES),
    near_cuts,
    st.tuples(maybe, maybe, maybe, maybe, maybe),
    st.booleans(),
    st.booleans(),
    st.one_of(st.just(NAN), st.sampled_from([0.0, 0.5, 0.8, 1.0]), st.floats(0, 1)),
)
def test_the_first_row_that_holds_decides(
    policy: MetricPolicy,
    kpi: float,
    values: tuple[float, ...],
    none: bool,
    zero: bool,
    contradiction: float,
) -> None:
    """Whatever the numbers, at cuts and on both sides of them."""
    seen = one(kpi, values, none=none, zero=zero, contradiction=contradiction)
    assert reason(policy, *seen) == by_the_table(policy, *seen)


WAYS: dict[str, dict[str, object]] = {
    "no_passages": {"none": True},
    "degenerate_query": {"zero": True},
    "off_topic": {"grounding": 0.499},
    "conflicting": {"contradiction": 0.5},
    "weak": {"kpi": 0.449},
    "ambiguous": {"kpi": 0.649},
    "driver_floor": {"shape": 0.549},
    "shape_only": {"grounding": NAN},
    "healthy": {},
}


def situation_of(*codes: str) -> tuple[Drivers, Situation]:
    """A retrieval in which the rows `codes` all hold; where they exclude each other the first wins."""
    merged: dict[str, object] = {}
    for code in codes[::-1]:
        merged |= WAYS[code]
    grounding, shape = merged.pop("grounding", 0.9), merged.pop("shape", 0.9)
    return one(values=(grounding, shape, 0.9, 0.9, 0.9), **merged)  # type: ignore[arg-type]


@pytest.mark.parametrize("code", WAYS)
def test_every_row_is_reached(code: str) -> None:
    """Each reason has a situation of its own, and the verdict of the contract."""
    assert reason(MetricPolicy(), *situation_of(code)) == code


@pytest.mark.parametrize(("first", "second"), list(combinations(WAYS, 2)))
def test_precedence_of_every_pair(first: str, second: str) -> None:
    """Where two rows hold the upper one decides."""
    assert reason(MetricPolicy(), *situation_of(first, second)) == first


def test_verdicts_of_the_reasons() -> None:
    """The verdict column of the contract."""
    assert {code.value: verdict.value for code, verdict in VERDICT_OF.items()} == {
        "no_passages": "ABSTAIN",
        "degenerate_query": "ABSTAIN",
        "off_topic": "ABSTAIN",
        "conflicting": "ESCALATE",
        "weak": "ABSTAIN",
        "ambiguous": "REVIEW",
        "driver_floor": "REVIEW",
        "shape_only": "REVIEW",
        "healthy": "ANSWER",
    }
    gate = {code for code in ReasonCode if code.startswith("gate_")}
    assert set(VERDICT_OF) == set(ReasonCode) - gate
    assert set(VERDICT_OF.values()) == set(Verdict)


def test_grounding_that_is_not_assessed_never_answers() -> None:
    """Without grounding REVIEW is the most, whatever the shape."""
    assert reason(MetricPolicy(), *one(1.0, (NAN, 1.0, 1.0, 1.0, 1.0))) == "shape_only"
    lenient = MetricPolicy(answer_at=0, review_at=0, grounding_min=0)
    assert VERDICT_OF[reason(lenient, *one(1.0, (NAN, 1.0, 1.0, 1.0, 1.0)))] == "REVIEW"


def test_drivers_that_are_not_assessed_fail_no_floor() -> None:
    """nan is below nothing."""
    assert reason(MetricPolicy(), *one(0.9, (0.9, 0.9, NAN, 0.9, NAN))) == "healthy"


def test_blocks_are_decided_entry_by_entry() -> None:
    """Columns of many queries give what each gives alone."""
    alone = [situation_of(code) for code in WAYS]
    drivers = Drivers(
        *(np.concatenate([getattr(d, n) for d, _ in alone], -1) for n in ("values", "weights", "kpi"))
    )
    names = ("no_passages", "degenerate_query", "contradiction", "n_loops")
    together = Situation(*(np.concatenate([getattr(s, n) for _, s in alone]) for n in names))
    assert [CODES[i] for i in decide(drivers, together, MetricPolicy())] == list(WAYS)


@given(st.sampled_from(POLICIES), near_cuts, st.tuples(maybe, maybe, maybe, maybe, maybe))
def test_one_retrieval_is_decided_as_a_block_of_one(
    policy: MetricPolicy, kpi: float, values: tuple[float, ...]
) -> None:
    """The plain path of a single call takes the same row of the table and the same risk."""
    drivers, seen = one(kpi, values)
    assert decide_one(kpi, values, policy) == int(decide(drivers, seen, policy)[0])
    assert primary_risk_one(values, policy) == int(primary_risks(drivers, policy)[0])


# --- the seed's table


def test_the_seed_escalates_on_a_loop_and_low_consistency() -> None:
    """Both are needed, and the topic does not matter."""
    seed = MetricPolicy.seed()
    low = (0.9, 0.9, 0.9, 0.599, 0.9)
    assert reason(seed, *one(0.9, low, loops=1.0)) == "conflicting"
    assert reason(seed, *one(0.1, (0.0, 0.9, 0.9, 0.599, 0.9), loops=1.0)) == "conflicting"
    assert reason(seed, *one(0.9, low, loops=0.0)) == "driver_floor"
    assert reason(seed, *one(0.9, low, loops=NAN)) == "driver_floor"
    assert reason(seed, *one(0.9, HEALTHY, loops=3.0)) == "healthy"
    assert reason(seed, *one(0.2, (0.0, 0.9, 0.9, 0.9, 0.9))) == "weak"
    assert reason(MetricPolicy(), *one(0.9, low, loops=9.0)) == "driver_floor"


# --- the primary risk


@given(st.sampled_from(POLICIES), st.tuples(maybe, maybe, maybe, maybe, maybe))
def test_the_primary_risk_clears_its_floor_by_least(policy: MetricPolicy, values: tuple[float, ...]) -> None:
    """The smallest value minus floor among the assessed signals, the earlier one on ties."""
    at = int(primary_risks(one(values=values)[0], policy)[0])
    room = [100 * v - floor for v, floor in zip(values, policy.signal_floors.values(), strict=True)]
    assessed = [r for r in room if not math.isnan(r)]
    assert at == (room.index(min(assessed)) if assessed else -1)


def test_a_driver_below_its_floor_is_the_risk_it_is_reviewed_for() -> None:
    """The reason names a signal that is below its floor."""
    drivers, seen = one(0.9, (0.55, 0.9, 0.5, 0.9, 0.9))
    assert reason(MetricPolicy(), drivers, seen) == "driver_floor"
    assert SIGNALS[int(primary_risks(drivers, MetricPolicy())[0])] == "support_cohesion"


# --- bands and display


@pytest.mark.parametrize(
    ("cuts", "words"),
    [
        ((80.0, 65.0, 45.0), KPI_BANDS),
        ((65.0, 45.0), CONFIDENCE_BANDS),
        *((cuts, SIGNAL_BANDS[signal]) for signal, cuts in MetricPolicy().signal_cuts.items()),
    ],
)
def test_a_band_begins_at_its_cut(cuts: tuple[float, ...], words: tuple[str, ...]) -> None:
    """From a cut upwards the better word; just below it the next one."""
    assert len(words) == len(cuts) + 1
    for at, cut in enumerate(cuts):
        assert band(cut, cuts, words) == words[at]
        assert band(float(np.nextafter(cut, 0)), cuts, words) == words[at + 1]
    assert band(100.0, cuts, words) == words[0]
    assert band(0.0, cuts, words) == words[-1]
    assert band(None, cuts, words) is None


@given(
    st.lists(st.integers(0, 1000).map(lambda k: k / 10), min_size=1, max_size=5),
    st.data(),
)
def test_a_displayed_number_crosses_no_cut(cuts: list[float], data: st.DataObject) -> None:
    """One decimal, at most .1 away, and on the same side of every cut as the unrounded number."""
    cut = data.draw(st.sampled_from(cuts))
    offset = data.draw(st.one_of(st.floats(-0.2, 0.2), st.sampled_from([0.0, 1e-14, -1e-14, -0.05, 0.05])))
    value = min(max(cut + offset, 0.0), 100.0)
    number = shown(value, tuple(cuts))
    assert number is not None
    assert 0.0 <= number <= 100.0
    assert abs(number - value) <= 0.1
    assert round(number, 1) == number
    assert all((number >= c) == (value >= c) for c in cuts)


@pytest.mark.parametrize("cut", [65.02, 65.05, 65.08, 33.333])
def test_cuts_of_more_decimals_are_not_crossed_either(cut: float) -> None:
    """A number at or above a fine cut is not shown below it, nor the other way round."""
    for value in (cut, cut + 0.005, cut - 0.005, float(np.nextafter(cut, 0))):
        number = shown(value, (cut,))
        assert number is not None
        assert (number >= cut) == (value >= cut), value


def test_a_hair_below_a_cut_is_shown_below_it() -> None:
    """For each cut of one decimal: the largest number below it, and what 100 * fraction makes of it."""
    crossed = []
    for cut in (tenths / 10 for tenths in range(1, 1001)):
        for value in (float(np.nextafter(cut, 0)), 100.0 * (cut / 100.0), cut):
            number = shown(value, (cut,))
            if number is None or (number >= cut) != (value >= cut):
                crossed.append((value, cut, number))
    assert crossed == []


def test_what_was_not_assessed_is_not_shown() -> None:
    """None stays None."""
    assert shown(None, (50.0,)) is None


def test_equal_answer_and_review_thresholds_leave_no_ambiguity() -> None:
    """With both at one value every KPI is weak or better."""
    policy = replace(MetricPolicy(), answer_at=50.0, review_at=50.0)
    assert reason(policy, *one(0.4999)) == "weak"
    assert reason(policy, *one(0.5)) == "healthy"
