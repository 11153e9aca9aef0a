"""An interval for the average risk of a stream of outcomes that holds at all times at once."""

from __future__ import annotations

import math

import numpy as np

# Logarithms of the odds ratios behind the interval: the narrow ones serve long streams.
_TILTS = 2.0 ** np.arange(-8, 3)
_HALVINGS = 60


def risk_interval(n_bad: int, n_seen: int, *, error_rate: float) -> tuple[float, float]:
    """Interval for the average risk of the outcomes so far, valid at all times at once.

    Parameters
    ----------
    n_bad, n_seen : int
        Bad events, and all outcomes; (0, 1) is returned when there are none.
    error_rate : float
        In (0, 1).

    Returns
    -------
    tuple of float
        (low, high). With probability 1 - error_rate or more, the average over the outcomes so far of
        P(bad | earlier outcomes) lies between the two after every outcome of a stream of any length.

    Notes
    -----
    For tilts h > 0 let c = e^h - 1. The mean over h of e^(h k) / prod (1 + c m_i) is a martingale that starts
    at 1, m_i the conditional risks. The logarithm is concave, so the product is at most (1 + c m)^n at their
    average m: the interval leaves out every m at which mean e^(h k) (1 + c m)^-n reaches 2 / error_rate, from
    below, and the same for good outcomes from above. Nothing is assumed about how the risk moves. It is
    wider than an interval for one fixed sample size. Bisection, O(1).

    References
    ----------
    Robbins (1970), Statistical methods related to the law of the iterated logarithm; Howard, Ramdas,
    McAuliffe and Sekhon (2021), Time-uniform, nonparametric, nonasymptotic confidence sequences.
    """
    if n_seen == 0:
        return 0.0, 1.0
    limit = math.log(2.0 / error_rate) + math.log(len(_TILTS))
    return _lower(n_bad, n_seen, limit), 1.0 - _lower(n_seen - n_bad, n_seen, limit)


def _lower(count: int, total: int, limit: float) -> float:
    growth = np.expm1(_TILTS)
    low, high = 0.0, count / total
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        evidence = np.logaddexp.reduce(_TILTS * count - total * np.log1p(middle * growth))
        low, high = (middle, high) if evidence >= limit else (low, middle)
    return low
