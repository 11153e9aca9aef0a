"""Slow or vectorised monitors, written from the formulas: they import nothing from the package.

`R` runs are simulated side by side: arrays have shape (R, T), one row a run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, ndtri
from scipy.stats import binom

Numbers = NDArray[np.float64]

# Mean and spread of the normal scores that each bet on drift expects; odds ratios of the bets on risk.
NORMAL_BETS = [
    (1.0, 1.0),
    (0.4, 1.0),
    (-1.0, 1.0),
    (-0.4, 1.0),
    (0.0, 1.6),
    (0.0, 1.25),
    (0.0, 0.8),
    (0.0, 0.6),
]
ODDS_RATIOS = [1.25, 1.6, 2.5, 6.0, 40.0]

# A simulation of a rate that holds is flagged this rarely.
DOUBT = 1e-4


def exceeds(events: int, runs: int, claimed: float) -> bool:
    """Whether this many events in independent runs are too many for a probability of at most `claimed`."""
    return bool(binom.sf(events - 1, runs, claimed) < DOUBT)


def least_flagged(runs: int, claimed: float) -> int:
    """The smallest number of events that `exceeds` flags."""
    return next(events for events in range(runs + 1) if exceeds(events, runs, claimed))


def ties_of(seed: int, count: int, salt: int = 0x0D81F7) -> list[float]:
    """The draws that break ties in a monitor of this seed."""
    generator = np.random.Generator(np.random.PCG64([salt, seed]))
    return [1.0 - generator.random() for _ in range(count)]


def smoothed_ranks(reference: Sequence[float], scores: Sequence[float], ties: Sequence[float]) -> list[float]:
    """(#{above} + tie * #{equal}) / n of every score among all before it and itself, by counting."""
    seen = list(reference)
    found = []
    for score, tie in zip(scores, ties, strict=True):
        seen.append(score)
        above, equal = sum(other > score for other in seen), sum(other == score for other in seen)
        found.append((above + tie * equal) / len(seen))
    return found


def sequential_p_values(scores: Numbers, held: int, rng: np.random.Generator) -> Numbers:
    """Smoothed ranks of the scores after the first `held`, each among all before it and itself."""
    return np.stack(
        [_rank(scores[:, : n + 1], scores[:, n], rng) for n in range(held, scores.shape[1])], axis=1
    )


def fixed_p_values(scores: Numbers, held: int, rng: np.random.Generator) -> Numbers:
    """Smoothed ranks of the scores after the first `held`, each among those `held` scores and itself."""
    columns = range(held, scores.shape[1])
    return np.stack(
        [_rank(scores[:, [*range(held), n]], scores[:, n], rng) for n in columns],
        axis=1,
    )


def _rank(among: Numbers, score: Numbers, rng: np.random.Generator) -> Numbers:
    above, equal = (among > score[:, None]).sum(axis=1), (among == score[:, None]).sum(axis=1)
    return np.asarray((above + (1.0 - rng.random(len(score))) * equal) / among.shape[1])


def normal_factors(p_values: Numbers) -> Numbers:
    """Density ratios N(z; mean, spread^2) / N(z; 0, 1) at z = -inverse normal of p, shape (R, T, bets)."""
    z = -ndtri(p_values)[..., None]
    means, spreads = np.array(NORMAL_BETS).T
    return np.asarray(np.exp(z**2 / 2.0 - ((z - means) / spreads) ** 2 / 2.0) / spreads)


def odds_factors(bad: NDArray[np.bool_], target: float) -> Numbers:
    """Likelihood ratios Bernoulli(q) / Bernoulli(target), odds(q) = r odds(target), shape (R, T, bets)."""
    odds = np.array(ODDS_RATIOS) * target / (1.0 - target)
    q = odds / (1.0 + odds)
    return np.where(bad[..., None], q / target, (1.0 - q) / (1.0 - target))


def log_capital(factors: Numbers) -> Numbers:
    """Logarithm (R, T) of the mixture over bets and starting steps, by a recursion over steps."""
    runs, steps, bets = factors.shape
    left = 1.0 / np.log2(np.arange(steps + 1) + 2.0)
    stakes, found = np.zeros((runs, bets)), np.empty((runs, steps))
    for n in range(steps):
        # Beyond any alarm the exact height does not matter, and an overflow would.
        stakes = np.minimum((stakes + (left[n] - left[n + 1]) / bets) * factors[:, n], 1e250)
        found[:, n] = np.log(stakes.sum(axis=1) + left[n + 1])
    return found


def log_capital_of_one_run(factors: Numbers) -> list[float]:
    """The same for one run (T, bets), as the double sum over starting steps and bets that defines it."""
    steps, bets = factors.shape
    logs = np.log(factors)
    found = []
    for n in range(1, steps + 1):
        terms = [math.log(1.0 / math.log2(n + 2))]
        for start in range(1, n + 1):
            weight = 1.0 / math.log2(start + 1) - 1.0 / math.log2(start + 2)
            terms += (math.log(weight / bets) + logs[start - 1 : n].sum(axis=0)).tolist()
        found.append(float(logsumexp(terms)))
    return found


def shiryaev_roberts(factors: Numbers) -> Numbers:
    """Logarithm (R, T) of the sum with weight 1 on every starting step: not a martingale."""
    runs, steps, bets = factors.shape
    stakes, found = np.zeros((runs, bets)), np.empty((runs, steps))
    for n in range(steps):
        stakes = np.minimum((stakes + 1.0 / bets) * factors[:, n], 1e250)
        found[:, n] = np.log(stakes.sum(axis=1))
    return found


def alarms(log_values: Numbers, rate: float) -> int:
    """Runs whose evidence ever reaches 1 / rate."""
    return int((log_values.max(axis=1) >= -math.log(rate)).sum())


def first_alarms(log_values: Numbers, rate: float) -> Numbers:
    """Step, counted from 1, of the first alarm of every run; infinite where there is none."""
    rings = log_values >= -math.log(rate)
    return np.where(rings.any(axis=1), rings.argmax(axis=1) + 1.0, np.inf)


def in_rows(
    draw: Callable[[np.random.Generator, tuple[int, int]], Any], seed: int, shape: tuple[int, int]
) -> Numbers:
    """Scores (R, T) of a named distribution, from a generator of its own."""
    return np.asarray(draw(np.random.default_rng([0x5EED, seed]), shape), dtype=np.float64)
