"""Coverage of the joint gate on fresh draws, against exact bands of a mean, and the bad calls it stops."""

from __future__ import annotations

import json
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from joint_trials import (
    Outcome,
    Sizes,
    Trial,
    bad_calls,
    good_calls,
    mean_band,
    run,
    trials_of,
    with_failures,
)

from rag_confidence.conformal.joint.checks import fit_bonferroni_checks
from rag_confidence.conformal.joint.fit import fit_joint_gate
from rag_confidence.errors import SmallCalibrationWarning

SIZES = Sizes()
RHOS = (0.0, 0.5, 0.9)
METHODS = {
    "raw": lambda trial: fit_joint_gate(trial.calibration, "0.1"),
    "ranked": lambda trial: fit_joint_gate(trial.calibration, "0.1", reference=trial.traffic),
    "bonferroni": lambda trial: fit_bonferroni_checks(trial.calibration, "0.1"),
}


@lru_cache
def outcomes(rho: float) -> dict[str, Outcome]:
    """The three methods on the same trials."""
    return run(trials_of(rho, SIZES), METHODS, SIZES)


def standard_error(differences: Any) -> float:
    """Of the mean of paired differences."""
    return float(np.std(differences, ddof=1) / np.sqrt(len(differences)))


@pytest.mark.parametrize("method", ["raw", "ranked"])
@pytest.mark.parametrize("rho", RHOS)
def test_good_calls_are_covered_as_promised(rho: float, method: str) -> None:
    """The mean coverage of all checks together lies in its exact 99.9 % band, at any correlation."""
    low, high = mean_band(SIZES.n, "0.1", SIZES)
    assert high - low < 0.015
    assert low <= outcomes(rho)[method].coverage <= high


@pytest.mark.parametrize(("n", "alpha"), [(9, "0.1"), (29, "0.2"), (100, "0.05"), (199, "0.01")])
def test_small_sets_are_covered_as_promised(n: int, alpha: str) -> None:
    """The band holds at the fewest calls that a level allows, and at other levels."""
    sizes = Sizes(n=n, traffic=100, test=200)
    fit = {"ranked": lambda trial: fit_joint_gate(trial.calibration, alpha, reference=trial.traffic)}
    low, high = mean_band(n, alpha, sizes)
    assert low <= run(trials_of(0.5, sizes, seed=n), fit, sizes)["ranked"].coverage <= high


@pytest.mark.parametrize("rho", RHOS)
def test_bonferroni_covers_too_and_wastes_it(rho: float) -> None:
    """Bonferroni is never below the band; with correlated checks it is above, which bad calls pay for."""
    low, high = mean_band(SIZES.n, "0.1", SIZES)
    coverage = outcomes(rho)["bonferroni"].coverage
    assert coverage >= low
    assert rho == 0.0 or coverage > high


@pytest.mark.parametrize("method", ["raw", "ranked"])
@pytest.mark.parametrize("rho", RHOS)
def test_the_joint_gate_stops_more_bad_calls_than_bonferroni(rho: float, method: str) -> None:
    """At the same bound on good calls the joint threshold stops more bad ones, by four standard errors."""
    joint, split = outcomes(rho)[method], outcomes(rho)["bonferroni"]
    gain = joint.bad_stopped - split.bad_stopped
    assert gain.mean() > 4 * standard_error(gain)


def test_the_gain_grows_with_the_correlation_of_the_checks() -> None:
    """The more the checks agree, the more alpha / K throws away."""
    gains = [outcomes(rho)["ranked"].rejection - outcomes(rho)["bonferroni"].rejection for rho in RHOS]
    assert gains == sorted(gains)
    assert gains[-1] > 0.07


def test_tied_scores_cover_at_least_what_is_promised() -> None:
    """Rounded scores, of which many coincide, may only add coverage."""
    rounded = [
        Trial(*(np.round(part, 0) for part in (t.calibration, t.traffic, t.good, t.bad)))
        for t in trials_of(0.5, SIZES, seed=1)
    ]
    with warnings.catch_warnings():
        # Among few values the threshold may fall on the largest; the fit says so.
        warnings.simplefilter("ignore", UserWarning)
        found = run(rounded, {"raw": METHODS["raw"], "ranked": METHODS["ranked"]}, SIZES)
    low, _ = mean_band(SIZES.n, "0.1", SIZES)
    assert min(outcome.coverage for outcome in found.values()) >= low


def test_checks_that_fail_now_and_then_leave_the_coverage_as_promised() -> None:
    """A failure counts as +inf on both sides: at a rate of 1 % a check the band still holds."""
    trials = with_failures(trials_of(0.5, SIZES, seed=2), 0.01)
    low, high = mean_band(SIZES.n, "0.1", SIZES)
    found = run(trials, {"ranked": METHODS["ranked"]}, SIZES)["ranked"]
    assert low <= found.coverage <= high


