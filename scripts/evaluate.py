"""Measure what predicts that a retrieval is sufficient, on labelled sets, and write the pages that say so.

    python scripts/evaluate.py FOLDER              # under an hour on two cores
    python scripts/evaluate.py FOLDER --quick      # under ten minutes: k = 10, fewer queries and draws

FOLDER holds sets in the layout of BEIR (corpus.jsonl, queries.jsonl, qrels/test.tsv or qrels.tsv) with
emb_<embedder>.npz, or is one of them. Progress goes to standard error. Results of finished parts are kept in
`.evaluation-cache`, so that an interrupted run goes on; they depend on the code, the policy, the seed and the
input files.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from evaluation.cache import Cache
from evaluation.collection import SetProblem, find_embedders, find_sets
from evaluation.histories import deployments
from evaluation.pages import write
from evaluation.part import HELD_OUT
from evaluation.plan import FULL, MAIN_K, QUICK, Effort, parts
from evaluation.results import collected
from evaluation.run import How, results
from evaluation.strata import LEAST, LEAST_CORPUS

from rag_confidence import MetricPolicy, __version__

PROJECT = Path(__file__).resolve().parents[1]
KS = (5, 10, 20)
_NOTHING = (
    f"no kind of negatives has {LEAST} rows of each class on a corpus of {LEAST_CORPUS} passages or more."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    options = parse(arguments)
    effort = effort_of(options)
    try:
        every = find_sets(options.folder)
        places = find_sets(options.folder, options.sets)
        embedders = find_embedders(places, options.embedders)
        ks = sorted({MAIN_K, *(options.k or (() if options.quick else KS))})
        todo = list(parts(places, every, embedders, ks))
        beside = deployments(every, embedders, ks)
        found = results(todo, beside, How(effort, Cache(options.cache), options.jobs, options.fresh))
    except SetProblem as problem:
        print(f"evaluate.py: {problem}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("evaluate.py: interrupted; the same command goes on from here", file=sys.stderr)
        return 130
    cells = collected(found)
    if not cells.cells:
        print(f"evaluate.py: {_NOTHING}", file=sys.stderr)
        return 2
    scope = {"sets": [place.name for place in places], "embedders": embedders, "k": ks}
    for path in write(cells, options.out, described(options, effort, scope | noted(found))):
        print(path)
    return 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Options of the command line."""
    parser = argparse.ArgumentParser(description="Measure what predicts that a retrieval is sufficient.")
    parser.add_argument("folder", type=Path, help="folder of the sets, or of one set")
    parser.add_argument("--quick", action="store_true", help="k = 10, fewer queries, draws and rounds")
    parser.add_argument("--sets", nargs="+", help="names of the sets (default: all)")
    parser.add_argument("--embedders", nargs="+", help="names of the embedders (default: all)")
    parser.add_argument(
        "--k", nargs="+", type=_passages, help="passages served, 2 to 20; 10 always (default: 5 20)"
    )
    parser.add_argument(
        "--out", type=Path, default=PROJECT / "docs" / "evaluation", help="folder of the pages"
    )
    parser.add_argument("--jobs", type=_count, default=2, help="processes (default: %(default)s)")
    parser.add_argument("--limit", type=_count, help="the most queries of a set")
    parser.add_argument("--draws", type=_count, help="draws of labels at each budget")
    parser.add_argument("--rounds", type=_count, help="bootstrap rounds")
    parser.add_argument("--seed", type=int, default=0, help="of all draws (default: %(default)s)")
    parser.add_argument(
        "--cache", type=Path, default=PROJECT / ".evaluation-cache", help="folder of finished parts"
    )
    again = parser.add_mutually_exclusive_group()
    again.add_argument("--resume", dest="fresh", action="store_false", help="use finished parts (default)")
    again.add_argument("--fresh", action="store_true", help="measure every part anew")
    parser.set_defaults(fresh=False)
    return parser.parse_args(arguments)


def effort_of(options: argparse.Namespace) -> Effort:
    """The effort that the options ask for."""
    effort = replace(QUICK if options.quick else FULL, seed=options.seed)
    if options.limit:
        effort = replace(effort, limit=options.limit)
    if options.draws:
        effort = replace(effort, draws=options.draws)
    if options.rounds:
        effort = replace(effort, rounds=options.rounds, learned_rounds=options.rounds)
    return effort


def described(options: argparse.Namespace, effort: Effort, scope: dict[str, Any]) -> dict[str, Any]:
    """What the results say of the run; nothing that differs between two runs of the same code and data."""
    return {
        "quick": options.quick,
        **scope,
        "effort": asdict(effort),
        "version": __version__,
        "policy": MetricPolicy().fingerprint,
    }


def noted(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Sets whose profile saw other queries than those evaluated, and strata with too few rows."""
    held_out = {part["set"] for part in found if part["profile_queries"] == HELD_OUT}
    few = [
        {"set": part["set"], "embedder": part["embedder"], "k": part["k"], "stratum": stratum, **counts}
        for part in found
        for stratum, counts in part["left_out"].items()
    ]
    return {"held_out_queries": sorted(held_out), "left_out": few}


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1; got {text}")
    return int(text)


def _passages(text: str) -> int:
    if not text.isdecimal() or not 2 <= int(text) <= 20:
        raise argparse.ArgumentTypeError(f"must be a whole number from 2 to 20; got {text}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
