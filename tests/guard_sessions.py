"""Many sessions, each over a calibration set of its own, and the exact chance of an error in one."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from guard_calls import call, quietly
from scipy.stats import binom

from rag_confidence.guard import GuardResult, Session

Generator = np.random.Generator


def share_with_error(
    made: Callable[[Generator], Session],
    drawn: Callable[[Generator], float],
    wrong: Callable[[GuardResult], bool],
    *,
    runs: int,
    seed: int,
) -> float:
    """Share of sessions in which any of the planned calls is decided wrongly, each decided by the session."""
    found = []
    for at in range(runs):
        rng = np.random.default_rng([0x6B4, seed, at])
        session = made(rng)
        # All planned calls are made, also after the first error.
        results = [session.decide(call(drawn(rng))) for _ in range(session.calls)]
        found.append(any(map(wrong, results)))
    return float(np.mean(found))


def any_error(n: int, alpha: str, planned: int) -> float:
    """Exact chance that one of T uniform scores lies above the order statistic for alpha / T.

    Given the threshold t it is 1 - t^T, and t has a Beta(k, n + 1 - k) law, whose T-th moment is a product.
    """
    rank = math.ceil((n + 1) * (1 - Fraction(alpha) / planned))
    return 1.0 - math.prod((rank + j) / (n + 1 + j) for j in range(planned))


def share_band(chance: float, runs: int, level: float = 0.999) -> tuple[float, float]:
    """Exact band of the share of independent runs with an event of this chance."""
    low, high = binom.ppf([(1 - level) / 2, (1 + level) / 2], runs, chance)
    return float(low / runs), float(high / runs)


def failing_sessions(n: int, planned: int, failing: float, *, runs: int, seed: int) -> tuple[float, float]:
    """P(there is a session and one of its good calls is stopped), and the same given that there is one."""
    stopped: list[float] = []
    for at in range(runs):
        rng = np.random.default_rng([0x6B5, seed, at])
        scores = np.where(rng.random(n) < failing, np.inf, rng.random(n))
        guard = quietly(scores.tolist())
        if planned <= Fraction(1, 10) * (n + 1) / (guard.n_failed + 1):
            kept: Any = (1.0 - failing) * Session(guard, planned).threshold
            stopped.append(1.0 - kept**planned)
    return sum(stopped) / runs, float(np.mean(stopped))