@pytest.mark.parametrize(("method", "rate"), [("raw", 0.03), ("ranked", 0.03), ("bonferroni", 0.015)])
def test_checks_that_fail_often_leave_what_is_bounded_as_promised(method: str, rate: float) -> None:
    """Where some thresholds are infinite, abstentions by the finite ones stay within the band.

    Only its lower end holds: a failed call is not above a threshold that failures have made infinite.
    """
    sizes = Sizes(n=100, traffic=100, test=200)
    trials = with_failures(trials_of(0.5, sizes, seed=4), rate)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SmallCalibrationWarning)
        found = run(trials, {"it": METHODS[method]}, sizes)["it"]
    rates = 1 - np.array([found.coverage, found.bounded_coverage])
    print(
        f"{method}: {found.certified.mean():.3f} certified; abstained on, in all and by finite ones: {rates}"
    )
    assert 0.4 < found.certified.mean() < 0.8
    assert found.bounded_coverage >= mean_band(100, "0.1", sizes)[0]


def in_other_units(rows: Any) -> Any:
    """The three checks at x 1, x 1000 (with another origin) and as exponentials."""
    return np.column_stack([rows[:, 0], 1000.0 * rows[:, 1] + 500.0, np.exp(rows[:, 2])])


def test_ranks_decide_the_same_whatever_the_units() -> None:
    """x 1000 changes no decision; a curved scale changes only what lies within one gap of the traffic."""
    rng = np.random.default_rng([0x903, 0])
    scores, traffic, rows = (good_calls(rng, n, 0.5) for n in (500, 1000, 20_000))
    rows[10_000:] = bad_calls(rng, 10_000, 0.5)
    plain = fit_joint_gate(scores, 0.1, reference=traffic).predict(rows).accepted
    units = np.array([1.0, 1000.0, 1e-6])
    scaled = fit_joint_gate(scores * units, 0.1, reference=traffic * units).predict(rows * units).accepted
    assert (scaled == plain).all()
    curved = fit_joint_gate(in_other_units(scores), 0.1, reference=in_other_units(traffic))
    assert (curved.predict(in_other_units(rows)).accepted != plain).mean() < 0.001


def test_raw_scores_in_other_units_lose_the_power_and_not_the_bound() -> None:
    """One check in large units decides alone: still valid, but it stops far fewer bad calls than ranks do."""
    sizes = Sizes(trials=100)
    moved = [
        Trial(*(in_other_units(part) for part in (t.calibration, t.traffic, t.good, t.bad)))
        for t in trials_of(0.0, sizes, seed=3)
    ]
    with pytest.warns(UserWarning, match="different scales"):
        found = run(moved, {"raw": METHODS["raw"], "ranked": METHODS["ranked"]}, sizes)
    low, high = mean_band(sizes.n, "0.1", sizes)
    assert low <= found["raw"].coverage <= high
    assert low <= found["ranked"].coverage <= high
    assert found["raw"].rejection < found["ranked"].rejection - 0.25


def call_checks(path: Path) -> Any:
    """Three deterministic checks of a tool call: words the tool does not know, length, parameters."""
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines():
        call = json.loads(line)
        tool = json.dumps(call["function"]).lower()
        words = [word.strip(".,?!\"'").lower() for word in call["query"].split()]
        unknown = sum(word not in tool for word in words) / max(len(words), 1)
        parameters = [len(f["parameters"].get("properties", {})) for f in call["function"]]
        rows.append([unknown, float(len(call["query"])), float(max(parameters, default=0))])
    return np.array(rows)


@pytest.mark.needs_data
def test_real_tool_calls_are_covered_as_promised(data_dir: Path) -> None:
    """On random splits of 258 real calls good traffic keeps the band and stops more than Bonferroni."""
    pool = call_checks(data_dir / "bfcl_raw" / "live_simple.jsonl")
    bad = call_checks(data_dir / "bfcl_raw" / "live_irrelevance.jsonl")
    sizes = Sizes(n=100, test=100)
    rng = np.random.default_rng([0x904, 0])
    orders = [(rng.permutation(len(pool)), rng.permutation(len(bad))) for _ in range(sizes.trials)]
    trials = [Trial(pool[o[:100]], pool[o[200:]], pool[o[100:200]], bad[b[:100]]) for o, b in orders]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = run(trials, {"ranked": METHODS["ranked"], "bonferroni": METHODS["bonferroni"]}, sizes)
    low, high = mean_band(100, "0.1", sizes)
    # Ties between whole numbers may add a little to the coverage.
    assert low <= found["ranked"].coverage <= high + 0.01
    assert found["bonferroni"].coverage >= low
    assert found["ranked"].rejection > found["bonferroni"].rejection + 0.02


@pytest.mark.needs_data
def test_traffic_of_bad_calls_keeps_the_bound_and_loses_the_power(data_dir: Path) -> None:
    """Ranks among bad calls hide what is bad about them: the bound holds, and a warning says so."""
    pool = call_checks(data_dir / "bfcl_raw" / "live_simple.jsonl")
    bad = call_checks(data_dir / "bfcl_raw" / "live_irrelevance.jsonl")
    sizes = Sizes(n=100, test=100, trials=50)
    rng = np.random.default_rng([0x905, 0])
    orders = [(rng.permutation(len(pool)), rng.permutation(len(bad))) for _ in range(sizes.trials)]
    trials = [Trial(pool[o[:100]], bad[b[100:]], pool[o[100:200]], bad[b[:100]]) for o, b in orders]
    with pytest.warns(UserWarning, match="too common there to count as strange"):
        found = run(trials, {"ranked": METHODS["ranked"], "bonferroni": METHODS["bonferroni"]}, sizes)
    assert found["ranked"].coverage >= mean_band(100, "0.1", sizes)[0]
    assert found["ranked"].rejection < found["bonferroni"].rejection
