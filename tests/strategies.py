"""Hypothesis strategies for nasty retrievals: ties, duplicates, antipodes, grids, extreme scales."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import reference as ref
from hypothesis import strategies as st
from numpy.typing import NDArray

Array = NDArray[Any]

DUPLICATE_COSINE = 0.995
SMALL_DIMENSIONS = (2, 3, 4, 8)
DIMENSIONS = (2, 3, 4, 5, 8, 384)
KINDS = ("fresh", "grid", "copy", "double", "near", "antipode", "mirror", "query")
NEAR = (-1e-3, -1e-5, 1e-5, 1e-3)


@dataclass(frozen=True)
class Retrieval:
    """A query (d,) and its passages (n, d), with the reference cosines of both."""

    query: Array
    passages: Array

    @cached_property
    def cosines(self) -> Array:
        return np.array(ref.cosines(self.query, self.passages))

    @cached_property
    def gram(self) -> Array:
        return np.array(ref.gram(self.passages))

    def canonical(self) -> tuple[Array, Array]:
        """Cosines in descending order and the Gram matrix in the same order."""
        c, g = self.cosines, self.gram
        order = ref.canonical_order(c.tolist())
        return c[order], g[np.ix_(order, order)]

    def clear_cut(self, margin: float = 1e-9) -> bool:
        """True if rounding cannot change which passages are duplicates."""
        return bool(np.all(np.abs(self.gram - DUPLICATE_COSINE) > margin))

    def ranked(self, margin: float = 1e-9) -> bool:
        """True if rounding cannot change the order of the distinct passages."""
        kept = ref.distinct_passages(self.query, self.passages)
        return bool(np.all(np.diff(np.sort(self.cosines[kept])) > margin))


def generator(seed: int) -> np.random.Generator:
    """A stream of its own, so that no vector drawn elsewhere from the same small seed repeats it."""
    return np.random.default_rng([2026, seed])


def _unit(x: Array) -> Array:
    return np.asarray(x / np.linalg.norm(x))


def _nonzero_grid(rng: np.random.Generator, d: int) -> Array:
    row = rng.integers(-2, 3, size=d).astype(float)
    row[rng.integers(d)] = rng.choice([-2.0, -1.0, 1.0, 2.0])
    return row


def _near(rng: np.random.Generator, earlier: Array, shift: float) -> Array:
    u = _unit(earlier)
    tangent = rng.standard_normal(len(u))
    tangent = _unit(tangent - (tangent @ u) * u)
    cosine = DUPLICATE_COSINE + shift
    return cosine * u + np.sqrt(1 - cosine**2) * tangent


def _row(kind: str, rng: np.random.Generator, query: Array, earlier: list[Array]) -> Array:
    d = len(query)
    if kind == "grid":
        return _nonzero_grid(rng, d)
    if kind == "query":
        return 3 * query
    if kind == "fresh" or not earlier:
        return rng.standard_normal(d)
    model = earlier[rng.integers(len(earlier))]
    if kind == "mirror":
        q = _unit(query)
        return 2 * (model @ q) * q - model
    if kind == "near":
        return _near(rng, model, NEAR[rng.integers(len(NEAR))])
    return {"copy": model, "double": 2 * model, "antipode": -model}[kind]


@st.composite
def retrievals(
    draw: st.DrawFn,
    min_n: int = 1,
    max_n: int = 8,
    dimensions: tuple[int, ...] = DIMENSIONS,
    kinds: tuple[str, ...] = KINDS,
) -> Retrieval:
    """Any mixture of row kinds around a random or grid query; no zero rows."""
    rng = generator(draw(st.integers(0, 2**32 - 1)))
    d = draw(st.sampled_from(dimensions))
    query = _nonzero_grid(rng, d) if draw(st.booleans()) else rng.standard_normal(d)
    rows: list[Array] = []
    for kind in draw(st.lists(st.sampled_from(kinds), min_size=min_n, max_size=max_n)):
        rows.append(_row(kind, rng, query, rows))
    return Retrieval(query, np.array(rows))


def generic_retrievals(
    min_n: int = 2, max_n: int = 8, dimensions: tuple[int, ...] = DIMENSIONS
) -> st.SearchStrategy[Retrieval]:
    """Retrievals in general position: nothing tied, nothing orthogonal, no duplicates."""
    return retrievals(min_n, max_n, dimensions, kinds=("fresh", "near")).filter(
        lambda r: bool(np.all(np.abs(r.gram) > 1e-6)) and r.clear_cut()
    )


@st.composite
def scales(draw: st.DrawFn, n: int, largest: int = 150) -> Array:
    """Positive factors (n,), powers of ten between 1e-largest and 1e+largest."""
    exponents = draw(st.lists(st.integers(-largest, largest), min_size=n, max_size=n))
    return np.array([10.0**e for e in exponents])


@st.composite
def leveled_graphs(draw: st.DrawFn, min_n: int = 1, max_n: int = 7) -> tuple[Array, Array]:
    """Descending vertex values and a symmetric matrix, both of few levels, so that most things are tied."""
    n = draw(st.integers(min_n, max_n))
    levels = st.integers(-4, 4).map(lambda k: k / 4)
    values = np.array(sorted(draw(st.lists(levels, min_size=n, max_size=n)), reverse=True))
    matrix = np.eye(n)
    for i, j in ref.pairs(n):
        matrix[i, j] = matrix[j, i] = draw(levels)
    return values, matrix


@st.composite
def trees(draw: st.DrawFn, min_n: int = 1, max_n: int = 9) -> tuple[Array, Array]:
    """Vertex values, often tied, and the parents of a tree, parents before children."""
    n = draw(st.integers(min_n, max_n))
    value = st.one_of(st.integers(-4, 4).map(lambda k: k / 4), st.floats(-1, 1, allow_subnormal=False))
    values = draw(st.lists(value, min_size=n, max_size=n))
    parents = [-1] + [draw(st.integers(0, i - 1)) for i in range(1, n)]
    return np.array(values), np.array(parents)


@st.composite
def rotations(draw: st.DrawFn, d: int) -> Array:
    """An orthogonal matrix: three random reflections in a row."""
    rng = generator(draw(st.integers(0, 2**32 - 1)))
    result = np.eye(d)
    for v in map(_unit, rng.standard_normal((3, d))):
        result -= 2 * np.outer(result @ v, v)
    return result
