"""Time the background of queries beside the bare product with the sample that it cannot do without.

    python scripts/bench/profile_latency.py
    python scripts/bench/profile_latency.py --planted 3      # passages that are in the sample

One thread, float32 rows as embedders give them, medians of rounds that take turns. The machine may be busy
or slow, so read the ratios first.
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

from rag_confidence import score, score_many
from rag_confidence.engine.profile import CorpusProfile, background_of

HEADER = ("call", "queries", "time a query", "the floor", "ratio")


@dataclass(frozen=True)
class Retrievals:
    """Queries (Q, d), passages (Q, k, d) and their cosines (Q, k)."""

    queries: NDArray[np.float32]
    passages: NDArray[np.float32]
    cosines: NDArray[np.float64]

    def first(self, count: int) -> Retrievals:
        """The first `count` of them."""
        return Retrievals(self.queries[:count], self.passages[:count], self.cosines[:count])

    def __len__(self) -> int:
        return len(self.queries)


@dataclass(frozen=True)
class Pair:
    """A call and what it is held against, on the same arrays."""

    name: str
    queries: int
    job: Callable[[], object]
    floor: Callable[[], object]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    options = parse(arguments)
    if not is_clean():
        return run_again()
    rng = np.random.default_rng(0)
    corpus = in_one_cone(rng, (options.sample, options.dimension))
    profile = CorpusProfile.fit(corpus)
    many = retrievals(rng, corpus, options)
    pairs = [*background_pairs(profile, many), *score_pairs(profile, many)]
    rows = [row(pair, options) for pair in pairs]
    print(
        f"m = {options.sample}, k = {options.k}, d = {options.dimension}, {options.planted} passages a query "
        f"from the sample, one thread, NumPy {np.__version__}\n"
    )
    print(table(HEADER, rows))
    return 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Options of the command line."""
    parser = argparse.ArgumentParser(description="Time a profile beside the bare matrix product.")
    parser.add_argument("--rounds", type=int, default=15, help="rounds (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=0.05, help="length of a turn (default: %(default)s)")
    parser.add_argument("--queries", type=int, default=1000, help="of a batch (default: %(default)s)")
    parser.add_argument("--k", type=int, default=10, help="passages a query (default: %(default)s)")
    parser.add_argument("--sample", type=int, default=500, help="m (default: %(default)s)")
    parser.add_argument("--dimension", type=int, default=384, help="d (default: %(default)s)")
    parser.add_argument("--planted", type=int, default=2, help="sampled passages a query")
    return parser.parse_args(arguments)


def row(pair: Pair, options: argparse.Namespace) -> list[str]:
    """The line of the table of one pair, whose two sides take turns."""
    times = medians({"job": pair.job, "floor": pair.floor}, rounds=options.rounds, seconds=options.seconds)
    job, floor = times["job"] / pair.queries, times["floor"] / pair.queries
    return [pair.name, str(pair.queries), us(job), us(floor), f"{job / floor:.2f}"]


def background_pairs(profile: CorpusProfile, many: Retrievals) -> Iterator[Pair]:
    """`background_of` and `check` of one query and of all, against the float32 product with the sample."""
    for some in (many.first(1), many):
        floor = partial(np.matmul, some.queries, profile.vectors.T)
        job = partial(background_of, profile, some.queries, some.passages, some.cosines)
        yield Pair("background_of", len(some), job, floor)
        yield Pair("check", len(some), partial(profile.check, some.queries, some.passages), floor)


def score_pairs(profile: CorpusProfile, many: Retrievals) -> Iterator[Pair]:
    """The public functions with a profile, against the same without."""
    one = many.first(1)
    single = partial(score, one.queries[0], one.passages[0])
    yield Pair("score(profile=)", 1, partial(single, profile=profile), single)
    batch = partial(score_many, many.queries, many.passages)
    yield Pair("score_many(profile=)", len(many), partial(batch, profile=profile), batch)


def retrievals(
    rng: np.random.Generator, corpus: NDArray[np.float32], options: argparse.Namespace
) -> Retrievals:
    """Queries near a sampled vector each, and passages near it, the first few of them that vector itself."""
    topics = corpus[rng.integers(len(corpus), size=(options.queries, 1))]
    scale = 0.7 / np.sqrt(options.dimension)
    noise = rng.standard_normal((options.queries, options.k + 1, options.dimension)) * scale
    vectors = topics + noise.astype(np.float32)
    queries, passages = vectors[:, 0], vectors[:, 1:]
    passages[:, : options.planted] = topics
    lengths = np.linalg.norm(passages, axis=2) * np.linalg.norm(queries, axis=1)[:, None]
    cosines = np.einsum("qd,qkd->qk", queries, passages, dtype=np.float64) / lengths
    return Retrievals(np.ascontiguousarray(queries), np.ascontiguousarray(passages), cosines)


def in_one_cone(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Unit vectors whose energy falls along the axes, as that of real embeddings does."""
    rows = rng.standard_normal(shape) / np.sqrt(np.arange(1, shape[-1] + 1))
    return np.asarray(rows / np.linalg.norm(rows, axis=-1, keepdims=True), dtype=np.float32)


if __name__ == "__main__":
    sys.exit(main())
