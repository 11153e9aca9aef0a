"""The risk monitor is the e-process of the formulas, and its interval is the inverse of one."""

from __future__ import annotations

import json
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from decimal import Decimal
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference_monitors as ref
from hypothesis import given
from hypothesis import strategies as st
from refusals import Kinds, named, refuse

from rag_confidence import _artefact
from rag_confidence._types import Provenance
from rag_confidence.conformal.monitor.risk_interval import risk_interval
from rag_confidence.conformal.monitor.risk_monitor import RiskMonitor, outcome_factors
from rag_confidence.errors import ArtefactError

outcomes = st.lists(st.booleans(), max_size=40)
targets = st.floats(0.001, 0.999)


@given(outcomes, targets)
def test_the_monitor_is_the_formula(bad: list[bool], target: float) -> None:
    """Likelihood ratios at shifted odds, and the double sum over bets and starting outcomes."""
    monitor = RiskMonitor(target)
    states = [monitor.update(outcome) for outcome in bad]
    if bad:
        expected = ref.log_capital_of_one_run(ref.odds_factors(np.array([bad]), target)[0])
        assert [state.log_evidence for state in states] == pytest.approx(expected, rel=1e-9, abs=1e-9)
        assert states[-1].log_max == pytest.approx(max(0.0, *expected), rel=1e-9, abs=1e-9)
    assert monitor.state.n_bad == sum(bad)


@given(targets, st.floats(0.0, 1.0))
def test_every_bet_is_fair_at_the_target_and_loses_below_it(target: float, share: float) -> None:
    """The mean payoff is 1 where the risk is the target and at most 1 where it is lower."""
    good, bad = outcome_factors(target)
    risk = share * target
    for at_good, at_bad in zip(good, bad, strict=True):
        assert (1 - target) * at_good + target * at_bad == pytest.approx(1.0, rel=1e-12)
        assert (1 - risk) * at_good + risk * at_bad <= 1.0 + 1e-12


def test_the_mean_evidence_at_the_target_is_one() -> None:
    """Over all outcomes, weighted by their probability, the evidence is exactly 1."""
    total = sum(
        0.2 ** sum(bad) * 0.8 ** (9 - sum(bad)) * math.exp(RiskMonitor(0.2).update_many(bad).log_evidence)
        for bad in product((0, 1), repeat=9)
    )
    assert total == pytest.approx(1.0, rel=1e-12)


# --- the alarm


def test_a_risk_above_the_target_rings_and_the_alarm_stays() -> None:
    """Three times the target is seen within 150 outcomes; good ones later do not unring it."""
    rng = np.random.default_rng(1)
    monitor = RiskMonitor(0.1)
    state = monitor.update_many(rng.random(150) < 0.3)
    later = monitor.update_many([False] * 500)
    assert state.alarm
    assert monitor.alarm
    assert (later.alarm, later.alarm_at) == (True, state.alarm_at)
    assert later.log_max >= math.log(20) > later.log_evidence


def test_a_rise_after_a_long_good_time_is_seen() -> None:
    """The good past costs no more than the logarithm of its length."""
    rng = np.random.default_rng(2)
    monitor = RiskMonitor(0.1)
    assert not monitor.update_many(rng.random(20_000) < 0.05).alarm
    state = monitor.update_many(rng.random(200) < 0.4)
    assert state.alarm_at is not None
    assert state.alarm_at > 20_000


@pytest.mark.parametrize("rate", [0.05, "0.05", Fraction(1, 20), Decimal("0.05")])
def test_the_alarm_rings_at_one_over_the_rate(rate: Any) -> None:
    """In every form of the level, the alarm is the first outcome at which the evidence reaches 1 / rate."""
    monitor = RiskMonitor("1/10", false_alarm_rate=rate)
    states = [monitor.update(True) for _ in range(6)]
    first = next(state.n_seen for state in states if state.log_evidence >= math.log(20))
    assert [state.alarm for state in states] == [state.n_seen >= first for state in states]
    assert {state.alarm_at for state in states} == {None, first}


def test_a_risk_of_one_half_of_the_target_never_rings() -> None:
    """Evidence does not grow while the risk stays well within the target."""
    assert not RiskMonitor(0.1).update_many(np.random.default_rng(3).random(20_000) < 0.05).alarm


# --- its states


def test_a_new_monitor_has_seen_nothing() -> None:
    """Before the first outcome there is no rate, and the interval says nothing."""
    state = RiskMonitor(0.1).state
    assert asdict(state) == {
        "n_seen": 0,
        "n_bad": 0,
        "log_evidence": 0.0,
        "log_max": 0.0,
        "alarm": False,
        "alarm_at": None,
        "target": 0.1,
        "false_alarm_rate": 0.05,
        "event": None,
    }
    assert state.rate is None
    assert state.risk_interval == (0.0, 1.0)


def test_sentences_name_the_event() -> None:
    """With and without an alarm, in words and numbers; the event is named if it has a name."""
    monitor = RiskMonitor(0.1, event="false accept")
    assert monitor.update(False).sentence == (
        "No alarm: 0 of 1 outcomes were bad (false accept), the evidence against a risk of at "
        "most 0.1 peaked at 1, and the alarm rings at 20."
    )
    assert monitor.update_many([True] * 4).sentence == (
        f"Alarm: 4 of 5 outcomes were bad (false accept). At outcome {monitor.state.alarm_at} the evidence "
        "reached the alarm, which rings in at most 5 % of runs whose risk, given what came before, never "
        "exceeds 0.1."
    )
    assert "0 of 0 outcomes were bad, the" in RiskMonitor(0.1).state.sentence
    assert repr(RiskMonitor(0.1)) == "RiskMonitor(0 of 0 bad, target=1/10, alarm=False)"


