"""The background of one query alone: the same numbers as in a block, with fewer and smaller array calls."""

from __future__ import annotations

import math

import numpy as np

from rag_confidence._types import FloatArray, IntArray
from rag_confidence.engine.profile.columns import LEAST_BACKGROUND, LEVELS, Background, tail_size
from rag_confidence.engine.profile.left_out import SAME_COSINE, Retrieved, is_copy
from rag_confidence.engine.profile.sample import Sample


def summary_of_one(sample: Sample, retrieved: Retrieved, named: IntArray) -> Background:
    """`background.summary` of one query, of which the sampled vectors `named` are known to be retrieved."""
    query = retrieved.queries[0].astype(np.float64)
    query /= math.sqrt(query @ query)
    cosines = sample.vectors @ query
    kept = np.ones(len(cosines), dtype=bool)
    kept[_copies(sample, cosines, retrieved.passages[0], retrieved.cosines[0])] = False
    kept[named] = False
    if retrieved.deeper is not None:
        kept &= ~(np.abs(cosines[:, None] - retrieved.deeper[0]) <= SAME_COSINE).any(axis=1)
    values = cosines[kept]
    n = len(values)
    numbers = _numbers(values) if n >= LEAST_BACKGROUND else (math.nan,) * 8
    mean, spread, q50, q90, q95, q98, highest, tail, typicality = np.array(
        [[*numbers, _typicality(query, sample)]]
    ).T
    used, unused = np.array([[n], [len(cosines) - n]])
    return Background(mean, spread, q50, q90, q95, q98, highest, tail, used, unused, typicality)


def _copies(sample: Sample, background: FloatArray, passages: FloatArray, cosines: FloatArray) -> IntArray:
    """Rows of the sample that copy a served passage."""
    lowest = float(np.minimum.reduce(cosines, initial=1.0))
    if math.isnan(lowest):
        real = ~np.isnan(cosines)
        return _copies(sample, background, passages[real], cosines[real])
    near = np.flatnonzero(background >= sample.lowest_copy(lowest))
    if len(near) == 0 or len(passages) == 0:
        return near[:0]
    return near[is_copy(sample, near, passages)]


def _numbers(values: FloatArray) -> tuple[float, ...]:
    """Mean, deviation, quantiles, maximum and tail mean of `values`, which are used up."""
    mean = float(np.add.reduce(values)) / len(values)
    apart = values - mean
    values.sort()
    last = len(values) - 1
    quantiles = (_quantile(values, level * last, last) for level in LEVELS)
    size = tail_size(len(values))
    tail = float(np.add.reduce(values[-size:])) / size
    return mean, math.sqrt(float(apart @ apart) / len(values)), *quantiles, values.item(last), tail


def _quantile(ascending: FloatArray, place: float, last: int) -> float:
    below = int(place)
    low, high = ascending.item(below), ascending.item(min(below + 1, last))
    return float(low + (high - low) * (place - below))


def _typicality(query: FloatArray, sample: Sample) -> float:
    if sample.query_direction is None:
        return math.nan
    return min(1.0, max(-1.0, float(query @ sample.query_direction)))
