"""Fixed thresholds beside the conformal gates, over many seeds: made-up retrievals, then the real sets.

    python scripts/bench/gate_benchmark.py              # a few minutes
    python scripts/bench/gate_benchmark.py --quick      # few seeds, one embedder, part of the queries

Prints Markdown tables and one PASS or FAIL a line; progress goes to standard error. The exit code is 0 when
it ran, whatever it found. Without the real sets their part is left out, and it says so.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import _above  # noqa: F401  (the modules below live in scripts/)
from _data import EMBEDDERS, data_folder
from _gate_tables import PoolRuns, run_pool, stratum_section, synthetic
from _strata import LEAST, STRATA, Pool, pools
from _tables import Section

SEEDS, QUICK_SEEDS = 200, 10
QUICK_QUERIES = 400


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    options = parse(arguments)
    try:
        folder = data_folder(options.data)
    except FileNotFoundError as problem:
        if options.data:
            print(f"gate_benchmark.py: {problem}", file=sys.stderr)
            return 2
        folder, missing = None, str(problem)
    seeds = options.seeds or (QUICK_SEEDS if options.quick else SEEDS)
    sections = []
    for section in report(folder, seeds, options.quick) if folder else _without_data(seeds, missing):
        print(section.text(), end="\n\n", flush=True)
        sections.append(section)
    if options.json:
        options.json.write_text(json.dumps([s.record() for s in sections], indent=1), encoding="utf-8")
    return 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Options of the command line."""
    parser = argparse.ArgumentParser(description="Compare fixed thresholds and conformal gates.")
    parser.add_argument(
        "--seeds", type=_count, help=f"draws and random halves (default: {SEEDS}; --quick: {QUICK_SEEDS})"
    )
    parser.add_argument(
        "--quick", action="store_true", help=f"one embedder, at most {QUICK_QUERIES} queries a set"
    )
    parser.add_argument(
        "--data", type=Path, help="folder of the sets (default: RAG_CONFIDENCE_DATA, ../shared/data)"
    )
    parser.add_argument("--json", type=Path, help="also write every table and check to this file")
    return parser.parse_args(arguments)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1; got {text}")
    return int(text)


def report(folder: Path, seeds: int, quick: bool) -> Iterator[Section]:
    """The sections, each as soon as it is known."""
    yield _made_up(seeds)
    _progress("scoring the real sets")
    limit, embedders = (QUICK_QUERIES, EMBEDDERS[:1]) if quick else (None, EMBEDDERS)
    drawn = list(pools(folder, limit, 0, embedders))
    for stratum in STRATA:
        yield _stratum(stratum, [pool for pool in drawn if pool.stratum == stratum], seeds)


def _stratum(stratum: str, drawn: Sequence[Pool], seeds: int) -> Section:
    kept = [pool for pool in drawn if pool.smaller_class >= LEAST]
    found: list[PoolRuns] = []
    for pool in sorted(kept, key=lambda one: one.label):
        _progress(f"{stratum}: {pool.label}, {len(pool.kpi)} rows, {seeds} random halves")
        found.append(run_pool(pool, seeds))
    few = [pool for pool in drawn if 0 < pool.smaller_class < LEAST]
    return stratum_section(stratum, found, few, seeds)


def _made_up(seeds: int) -> Section:
    _progress(f"made-up retrievals, {seeds} seeds")
    return synthetic(seeds)


def _without_data(seeds: int, missing: str) -> Iterator[Section]:
    yield _made_up(seeds)
    yield Section("Real retrievals", skipped=missing)


def _progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
