"""The table that a background is summed up in, one column each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rag_confidence._types import FloatArray, IntArray

LEAST_BACKGROUND = 20
"""With fewer background vectors left a query is not assessed."""

LEVELS = (0.5, 0.9, 0.95, 0.98)

TAIL_SHARE = 0.05
"""Share of the background that makes up its upper tail."""


@dataclass(frozen=True, eq=False)
class Background:
    """Cosines of each query to the corpus sample without what was retrieved for it, summed up.

    Every attribute is a column of shape (Q,); nan where fewer than `LEAST_BACKGROUND` vectors are left.

    Attributes
    ----------
    mean, std : ndarray
        Mean and population standard deviation.
    q50, q90, q95, q98 : ndarray
        Quantiles, linear between order statistics.
    highest : ndarray
        The largest.
    tail : ndarray
        Mean of the largest `TAIL_SHARE`, at least one: steadier than a quantile of a few hundred.
    n : ndarray of int
        Background vectors used.
    n_left_out : ndarray of int
        Sampled vectors left out because they were retrieved.
    typicality : ndarray
        Cosine of the query to the mean query of the sample; nan without a query sample.
    """

    mean: FloatArray
    std: FloatArray
    q50: FloatArray
    q90: FloatArray
    q95: FloatArray
    q98: FloatArray
    highest: FloatArray
    tail: FloatArray
    n: IntArray
    n_left_out: IntArray
    typicality: FloatArray

    def __len__(self) -> int:
        return len(self.n)


def joined(parts: list[Background]) -> Background:
    """The backgrounds of several blocks of queries as one."""
    names = Background.__dataclass_fields__
    return Background(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def tail_size(n: int) -> int:
    """Number of cosines in the upper tail of `n`."""
    return max(1, round(TAIL_SHARE * n))
