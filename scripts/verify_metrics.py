"""Verify the default metrics on real retrieval sets: verdicts, constants, drivers, invariants, contradiction.

    python scripts/verify_metrics.py              # a few minutes
    python scripts/verify_metrics.py --quick      # a subset of the queries, under a minute

Prints Markdown tables and one PASS or FAIL a line. The exit code is 0 when it ran, whatever it found: what
real data refuse to give is a finding, not a fault of the run.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from _conflict import conflict
from _data import EMBEDDERS, K, data_folder, read_sets
from _done_when import done_when, embedder_order
from _floors import floors
from _invariants import invariants
from _prediction import prediction
from _scored import Scored, score_sets
from _tables import Section

QUICK_QUERIES = 240
SEED_SAMPLE, QUICK_SEED_SAMPLE = 600, 40
INVARIANT_SAMPLE, QUICK_INVARIANT_SAMPLE = 40, 6
CONFLICT_GATE = "bfcl_tools / wordllama"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    options = parse(arguments)
    try:
        folder = data_folder(options.data)
    except FileNotFoundError as problem:
        print(f"verify_metrics.py: {problem}", file=sys.stderr)
        return 2
    sections = []
    for section in report(folder, options.quick, options.seed):
        print(section.text(), end="\n\n", flush=True)
        sections.append(section)
    print(summary(sections))
    if options.json:
        options.json.write_text(json.dumps([s.record() for s in sections], indent=1), encoding="utf-8")
    return 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Options of the command line."""
    parser = argparse.ArgumentParser(description="Verify the default metrics on real retrieval sets.")
    parser.add_argument(
        "--data", type=Path, help="folder of the sets (default: RAG_CONFIDENCE_DATA, ../shared/data)"
    )
    parser.add_argument("--quick", action="store_true", help=f"at most {QUICK_QUERIES} queries a set")
    parser.add_argument("--seed", type=int, default=0, help="of halves and samples (default: %(default)s)")
    parser.add_argument("--json", type=Path, help="also write every table and check to this file")
    return parser.parse_args(arguments)


def report(folder: Path, quick: bool, seed: int) -> Iterator[Section]:
    """The sections, each as soon as it is known."""
    scored = [s for name in EMBEDDERS for s in score_sets(read_sets(folder, name, _limit(quick), seed), seed)]
    scored = embedder_order(scored)
    yield _head(scored, quick, seed)
    yield done_when(scored)
    yield floors(scored)
    yield prediction(scored, QUICK_SEED_SAMPLE if quick else SEED_SAMPLE, seed)
    yield invariants(scored, QUICK_INVARIANT_SAMPLE if quick else INVARIANT_SAMPLE, seed)
    gate = next(s for s in scored if s.data.label == CONFLICT_GATE)
    yield conflict(gate.policy, CONFLICT_GATE)


def _limit(quick: bool) -> int | None:
    return QUICK_QUERIES if quick else None


def _head(scored: Sequence[Scored], quick: bool, seed: int) -> Section:
    queries = sum(len(s.fit) for s in scored)
    size = f"{len(scored)} sets and embedders, {queries} queries, k = {K}, seed {seed}"
    noisy = (
        f"; --quick: at most {QUICK_QUERIES} queries a set, so single shares are off by up to .1"
        if quick
        else ""
    )
    return Section(f"Verification on real data: {size}{noisy}")


def summary(sections: Sequence[Section]) -> str:
    """The last line: how many checks passed and failed, and which parts were left out."""
    checks = [check for section in sections for check in section.checks]
    passed = sum(check.passed for check in checks)
    left_out = [section.title for section in sections if section.skipped]
    tail = f"; skipped in part or whole: {', '.join(left_out)}" if left_out else ""
    return f"{passed} PASS, {len(checks) - passed} FAIL{tail}"


if __name__ == "__main__":
    sys.exit(main())
