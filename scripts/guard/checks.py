"""Several checks: one joint threshold beside Bonferroni and naive ones."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from guard.page import Section, table
from guard.real_calls import SCORERS, Pool
from rag_confidence.guard.comparison import HEADER, CheckComparison, compare_checks

Array = NDArray[np.float64]
CHECKS, CALIBRATION, POOL, BAD, REAL = 3, 1000, 2000, 1000, 150
RHOS = (0.0, 0.5, 0.9)
_SALT = 0x60A2F


def comparisons(pool: Pool | None, trials: int) -> Section:
    """At three correlations, and on two real checks."""
    found = [(f"correlation {rho:g}", _made_up(rho, trials)) for rho in RHOS]
    real = ""
    if pool is not None:
        found.append(("real calls", _real(pool, trials)))
        real = (
            f" The real calls are scored by {' and '.join(scorer.name for scorer in SCORERS)}; their bad "
            "calls are the right ones with the arguments of another query's call."
        )
    rows = [(name, *cells) for name, one in found for cells in one.rows()]
    text = (
        f"{CHECKS} checks whose scores are normal with equal correlations. Of the bad calls half stand out "
        f"by three deviations in one check, and half by two in all of them.{real} Naive thresholds, one a "
        "check at alpha, do not keep the target. Of those that do, the one that stops more bad calls is "
        "better: the last column is the mean difference in the same splits, with its "
        "standard error. That of the real calls is over splits of the same calls, not over new ones."
    )
    sound = all(_sound(one) for _, one in found)
    return Section("Several checks on one call", text, table(("calls", *HEADER), rows), sound)


def _made_up(rho: float, trials: int) -> CheckComparison:
    rng = np.random.default_rng([_SALT, round(100 * rho)])
    bad = _scores(rng, BAD, rho)
    bad[np.arange(BAD // 2), rng.integers(0, CHECKS, BAD // 2)] += 3.0
    bad[BAD // 2 :] += 2.0
    good = _scores(rng, POOL, rho)
    return compare_checks(good, "0.10", calibration_size=CALIBRATION, bad=bad, trials=trials)


def _scores(rng: np.random.Generator, n: int, rho: float) -> Array:
    shared = rng.standard_normal((n, 1))
    return math.sqrt(rho) * shared + math.sqrt(1.0 - rho) * rng.standard_normal((n, CHECKS))


def _real(pool: Pool, trials: int) -> CheckComparison:
    return compare_checks(
        pool.scores(pool.good),
        "0.10",
        calibration_size=REAL,
        bad=pool.scores(pool.bad),
        names=[scorer.name for scorer in SCORERS],
        trials=trials,
    )


def _sound(found: CheckComparison) -> bool:
    """Whether those keep the target that must."""
    return found.of("joint").keeps_target and found.of("bonferroni").keeps_target
