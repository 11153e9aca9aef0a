"""What a certified risk costs: acceptance of the rank grid beside a grid of 100 thresholds.

    python scripts/bench/risk_gate_power.py
    python scripts/bench/risk_gate_power.py --quick      # fewer seeds and one size

Both test exact binomial tails. The threshold grid is that of learn-then-test tutorials, 100 equally spaced
lambdas in [0, 1], by Bonferroni and as a sequence from strict to lenient; its sequence starts where rows
suffice to pass without an error (from the very top it would always stop at once, with no row above). All
scores are simulated from fixed seeds, so every run prints the same table. Acceptance and risk of each
threshold are measured on one large fresh sample of the same distribution.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from _bench import table
from numpy.typing import NDArray

from rag_confidence.conformal.binomial import tail_within
from rag_confidence.conformal.risk.fit import fit_risk_gate
from rag_confidence.errors import SmallCalibrationWarning, WeakSeparationWarning
from rag_confidence.synthetic import draw_rag_rows

Scores: TypeAlias = NDArray[np.float64]
Labels: TypeAlias = NDArray[np.bool_]
Draw: TypeAlias = Callable[[np.random.Generator, int], tuple[Scores, Labels]]
Rule: TypeAlias = Callable[[Scores, Labels, Fraction], float]

DELTA = Fraction(1, 10)
LAMBDAS = np.arange(100) / 100
FRESH = 200_000
SALT = 0x415C
HEADER = ("scores", "target", "n", "method", "acceptance", "10 to 90 %", "of the best", "certified", "broken")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    parser = argparse.ArgumentParser(description="Acceptance that certified selective risk leaves.")
    parser.add_argument("--seeds", type=int, default=200, help="histories of each row (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="at most 20 seeds, 300 rows only")
    options = parser.parse_args(arguments)
    seeds = min(options.seeds, 20) if options.quick else options.seeds
    sizes = (300,) if options.quick else (100, 300, 1000, 3000)
    print(f"delta {float(DELTA):g}, {seeds} histories a row. Acceptance is the mean over all of them, those")
    print("with nothing certified included; broken: share of them whose true risk exceeds the target.\n")
    rows = [row for scenario in SCENARIOS for n in sizes for row in measured(scenario, n, seeds)]
    print(table(HEADER, rows))
    return 0


@dataclass(frozen=True)
class Scenario:
    """A distribution of labelled scores, and the risk that is asked for."""

    name: str
    target: Fraction
    draw: Draw


@dataclass(frozen=True)
class Population:
    """A fresh sample from high to low, and how many of its first rows are insufficient."""

    ordered: Scores
    errors: NDArray[np.int64]

    @classmethod
    def of(cls, draw: Draw) -> Population:
        scores, labels = draw(np.random.default_rng([SALT, 0]), FRESH)
        order = np.argsort(-scores)
        return cls(-scores[order], np.concatenate([[0], np.cumsum(~labels[order])]))

    def above(self, threshold: float) -> tuple[float, float]:
        """Acceptance and risk of the rows above a threshold."""
        count = int(np.searchsorted(self.ordered, -threshold, side="left"))
        return count / FRESH, self.errors[count] / max(count, 1)

    def best(self, target: Fraction) -> float:
        """Largest acceptance of a threshold whose true risk is within the target."""
        good = np.flatnonzero(self.errors <= float(target) * np.arange(FRESH + 1))
        return int(good[-1]) / FRESH


def separated(power: float, decimals: int | None = None, squeeze: tuple[float, float] = (0.0, 1.0)) -> Draw:
    """Half of the rows sufficient, Beta(power, 1), half insufficient, Beta(1, power), on a part of [0, 1]."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Scores, Labels]:
        labels = rng.random(n) < 0.5
        raw = np.where(labels, rng.beta(power, 1.0, n), rng.beta(1.0, power, n))
        scores = squeeze[0] + (squeeze[1] - squeeze[0]) * raw
        return scores if decimals is None else np.round(scores, decimals), labels

    return draw


