"""Summaries of a corpus sample, each a pure function of unit vectors."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from rag_confidence._types import FloatArray, IntArray
from rag_confidence.engine.measure import measure
from rag_confidence.engine.profile.background import summary
from rag_confidence.engine.profile.left_out import Retrieved
from rag_confidence.engine.profile.reference import (
    contrast_cap,
    contrast_to,
    contrast_units,
    reference_of,
    saturated,
)
from rag_confidence.engine.profile.sample import Sample

LEAST_LISTED = 6
LEAST_LISTS = 20
"""Fewer served lists say too little of what is typical."""

MOST_ROWS = 2000
"""Larger corpus samples are thinned at random to this many rows."""

PASSAGE_LEVELS = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
N_AXES = 32

_SALT = 0xC0495
_NORM_LEVELS = (0.01, 0.5, 0.99)
_SAME = 5
# A row of the sample on its own is no list: only itself and its copies are left out.
_NO_PAIRS = (np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp))


def chosen_rows(count: int, seed: int) -> IntArray:
    """Rows of the sample to keep, ascending: all of them, or `MOST_ROWS` drawn at random."""
    if count <= MOST_ROWS:
        return np.arange(count)
    rng = np.random.default_rng([_SALT, seed])
    return np.sort(rng.choice(count, MOST_ROWS, replace=False))


def shuffled(count: int, seed: int) -> IntArray:
    """A random order of `count` rows."""
    return np.random.default_rng([_SALT, 1, seed]).permutation(count)


def n_distinct(unit: FloatArray) -> int:
    """Number of rows that differ by more than rounding."""
    return len(np.unique(np.round(unit, _SAME) + 0.0, axis=0))


def norm_summary(norms: FloatArray) -> tuple[float, float, float]:
    """Low, median and high length of the raw rows: quantiles .01, .5 and .99."""
    low, middle, high = np.quantile(norms, _NORM_LEVELS).tolist()
    return low, middle, high


def effective_dimension(unit: FloatArray) -> float:
    """Participation ratio (sum of eigenvalues)^2 / (sum of their squares) of the covariance (n, d).

    From 1, all variance along one axis, to min(n - 1, d), the same along each; a small sample shows it too
    small.
    """
    apart = unit - unit.mean(axis=0)
    gram = apart.T @ apart if len(apart) > apart.shape[1] else apart @ apart.T
    return float(np.trace(gram) ** 2 / np.einsum("ij,ij->", gram, gram))


def passage_quantiles(unit: FloatArray) -> tuple[float, ...]:
    """Quantiles `PASSAGE_LEVELS` of the cosines between different rows."""
    gram = unit @ unit.T
    pairs = gram[np.triu_indices(len(gram), k=1)]
    return tuple(np.quantile(np.clip(pairs, -1.0, 1.0), PASSAGE_LEVELS).tolist())


def principal_axes(unit: FloatArray, count: int) -> FloatArray:
    """The `count` orthonormal axes (count, d) that hold most of the energy of the rows, the mean included."""
    if len(unit) < unit.shape[1]:
        _, turned = np.linalg.eigh(unit @ unit.T)
        # Rows of low rank give directions of no length, which the decomposition replaces by orthonormal ones.
        return np.ascontiguousarray(np.linalg.qr(unit.T @ turned[:, ::-1][:, :count]).Q.T)
    _, axes = np.linalg.eigh(unit.T @ unit)
    return np.ascontiguousarray(axes[:, ::-1][:, :count].T)


def background_level(
    sample: Sample, queries: FloatArray | None, passages: FloatArray | None
) -> tuple[float, float]:
    """Median upper tail, and median standard deviation, of background cosines.

    They are those of the unit `queries` (q, d), without the `passages` (q, k, d) served for them if these are
    known, or those of the sampled rows, each of which leaves itself out.
    """
    if queries is None:
        rows, left = sample.vectors, sample.vectors[:, None]
    else:
        rows, left = queries, np.zeros((len(queries), 0, queries.shape[1])) if passages is None else passages
    cosines = np.einsum("qd,qkd->qk", rows, left)
    found = summary(sample, Retrieved(rows, left, cosines, None), _NO_PAIRS)
    known = ~np.isnan(found.std)
    if not known.any():
        return 0.0, 0.0
    return float(np.median(found.tail[known])), float(np.median(found.std[known]))


@dataclass(frozen=True)
class Traffic:
    """What lists that were served for ordinary queries show; None where it cannot be told."""

    typical_companionship: float | None = None
    contrast_units: tuple[float, float] | None = None


def traffic_of(sample: Sample, queries: FloatArray | None, passages: FloatArray | None) -> Traffic:
    """Mean companionship, and centre and scale of the saturated contrast, of the lists served for queries."""
    if queries is None or passages is None:
        return Traffic()
    signals = measure(queries, passages, duplicate_cosine=sample.limit).signals
    together = signals["companionship"]
    together = together[~np.isnan(together)]
    typical = float(np.mean(together)) if len(together) >= LEAST_LISTS else None
    cosines = np.einsum("qd,qkd->qk", queries, passages)
    tail = summary(sample, Retrieved(queries, passages, cosines, None), _NO_PAIRS).tail
    contrast = contrast_to(signals["max_cosine"], reference_of(tail, cosines, None))
    contrast = saturated(contrast[~np.isnan(contrast)], contrast_cap(typical))
    # Shorter lists have another reference than the ones that will be scored.
    enough = len(contrast) >= LEAST_LISTS and passages.shape[1] >= LEAST_LISTED
    return Traffic(typical, contrast_units(contrast) if enough else None)


def duplicate_ids(ids: tuple[Hashable, ...]) -> list[Hashable]:
    """Ids that occur more than once, in order of their first occurrence."""
    seen: dict[Hashable, int] = {}
    for name in ids:
        seen[name] = seen.get(name, 0) + 1
    return [name for name, times in seen.items() if times > 1]
