"""What a profile is fitted on: passages and queries drawn at random, once for all rows."""

from __future__ import annotations

import numpy as np

from evaluation.baselines import View
from evaluation.collection import Collection
from evaluation.plan import Effort
from evaluation.strata import Draw, Rows, evaluated

_SAMPLE, _QUERIES = 0x5A3, 0x9E5


def view_of(data: Collection, rows: Rows, draw: Draw, effort: Effort) -> tuple[View, bool]:
    """The rows with samples of corpus and queries, and whether the sampled queries are apart from the rows.

    Queries that are not evaluated are sampled where there are enough of them; else the evaluated ones stand
    in, of which a profile sees the vectors and never the labels.
    """
    corpus = np.random.default_rng([_SAMPLE, effort.seed]).permutation(len(rows.corpus))[: effort.sample]
    apart = np.setdiff1d(np.arange(len(data.queries)), evaluated(data, draw))
    held_out = len(apart) >= effort.query_sample
    pool = apart if held_out else evaluated(data, draw)
    asked = np.random.default_rng([_QUERIES, effort.seed]).permutation(pool)[: effort.query_sample]
    return View(rows, draw.k, np.sort(corpus), data.queries[np.sort(asked)]), held_out
