"""The drift monitor is the martingale of the formulas, keeps its alarm, and goes on where it stopped."""

from __future__ import annotations

import json
import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, asdict
from decimal import Decimal
from fractions import Fraction
from itertools import permutations
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
from rag_confidence.conformal.monitor.drift import DriftMonitor
from rag_confidence.errors import ArtefactError

coarse = st.lists(st.integers(-3, 3).map(float), max_size=25)
spread = st.lists(st.floats(-1e6, 1e6), max_size=25)


def normal(seed: int, count: int, shift: float = 0.0, scale: float = 1.0) -> list[float]:
    """Normal scores."""
    return (shift + scale * np.random.default_rng(seed).standard_normal(count)).tolist()


# --- the martingale


@given(coarse | spread, coarse | spread, st.integers(0, 99))
def test_the_monitor_is_the_formula(reference: list[float], scores: list[float], seed: int) -> None:
    """p-values by counting, density ratios from SciPy, and the double sum over bets and starting scores."""
    monitor = DriftMonitor(reference, seed=seed)
    states = [monitor.update(score) for score in scores]
    p_values = ref.smoothed_ranks(reference, scores, ref.ties_of(seed, len(scores)))
    assert [state.p_value for state in states] == p_values
    if scores:
        expected = ref.log_capital_of_one_run(ref.normal_factors(np.array([p_values]))[0])
        assert [state.log_martingale for state in states] == pytest.approx(expected, rel=1e-7, abs=1e-7)
        assert states[-1].log_max == pytest.approx(max(0.0, *expected), rel=1e-7, abs=1e-7)


@given(spread, st.randoms(use_true_random=False))
def test_the_order_of_the_reference_does_not_matter(reference: list[float], random: Any) -> None:
    """The reference is a bag of scores."""
    shuffled = random.sample(reference, len(reference))
    after = [DriftMonitor(scores).update_many([0.5, 1.0]) for scores in (reference, shuffled)]
    assert after[0] == after[1]


@given(st.lists(st.integers(-1000, 1000), max_size=20), st.lists(st.integers(-1000, 1000), max_size=20))
def test_only_ranks_matter(reference: list[int], scores: list[int]) -> None:
    """A strictly rising map of all scores changes nothing: any scale will do."""
    plain = DriftMonitor(reference).update_many(scores)
    mapped = DriftMonitor([1e-9 * x**3 for x in reference]).update_many([1e-9 * x**3 for x in scores])
    assert plain == mapped


def test_high_scores_have_small_p_values() -> None:
    """A p-value is a rank from above."""
    reference = [i / 100 for i in range(100)]
    assert DriftMonitor(reference).update(2.0).p_value < 0.01
    assert DriftMonitor(reference).update(-2.0).p_value > 0.99


@pytest.mark.parametrize("bag", [(1.0, 2.0, 3.0, 4.0, 5.0, 6.0), (1.0, 1.0, 1.0, 1.0, 2.0, 2.0)])
def test_the_mean_martingale_over_all_orders_is_near_one(bag: tuple[float, ...]) -> None:
    """Over all orders of a bag of scores, and seeds for the ties, the evidence is 1 on average."""
    finals = [
        math.exp(DriftMonitor(order[:2], seed=seed).update_many(order[2:]).log_martingale)
        for seed, order in enumerate(permutations(bag))
    ]
    assert np.mean(finals) == pytest.approx(1.0, abs=5 * float(np.std(finals)) / math.sqrt(len(finals)))


# --- what it sees


CHANGES = [("higher", 1.0, 1.0), ("lower", -1.0, 1.0), ("wider", 0.0, 2.0), ("narrower", 0.0, 0.5)]


@pytest.mark.parametrize(("change", "shift", "scale"), CHANGES)
def test_a_change_is_seen_and_named(change: str, shift: float, scale: float) -> None:
    """Scores that become higher, lower, wider or narrower ring within 200 scores, under that name."""
    monitor = DriftMonitor(normal(1, 300))
    assert not monitor.update_many(normal(2, 300)).alarm
    state = monitor.update_many(normal(3, 200, shift, scale))
    assert state.alarm
    assert state.alarm_at is not None
    assert state.alarm_at > 300
    assert state.change == change


def test_a_change_is_seen_late_and_without_a_reference() -> None:
    """After thousands of unchanged scores of its own a monitor needs no more than a few tens."""
    monitor = DriftMonitor()
    assert not monitor.update_many(normal(4, 5000)).alarm
    state = monitor.update_many(normal(5, 60, 1.5))
    assert state.alarm_at is not None
    assert 5000 < state.alarm_at <= 5060


