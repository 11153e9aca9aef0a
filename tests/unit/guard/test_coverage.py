"""Coverage of a threshold over splits of one pool, against the band of a mean."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuse

from rag_confidence.conformal.bands import coverage_band
from rag_confidence.guard.coverage import HEADER, coverage_check, splits

POOL = np.random.default_rng(7).random(600)


def slow_coverage(pool: Any, tested: Any, alpha: str, n: int, trials: int) -> float:
    """Share of held-out calls covered, from sorted lists and fractions."""
    covered = 0
    rank = math.ceil((n + 1) * (1 - Fraction(alpha)))
    for first, rest in splits(len(pool), n, trials, 0):
        ordered = sorted(float(pool[at]) for at in first)
        threshold = ordered[rank - 1] if rank <= n else math.inf
        covered += sum(float(tested[at]) <= threshold for at in rest)
    return covered / (trials * (len(pool) - n))


@given(
    st.lists(st.floats(0, 1) | st.just(math.inf), min_size=8, max_size=30),
    st.integers(1, 7),
    st.sampled_from(["0.1", "0.3", "0.5"]),
)
def test_coverage_is_counted_as_by_hand(pool: list[float], n: int, alpha: str) -> None:
    """The mean is what sorting and counting gives, failed calls and infinite thresholds included."""
    found = coverage_check(pool, alpha, calibration_size=n, trials=5)
    assert found.mean.mean == pytest.approx(slow_coverage(pool, pool, alpha, n, 5), abs=1e-12)


@given(st.integers(2, 40), st.integers(0, 5))
def test_splits_are_partitions(total: int, seed: int) -> None:
    """Each trial uses every row once, and the same seed gives the same trials."""
    found = [*splits(total, total // 2, 3, seed)]
    for first, rest in found:
        assert len(first) == total // 2
        assert sorted([*first, *rest]) == [*range(total)]
    again = [*splits(total, total // 2, 3, seed)]
    assert [first.tolist() for first, _ in found] == [first.tolist() for first, _ in again]


def test_a_sound_threshold_is_not_flagged() -> None:
    """Continuous scores of one pool pass, and the band of one trial is that of the Beta distribution."""
    found = coverage_check(POOL, 0.1, calibration_size=300)
    assert found.fault is None
    assert found.one_trial == coverage_band(300, 0.1)
    assert 0.85 <= found.in_one_trial <= 1.0
    assert (found.n, found.n_test, found.trials, found.tied, found.infinite) == (300, 300, 100, False, 0)


def test_a_loss_within_the_band_of_one_trial_is_flagged() -> None:
    """A mean that lost under two points passes the band of one trial and not its own."""
    found = coverage_check(POOL, 0.1, calibration_size=300, tested=POOL + 0.015)
    assert found.one_trial[0] < found.mean.mean < 0.895
    assert found.fault == "coverage too low"


def test_too_much_coverage_is_flagged_unless_scores_tie() -> None:
    """Scores that fell are a fault; tied scores cover more by themselves."""
    assert coverage_check(POOL, 0.1, calibration_size=300, tested=POOL - 0.1).fault == "coverage too high"
    tied = coverage_check(np.round(POOL, 1), 0.1, calibration_size=300)
    assert tied.tied
    assert tied.mean.mean > tied.mean.high
    assert not tied.flagged


def test_infinite_thresholds_count_as_no_error() -> None:
    """Where n cannot support the level nothing is accepted, nothing is claimed, and nothing is flagged."""
    found = coverage_check(POOL, 0.1, calibration_size=5, trials=20, bad=[0.5, 2.0])
    assert found.infinite == 20
    assert found.mean.mean == 1.0
    assert found.bad_rejection == 1.0
    assert not found.flagged


def test_bad_calls_are_counted_where_they_are_given() -> None:
    """Bad calls above every threshold are all stopped, those below none; without any there is no rate."""
    options = {"calibration_size": 300, "trials": 10}
    assert coverage_check(POOL, 0.1, bad=[2.0, 0.1], **options).bad_rejection == 0.5
    assert coverage_check(POOL, 0.1, bad=[math.inf], **options).bad_rejection == 1.0
    assert coverage_check(POOL, 0.1, **options).bad_rejection is None


def test_a_report_is_a_line_and_plain_values() -> None:
    """The table has a cell a heading, and the dictionary is strict JSON."""
    found = coverage_check(POOL, "1/10", calibration_size=300, trials=10, seed=1)
    assert len(found.row()) == len(HEADER)
    assert found.table("queries").splitlines()[2].startswith("| queries | 0.1 | 0.900 |")
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["fault"] is None


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"scores": []}, "^`scores` must hold at least one call"),
        ({"scores": [0.1, math.nan]}, "^`scores` must not hold nan or -inf; got nan and 1 bad"),
        ({"scores": [0.1, -math.inf]}, "^`scores` must not hold nan"),
        ({"scores": ["a", "b"]}, "^`scores` must hold real numbers"),
        ({"bad": [math.nan]}, "^`bad` must not hold nan"),
        ({"tested": [0.5]}, "^`tested` must have one entry for each of the 600 scores; got 1"),
        ({"calibration_size": 600}, "^`calibration_size` must be below the 600 good calls"),
        ({"calibration_size": 0}, "^`calibration_size` must be an integer of at least 1"),
        ({"trials": 0}, "^`trials` must be"),
        ({"seed": -1}, "^`seed` must be"),
        ({"alpha": 1}, "^`alpha` must be"),
        ({"level": 1.0}, "^`level` must be"),
    ],
)
def test_bad_input_is_named(change: dict[str, Any], says: str) -> None:
    """Each argument that cannot be meant has its own refusal."""
    options: dict[str, Any] = {"scores": POOL, "alpha": 0.1, "calibration_size": 300, **change}
    scores, alpha = options.pop("scores"), options.pop("alpha")
    refuse((TypeError, ValueError), says, lambda: coverage_check(scores, alpha, **options))
