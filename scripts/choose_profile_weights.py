"""Choose the weights of the KPI with a profile, and the constant of its contrast cap, on labelled sets.

    python scripts/choose_profile_weights.py --data FOLDER           # about two minutes
    python scripts/choose_profile_weights.py --data FOLDER --write   # also docs/evaluation/profile_weights.md

Prints the best point of the grid, what leave-one-data-set-out chooses, and what the constants in the package
are worth, as Markdown; progress goes to standard error. Changes no constant. FOLDER holds two sets or more
with emb_<embedder>.npz, as for evaluate.py.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import _one_thread  # noqa: F401  (first: BLAS reads its number of threads when numpy is loaded)
from _data import PROJECT, data_folder
from deployed.profiles import ASKED, SAMPLE
from evaluation.collection import SetProblem, find_embedders, find_sets
from weights.found import Found, Run
from weights.grid import check_formula, grid
from weights.page import page
from weights.pairs import Pair, read_pairs

PAGE = PROJECT / "docs" / "evaluation" / "profile_weights.md"
LIMIT = 1200


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    options = parse(arguments)
    try:
        places = find_sets(options.data or data_folder())
        embedders = find_embedders(places, options.embedders)
    except (SetProblem, FileNotFoundError) as problem:
        print(f"choose_profile_weights.py: {problem}", file=sys.stderr)
        return 2
    if len(places) < 2:
        print("choose_profile_weights.py: leaving one set out needs two sets or more", file=sys.stderr)
        return 2
    pairs = _told(read_pairs(places, embedders, options.limit, options.seed))
    check_formula(pairs)
    sizes = {"limit": options.limit, "sample": SAMPLE, "asked": ASKED}
    text = page(Found.of(Run(pairs, grid(), sizes)))
    print(text, end="")
    if options.write:
        options.write.parent.mkdir(parents=True, exist_ok=True)
        options.write.write_text(text, encoding="utf-8")
    return 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Options of the command line."""
    parser = argparse.ArgumentParser(description="Choose the weights of the KPI with a profile.")
    parser.add_argument(
        "--data", type=Path, help="folder of the sets (default: RAG_CONFIDENCE_DATA, ../shared/data)"
    )
    parser.add_argument(
        "--write", type=Path, nargs="?", const=PAGE, help="also write the page (default: in docs/)"
    )
    parser.add_argument("--embedders", nargs="+", help="names of the embedders (default: all)")
    parser.add_argument(
        "--limit", type=_count, default=LIMIT, help="most queries a set (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of all draws (default: %(default)s)")
    return parser.parse_args(arguments)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 50:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 50; got {text}")
    return int(text)


def _told(pairs: Iterator[Pair]) -> list[Pair]:
    """The pairs, each named on standard error as soon as it is measured."""
    found = []
    for pair in pairs:
        print(f"{pair.label}: {len(pair.sufficient)} rows", file=sys.stderr, flush=True)
        found.append(pair)
    return found


if __name__ == "__main__":
    sys.exit(main())
