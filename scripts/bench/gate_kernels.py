"""Time the conformal gate beside bare NumPy, one score at a time, and beside other libraries.

    python scripts/bench/gate_kernels.py
    python scripts/bench/gate_kernels.py --quick     # shows that all of it runs; the times mean nothing

One thread, medians of rounds that take turns. Every call meets other scores, because a processor learns the
branches of a sort that it repeats. The machine may be busy or slow (on Linux `chrt -f 50 python ...` helps),
so read the ratios first. MAPIE, crepes and conformguard take part where they are installed, and the labels
that they keep are compared with those of the gate.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import cycle
from typing import Any

import numpy as np
from _bench import is_clean, medians, run_again, table, us
from _peers import INSTALL, PEERS, Asked, Mask, Peer, Rows, Scores, difference
from score_latency import retrievals

from rag_confidence import (
    ConformalGate,
    conformal_quantile,
    conformal_rank,
    fit_conformal_gate,
    predict_one,
    score,
)

LEVEL = Fraction(1, 10)
ALLOWED = 3.0
SIZES = (10_000, 100_000, 1_000_000)
DRAWS = 8
PASSAGES, DIMENSION = 10, 384
PARTS = ("calibrate", "decide", "one score")
NEAR = ((LEVEL, 1000), (LEVEL, 999), (Fraction("0.18"), 499))
"""Level and rows of a label: nothing special, (n + 1) alpha whole, and a rank that floats get wrong."""

Job = Callable[[Rows], object]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    options = parse(arguments)
    if not is_clean():
        return run_again()
    installed = [peer for peer in PEERS if peer.version]
    print(f"One thread, NumPy {np.__version__}, alpha = {float(LEVEL):g}\n\nArrays of n doubles\n")
    header = ("call", "n", "takes", "bare NumPy", "takes", "ratio", f"at most {ALLOWED:g}")
    print(table(header, [row for n in options.sizes for row in beside_numpy(n, options)]))
    print("\nOne score at a time\n")
    print(table(("call", "takes", "without", "takes", "adds"), [*one_at_a_time(options)]))
    print(f"\nCalibrate on n rows for both labels, then decide {options.new} new scores\n")
    header = ("library", "n", *PARTS[:2], "both", "both / here", PARTS[2], "labels kept")
    print(table(header, [row for n in options.sizes for row in beside_peers(n, installed, options)]))
    if installed:
        print("\nLabels kept for each of the calibration scores\n")
        header = ("alpha", "rows of a label", "rank", *(peer.name for peer in installed))
        print(table(header, [kept_near(level, count, installed) for level, count in NEAR]))
    missing = ", ".join(peer.name for peer in PEERS if peer not in installed)
    if missing:
        print(f"\nNot installed: {missing}. To compare them: {INSTALL}")
    return 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Options of the command line."""
    parser = argparse.ArgumentParser(description="Time the conformal gate beside NumPy and other libraries.")
    parser.add_argument("--rounds", type=int, default=15, help="rounds (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=0.02, help="length of a turn (default: %(default)s)")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="n (default: %(default)s)")
    parser.add_argument("--new", type=int, default=1000, help="new scores (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="one short round on few scores")
    options = parser.parse_args(arguments)
    if options.quick:
        options.rounds, options.seconds, options.sizes, options.new = 1, 1e-4, (500,), 20
    return options


def draw(n: int, seed: int) -> Rows:
    """n made-up rows, half of them sufficient."""
    rng = np.random.default_rng([n, seed])
    labels = rng.random(n) < 0.5
    return Rows(made_up(labels, rng), labels)


def made_up(labels: Mask, rng: np.random.Generator) -> Scores:
    """Fractions that tend to be higher where the label is 1."""
    return np.where(labels, rng.beta(4, 2, len(labels)), rng.beta(2, 4, len(labels)))


def timed(jobs: dict[Any, Callable[[], object]], options: argparse.Namespace) -> dict[Any, float]:
    """Medians of rounds in which these jobs take turns."""
    return medians(jobs, rounds=options.rounds, seconds=options.seconds)


def beside_numpy(n: int, options: argparse.Namespace) -> Iterator[list[str]]:
    """A line for each call on n scores and each bare computation that it is read against."""
    draws = [draw(n, seed) for seed in range(DRAWS)]
    gate = fitted(draws[0])
    bare, calls = bare_numpy(gate, n), array_calls(gate, draws[0])
    jobs = bare | {name: job for name, (job, _) in calls.items()}
    times = timed({name: turning(job, draws) for name, job in jobs.items()}, options)
    for call, (_, floors) in calls.items():
        for floor in floors:
            ratio = times[call] / times[floor]
            met = "yes" if ratio <= ALLOWED else "no"
            yield [call, f"{n:,}", us(times[call]), floor, us(times[floor]), f"{ratio:.2f}", met]


def turning(job: Job, draws: Sequence[Rows]) -> Callable[[], object]:
    """`job` on other rows each time."""
    turns = cycle(draws)
    return lambda: job(next(turns))


def bare_numpy(gate: ConformalGate, n: int) -> dict[str, Job]:
    """What nothing can do without: a threshold from unsorted scores, one label, both, a decision, ranks."""
    (q0, t1), place = gate.thresholds(), int(conformal_rank(n, LEVEL)) - 1
    return {
        "partition": lambda rows: np.partition(rows.scores, place),
        "a comparison": lambda rows: rows.scores <= q0,
        "two comparisons": lambda rows: (rows.scores <= q0, rows.scores >= t1),
        "a mask of both": lambda rows: ~(rows.scores <= q0) & (rows.scores >= t1),
        "argsort": lambda rows: np.argsort(rows.scores),
    }


def array_calls(gate: ConformalGate, rows: Rows) -> dict[str, tuple[Job, tuple[str, ...]]]:
    """Calls on arrays, and the names of the bare computations."""
    raw = fit_conformal_gate(rows.scores, rows.labels, LEVEL, score_kind="raw")
    both = ("a comparison", "two comparisons")
    return {
        "conformal_quantile": (lambda rows: conformal_quantile(rows.scores, LEVEL), ("partition",)),
        "gate.predict": (lambda rows: gate.predict(rows.scores), both),
        "gate.predict, raw": (lambda rows: raw.predict(rows.scores), both),
        "gate.predict, .accepted": (lambda rows: gate.predict(rows.scores).accepted, ("a mask of both",)),
        "fit_conformal_gate": (fitted, ("argsort",)),
    }


def one_at_a_time(options: argparse.Namespace) -> Iterator[list[str]]:
    """What a decision adds to a search in the calibration scores, and to `score`."""
    gate = fitted(draw(SIZES[0], 0))
    new, cell = cycle(draw(1000, 1).scores.tolist()), gate.table.whole
    queries, passages = retrievals(np.random.default_rng(0), 1, PASSAGES, DIMENSION)
    served = partial(score, queries[0], passages[0])

    def search() -> object:
        value = next(new)
        return cell.scores0.searchsorted(value), cell.scores1.searchsorted(value, side="right")

    pairs = {
        "gate.predict_one": (lambda: gate.predict_one(next(new)), "two searches", search),
        "predict_one": (lambda: predict_one(next(new), gate), "two searches", search),
        "score, gate": (partial(served, gate=gate), "score", served),
    }
    jobs = {call: job for call, (job, _, _) in pairs.items()}
    times = timed(jobs | {name: job for _, name, job in pairs.values()}, options)
    for call, (_, without, _) in pairs.items():
        yield [call, us(times[call]), without, us(times[without]), us(times[call] - times[without])]


def fitted(rows: Rows, level: Fraction = LEVEL) -> ConformalGate:
    """The gate on these rows."""
    return fit_conformal_gate(rows.scores, rows.labels, level)


def kept(gate: ConformalGate, new: Scores) -> Mask:
    """Which labels the gate keeps, (m, 2)."""
    decided = gate.predict(new)
    return np.column_stack([decided.label0_kept, decided.label1_kept])


def beside_peers(n: int, peers: Sequence[Peer], options: argparse.Namespace) -> Iterator[list[str]]:
    """A line for the gate, and one for each other library."""
    asked = Asked(draw(n, 0), LEVEL, draw(options.new, 1).scores)
    gate = fitted(asked.rows)
    ours, first = kept(gate, asked.new), float(asked.new[0])
    parts = {
        "here": (
            partial(fitted, asked.rows),
            partial(kept, gate, asked.new),
            partial(gate.predict_one, first),
        )
    }
    found = {"here": "" if peers else "nothing to compare with"}
    for peer in (peer for peer in peers if n <= peer.most):
        history = peer.history(asked.rows)
        name, calibrate = f"{peer.name} {peer.version}", partial(peer.calibrate, history, LEVEL)
        sets = partial(peer.sets, calibrate())
        parts[name] = (calibrate, partial(sets, asked.new), partial(sets, asked.new[:1]))
        found[name] = difference(peer, sets(asked.new), ours, asked)
    jobs = {
        (name, part): job for name, three in parts.items() for part, job in zip(PARTS, three, strict=True)
    }
    times = timed(jobs, options)
    here = times["here", "calibrate"] + times["here", "decide"]
    for name in parts:
        calibrating, deciding, one = (times[name, part] for part in PARTS)
        shown = map(us, (calibrating, deciding, calibrating + deciding))
        yield [name, f"{n:,}", *shown, f"{(calibrating + deciding) / here:.1f}", us(one), found[name]]


def kept_near(level: Fraction, count: int, peers: Sequence[Peer]) -> list[str]:
    """Differences between the labels kept, where every calibration score is asked about."""
    labels = np.repeat([False, True], count)
    rows = Rows(made_up(labels, np.random.default_rng([count, 2])), labels)
    ours, asked = kept(fitted(rows, level), rows.scores), Asked(rows, level, rows.scores)
    found = []
    for peer in peers:
        learned = peer.calibrate(peer.history(rows), level)
        found.append(difference(peer, peer.sets(learned, rows.scores), ours, asked))
    return [f"{float(level):g}", str(count), str(conformal_rank(count, level)), *found]


if __name__ == "__main__":
    sys.exit(main())
