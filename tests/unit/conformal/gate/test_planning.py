"""A plan names the fewest labels: with them a gate has its thresholds, with one fewer it has not."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
import reference_conformal as ref
from histories import few
from hypothesis import given
from hypothesis import strategies as st
from refusals import quiet, refuse

from rag_confidence.conformal.gate.fit import fit_conformal_gate
from rag_confidence.conformal.gate.fitted import ConformalGate
from rag_confidence.conformal.gate.planning import plan
from rag_confidence.conformal.quantile import conformal_rank

LEVELS = st.fractions(Fraction(1, 50), Fraction(9, 10), max_denominator=50)
CHANCES = st.sampled_from(["0.01", "0.05", "0.1", "0.25", "0.5"])


def gate_on(n0: int, n1: int, alpha: Any, **options: Any) -> ConformalGate:
    """A gate on n0 and n1 well separated rows."""
    scores = np.r_[np.linspace(0, 0.4, n0), np.linspace(0.6, 1, n1)]
    with quiet():
        return fit_conformal_gate(scores, [0] * n0 + [1] * n1, alpha, **options)


def exceeds(n: int, alpha: Fraction, rate: Fraction) -> float:
    """P(the error rate of one calibration set of n rows exceeds `rate`), where it is Beta(n - k + 1, k).

    That is P(Binomial(n, rate) <= n - k), since the rate is the (n - k + 1)-th smallest of n uniforms.
    """
    from scipy.stats import binom

    k = conformal_rank(n, alpha)
    return 0.0 if math.isinf(k) else float(binom.cdf(n - k, n, float(rate)))


@given(LEVELS, CHANCES)
def test_the_least_rows_with_a_threshold(alpha: Fraction, delta: str) -> None:
    """n_finite and n_pac are the smallest counts with a finite rank, found by trying one after the other."""
    found = plan(alpha, delta, tolerance="0.2")
    assert found.insufficient.n_finite == found.sufficient.n_finite == ref.smallest_supported(alpha)
    assert found.insufficient.n_pac == found.sufficient.n_pac == ref.smallest_pac(alpha, delta)
    assert (found.insufficient.alpha, found.insufficient.label, found.sufficient.label) == (
        float(alpha),
        0,
        1,
    )


@pytest.mark.parametrize("alpha", ["0.1", "0.05", "1/3"])
def test_a_gate_with_the_planned_rows_decides(alpha: str) -> None:
    """With the planned rows both thresholds are finite; with one row fewer neither is."""
    found = plan(alpha, "0.05").insufficient
    for n, options in ((found.n_finite, {}), (found.n_pac, {"guarantee": "pac", "delta": "0.05"})):
        enough, short = (
            gate_on(n, n, alpha, **options),
            gate_on(max(1, n - 1), max(1, n - 1), alpha, **options),
        )
        assert math.isfinite(enough.q0)
        assert math.isfinite(enough.t1)
        assert (short.q0, short.t1) == (math.inf, -math.inf) or n == 1


@few
@given(LEVELS, LEVELS)
def test_each_error_has_its_own_count(alpha: Fraction, alpha_reject: Fraction) -> None:
    """A level of its own for the false REJECT changes the sufficient class alone."""
    found = plan(alpha, "0.1", alpha_reject=alpha_reject, tolerance="0.2")
    assert found.insufficient.n_finite == ref.smallest_supported(alpha)
    assert found.sufficient.n_finite == ref.smallest_supported(alpha_reject)
    assert found.sufficient.alpha == float(alpha_reject)


@pytest.mark.parametrize("alpha", ["0.1", "0.2", "1/3", "3/20"])
@pytest.mark.parametrize(("delta", "tolerance"), [("0.05", "0.1"), ("0.1", "0.05"), ("0.2", "0.2")])
def test_from_the_close_count_on_rates_stay_near(alpha: str, delta: str, tolerance: str) -> None:
    """From n_close on the rate of one calibration set is near its level; one row fewer is not enough."""
    found, level = plan(alpha, delta, tolerance=tolerance).insufficient, Fraction(alpha)
    rate, chance = level + Fraction(tolerance), float(Fraction(delta))
    after = range(found.n_close, found.n_close + 60)
    assert all(exceeds(n, level, rate) <= chance + 1e-12 for n in after)
    assert found.n_close == found.n_finite or exceeds(found.n_close - 1, level, rate) > chance


@few
@given(st.sampled_from(["0.1", "0.2", "0.3"]), st.sampled_from(["0.3", "0.36", "0.4", "0.45"]))
def test_a_close_count_is_not_a_lucky_one(alpha: str, delta: str) -> None:
    """Where the chance first rises with n, the count from which on it stays low is the later one."""
    found, level = plan(alpha, delta, tolerance="0.01").insufficient, Fraction(alpha)
    after = range(found.n_close, found.n_close + 60)
    assert max(exceeds(n, level, level + Fraction("0.01")) for n in after) <= float(Fraction(delta)) + 1e-12


@pytest.mark.parametrize("options", [{}, {"guarantee": "pac", "delta": "0.05"}])
def test_a_plan_for_attempts_serves_all_of_them(options: dict[str, Any]) -> None:
    """With the rows planned for m tries, the gate of each try has its thresholds."""
    found = plan("0.2", "0.05", attempts=3)
    assert found.attempts == 3
    n = found.insufficient.n_pac if options else found.insufficient.n_finite
    gate = gate_on(n, n, "0.2", **options)
    for attempt in (1, 2, 3):
        one = gate.for_attempt(attempt, 3)
        assert math.isfinite(one.q0)
        assert math.isfinite(one.t1)


@few
@given(LEVELS, st.fractions(Fraction(1, 20), Fraction(19, 20), max_denominator=20))
def test_rows_in_all_give_both_classes_theirs(alpha: Fraction, prevalence: Fraction) -> None:
    """With a share of sufficient rows, the rows in all are the fewest that hold both classes' on average."""
    found = plan(alpha, "0.1", prevalence=prevalence, tolerance="0.2")
    assert found.rows is not None
    for name in ("finite", "pac", "close"):
        total = found.rows[name]
        needs = [getattr(found.insufficient, f"n_{name}"), getattr(found.sufficient, f"n_{name}")]
        shares = [1 - prevalence, prevalence]
        assert all(total * share >= need for share, need in zip(shares, needs, strict=True))
        assert any((total - 1) * share < need for share, need in zip(shares, needs, strict=True))
    assert plan(alpha).rows is None


