"""Repeated calibrations of a guard on drawn calls, whose error rates follow from the thresholds exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from guard_calls import INF, quietly
from scipy.stats import norm

from rag_confidence.guard.calibrator import Calibrator

TRIALS = 300
# Good scores are uniform on [0, 1] and bad ones on [SHIFT, SHIFT + 1].
SHIFT = 0.6


@dataclass(frozen=True)
class Rates:
    """Means over trials: what becomes of good and of bad calls that are scored."""

    good_stopped: float
    good_rejected: float
    bad_accepted: float
    finite: float


def rates(
    n_good: int, n_bad: int, *, failing: float = 0.0, seed: int = 0, trials: int = TRIALS, **options: Any
) -> Rates:
    """The rates of guards that were calibrated on so many calls, of which a share fails to be scored."""
    generator = np.random.default_rng([0x6AD, seed])
    found = []
    for _ in range(trials):
        good = drawn(generator, n_good, 0.0, failing)
        found.append(_rates(quietly(good, drawn(generator, n_bad, SHIFT, failing), **options), failing))
    return Rates(*np.mean(found, axis=0).tolist())


def drawn(generator: np.random.Generator, n: int, low: float, failing: float) -> list[float]:
    """Scores of n calls; infinite where the scorer fails."""
    scores = low + generator.uniform(size=n)
    scores[generator.uniform(size=n) < failing] = INF
    return scores.tolist()  # type: ignore[no-any-return]


def _rates(calibrator: Calibrator, failing: float) -> tuple[float, float, float, float]:
    """Of new calls, given the thresholds. A failed call is abstained on."""
    cuts = calibrator.thresholds
    below = np.clip([cuts.accept_to, cuts.accept_to - SHIFT, cuts.reject_above], 0.0, 1.0) * (1.0 - failing)
    stopped = 1.0 - below[0] if cuts.accepts else 0.0
    return stopped, 1.0 - failing - below[2], below[1], float(cuts.accepts)


def mean_band(n: int, alpha: float, trials: int = TRIALS) -> tuple[float, float]:
    """99.9 % band of a mean error rate over trials: of Beta variables, by their exact mean and variance."""
    spared = int((n + 1) * alpha + 1e-9)
    mean = spared / (n + 1)
    deviation = (mean * (1 - mean) / (n + 2) / trials) ** 0.5
    half = float(norm.ppf(0.9995)) * deviation
    return mean - half, mean + half


def ratchet(rounds: int, *, selected: bool, n: int = 1000) -> list[float]:
    """Share of good calls accepted after each calibration on what the last one let through, or on all."""
    generator = np.random.default_rng([0x6AD, 1])
    calibrator = quietly(generator.uniform(size=n).tolist())
    shares = [calibrator.threshold]
    for _ in range(rounds):
        new = generator.uniform(size=n)
        calibrator = quietly(new[new <= calibrator.threshold].tolist() if selected else new.tolist())
        shares.append(calibrator.threshold)
    return shares
