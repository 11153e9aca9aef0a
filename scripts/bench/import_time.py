"""Time `import rag_confidence` against `import numpy`, each in a fresh interpreter, and list what it loads.

    python scripts/bench/import_time.py

The two take turns; the ratio of the medians is the figure (target: below 3). NumPy is part of both.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from statistics import median

from _bench import environment, is_clean, run_again, table

TARGET = 3.0
HEAVY = (
    "networkx",
    "scipy",
    "scipy.optimize",
    "scipy.sparse",
    "scipy.stats",
    "ripser",
    "persim",
    "sklearn",
    "matplotlib",
    "pandas",
    "pyarrow",
)
_TIMED = "from time import perf_counter as t; s = t(); import {module}; print(t() - s)"
_LOADED = "import sys, rag_confidence; print(len(sys.modules), *(m for m in {heavy} if m in sys.modules))"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    parser = argparse.ArgumentParser(description="Time `import rag_confidence` against `import numpy`.")
    parser.add_argument("--rounds", type=int, default=15, help="interpreters of each (default: %(default)s)")
    options = parser.parse_args(arguments)
    if not is_clean():
        return run_again()
    times = import_times(("numpy", "rag_confidence"), options.rounds)
    ratio = times["rag_confidence"] / times["numpy"]
    rows = [
        [name, f"{1e3 * seconds:.1f} ms", f"{seconds / times['numpy']:.2f}"]
        for name, seconds in times.items()
    ]
    print(table(("import", "median", "over numpy"), rows))
    print(f"\ntarget: below {TARGET:g} times numpy; met: {'yes' if ratio < TARGET else 'no'}")
    count, *heavy = output(_LOADED.format(heavy=HEAVY)).split()
    print(
        f"heavy modules loaded: {', '.join(heavy) or 'none'} (of {', '.join(HEAVY)}); {count} modules in all"
    )
    return 0


def import_times(modules: Sequence[str], rounds: int) -> dict[str, float]:
    """Median seconds of each import; a first round, not counted, writes the bytecode."""
    found: dict[str, list[float]] = {name: [] for name in modules}
    for _ in range(rounds + 1):
        for name in modules:
            found[name].append(float(output(_TIMED.format(module=name))))
    return {name: median(times[1:]) for name, times in found.items()}


def output(code: str) -> str:
    """What a fresh interpreter prints."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    sys.exit(main())