@few
@given(LEVELS, CHANCES)
def test_accepted_rows_without_an_error(risk: Fraction, delta: str) -> None:
    """The fewest clean accepts certify a risk where (1 - risk)^n <= delta for the first time."""
    n = plan(delta=delta, target_risk=risk, tolerance="0.2").accepted_without_error
    assert n == ref.smallest_pac(risk, delta)
    assert plan().accepted_without_error is None


@few
@given(LEVELS, LEVELS)
def test_more_is_asked_for_less_error(a: Fraction, b: Fraction) -> None:
    """A smaller level never needs fewer rows."""
    strict, lenient = (plan(level, tolerance="0.2").insufficient for level in sorted((a, b)))
    assert strict.n_finite >= lenient.n_finite
    assert strict.n_pac >= lenient.n_pac


def test_a_plan_reads_and_writes() -> None:
    """The sentence has the numbers, and to_dict is JSON with every field."""
    found = plan("0.1", "0.05", prevalence="0.5", target_risk="0.2")
    for number in ("0.1", "9 ", "29 ", "110 ", str(found.rows["pac"] if found.rows else ""), "14 "):
        assert number in found.sentence
    written = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert written["insufficient"] == {"label": 0, "alpha": 0.1, "n_finite": 9, "n_pac": 29, "n_close": 110}
    assert set(written) == set(found.__dataclass_fields__)


