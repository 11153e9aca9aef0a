"""Command line: scores, gates, audits, guards, monitors and the store, for shells and for jobs.

Run it as ``rag-confidence`` or ``python -m rag_confidence.adapters.cli``. Results go to standard output; what
a person should know besides goes to standard error.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rag_confidence._optional import require

BAD_USAGE = 2
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        Without the name of the program; by default those it was started with.

    Returns
    -------
    int
        Exit code: 0 for done; 1 for done, and the finding is a negative one; 2 for usage or input that cannot
        be meant; 130 after an interrupt; 141 when the reader of the output went away.
    """
    try:
        for package in ("typer", "rich"):
            require(package, extra="cli")
        from rag_confidence.adapters._cli.running import run

        return run(sys.argv[1:] if arguments is None else [*arguments])
    except ImportError as problem:
        sys.stderr.write(f"{problem}\n")
        return BAD_USAGE
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