def test_a_stream_of_one_value_is_no_drift() -> None:
    """Ties say nothing: on a constant score the seed alone decides, and these five do not ring."""
    assert not any(DriftMonitor([0.5] * 50, seed=seed).update_many([0.5] * 400).alarm for seed in range(5))


def test_the_alarm_stays_on() -> None:
    """An alarm, its place and its name survive any number of harmless scores."""
    monitor = DriftMonitor(normal(6, 200), false_alarm_rate=0.1)
    first = monitor.update_many(normal(7, 60, 2.0))
    later = monitor.update_many(normal(6, 2000))
    assert first.alarm
    assert monitor.alarm
    assert (later.alarm, later.alarm_at, later.change) == (True, first.alarm_at, first.change)
    assert later.n_seen == 2060
    assert later.log_max >= first.log_max > later.log_martingale


@pytest.mark.parametrize("rate", [0.01, "0.01", Fraction(1, 100), Decimal("0.01"), np.float32(0.01)])
def test_the_alarm_rings_at_one_over_the_rate(rate: Any) -> None:
    """In every form of the level, the alarm is the first score at which the evidence reaches 1 / rate."""
    monitor = DriftMonitor(normal(8, 100), false_alarm_rate=rate)
    states = [monitor.update(score) for score in normal(9, 40, 2.0)]
    assert {state.false_alarm_rate for state in states} == {0.01}
    first = next(state.n_seen for state in states if state.log_martingale >= math.log(100))
    assert [state.alarm for state in states] == [state.n_seen >= first for state in states]
    assert states[-1].alarm_at == first


# --- its states


def test_a_new_monitor_has_seen_nothing() -> None:
    """Before the first score there is no p-value, and the evidence is 1."""
    state = DriftMonitor([1.0, 2.0]).state
    assert asdict(state) == {
        "n_seen": 0,
        "n_reference": 2,
        "p_value": None,
        "log_martingale": 0.0,
        "log_max": 0.0,
        "alarm": False,
        "alarm_at": None,
        "change": None,
        "false_alarm_rate": 0.01,
    }
    assert (
        state.sentence == "No drift seen in 0 scores: the evidence peaked at 1, and the alarm rings at 100."
    )


def test_a_state_is_frozen_and_does_not_follow_the_monitor() -> None:
    """What was returned stays what it was."""
    monitor = DriftMonitor()
    state = monitor.update(0.5)
    monitor.update(0.7)
    assert state.n_seen == 1
    with pytest.raises(FrozenInstanceError):
        state.n_seen = 2  # type: ignore[misc]


def test_a_sentence_says_what_rang() -> None:
    """The sentence of an alarm names the score, the rate and the change."""
    state = DriftMonitor(normal(6, 200)).update_many(normal(7, 60, 2.0))
    assert state.sentence == (
        f"Alarm: at score {state.alarm_at} of 60 the evidence reached the alarm that rings in at most 1 % of "
        "runs of exchangeable scores (independent, and spread as before); the scores seem to have become "
        "higher."
    )
    assert repr(DriftMonitor([1.0])) == "DriftMonitor(0 seen after 1, alarm=False)"


@given(coarse, st.integers(0, 25))
def test_batches_are_single_scores_in_order(scores: list[float], cut: int) -> None:
    """However a stream is cut into batches, empty ones too, the state is the same."""
    one, many = DriftMonitor([0.0, 1.0]), DriftMonitor([0.0, 1.0])
    for score in scores:
        one.update(score)
    many.update_many(scores[:cut])
    assert many.update_many(scores[cut:]) == one.state == many.update_many([])


NUMBERS = [1, np.float64(0.5), np.float32(0.5), np.int64(2), np.uint8(3), -1e300, 5e-324]


@pytest.mark.parametrize("score", NUMBERS, ids=named)
def test_any_real_number_is_a_score(score: Any) -> None:
    """Python and NumPy numbers are scores, integers too."""
    assert DriftMonitor().update(score).n_seen == 1


def test_a_narrow_score_ties_with_the_wide_one_it_was() -> None:
    """float32 scores against a float64 reference of the same few values do not ring."""
    values = np.random.default_rng(0).choice([0.1, 0.3, 0.7], 600)
    monitor = DriftMonitor(values[:300])
    assert not monitor.update_many(values[300:].astype(np.float32)).alarm


