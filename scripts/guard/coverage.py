"""Coverage of one threshold: on made-up scores, on real calls, and where calls have moved."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from guard.page import Section, table
from guard.real_calls import SCORERS, Pool
from rag_confidence.guard.coverage import HEADER, CoverageCheck, coverage_check
from rag_confidence.synthetic import logprob_scores, skewed_scores, uniform_scores

Array = NDArray[np.float64]
SCENARIOS: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "uniform": uniform_scores,
    "skewed": skewed_scores,
    "logprob-like": logprob_scores,
}
CALIBRATION, POOL, REAL = 1000, 2000, 150
_SALT = 0x60A2E


def pool_of(name: str) -> Array:
    """The made-up good calls of one scenario."""
    return SCENARIOS[name](np.random.default_rng([_SALT, [*SCENARIOS].index(name)]), POOL)


def made_up(trials: int) -> Section:
    """Uniform, right-skewed and logprob-like scores at two levels."""
    found = [
        (name, coverage_check(pool_of(name), alpha, calibration_size=CALIBRATION, trials=trials))
        for name in SCENARIOS
        for alpha in ("0.10", "0.05")
    ]
    text = (
        f"{trials} splits of a pool of {POOL} made-up good calls, {CALIBRATION} of which set the threshold. "
        "The scores are spread evenly, crowded near 0, or made of the log-probabilities of twelve tokens."
    )
    return _section("Coverage on made-up scores", text, found)


def real(pool: Pool | None, trials: int) -> Section:
    """Two deterministic checks on real calls, each alone and together."""
    title = "Coverage on real calls"
    if pool is None:
        return Section(title, "Left out: no data.", "", sound=True)
    rows = {scorer.name: (scorer,) for scorer in SCORERS} | {"both checks": SCORERS}
    found = [
        (
            name,
            coverage_check(
                pool.calibrated(scorers, "0.10").good, "0.10", calibration_size=REAL, trials=trials
            ),
        )
        for name, scorers in rows.items()
    ]
    text = (
        f"{len(pool.good)} queries of the Berkeley Function-Calling Leaderboard (live_simple, Apache-2.0), "
        f"each with the call that people say is right; {REAL} calls set the threshold. *complexity*: how "
        "long and nested the arguments are. *unsupported*: share of the words in the arguments that the "
        "query does not hold. Scores come from `calibrate()` on these calls. Some "
        "tie, so coverage may lie above its band."
    )
    return _section(title, text, found)


def moved(trials: int) -> Section:
    """Held-out scores that moved by a full spread, and by a twentieth of it: both must be flagged."""
    rows, sound = [], True
    for name in SCENARIOS:
        pool = pool_of(name)
        spread = float(np.ptp(pool))
        for shift in (0.0, 0.02, 1.0):
            found = coverage_check(
                pool, "0.10", calibration_size=CALIBRATION, trials=trials, tested=pool + shift * spread
            )
            sound &= found.flagged is (shift > 0.0)
            rows.append((name, f"{shift:g}", f"{found.mean.mean:.4f}", found.fault or "-"))
    text = (
        "The held-out calls score higher than the calibration calls by a part of the spread of all scores. "
        "The check must flag every row but those without a shift."
    )
    return Section(
        "Where calls have moved", text, table(("scores", "shift", "mean coverage", "flagged"), rows), sound
    )


def _section(title: str, text: str, found: list[tuple[str, CoverageCheck]]) -> Section:
    rows = [check.row(name) for name, check in found]
    return Section(title, text, table(HEADER, rows), all(not check.flagged for _, check in found))