@pytest.mark.parametrize("name", ["alpha", "delta", "alpha_reject", "tolerance", "prevalence", "target_risk"])
@pytest.mark.parametrize("value", [0, 1, -0.1, 10, math.nan, "ten", True], ids=repr)
def test_levels_of_a_plan_are_checked(name: str, value: Any) -> None:
    """Each level must be strictly between 0 and 1, and is named."""
    refuse((TypeError, ValueError), f"^`{name}` must be ", lambda: plan(**{name: value}))


@pytest.mark.parametrize("attempts", [0, -1, 1.5, True, "2", None], ids=repr)
def test_attempts_of_a_plan_are_counted(attempts: Any) -> None:
    """Attempts are an integer of at least 1."""
    refuse((TypeError, ValueError), "^`attempts` must be ", lambda: plan(attempts=attempts))


def test_an_unreachable_tolerance_is_refused() -> None:
    """A tolerance that would need more rows than anyone has is refused and not searched for ever."""
    refuse(ValueError, "^`tolerance` must be ", lambda: plan("0.1", "0.01", tolerance="0.000001"))


@pytest.mark.parametrize("name", ["alpha", "delta", "alpha_reject", "tolerance", "prevalence", "target_risk"])
def test_levels_that_no_history_supports_are_refused(name: str) -> None:
    """Below 1e-12 a level is refused in words, whatever a float would make of it."""
    for value in ("1e-400", Fraction(1, 10**5000), 1e-13):
        options: dict[str, Any] = {name: value}
        refuse(ValueError, f"^`{name}` must be between 1e-12 ", partial(plan, **options))


@pytest.mark.parametrize(
    "options",
    [
        {"alpha": 1e-10},
        {"alpha": 1e-12, "delta": 1e-12, "target_risk": 1e-12, "prevalence": 1e-12},
        {"alpha": 1e-12, "delta": 1e-12, "attempts": 10**15},
        {"attempts": 10**9},
        {"alpha": "0.123456789012345678901", "tolerance": 0.001},
        {"alpha": 1 - 1e-12, "delta": 1 - 1e-12},
    ],
    ids=str,
)
def test_extreme_levels_are_planned_in_a_moment(options: dict[str, Any]) -> None:
    """n_finite is exact and n_pac right to nine digits, without a search through the numbers."""
    found = plan(**options).insufficient
    level = Fraction(str(options.get("alpha", "0.1"))) / options.get("attempts", 1)
    chance = float(Fraction(str(options.get("delta", "0.05"))) / options.get("attempts", 1))
    assert found.n_finite == math.ceil(1 / level) - 1
    assert found.n_pac == pytest.approx(max(1, math.log(chance) / math.log1p(-float(level))), rel=1e-9, abs=1)


@pytest.mark.parametrize("attempts", [10**15 + 1, 10**400])
def test_more_attempts_than_anyone_makes_are_refused(attempts: int) -> None:
    """Attempts are at most 10**15."""
    refuse(ValueError, "^`attempts` must be an integer of at most ", lambda: plan(attempts=attempts))


def test_a_level_without_enough_rows_in_the_world_abstains_in_a_moment() -> None:
    """Tiny levels, asked for or derived, give infinite thresholds and never a hang."""
    gate = gate_on(100, 100, 0.1, guarantee="pac")
    assert gate_on(100, 100, 1e-10, guarantee="pac").q0 == math.inf
    with quiet():
        derived = [gate.at_alpha(1e-10), *(gate.for_attempt(j) for j in (1000, 10**5, 10**15))]
        derived.append(gate.for_attempt(10**15).for_attempt(10**15))
    assert all((one.q0, one.t1, one.guarantee.holds) == (math.inf, -math.inf, False) for one in derived)


def test_a_small_tolerance_is_planned_in_a_moment() -> None:
    """A tolerance of a thousandth is answered without a walk through the numbers, whatever the level."""
    assert plan("0.5", "0.05", tolerance="0.001").insufficient.n_close > 10**5