# --- bad input


BAD_SCORES: list[tuple[Kinds, Any]] = [
    (ValueError, math.nan),
    (ValueError, math.inf),
    (ValueError, -math.inf),
    (ValueError, np.float32("nan")),
    (TypeError, "0.5"),
    (TypeError, None),
    (TypeError, True),
    (TypeError, np.True_),
    (TypeError, 0.5j),
    (TypeError, object()),
    (TypeError, [0.5]),
    (TypeError, (0.5, 0.6)),
    (TypeError, np.array([0.5])),
    (TypeError, np.array(0.5)),
    (TypeError, Decimal("0.5")),
    (TypeError, np.ma.masked),
]


@pytest.mark.parametrize(("kind", "score"), BAD_SCORES, ids=named)
def test_what_is_no_score_is_refused_and_changes_nothing(kind: Kinds, score: Any) -> None:
    """One clear error, and the monitor is as it was, its next draw included."""
    monitor = DriftMonitor([0.1, 0.2])
    monitor.update(0.3)
    before = monitor.to_dict()
    refuse(kind, "^`score` must ", lambda: monitor.update(score))
    assert monitor.to_dict() == before


BAD_COLUMNS: list[tuple[Kinds, Any]] = [
    (ValueError, [0.1, math.nan]),
    (ValueError, [0.1, math.inf]),
    (TypeError, [0.1, None]),
    (TypeError, ["0.1"]),
    (TypeError, [True, False]),
    (ValueError, [[0.1], [0.2]]),
    (ValueError, 0.5),
    (ValueError, "0.5"),
    (ValueError, None),
    (ValueError, (score for score in [0.1])),
    (ValueError, {0.1}),
    (ValueError, np.ma.masked_array([0.1, 0.2], mask=[False, True])),
]


@pytest.mark.parametrize(
    ("kind", "scores"), BAD_COLUMNS, ids=lambda value: str(value)[:30].replace("\n", " ")
)
def test_a_bad_batch_is_refused_as_a_whole(kind: Kinds, scores: Any) -> None:
    """No score of a batch with one bad entry is taken, and a bad reference opens nothing."""
    monitor = DriftMonitor([0.1, 0.2])
    before = monitor.to_dict()
    refuse(kind, "^`scores` must ", lambda: monitor.update_many(scores))
    assert monitor.to_dict() == before
    refuse(kind, "^`reference` must ", lambda: DriftMonitor(scores))


def test_a_score_that_the_precision_cannot_hold_changes_nothing() -> None:
    """Where rounding to the coarsest precision overflows, the whole batch is refused."""
    monitor = DriftMonitor(np.array([0.1, 0.2], dtype=np.float32))
    before = monitor.to_dict()
    refuse(ValueError, "^`scores` must be finite in float32", lambda: monitor.update_many([0.5, 1e300]))
    refuse(ValueError, "^`score` must be finite in float32", lambda: monitor.update(1e300))
    assert monitor.to_dict() == before


@pytest.mark.parametrize("rate", [0, 1, 0.0, 1.0, -0.1, 5, "5%", math.nan])
def test_a_rate_outside_the_open_interval_is_refused(rate: Any) -> None:
    """A false-alarm rate is strictly between 0 and 1."""
    pattern = "^`false_alarm_rate` must be strictly between 0 and 1; got "
    refuse(ValueError, pattern, lambda: DriftMonitor(false_alarm_rate=rate))


def test_a_rate_that_no_float_holds_is_refused() -> None:
    """A rate that would round to zero is an error, and the smallest that would not is a rate."""
    pattern = "^`false_alarm_rate` must be at least 1e-300; got 1e-400"
    refuse(ValueError, pattern, lambda: DriftMonitor(false_alarm_rate="1e-400"))
    assert "rings at 1e+300" in DriftMonitor(false_alarm_rate=1e-300).state.sentence


@pytest.mark.parametrize("seed", [-1, 0.5, None, "0", True])
def test_a_seed_is_an_integer(seed: Any) -> None:
    """A seed is an integer of at least 0."""
    refuse((TypeError, ValueError), "^`seed` must be an integer", lambda: DriftMonitor(seed=seed))


def test_numpy_and_pandas_columns_are_scores() -> None:
    """Arrays of any real type are taken by position."""
    assert DriftMonitor(np.arange(5)).update_many(np.arange(3, dtype=np.uint8)).n_seen == 3
    assert DriftMonitor(np.zeros(0)).update_many(np.zeros((0,), dtype=np.float32)).n_seen == 0


