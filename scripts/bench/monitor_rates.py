"""How often the monitors ring where nothing is wrong, and how soon where something is.

    python scripts/bench/monitor_rates.py

A fixed calibration set stands beside the sequential design: the same bets on ranks among scores that never
change. All scores are simulated from fixed seeds, so every run prints the same tables; only
the last line, on time, differs.
"""

from __future__ import annotations

import argparse
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from statistics import median
from time import perf_counter

import numpy as np
from _bench import table, us

from rag_confidence.conformal.monitor.betting import grow, open_capital
from rag_confidence.conformal.monitor.drift import DriftMonitor
from rag_confidence.conformal.monitor.rank_bets import BETS, bet_factors
from rag_confidence.conformal.monitor.risk_monitor import RiskMonitor

Scores = np.ndarray
CLAIM = Fraction(1, 100)
MOST_DELAYS = 100
DISTRIBUTIONS: dict[str, Callable[[np.random.Generator, int], Scores]] = {
    "continuous": lambda rng, count: rng.random(count),
    "three values": lambda rng, count: rng.choice([0.2, 0.5, 0.9], count, p=[0.7, 0.2, 0.1]),
}
CHANGES: dict[str, Callable[[np.random.Generator, Scores], Scores]] = {
    "lower by two deviations": lambda rng, z: z - 2.0,
    "lower by one deviation": lambda rng, z: z - 1.0,
    "lower by half a deviation": lambda rng, z: z - 0.5,
    "lower by a quarter": lambda rng, z: z - 0.25,
    "spread x 1.5": lambda rng, z: 1.5 * z,
    "spread x 0.6": lambda rng, z: 0.6 * z,
    "one in five lower by three": lambda rng, z: z - 3.0 * (rng.random(len(z)) < 0.2),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    parser = argparse.ArgumentParser(description="Rates of false alarms and delays of the monitors.")
    parser.add_argument("--runs", type=int, default=500, help="runs of each row (default: %(default)s)")
    parser.add_argument("--length", type=int, default=1000, help="scores of each run (default: %(default)s)")
    options = parser.parse_args(arguments)
    print(
        f"Runs of independent scores without drift that ring at {float(CLAIM):.0%}, of {options.runs} runs\n"
    )
    header = ("scores", "reference", "ranks", *(f"after {length}" for length in _lengths(options.length)))
    print(table(header, false_alarms(options.runs, options.length)))
    delayed = min(options.runs, MOST_DELAYS)
    print(f"\nScores from a change to the alarm at {float(CLAIM):.0%}: median of {delayed} runs, each")
    print(f"watched for {options.length} scores after the change\n")
    header = ("change", "reference 200", "reference 1000", "none, change after 2000")
    print(table(header, drift_delays(delayed, options.length)))
    print(f"\nOutcomes from a change to the alarm at 5%, target .10: median of {delayed} streams, each")
    print(f"watched for {2 * options.length} outcomes after the change\n")
    header = ("risk", "from the start", "after 2000 at risk .05")
    print(table(header, risk_delays(delayed, options.length)))
    times = " and ".join(f"{us(seconds_a_score(held))} with {held} held" for held in (1000, 100_000))
    print(f"\nA score takes {times}.")
    return 0


def _lengths(length: int) -> list[int]:
    return [length // 10, length // 4, length]


def false_alarms(runs: int, length: int) -> list[list[str]]:
    """A row for each design, distribution and size of the reference."""
    rows = []
    for name, draw in DISTRIBUTIONS.items():
        for held in (0, 100, 300):
            designs = {"sequential": sequential_alarm} | ({"fixed": fixed_alarm} if held else {})
            for design, alarm_of in designs.items():
                rung = [
                    alarm_of(draw(np.random.default_rng([held, run]), held + length), held, run)
                    for run in range(runs)
                ]
                shares = [sum(at is not None and at <= n for at in rung) / runs for n in _lengths(length)]
                rows.append([name, str(held), design, *(f"{100 * share:.1f} %" for share in shares)])
    return rows


def sequential_alarm(scores: Scores, held: int, seed: int) -> int | None:
    """The score at which the monitor rings."""
    monitor = DriftMonitor(scores[:held], false_alarm_rate=CLAIM, seed=seed)
    return monitor.update_many(scores[held:]).alarm_at


def fixed_alarm(scores: Scores, held: int, seed: int) -> int | None:
    """The score at which the same bets ring on ranks among the first scores alone."""
    fixed, capital = sorted(scores[:held].tolist()), open_capital(len(BETS), CLAIM)
    ties = np.random.default_rng([1, seed]).random(len(scores) - held)
    for score, tie in zip(scores[held:].tolist(), ties.tolist(), strict=True):
        left, right = bisect_left(fixed, score), bisect_right(fixed, score)
        p_value = (held - right + (1.0 - tie) * (right - left + 1)) / (held + 1)
        capital = grow(capital, bet_factors(p_value))
    return capital.alarm_at


def drift_delays(runs: int, length: int) -> list[list[str]]:
    """A row for each change: with 200 and 1,000 earlier scores, and with no reference but a quiet start."""
    return [
        [name, *(_shown(_drift_delays(name, held, quiet, runs, length)) for held, quiet in STARTS)]
        for name in CHANGES
    ]


STARTS = ((200, 0), (1000, 0), (0, 2000))


def _drift_delays(name: str, held: int, quiet: int, runs: int, length: int) -> list[float]:
    found = []
    for run in range(runs):
        rng = np.random.default_rng([2, held, run])
        scores = rng.standard_normal(held + quiet + length)
        scores[held + quiet :] = CHANGES[name](rng, scores[held + quiet :])
        at = sequential_alarm(scores, held, run)
        found.append(np.inf if at is None else at - quiet)
    return found


def risk_delays(runs: int, length: int) -> list[list[str]]:
    """A row for each risk above the target."""
    rows = []
    for risk in (0.12, 0.15, 0.2, 0.3, 0.5):
        delays = [
            _shown([_risk_delay(risk, quiet, run, length) for run in range(runs)]) for quiet in (0, 2000)
        ]
        rows.append([f"{risk:g}", *delays])
    return rows


def _risk_delay(risk: float, quiet: int, run: int, length: int) -> float:
    risks = np.where(np.arange(quiet + 2 * length) < quiet, 0.05, risk)
    bad = np.random.default_rng([3, quiet, run]).random(len(risks)) < risks
    at = RiskMonitor("0.1").update_many(bad).alarm_at
    return np.inf if at is None else at - quiet


def seconds_a_score(held: int) -> float:
    """Median over batches of 1,000 scores of the time that one takes."""
    rng, times = np.random.default_rng(4), []
    monitor = DriftMonitor(rng.random(held))
    for _ in range(5):
        batch, started = rng.random(1000), perf_counter()
        monitor.update_many(batch)
        times.append((perf_counter() - started) / len(batch))
    return median(times)


def _shown(delays: Sequence[float]) -> str:
    """The median; the share of runs that ring at all where that is not all of them."""
    seen = np.isfinite(delays).mean()
    middle = median(delays)
    share = "" if seen == 1.0 else f" ({100 * seen:.0f} % ring)"
    return f"{middle:.0f}{share}" if np.isfinite(middle) else f"none{share}"


if __name__ == "__main__":
    sys.exit(main())
