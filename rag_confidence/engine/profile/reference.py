"""How far the best passage of a list stands out: its distance against that of a reference.

With 1 - c half the squared distance of unit vectors, the contrast of a best cosine c to a reference r is
log((1 - r) / (1 - c)): it needs no scale of its own, because distances of one embedder are compared with each
other.
"""

from __future__ import annotations

import math

import numpy as np

from rag_confidence._types import FloatArray

# A best passage that is a copy of the query has no distance left, and no contrast could be written.
_LEAST_ROOM = 0.005
_LEAST_REFERENCE = 1e-6
_SHARE_OF_RANKS_6_TO_10 = 0.25
_SOFTNESS = 0.05
_USUAL_CAP = 0.8
_CAP_TIMES_COMPANIONSHIP = 0.175
_CAPS = (0.4, 2.0)
_TINY = 1e-6
_SAME = 1e-12
# The scale of a deployment: the median retrieval is worth 0.7, and a fifth lie below one half. Where nearly
# all are saturated, differences of no meaning would fill the scale, were it not for the least one.
_LOW = 0.2
_MEDIAN_LOGIT = 0.85
_LEAST_SCALE = 0.1


def contrast_to(best: FloatArray, reference: FloatArray) -> FloatArray:
    """Contrast (Q,) of the best cosines to their references; 0 where the best one is no better."""
    room = np.maximum(1.0 - best, _LEAST_ROOM)
    return np.asarray(np.maximum(np.log(np.maximum(1.0 - reference, _LEAST_REFERENCE) / room), 0.0))


def contrast_units(contrast: FloatArray) -> tuple[float, float]:
    """Centre and scale of the saturated `contrast` (q,) of a sample of ordinary retrievals.

    The logistic function is 0.7 at their median, and one half at their 20 % quantile unless the two are so
    close that the scale would be less than 0.1. It is never above one half where there is no contrast.
    """
    low, median = np.quantile(contrast, [_LOW, 0.5]).tolist()
    scale = max((median - low) / _MEDIAN_LOGIT, _LEAST_SCALE)
    return max(median - _MEDIAN_LOGIT * scale, 0.0), scale


def contrast_cap(typical_companionship: float | None) -> float:
    """Contrast beyond which a better best passage is no better sign, in [`_CAPS`].

    Where passages come in families, the best one is nearly a paraphrase of almost every question, and what
    its companions are decides; the closer they usually are, the sooner.
    """
    if typical_companionship is None:
        return _USUAL_CAP
    low, high = _CAPS
    return min(max(_CAP_TIMES_COMPANIONSHIP / max(typical_companionship, _TINY), low), high)


def saturated(contrast: FloatArray, cap: float) -> FloatArray:
    """Smooth minimum of `contrast` and `cap`, at least 0; rises with the contrast everywhere."""
    low, high = np.minimum(contrast, cap), np.maximum(contrast, cap)
    return np.maximum(low - _SOFTNESS * np.log1p(np.exp((low - high) / _SOFTNESS)), 0.0)


def reference_of(tail: FloatArray, cosines: FloatArray, deeper: FloatArray | None) -> FloatArray:
    """The cosine (Q,) that the best one is held against, from a background `tail` and what was retrieved.

    The mean of the tail and of ranks 11 to 20, or, where only the served list is known, three parts of the
    tail and one of ranks 6 to 10; never below the tail, so that junk at the end of a list is no merit. Equal
    cosines are those of copies, and count once.
    """
    listed = cosines if deeper is None else np.concatenate([cosines, deeper], axis=1)
    ranked = _distinct(-np.sort(-listed, axis=1))[:, :20]
    if ranked.shape[1] < 6:
        return tail
    known = np.count_nonzero(~np.isnan(ranked), axis=1)
    near = _mean_known(ranked[:, 5:10])
    reference = np.where(known >= 6, tail + _SHARE_OF_RANKS_6_TO_10 * (near - tail), tail)
    if ranked.shape[1] >= 20:
        reference = np.where(known >= 20, 0.5 * (tail + _mean_known(ranked[:, 10:])), reference)
    return np.maximum(reference, tail)


def _distinct(ranked: FloatArray) -> FloatArray:
    """Descending rows (nan last) with nan in place of entries that equal the one before, in order again."""
    same = np.zeros(ranked.shape, dtype=bool)
    same[:, 1:] = ranked[:, :-1] - ranked[:, 1:] <= _SAME
    if not same.any():
        return ranked
    return -np.sort(-np.where(same, np.nan, ranked), axis=1)


def _mean_known(ranked: FloatArray) -> FloatArray:
    """Row means of entries that are not nan; 0 without any."""
    known = ~np.isnan(ranked)
    total = np.add.reduce(ranked, axis=1, where=known)
    return np.asarray(total / np.maximum(np.count_nonzero(known, axis=1), 1))


def contrast_of_one(best: float, tail: float, cosines: list[float]) -> float:
    """`contrast_to` the `reference_of` one list, whose `cosines` are known, in plain Python."""
    ranked = sorted(cosines, reverse=True)
    ranked = [c for c, before in zip(ranked, [2.0, *ranked], strict=False) if before - c > _SAME]
    reference = tail
    if len(ranked) >= 20:
        reference = 0.5 * (tail + sum(ranked[10:20]) / 10)
    elif len(ranked) >= 6:
        near = ranked[5:10]
        reference += _SHARE_OF_RANKS_6_TO_10 * (sum(near) / len(near) - tail)
    reference, room = max(reference, tail), max(1.0 - best, _LEAST_ROOM)
    return max(math.log(max(1.0 - reference, _LEAST_REFERENCE) / room), 0.0)


def saturated_of_one(contrast: float, cap: float) -> float:
    """`saturated` of one contrast."""
    low, high = min(contrast, cap), max(contrast, cap)
    return max(low - _SOFTNESS * math.log1p(math.exp((low - high) / _SOFTNESS)), 0.0)
