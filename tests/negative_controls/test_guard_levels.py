"""Uses of guards that break their promise, which the checks of coverage flag."""

from __future__ import annotations

import numpy as np
import pytest
from guard_calls import call, quietly, reader

from rag_confidence.guard import calibrate_groups, coverage_check
from rag_confidence.synthetic import logprob_scores, skewed_scores, uniform_scores

SCENARIOS = {"uniform": uniform_scores, "skewed": skewed_scores, "logprob": logprob_scores}


@pytest.mark.parametrize("name", SCENARIOS)
def test_moved_scores_are_flagged_and_others_are_not(name: str) -> None:
    """A shift by the whole spread leaves nothing, one by a fiftieth is seen, and none is not flagged."""
    pool = SCENARIOS[name](np.random.default_rng([0x6B1, len(name)]), 2000)
    spread = float(np.ptp(pool))
    sound, little, much = (
        coverage_check(pool, "0.10", calibration_size=1000, tested=pool + shift * spread)
        for shift in (0.0, 0.02, 1.0)
    )
    assert not sound.flagged
    assert little.fault == much.fault == "coverage too low"
    assert much.mean.mean < 0.01 < little.mean.mean


def test_calls_without_a_session_break_its_bound() -> None:
    """Five calls at alpha each are abstained on four times as often as a session allows."""
    rng = np.random.default_rng(0x6B2)
    rates = [1.0 - quietly(rng.random(300).tolist()).threshold ** 5 for _ in range(100)]
    assert np.mean(rates) > 0.35


def test_one_threshold_for_all_groups_breaks_the_level_of_some() -> None:
    """Pooled calls keep alpha on average, and stop far more of the group whose scores are higher."""
    rng = np.random.default_rng(0x6B3)
    reads, writes = rng.random(300), 1.0 + rng.random(100)
    pooled = quietly([*reads.tolist(), *writes.tolist()])
    data = [(call(score, tool="read"), True) for score in reads.tolist()]
    data += [(call(score, tool="write"), True) for score in writes.tolist()]
    own = calibrate_groups(reader(0), data, lambda one: one.tool_name, levels={"read": 0.1, "write": 0.1})
    stopped = 2.0 - pooled.threshold
    assert stopped > 0.3
    assert 2.0 - own.calibrators["write"].threshold < 0.2
