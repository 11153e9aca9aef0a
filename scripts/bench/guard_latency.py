"""Time the tool-call guard: a guarded call beside the bare one, and beside conformguard.

    python scripts/bench/guard_latency.py
    python scripts/bench/guard_latency.py --quick     # shows that all of it runs; the times mean nothing

One thread, medians of rounds that take turns. The scorers read scores that are there already, so that nothing
but the guard is timed: it binds and copies the arguments, asks the scorers, decides, runs the tool, and puts
decision and guarantee beside its output. conformguard takes part where it is installed, on the same calls,
and what it accepts is compared. Both libraries have to call the scorers, in `calibrate` once for every call:
what that takes by itself is shown, and the last column is the ratio without it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import cycle
from typing import Any

import numpy as np
from _bench import is_clean, medians, run_again, table, us

from rag_confidence.guard import ToolCallContext, calibrate, wrap

ALPHA = 0.1
ALLOWED = 20e-6
WANTED = 10.0
COUNTS = (1, 3)
NEW = 64
PEER = "conformguard"
INSTALL = 'pip install "conformguard==0.2.*"'
NAMES = ("first", "second", "third")

Job = Callable[[], object]


@dataclass(frozen=True)
class Library:
    """What is timed of a library, for one number of checks.

    Attributes
    ----------
    jobs : dict
        What is timed: calibrate, decide, and call where it has guarded calls with so many checks.
    accepts : callable
        Which of these calls it accepts.
    """

    jobs: dict[str, Job]
    accepts: Callable[[Sequence[dict[str, float]]], list[bool]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    options = parse(arguments)
    if not is_clean():
        return run_again()
    peer = installed()
    print(f"One thread, n = {options.n} calibration calls, alpha = {ALPHA:g}, precomputed scores\n")
    here = {count: ours(count, options.n) for count in COUNTS}
    there = {count: theirs(count, options.n) for count in COUNTS} if peer else {}
    times = timed(here, there, options)
    print(table(("guarded call", "takes", "adds", f"under {1e6 * ALLOWED:g} us"), added(times)))
    print()
    header = (
        "work",
        "checks",
        "scorers alone",
        "here",
        PEER,
        "ratio",
        f"at least {WANTED:g}",
        "without scorers",
    )
    print(table(header, [row for count in COUNTS for row in beside(count, times)]))
    if not peer:
        print(f"\n{PEER} is not installed. To compare it: {INSTALL}")
        return 0
    print(f"\n{PEER} {peer}. Of {NEW} new calls other ones are accepted: {differing(here, there)}")
    return 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Options of the command line."""
    parser = argparse.ArgumentParser(
        description="Time the guard of tool calls beside bare calls and conformguard."
    )
    parser.add_argument("--rounds", type=int, default=25, help="rounds (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=0.02, help="length of a turn (default: %(default)s)")
    parser.add_argument("--n", type=int, default=1000, help="calibration calls (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="one short round on few calls")
    options = parser.parse_args(arguments)
    if options.quick:
        options.rounds, options.seconds, options.n = 1, 1e-4, 120
    return options


def installed() -> str | None:
    """Version of conformguard, if there is one."""
    try:
        return version(PEER)
    except PackageNotFoundError:
        return None


def arguments_of(count: int, seed: int) -> list[dict[str, float]]:
    """Arguments of calls with one made-up score for each of three checks."""
    rows = np.random.default_rng([count, seed]).beta(2, 5, size=(count, len(NAMES)))
    return [dict(zip(NAMES, row, strict=True)) for row in rows.tolist()]


def tool(first: float, second: float, third: float) -> float:
    """A tool that costs nothing."""
    return first


def scorers_of(count: int) -> list[Callable[[Any], float]]:
    """Scorers that read what is there: each has a name, and works with contexts of both libraries."""

    def first(context: Any) -> float:
        return context.args["first"]  # type: ignore[no-any-return]

    def second(context: Any) -> float:
        return context.args["second"]  # type: ignore[no-any-return]

    def third(context: Any) -> float:
        return context.args["third"]  # type: ignore[no-any-return]

    return [first, second, third][:count]


def ours(count: int, n: int) -> Library:
    """The guard of this package."""
    history = [(ToolCallContext("tool", args), True) for args in arguments_of(n, 0)]
    work = partial(calibrate, scorers_of(count), history, ALPHA, labeling_source="deterministic")
    calibrator = work()
    guarded, new = wrap(tool, calibrator), cycle(arguments_of(NEW, 1))
    contexts = cycle([ToolCallContext("tool", args) for args in arguments_of(NEW, 1)])
    jobs: dict[str, Job] = {
        "calibrate": work,
        "decide": lambda: calibrator.decide(next(contexts)),
        "call": lambda: guarded(**next(new)),
    }
    return Library(
        jobs,
        accepts=lambda calls: [calibrator.decide(ToolCallContext("tool", args)).accepted for args in calls],
    )


def theirs(count: int, n: int) -> Library:
    """conformguard, which wraps tools with one check."""
    import conformguard as peer

    def context(args: dict[str, float]) -> Any:
        return peer.ToolCallContext(tool_name="tool", args=args)

    history = [(context(args), True) for args in arguments_of(n, 0)]
    one = count == 1
    scorers: Any = scorers_of(count)[0] if one else scorers_of(count)
    work = partial(peer.calibrate if one else peer.calibrate_multi_check, scorers, history, ALPHA)
    calibrator = work()
    decide = partial(peer.decide if one else peer.decide_multi_check, calibrator)
    new, contexts = cycle(arguments_of(NEW, 1)), cycle([context(args) for args in arguments_of(NEW, 1)])
    jobs: dict[str, Job] = {"calibrate": work, "decide": lambda: decide(next(contexts))}
    if one:
        guarded = peer.wrap(tool, calibrator=calibrator)
        jobs["call"] = lambda: guarded(**next(new))
    return Library(
        jobs,
        accepts=lambda calls: [decide(context(args)).decision.value == "accept" for args in calls],
    )


def bare_scorers(count: int, n: int) -> dict[str, Job]:
    """What both libraries have to do: ask the scorers about every calibration call, and about one call."""
    scorers = scorers_of(count)
    history, new = ([ToolCallContext("tool", args) for args in arguments_of(size, 0)] for size in (n, NEW))
    contexts = cycle(new)

    def one() -> object:
        context = next(contexts)
        return [scorer(context) for scorer in scorers]

    every = [lambda scorer=scorer: [scorer(context) for context in history] for scorer in scorers]
    return {"calibrate": lambda: [ask() for ask in every], "decide": one}


def timed(
    here: Mapping[int, Library], there: Mapping[int, Library], options: argparse.Namespace
) -> dict[tuple[str, int, str], float]:
    """Seconds by library, number of checks and work; the bare call has no check."""
    new = cycle(arguments_of(NEW, 1))
    jobs: dict[Any, Job] = {("bare", 0, "call"): lambda: tool(**next(new))}
    for count in here:
        jobs |= {("scorers", count, work): job for work, job in bare_scorers(count, options.n).items()}
    for name, libraries in (("here", here), (PEER, there)):
        for count, library in libraries.items():
            jobs |= {(name, count, work): job for work, job in library.jobs.items()}
    return medians(jobs, rounds=options.rounds, seconds=options.seconds)


def added(times: Mapping[tuple[str, int, str], float]) -> list[list[str]]:
    """A line for the bare call and for each guarded one."""
    bare = times["bare", 0, "call"]
    lines = [["bare", us(bare), "", ""]]
    for name in ("here", PEER):
        for count in COUNTS:
            taken = times.get((name, count, "call"))
            if taken is not None:
                checks = f"{count} check{'s' if count > 1 else ''}"
                within = "yes" if taken - bare < ALLOWED else "no"
                lines.append([f"{name}, {checks}", us(taken), us(taken - bare), within])
    return lines


def beside(count: int, times: Mapping[tuple[str, int, str], float]) -> list[list[str]]:
    """Lines for calibrate and decide with so many checks, beside conformguard."""
    lines = []
    for work in ("calibrate", "decide"):
        mine, other = times["here", count, work], times.get((PEER, count, work))
        floor = times["scorers", count, work]
        line = [work, str(count), us(floor), us(mine)]
        if other is None:
            lines.append([*line, "", "", "", ""])
            continue
        reached = "yes" if other / mine >= WANTED else "no"
        lines.append(
            [*line, us(other), f"{other / mine:.1f}", reached, f"{(other - floor) / (mine - floor):.1f}"]
        )
    return lines


def differing(here: Mapping[int, Library], there: Mapping[int, Library]) -> str:
    """How many new calls one library accepts and the other does not, for each number of checks."""
    calls = arguments_of(NEW, 1)
    found = []
    for count in COUNTS:
        pairs = zip(here[count].accepts(calls), there[count].accepts(calls), strict=True)
        found.append(f"{sum(one != other for one, other in pairs)} with {count}")
    return ", ".join(found)


if __name__ == "__main__":
    sys.exit(main())