def test_the_callers_arrays_are_left_alone() -> None:
    """Nothing is sorted in place."""
    reference, scores = np.array([0.3, 0.1, 0.2]), np.array([0.9, 0.0])
    DriftMonitor(reference).update_many(scores)
    assert reference.tolist() == [0.3, 0.1, 0.2]
    assert scores.tolist() == [0.9, 0.0]


# --- saved and loaded


@given(coarse, coarse, coarse, st.integers(0, 2**40))
def test_a_monitor_read_back_goes_on_as_if_it_had_never_stopped(
    reference: list[float], before: list[float], after: list[float], seed: int
) -> None:
    """Ties, draws, evidence and alarm: through JSON text and back, every later state is the same."""
    monitor = DriftMonitor(reference, seed=seed, false_alarm_rate=0.3)
    monitor.update_many(before)
    restored = DriftMonitor.from_dict(json.loads(json.dumps(monitor.to_dict())))
    assert restored.state == monitor.state
    assert [restored.update(score) for score in after] == [monitor.update(score) for score in after]
    assert restored.to_dict() == monitor.to_dict()


def test_a_file_is_read_back_to_the_last_bit(tmp_path: Path) -> None:
    """The same through a file, after an alarm, with a rate that no float is, and in float32."""
    monitor = DriftMonitor(np.array(normal(1, 50), dtype=np.float32), false_alarm_rate="1/30", seed=3)
    monitor.update_many(normal(2, 40, 2.0))
    assert monitor.alarm
    monitor.save(tmp_path / "monitor.json")
    restored = DriftMonitor.load(tmp_path / "monitor.json")
    assert restored.to_dict() == monitor.to_dict()
    assert restored.update_many(normal(3, 50)) == monitor.update_many(normal(3, 50))


def test_damaged_files_and_other_kinds_are_refused(tmp_path: Path) -> None:
    """A changed number, another kind and no JSON at all are no monitors."""
    path = tmp_path / "monitor.json"
    DriftMonitor([0.25]).save(path)
    path.write_text(path.read_text().replace("0.25", "0.75"))
    refuse(ArtefactError, "^`path` must be unchanged", lambda: DriftMonitor.load(path))
    path.write_text("{}")
    refuse(ArtefactError, "^`path` must be a saved drift_monitor", lambda: DriftMonitor.load(path))
    _artefact.write(path, "gate", {})
    refuse(
        ArtefactError, "^`path` must be a saved drift_monitor; got a 'gate'", lambda: DriftMonitor.load(path)
    )


def changed(**entries: Any) -> dict[str, Any]:
    """A well-signed document whose payload makes no sense."""
    payload = DriftMonitor([0.25]).to_dict()["payload"]
    return _artefact.wrap("drift_monitor", payload | entries)


BROKEN = [
    {"capital": {}},
    {"ranks": {"precision": "float64", "scores": [0.25], "generator": {}}},
    {"ranks": {"precision": "float65", "scores": [0.25], "generator": {"state": "1", "inc": "1"}}},
    {"bets": []},
    {"n_reference": 2},
    {"false_alarm_rate": "2"},
]


@pytest.mark.parametrize("entries", BROKEN, ids=named)
def test_a_payload_that_makes_no_sense_is_refused(entries: dict[str, Any]) -> None:
    """Signed nonsense, and bets of another release, are refused in words."""
    pattern = "^`document` must be a saved drift_monitor; got one that cannot be read"
    refuse(ArtefactError, pattern, lambda: DriftMonitor.from_dict(changed(**entries)))


def test_monitors_are_not_pickled() -> None:
    """Files are JSON; a pickle is refused by the lock that a monitor holds."""
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(DriftMonitor())


# --- threads


def test_threads_share_a_monitor() -> None:
    """Scores from many threads are all counted, each taken as a whole."""
    monitor = DriftMonitor()
    with ThreadPoolExecutor(8) as pool:
        states = list(pool.map(monitor.update, [0.5] * 400))
    assert sorted(state.n_seen for state in states) == list(range(1, 401))
    assert monitor.state.n_seen == 400


def test_the_origin_of_the_scores_is_kept() -> None:
    """How the scores are made is part of what is saved."""
    monitor = DriftMonitor([0.1, 0.2], provenance={"policy": "p", "embedder": "e"})
    again = DriftMonitor.from_dict(monitor.to_dict())
    assert again.provenance == monitor.provenance == Provenance(policy="p", embedder="e")