@given(outcomes, st.integers(0, 40))
def test_batches_are_single_outcomes_in_order(bad: list[bool], cut: int) -> None:
    """However a stream is cut into batches, empty ones too, the state is the same."""
    one, many = RiskMonitor(0.2), RiskMonitor(0.2)
    for outcome in bad:
        one.update(outcome)
    many.update_many(bad[:cut])
    assert many.update_many(bad[cut:]) == one.state == many.update_many([])


@pytest.mark.parametrize("kind", [bool, int, float, np.bool_, np.int64, np.float32])
def test_booleans_zeros_and_ones_are_outcomes(kind: Any) -> None:
    """Labels of any numeric type mean the same."""
    monitor = RiskMonitor(0.2)
    monitor.update(kind(1))
    assert monitor.update(kind(0)) == RiskMonitor(0.2).update_many(np.array([1, 0], dtype=kind))


BAD_OUTCOMES: list[tuple[Kinds, Any]] = [
    (ValueError, "False"),
    (ValueError, "no"),
    (ValueError, "0"),
    (ValueError, 2),
    (ValueError, -1),
    (ValueError, 0.5),
    (ValueError, math.nan),
    (ValueError, None),
    (ValueError, [True]),
    (ValueError, object()),
]


@pytest.mark.parametrize(("kind", "bad"), BAD_OUTCOMES, ids=named)
def test_what_is_no_outcome_is_refused_and_changes_nothing(kind: Kinds, bad: Any) -> None:
    """One clear error, alone and in a batch, and the monitor is as it was."""
    monitor = RiskMonitor(0.1)
    monitor.update(True)
    before = monitor.to_dict()
    refuse(kind, "^`bad` must ", lambda: monitor.update(bad))
    refuse(kind, "^`bad` must ", lambda: monitor.update_many([True, bad]))
    assert monitor.to_dict() == before


@pytest.mark.parametrize("level", [0, 1, 0.0, 1.0, 10, -0.1, "10%", math.nan])
def test_levels_outside_the_open_interval_are_refused(level: Any) -> None:
    """Target and false-alarm rate are strictly between 0 and 1."""
    refuse(ValueError, "^`target` must be strictly between 0 and 1; got ", lambda: RiskMonitor(level))
    refuse(ValueError, "^`false_alarm_rate` must be ", lambda: RiskMonitor(0.1, false_alarm_rate=level))


def test_an_event_is_text() -> None:
    """The event is a string."""
    refuse(TypeError, "^`event` must be a string", lambda: RiskMonitor(0.1, event=3))  # type: ignore[arg-type]


def test_a_state_knows_its_interval() -> None:
    """The interval of a state has the false-alarm rate as its error rate."""
    state = RiskMonitor(0.1, false_alarm_rate=0.2).update_many([True, False] * 20)
    assert state.risk_interval == risk_interval(20, 40, error_rate=0.2)
    assert state.rate == 0.5


# --- saved and loaded


@given(outcomes, outcomes)
def test_a_monitor_read_back_goes_on_as_if_it_had_never_stopped(
    before: list[bool], after: list[bool]
) -> None:
    """Through JSON text and back, every later state is the same."""
    monitor = RiskMonitor("1/7", false_alarm_rate=0.3, event="überzählig")
    monitor.update_many(before)
    restored = RiskMonitor.from_dict(json.loads(json.dumps(monitor.to_dict())))
    assert restored.state == monitor.state
    assert [restored.update(bad) for bad in after] == [monitor.update(bad) for bad in after]
    assert restored.to_dict() == monitor.to_dict()


def test_files_are_read_back_and_damaged_ones_refused(tmp_path: Path) -> None:
    """A file holds the monitor to the last bit; a changed one and another kind are refused."""
    path = tmp_path / "monitor.json"
    monitor = RiskMonitor(0.125)
    monitor.update_many([True, True, False])
    monitor.save(path)
    assert RiskMonitor.load(path).to_dict() == monitor.to_dict()
    path.write_text(path.read_text().replace('"n_bad": 2', '"n_bad": 0'))
    refuse(ArtefactError, "^`path` must be unchanged", lambda: RiskMonitor.load(path))
    _artefact.write(path, "drift_monitor", {})
    refuse(
        ArtefactError, "^`path` must be a saved risk_monitor; got a 'drift_mo", lambda: RiskMonitor.load(path)
    )


@pytest.mark.parametrize(
    "entries", [{"capital": {}}, {"bets": [2.0]}, {"target": "3"}, {"n_bad": None}, {"n_bad": 4}]
)
def test_a_payload_that_makes_no_sense_is_refused(entries: dict[str, Any]) -> None:
    """Signed nonsense, and bets of another release, are refused in words."""
    payload = RiskMonitor(0.1).to_dict()["payload"] | entries
    pattern = "^`document` must be a saved risk_monitor; got one that cannot be read"
    refuse(ArtefactError, pattern, lambda: RiskMonitor.from_dict(_artefact.wrap("risk_monitor", payload)))


def test_threads_share_a_monitor() -> None:
    """Outcomes from many threads are all counted, each taken as a whole."""
    monitor = RiskMonitor(0.5)
    with ThreadPoolExecutor(8) as pool:
        states = list(pool.map(monitor.update, [True, False] * 200))
    assert sorted(state.n_seen for state in states) == list(range(1, 401))
    assert monitor.state.n_bad == 200


def test_the_origin_of_the_decisions_is_kept() -> None:
    """How the watched decisions are made is part of what is saved."""
    monitor = RiskMonitor(0.1, provenance={"policy": "p", "embedder": "e"})
    again = RiskMonitor.from_dict(monitor.to_dict())
    assert again.provenance == monitor.provenance == Provenance(policy="p", embedder="e")
