"""Joint, Bonferroni and naive thresholds on the same splits."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from refusals import quiet, refuse

from rag_confidence.conformal.joint.checks import fit_bonferroni_checks, fit_naive_checks
from rag_confidence.conformal.joint.fit import fit_joint_gate
from rag_confidence.guard.comparison import HEADER, METHODS, compare_checks
from rag_confidence.guard.coverage import splits

RNG = np.random.default_rng(5)
SHARED = RNG.standard_normal((500, 1))
GOOD = 0.7 * SHARED + 0.7 * RNG.standard_normal((500, 3))
BAD = GOOD[:80] + np.array([2.0, 0.0, 1.0])


def test_rates_are_those_of_the_gates() -> None:
    """Each method accepts what the gate of that name accepts, fitted on the same rows."""
    good = np.where(RNG.random(GOOD.shape) < 0.01, math.inf, GOOD)
    found = compare_checks(good, 0.2, calibration_size=200, bad=BAD, trials=4, seed=3)
    fits = {"joint": fit_joint_gate, "bonferroni": fit_bonferroni_checks, "naive": fit_naive_checks}
    for name, fit in fits.items():
        kept, stopped = [], []
        for first, rest in splits(500, 200, 4, 3):
            with quiet():
                gate: Any = fit(good[first], 0.2)
            kept.append(gate.predict(good[rest]).accepted.mean())
            stopped.append(1.0 - gate.predict(BAD).accepted.mean())
        method = found.of(name)
        assert method.good_accepted.value == pytest.approx(np.mean(kept), abs=1e-12)
        assert method.good_accepted.error == pytest.approx(np.std(kept, ddof=1) / 2.0, abs=1e-12)
        assert method.bad_stopped is not None
        assert method.bad_stopped.value == pytest.approx(np.mean(stopped), abs=1e-12)


def test_naive_thresholds_miss_the_target_and_the_others_keep_it() -> None:
    """With three checks a threshold each at alpha stops too many good calls."""
    found = compare_checks(GOOD, 0.1, calibration_size=250)
    assert {method.name: method.keeps_target for method in found.methods} == {
        "joint": True,
        "bonferroni": True,
        "naive": False,
    }


def test_one_check_is_the_same_in_every_method() -> None:
    """Without several checks there is nothing to correct."""
    found = compare_checks(GOOD[:, :1], 0.1, calibration_size=250, bad=BAD[:, :1], trials=10)
    assert len({method.good_accepted for method in found.methods}) == 1
    assert found.of("joint").gain == found.of("bonferroni").gain


def test_levels_that_n_does_not_support_stop_everything() -> None:
    """Bonferroni needs K times as many calls: where they are missing it accepts nothing."""
    found = compare_checks(GOOD, 0.1, calibration_size=12, bad=BAD, trials=5)
    assert found.of("bonferroni").good_accepted.value == 0.0
    assert found.of("joint").good_accepted.value > 0.5


def test_a_report_is_a_table_and_plain_values() -> None:
    """One line a method; without bad calls, and for one trial, there are no numbers that mean nothing."""
    found = compare_checks(GOOD, 0.1, calibration_size=250, trials=1, names=["a", "b", "c"])
    assert [len(row) for row in found.rows()] == [len(HEADER)] * 3
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["checks"] == ["a", "b", "c"]
    assert [*plain["methods"]] == [*METHODS]
    assert plain["methods"]["joint"]["good_accepted"]["standard_error"] is None
    assert plain["methods"]["joint"]["bad_stopped"] is None


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"good": [0.1, 0.2]}, "^`good` must have shape"),
        ({"good": [[math.nan, 1.0]] * 9}, "^`good` must not hold nan"),
        ({"bad": [[1.0, 2.0]]}, "^`bad` must have shape"),
        ({"names": ["a", "a", "b"]}, "^`names` must hold 3 different"),
        ({"calibration_size": 500}, "^`calibration_size` must be below"),
        ({"alpha": 0}, "^`alpha` must be"),
        ({"trials": 0}, "^`trials` must be"),
    ],
)
def test_bad_input_is_named(change: dict[str, Any], says: str) -> None:
    """Each argument that cannot be meant has its own refusal."""
    options: dict[str, Any] = {"good": GOOD, "alpha": 0.1, "calibration_size": 250, **change}
    good, alpha = options.pop("good"), options.pop("alpha")
    refuse((TypeError, ValueError), says, lambda: compare_checks(good, alpha, **options))
