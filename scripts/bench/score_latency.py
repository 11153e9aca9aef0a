"""Time score() and score_many() beside the NumPy floor: row norms, Gram matrix and cosines.

    python scripts/bench/score_latency.py
    python scripts/bench/score_latency.py --reference-seed     # and the seed's definitions, in the same run

One thread, float32 rows as embedders give them, medians of rounds that take turns. The machine may be busy
or slow (on Linux `chrt -f 50 python ...` helps), so read the ratios first: where the targets were set, the
floor took REFERENCE_FLOOR, so a target is also a multiple of the floor.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from _bench import is_clean, medians, run_again, table, us
from numpy.typing import NDArray

from rag_confidence import MetricPolicy, score, score_many

DIMENSION = 384
MILLISECOND = 1e-3
REFERENCE_FLOOR = {10: 18.4e-6, 20: 24.4e-6, 300: 639e-6}
"""Seconds of the floor by number of passages, at d = 384 on the machine where the targets were set."""


@dataclass(frozen=True)
class Case:
    """One timed call: how many queries it serves, what it must take for each at most, and the floor then."""

    name: str
    job: Callable[[], object]
    queries: int = 1
    target: float | None = None
    reference: float | None = None


@dataclass(frozen=True)
class Group:
    """Calls on the same arrays, and their floor."""

    cases: list[Case]
    floor: Callable[[], object]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    options = parse(arguments)
    if not is_clean():
        return run_again()
    rng = np.random.default_rng(0)
    groups = [*single_cases(rng, options), *batch_cases(rng, options)]
    rows = [line for group in groups for line in timed(group, options)]
    print(f"d = {options.dimension}, one thread, float32 rows, without loops, NumPy {np.__version__}\n")
    print(table(HEADER, rows))
    return 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Options of the command line."""
    parser = argparse.ArgumentParser(description="Time score() and score_many() beside the NumPy floor.")
    parser.add_argument("--rounds", type=int, default=15, help="rounds (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=0.05, help="length of a turn (default: %(default)s)")
    parser.add_argument("--queries", type=int, default=2000, help="of score_many (default: %(default)s)")
    parser.add_argument("--largest", type=int, default=300, help="longest list (default: %(default)s)")
    parser.add_argument("--dimension", type=int, default=DIMENSION, help="d (default: %(default)s)")
    parser.add_argument("--reference-seed", action="store_true", help="also time MetricPolicy.seed()")
    return parser.parse_args(arguments)


def timed(group: Group, options: argparse.Namespace) -> list[list[str]]:
    """Lines of the table for calls on the same arrays, which take turns with their floor."""
    jobs = {case.name: case.job for case in group.cases} | {"floor": group.floor}
    times = medians(jobs, rounds=options.rounds, seconds=options.seconds)
    return [row(case, times[case.name], times["floor"]) for case in group.cases]


def single_cases(rng: np.random.Generator, options: argparse.Namespace) -> Iterator[Group]:
    """score() at every size with and without the probe, and the seed's definitions on request."""
    targets = {10: (0.5, 0.8), 20: (0.5, 0.8), options.largest: (30.0, None)}
    for n, limits in targets.items():
        queries, passages = retrievals(rng, 1, n, options.dimension)
        query, rows = queries[0], passages[0]
        cases = [
            single(f"score, n = {n}, perturb={perturb}", query, rows, limit, perturb=perturb)
            for perturb, limit in zip((False, True), limits, strict=True)
        ]
        if options.reference_seed and n <= 20:
            policy = MetricPolicy.seed()
            cases += [
                single(f"seed's score, n = {n}, perturb={on}", query, rows, None, perturb=on, policy=policy)
                for on in (False, True)
            ]
        yield Group(cases, partial(floor, query, rows))


def single(
    name: str,
    query: NDArray[np.float32],
    passages: NDArray[np.float32],
    limit: float | None,
    *,
    perturb: bool,
    policy: MetricPolicy | None = None,
) -> Case:
    """A case of score(); `limit` in milliseconds."""
    target = None if limit is None else limit * MILLISECOND
    job = partial(score, query, passages, policy=policy, perturb=perturb)
    return Case(name, job, target=target, reference=REFERENCE_FLOOR.get(len(passages)))


def batch_cases(rng: np.random.Generator, options: argparse.Namespace) -> Iterator[Group]:
    """score_many() at k = 10 and 20, with and without the probe."""
    for k, per_second in ((10, 15_000), (20, 8_000)):
        queries, passages = retrievals(rng, options.queries, k, options.dimension)
        cases = [
            Case(
                f"score_many, k = {k}, perturb={perturb}",
                partial(score_many, queries, passages, perturb=perturb),
                options.queries,
                target,
            )
            for perturb, target in ((False, 1.0 / per_second), (True, None))
        ]
        yield Group(cases, partial(floor_many, queries, passages))


def retrievals(
    rng: np.random.Generator, count: int, n: int, dimension: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Queries (Q, d) and passages (Q, n, d) around a common direction each, ranked by cosine as served."""
    topic = rng.standard_normal((count, 1, dimension))
    queries = topic[:, 0] + rng.standard_normal((count, dimension))
    passages = topic + 1.2 * rng.standard_normal((count, n, dimension))
    cosines = np.einsum("qd,qnd->qn", queries, passages) / np.linalg.norm(passages, axis=2)
    ranked = np.take_along_axis(passages, np.argsort(-cosines, axis=1)[:, :, None], axis=1)
    return queries.astype(np.float32), ranked.astype(np.float32)


def floor(query: NDArray[np.float32], passages: NDArray[np.float32]) -> object:
    """Row norms, Gram matrix and cosines of one retrieval."""
    unit = passages / np.sqrt(np.einsum("nd,nd->n", passages, passages))[:, None]
    return unit @ unit.T, unit @ query


def floor_many(queries: NDArray[np.float32], passages: NDArray[np.float32]) -> object:
    """The same for a block."""
    unit = passages / np.sqrt(np.einsum("qnd,qnd->qn", passages, passages))[:, :, None]
    return np.matmul(unit, unit.swapaxes(1, 2)), np.matmul(unit, queries[:, :, None])


HEADER = ("call", "a query", "queries/s", "floor", "target", "met", "over floor", "allowed", "met")


def row(case: Case, seconds: float, floor_seconds: float) -> list[str]:
    """One line of the table."""
    taken, least = seconds / case.queries, floor_seconds / case.queries
    ratio = taken / least
    shown = [case.name, us(taken), f"{1.0 / taken:,.0f}", us(least)]
    if case.target is None:
        return [*shown, "", "", f"{ratio:.1f}", "", ""]
    target = us(case.target) if case.queries == 1 else f"{1.0 / case.target:,.0f}/s"
    shown += [target, yes(taken <= case.target), f"{ratio:.1f}"]
    if case.reference is None:
        return [*shown, "", ""]
    allowed = case.target / case.reference
    return [*shown, f"{allowed:.1f}", yes(ratio <= allowed)]


def yes(met: bool) -> str:
    """A word for a target."""
    return "yes" if met else "no"


if __name__ == "__main__":
    sys.exit(main())
