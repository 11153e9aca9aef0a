"""The background of one query alone: the same numbers as in a block, with fewer and smaller array calls."""

from __future__ import annotations

import math

import numpy as np

from rag_confidence._types import FloatArray, IntArray
from rag_confidence.engine.profile.columns import LEAST_BACKGROUND, LEVELS, Background, tail_size
from rag_confidence.engine.profile.left_out import Retrieved, is_copy
from rag_confidence.engine.profile.sample import Sample


def summary_of_one(sample: Sample, retrieved: Retrieved, named: IntArray) -> Background:
    """`background.summary` of one query, of which the sampled vectors `named` are known to be retrieved."""
    query = unit_query(retrieved.queries[0])
    cosines = sample.vectors @ query
    kept = np.ones(len(cosines), dtype=bool)
    kept[_copies(sample, cosines, retrieved.passages[0], retrieved.cosines[0])] = False
    kept[named] = False
    if retrieved.deeper is not None:
        kept &= ~(np.abs(cosines[:, None] - retrieved.deeper[0]) <= retrieved.tolerance[0]).any(axis=1)
    values = cosines[kept]
    n = len(values)
    numbers = _numbers(values) if n >= LEAST_BACKGROUND else (math.nan,) * 8
    mean, spread, q50, q90, q95, q98, highest, tail, typicality = np.array(
        [[*numbers, typicality_of_one(query, sample)]]
    ).T
    used, unused = np.array([[n], [len(cosines) - n]])
    return Background(mean, spread, q50, q90, q95, q98, highest, tail, used, unused, typicality)


def unit_query(query: FloatArray) -> FloatArray:
    """A query (d,) in float64, of length one."""
    wide = query.astype(np.float64)
    wide /= math.sqrt(wide @ wide)
    return wide


def levels_of_one(
    sample: Sample, query: FloatArray, passages: FloatArray, cosines: FloatArray
) -> tuple[float, float, float]:
    """Mean, deviation and tail mean of the background of a `unit_query` without the passages (k, d).

    What of `summary_of_one` the signals need, as plain numbers; nan with too small a background.
    """
    background = sample.vectors @ query
    copies = _copies(sample, background, passages, cosines)
    if len(copies):
        background = np.delete(background, copies)
    if len(background) < LEAST_BACKGROUND:
        return math.nan, math.nan, math.nan
    mean, spread, *_, tail = _numbers(background)
    return mean, spread, tail


def typicality_of_one(query: FloatArray, sample: Sample) -> float:
    """Cosine of a `unit_query` to the mean query; nan without one."""
    if sample.query_direction is None:
        return math.nan
    return min(1.0, max(-1.0, float(query @ sample.query_direction)))


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