def traps(rng: np.random.Generator, n: int) -> tuple[Scores, Labels]:
    """The synthetic benchmark, in which lexical traps score as high as true positives."""
    rows = draw_rag_rows(rng, n)
    return np.asarray(rows.scores, dtype=np.float64), rows.labels


TENTH = Fraction(1, 10)
SCENARIOS = (
    Scenario("spread over [0, 1]", TENTH, separated(2.5)),
    Scenario("two decimals", TENTH, separated(2.5, decimals=2)),
    Scenario("within [.60, .65]", TENTH, separated(2.5, squeeze=(0.60, 0.65))),
    Scenario("hardly separated", Fraction(1, 4), separated(1.6)),
    Scenario("synthetic traps", Fraction(3, 10), traps),
)


def measured(scenario: Scenario, n: int, seeds: int) -> list[list[str]]:
    """Lines of the table for one distribution and size."""
    population = Population.of(scenario.draw)
    histories = [scenario.draw(np.random.default_rng([SALT, 1, seed]), n) for seed in range(seeds)]
    best = population.best(scenario.target)
    lines = []
    for name, rule in METHODS.items():
        found = [population.above(rule(*history, scenario.target)) for history in histories]
        lines.append(
            [scenario.name, f"{float(scenario.target):g}", str(n), name, *cells(found, best, scenario)]
        )
    return lines


def cells(found: list[tuple[float, float]], best: float, scenario: Scenario) -> list[str]:
    """Mean and spread of acceptance, its share of the best, and how often certified and broken."""
    acceptance, risk = (np.array(column) for column in zip(*found, strict=True))
    low, high = np.quantile(acceptance, [0.1, 0.9])
    return [
        f"{acceptance.mean():.3f}",
        f"{low:.3f} to {high:.3f}",
        f"{acceptance.mean() / best:.0%}",
        f"{(acceptance > 0).mean():.0%}",
        f"{(risk > float(scenario.target)).mean():.1%}",
    ]


def rank_sequence(scores: Scores, labels: Labels, target: Fraction) -> float:
    return fit_risk_gate(scores, labels, target, DELTA).threshold


def rank_bonferroni(scores: Scores, labels: Labels, target: Fraction) -> float:
    return fit_risk_gate(scores, labels, target, DELTA, method="bonferroni").threshold


def lambda_sequence(scores: Scores, labels: Labels, target: Fraction) -> float:
    """From the strictest lambda with enough rows down to the first failure."""
    certified = np.inf
    for at in LAMBDAS[::-1].tolist():
        accepted, errors = counts(scores, labels, at)
        if not tail_within(0, accepted, target, DELTA):
            continue
        if not tail_within(errors, accepted, target, DELTA):
            break
        certified = at
    return certified


def lambda_bonferroni(scores: Scores, labels: Labels, target: Fraction) -> float:
    """The smallest lambda that passes at delta / 100."""
    level = DELTA / len(LAMBDAS)
    passing = (at for at in LAMBDAS.tolist() if tail_within(*counts(scores, labels, at)[::-1], target, level))
    return next(passing, np.inf)


def counts(scores: Scores, labels: Labels, threshold: float) -> tuple[int, int]:
    """Rows above a threshold, and insufficient ones among them."""
    above = scores > threshold
    return int(np.count_nonzero(above)), int(np.count_nonzero(above & ~labels))


METHODS: dict[str, Rule] = {
    "ranks, sequence": rank_sequence,
    "ranks, bonferroni": rank_bonferroni,
    "100 lambdas, sequence": lambda_sequence,
    "100 lambdas, bonferroni": lambda_bonferroni,
}


if __name__ == "__main__":
    # Nothing certified is one of the outcomes that are counted here.
    for category in (SmallCalibrationWarning, WeakSeparationWarning):
        warnings.simplefilter("ignore", category)
    sys.exit(main())
