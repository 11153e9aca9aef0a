"""Learn the prior of ConfidenceModel from labelled sets, and write it into the package.

    python scripts/learn_prior.py FOLDER

FOLDER holds the public sets with emb_<embedder>.npz, as for evaluate.py. Each set and embedder is one
deployment. Which signals are learned stays as it is in the package: a new one needs a row, with any numbers.
The numbers go to rag_confidence/learning/prior_table.py; evaluate.py never uses them on the sets
they come from, but learns a prior from the other sets.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from evaluation.collection import find_embedders, find_sets
from evaluation.histories import deployments, measured
from evaluation.plan import FULL, MAIN_K

from rag_confidence.learning.prior import Prior
from rag_confidence.learning.prior_fit import learn_prior
from rag_confidence.learning.shipped_prior import DEFAULT_PRIOR, LABEL_FREE

TABLE = Path(__file__).resolve().parents[1] / "rag_confidence" / "learning" / "prior_table.py"
_HEAD = '''"""Mean of each coefficient, and its covariances with those before it and with itself.

Written by scripts/learn_prior.py; not to be edited.
"""

ROWS: dict[str, tuple[float, tuple[float, ...]]] = {
'''


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if len(given) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    places = find_sets(Path(given[0]))
    histories = []
    for one in deployments(places, find_embedders(places), [MAIN_K]):
        print(one.label, file=sys.stderr)
        found = measured(one, FULL)
        histories.append((np.array(found["values"], dtype=float), np.array(found["labels"], dtype=float)))
    TABLE.write_text(written(learn_prior(DEFAULT_PRIOR.names, histories, LABEL_FREE)), encoding="utf-8")
    print(TABLE)
    return 0


def written(prior: Prior) -> str:
    """The table as a module, four digits a number."""
    lines = [_HEAD]
    for row, name in enumerate(prior.names):
        entries = [_short(number) for number in prior.covariance[row, : row + 1].tolist()]
        lines.append(f'    "{name}": (\n        {_short(prior.mean[row])},\n        (\n')
        lines.extend(f"            {entry},\n" for entry in entries)
        lines.append("        ),\n    ),\n")
    return "".join(lines) + "}\n"


def _short(number: float) -> str:
    return repr(float(f"{number:.4g}"))


if __name__ == "__main__":
    sys.exit(main())
