"""Profile, KPI and gates on labelled sets, and the page that says what they keep and what they are worth.

    python scripts/end_to_end.py --data FOLDER           # a few minutes
    python scripts/end_to_end.py --data FOLDER --quick   # fewer queries and halves
    python scripts/end_to_end.py --data FOLDER --write   # also docs/evaluation/end_to_end.md

Prints Markdown; progress goes to standard error. FOLDER holds sets with emb_<embedder>.npz, as for
evaluate.py; topic gaps need sets on several subjects.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import _one_thread  # noqa: F401  (first: BLAS reads its number of threads when numpy is loaded)
from _data import PROJECT, data_folder
from deployed.page import Run, page
from deployed.results import Result, results_of
from deployed.worlds import World, worlds
from evaluation.collection import SetProblem

PAGE = PROJECT / "docs" / "evaluation" / "end_to_end.md"
HALVES, QUICK_HALVES, QUICK_LIMIT = 100, 20, 800


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    options = parse(arguments)
    repeats = options.halves or (QUICK_HALVES if options.quick else HALVES)
    limit = options.limit or (QUICK_LIMIT if options.quick else None)
    tried: list[World] = []
    found: list[Result] = []
    try:
        folder = options.data or data_folder()
        for world in worlds(folder, options.embedders, limit, options.seed):
            where = "thinner corpus" if world.thin else "corpus as it is"
            print(f"{world.label}, {where}: {len(world.kind)} rows", file=sys.stderr, flush=True)
            tried.append(world)
            found += results_of(world, repeats)
    except (SetProblem, FileNotFoundError) as problem:
        print(f"end_to_end.py: {problem}", file=sys.stderr)
        return 2
    if not found:
        print("end_to_end.py: no stratum has enough rows of both classes; raise --limit", file=sys.stderr)
        return 2
    text = page(Run(tried, found, repeats, command(options)))
    print(text, end="")
    if options.write:
        options.write.parent.mkdir(parents=True, exist_ok=True)
        options.write.write_text(text, encoding="utf-8")
    return 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Options of the command line."""
    parser = argparse.ArgumentParser(description="Profile, KPI and gates on labelled retrieval sets.")
    parser.add_argument(
        "--data", type=Path, help="folder of the sets (default: RAG_CONFIDENCE_DATA, ../shared/data)"
    )
    parser.add_argument(
        "--write", type=Path, nargs="?", const=PAGE, help="also write the page (default: in docs/evaluation)"
    )
    parser.add_argument(
        "--quick", action="store_true", help=f"{QUICK_HALVES} halves, at most {QUICK_LIMIT} queries a set"
    )
    parser.add_argument("--halves", type=_count, help=f"random halves (default: {HALVES})")
    parser.add_argument("--embedders", nargs="+", help="names of the embedders (default: all)")
    parser.add_argument("--limit", type=_count, help="the most queries of a set")
    parser.add_argument("--seed", type=int, default=0, help="of all draws (default: %(default)s)")
    return parser.parse_args(arguments)


def command(options: argparse.Namespace) -> str:
    """The command as a reader would repeat it, without folders."""
    words = ["python scripts/end_to_end.py --write"]
    words += ["--quick"] if options.quick else []
    words += [
        f"--{name} {getattr(options, name)}" for name in ("halves", "limit", "seed") if getattr(options, name)
    ]
    words += [f"--embedders {' '.join(options.embedders)}"] if options.embedders else []
    return " ".join(words)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1; got {text}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
