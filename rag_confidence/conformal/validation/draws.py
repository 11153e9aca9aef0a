"""Where the trials of a coverage check come from: fresh draws, random splits of one pool, shifted draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from rag_confidence._options import entries_of
from rag_confidence.synthetic import LabelledScores

Draw: TypeAlias = Callable[[np.random.Generator, int, int], tuple[LabelledScores, LabelledScores]]
"""(rng, n, n_test) -> calibration rows and test rows of one trial."""


def fresh_draws(source: Callable[[np.random.Generator, int], LabelledScores]) -> Draw:
    """Trials of new rows every time.

    Parameters
    ----------
    source : callable
        (rng, n) -> n exchangeable `LabelledScores`, such as `draw_rag_rows`.

    Returns
    -------
    callable
        A `Draw`: the first n rows of each draw calibrate, the others test.
    """

    def draw(rng: np.random.Generator, n: int, n_test: int) -> tuple[LabelledScores, LabelledScores]:
        rows = source(rng, n + n_test)
        return rows.take(slice(n)), rows.take(slice(n, None))

    return draw


def random_splits(pool: LabelledScores, queries: ArrayLike | None = None) -> Draw:
    """Trials that split one finite pool at random, without replacement.

    Parameters
    ----------
    pool : LabelledScores
    queries : array_like, shape (len(pool),), or None
        The query of each row: all rows of a query go to the same part, and n and n_test count queries. None
        makes every row a query of its own.

    Returns
    -------
    callable
        A `Draw`. It raises ValueError when asked for more than the pool holds.

    Notes
    -----
    Given the pool, the covered count of each class is exactly beta-binomial as long as a query has at most
    one row of a class and scores do not tie: only ranks matter, and a random split makes all of them
    equally likely. Splits of one pool are independent trials in that sense. They say nothing about queries
    that are unlike the pool.
    """
    names = np.arange(len(pool)) if queries is None else _queries(queries, len(pool))
    distinct, query_of = np.unique(names, return_inverse=True)

    def draw(rng: np.random.Generator, n: int, n_test: int) -> tuple[LabelledScores, LabelledScores]:
        if n + n_test > len(distinct):
            raise ValueError(
                f"`n` + `n_test` must be at most the {len(distinct)} queries of the pool; got {n} and "
                f"{n_test}. Lower one of them."
            )
        place = rng.permutation(len(distinct))[query_of]
        return pool.take(place < n), pool.take((place >= n) & (place < n + n_test))

    return draw


def shifted(draw: Draw, by: float) -> Draw:
    """The same trials with `by` added to every test score: a control that a sound check must flag.

    A positive shift makes insufficient rows look sufficient, a negative one the reverse.
    """

    def moved(rng: np.random.Generator, n: int, n_test: int) -> tuple[LabelledScores, LabelledScores]:
        calibration, test = draw(rng, n, n_test)
        return calibration, LabelledScores(test.scores + by, test.labels, test.kind)

    return moved


def _queries(queries: Any, rows: int) -> np.ndarray[Any, Any]:
    entries = entries_of("queries", queries, "one name a row", "Name the query of every row.")
    if len(entries) != rows:
        raise ValueError(
            f"`queries` must have one entry for each of the {rows} rows of `pool`; got {len(entries)}. "
            "Name the query of every row."
        )
    return np.array(entries)
