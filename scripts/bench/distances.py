"""Time the exact distances between barcodes against persim.

    python scripts/bench/distances.py

Barcodes whose bars share one death (a star, Vietoris-Rips H0) have a closed form; general ones need a
matching. persim gets the same bars turned upside down, since it misreads superlevel ones.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib.util import find_spec

import numpy as np
from _bench import is_clean, medians, run_again, table, us
from numpy.typing import NDArray

from rag_confidence import bottleneck_distance, wasserstein_distance

SIZES = (10, 50, 100, 300)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    parser = argparse.ArgumentParser(description="Time distances between barcodes against persim.")
    parser.add_argument("--rounds", type=int, default=5, help="rounds (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=0.02, help="length of a turn (default: %(default)s)")
    parser.add_argument(
        "--bars", type=int, nargs="+", default=SIZES, help="numbers of bars (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    if not is_clean():
        return run_again()
    if find_spec("persim") is None:
        print("persim is not installed (extra topology): timed alone")
    rows = [row for bars in options.bars for row in compared(bars, options)]
    print(
        table(("distance", "bars", "deaths", "here", "persim", "persim / here", "largest difference"), rows)
    )
    return 0


def compared(count: int, options: argparse.Namespace) -> list[list[str]]:
    """Both distances on shared and on free deaths."""
    rng = np.random.default_rng(count)
    rows = []
    for deaths, make in (("shared", shared_deaths), ("free", free_deaths)):
        a, b = make(rng, count), make(rng, count)
        for name, here in (("bottleneck", bottleneck_distance), ("wasserstein", wasserstein_distance)):
            rows.append([name, str(count), deaths, *timed(name, here, a, b, options)])
    return rows


def timed(
    name: str,
    here: Callable[..., float],
    a: NDArray[np.float64],
    b: NDArray[np.float64],
    options: argparse.Namespace,
) -> list[str]:
    """Times, their ratio and the difference of the two answers."""
    jobs: dict[str, Callable[[], object]] = {"here": lambda: here(a, b)}
    if find_spec("persim") is None:
        return [us(medians(jobs, rounds=options.rounds, seconds=options.seconds)["here"]), "", "", ""]
    theirs = persim_distance(name, a, b)
    jobs["persim"] = theirs
    times = medians(jobs, rounds=options.rounds, seconds=options.seconds)
    difference = abs(here(a, b) - theirs())
    return [
        us(times["here"]),
        us(times["persim"]),
        f"{times['persim'] / times['here']:.0f}",
        f"{difference:.1g}",
    ]


def persim_distance(name: str, a: NDArray[np.float64], b: NDArray[np.float64]) -> Callable[[], float]:
    """persim's answer on the same bars. Its Wasserstein ground metric is L2, so its value differs."""
    import persim

    function = {"bottleneck": persim.bottleneck, "wasserstein": persim.wasserstein}[name]
    up, down = 1.0 - a, 1.0 - b

    def call() -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return float(function(up, down))

    return call


def shared_deaths(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
    """Superlevel bars (m, 2) that all die at one level."""
    return np.column_stack([rng.uniform(0.5, 1.0, count), np.full(count, 0.4)])


def free_deaths(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
    """Superlevel bars (m, 2) with deaths of their own."""
    births = rng.uniform(0.5, 1.0, count)
    return np.column_stack([births, births - rng.uniform(0.01, 0.4, count)])


if __name__ == "__main__":
    sys.exit(main())
