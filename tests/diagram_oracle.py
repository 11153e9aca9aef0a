"""Distances between finite bars from the definition: every bar also has a place on the diagonal to go to.

The cost matrix has m + n rows and columns; nothing here imports the package.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

Bars = NDArray[np.float64]


def augmented_costs(a: Bars, b: Bars) -> Bars:
    """Costs (m + n, m + n): bar to bar, bar to diagonal, and 0 for diagonal to diagonal."""
    m, n = len(a), len(b)
    costs = np.zeros((m + n, m + n))
    for i in range(m):
        for j in range(n):
            costs[i, j] = max(abs(a[i, 0] - b[j, 0]), abs(a[i, 1] - b[j, 1]))
    for i in range(m):
        costs[i, n:] = abs(a[i, 0] - a[i, 1]) / 2
    for j in range(n):
        costs[m:, j] = abs(b[j, 0] - b[j, 1]) / 2
    return costs


def oracle_bottleneck(a: Bars, b: Bars) -> float:
    """Smallest cost such that some assignment uses no dearer one, tried one by one."""
    costs = augmented_costs(a, b)
    for level in np.unique(np.append(costs, 0.0)):
        dearer = (costs > level).astype(float)
        if dearer[linear_sum_assignment(dearer)].sum() == 0:
            return float(level)
    raise AssertionError("the largest cost always suffices")


def oracle_wasserstein(a: Bars, b: Bars) -> float:
    """Smallest total cost of an assignment."""
    costs = augmented_costs(a, b)
    return float(costs[linear_sum_assignment(costs)].sum())


def brute_force(a: Bars, b: Bars) -> tuple[float, float]:
    """Bottleneck and Wasserstein distance over all permutations; at most about 7 bars in all."""
    costs = augmented_costs(a, b)
    rows = range(len(costs))
    chosen = [[costs[i, j] for i, j in zip(rows, order, strict=True)] for order in permutations(rows)]
    return min(max(c, default=0.0) for c in chosen), min(sum(c) for c in chosen)


# A coarse grid gives ties and equal bars, where a wrong matching would show.
LEVELS = st.one_of(st.integers(0, 8).map(lambda k: k / 8), st.floats(0.0, 1.0, width=32))


def superlevel_bars(max_size: int = 6) -> st.SearchStrategy[Bars]:
    """Up to ``max_size`` bars with births at or above deaths, zero-length ones included."""
    bar = st.tuples(LEVELS, LEVELS).map(lambda ends: (max(ends), min(ends)))
    return st.lists(bar, max_size=max_size).map(lambda bars: np.array(bars, dtype=float).reshape(-1, 2))
