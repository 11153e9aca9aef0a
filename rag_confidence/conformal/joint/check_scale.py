"""Whether one of several checks decides alone: because of its numbers, or because of the traffic."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rag_confidence._types import FloatArray
from rag_confidence.conformal.joint.traffic import TrafficRanks

WILD_SPREAD = 100.0
WILD_SHARE = 0.99
# Among fewer calls one check may be the largest in all of them by chance.
FEWEST_CALLS = 20


def max_shares(scores: FloatArray) -> FloatArray:
    """Share of the rows of (n, K) in which each column is the largest (K,); ties are split."""
    largest = scores == scores.max(axis=1, keepdims=True)
    return np.asarray((largest / largest.sum(axis=1, keepdims=True)).mean(axis=0))


def scale_note(scores: FloatArray, checks: Sequence[str], shares: FloatArray) -> str | None:
    """A sentence where raw scores are of so different scales that one check decides nearly alone.

    Parameters
    ----------
    scores : ndarray, shape (n, K)
        Nonconformity of good calls; +inf allowed.
    checks : sequence of str, length K
    shares : ndarray, shape (K,)
        What `max_shares` says of them.

    Returns
    -------
    str or None
        None unless two checks vary, and either one spread is 100 times another, or one check is the largest
        in 99 % of at least 20 rows.

    Notes
    -----
    The spread is the distance between the 10 % and the 90 % quantile of the finite scores, or their range
    where that is 0. A check that never varies among good calls has no scale and is left out.
    """
    spreads = np.array([_spread(column[np.isfinite(column)]) for column in scores.T])
    varying = np.flatnonzero(spreads > 0.0)
    if varying.size < 2:
        return None
    widest = varying[spreads[varying].argmax()]
    leader = varying[shares[varying].argmax()]
    with np.errstate(over="ignore"):
        ratio = spreads[widest] / spreads[varying].min()
    if ratio < WILD_SPREAD and (shares[leader] < WILD_SHARE or len(scores) < FEWEST_CALLS):
        return None
    return (
        f"The checks are of different scales: the spread of {checks[widest]} is {ratio:.3g} times the "
        f"smallest, and {checks[leader]} is the largest in {100 * shares[leader]:.3g} % of good calls. "
        "Checks with small numbers hardly count. Pass `reference`, unlabelled traffic, to compare ranks."
    )


def blind_note(ranks: TrafficRanks, checks: Sequence[str], threshold: float) -> str | None:
    """A sentence where the strangest scores of a check are so common that the threshold lets them pass.

    Parameters
    ----------
    ranks : TrafficRanks
    checks : sequence of str, length K
    threshold : float
        The joint threshold, as a rank.

    Returns
    -------
    str or None

    Notes
    -----
    That happens with checks of few values, and with traffic that is mostly bad calls.
    """
    blind = [name for name, hidden in zip(checks, ranks.hidden(threshold).tolist(), strict=True) if hidden]
    if not blind:
        return None
    return (
        f"The largest score of {', '.join(blind)} in the traffic is not above this threshold: it is too "
        "common there to count as strange. Pass a `reference` that is mostly good calls, and keep checks of "
        "few values out of the joint gate."
    )


def _spread(finite: FloatArray) -> float:
    """Halved, because then no difference overflows."""
    if finite.size == 0:
        return 0.0
    halves = finite.astype(np.float64) * 0.5
    low, high = np.quantile(halves, [0.1, 0.9])
    return float(high - low) or float(np.ptp(halves))
