"""Whether guards keep their promise: coverage, several checks, sessions, and uses that break it.

    python scripts/guard_validation.py --data FOLDER           # about half a minute
    python scripts/guard_validation.py --data FOLDER --write   # also docs/guard_validation.md

Prints the page as Markdown. FOLDER holds `bfcl_raw/live_simple.jsonl`, function-calling queries each with the
right call (Berkeley Function-Calling Leaderboard); without it the sections on real calls are left out, and
nothing is written. Exit code 1 where a sound guard is flagged, or a broken one is not.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import _one_thread  # noqa: F401  (first: BLAS reads its number of threads when numpy is loaded)
from _data import PROJECT
from _pipe import run
from guard.checks import comparisons
from guard.coverage import made_up, moved, real
from guard.page import page
from guard.real_calls import Pool, read_pool
from guard.several import sessions
from guard.two_kinds import two_kinds

PAGE = PROJECT / "docs" / "guard_validation.md"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    options = parse(arguments)
    pool = _pool(options.data)
    if pool is None and (options.data or options.write):
        print("guard_validation.py: no bfcl_raw/live_simple.jsonl in the data folder", file=sys.stderr)
        return 2
    sections = [
        made_up(options.trials),
        real(pool, options.trials),
        comparisons(pool, options.trials),
        two_kinds(options.trials),
        sessions(options.trials),
        moved(options.trials),
    ]
    text = page(sections)
    print(text, end="")
    if options.write:
        options.write.write_text(text, encoding="utf-8")
    return 0 if all(section.sound for section in sections) else 1


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Options of the command line."""
    parser = argparse.ArgumentParser(description="Check that guards keep their promise.")
    parser.add_argument(
        "--data", type=Path, help="folder with bfcl_raw (default: RAG_CONFIDENCE_DATA, ../shared/data)"
    )
    parser.add_argument(
        "--write", type=Path, nargs="?", const=PAGE, help="also write the page (default: in docs/)"
    )
    parser.add_argument("--trials", type=int, default=100, help="splits a row (default: %(default)s)")
    return parser.parse_args(arguments)


def _pool(folder: Path | None) -> Pool | None:
    named = folder or os.environ.get("RAG_CONFIDENCE_DATA") or PROJECT.parent / "shared" / "data"
    file = Path(named) / "bfcl_raw" / "live_simple.jsonl"
    return read_pool(file) if file.is_file() else None


if __name__ == "__main__":
    sys.exit(run(main))
