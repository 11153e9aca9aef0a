"""Hypothesis strategies for labelled scores: ties, decimals, signed zeros, both precisions, any scale."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import reference_conformal as ref
from hypothesis import settings
from hypothesis import strategies as st
from numpy.typing import NDArray

Array = NDArray[Any]

# For properties that follow from others which are tested with all examples.
few = settings(max_examples=20)
Family = Callable[[np.random.Generator, int], Array]

TINY = np.array([0.0, -0.0, 5e-324, 1e-310, 1e-45, 1e-30, 1.0, 1 - 2**-53])
HUGE = np.array([-1e308, -1e39, -1.0, -0.0, 0.0, 1e-300, 1.0, 3.4e38, 1e39, 1.7e308])


def _any_bits(rng: np.random.Generator, n: int) -> Array:
    """Finite doubles of any exponent."""
    found = rng.integers(0, 2**64, 4 * n + 64, dtype=np.uint64).view(np.float64)
    return np.asarray(found[np.isfinite(found)][:n])


# Scores are drawn by NumPy from a drawn seed: hypothesis takes ten times as long for a list of floats.
FRACTIONS: dict[str, Family] = {
    "tenths": lambda rng, n: rng.integers(0, 11, n) / 10,
    "hundredths": lambda rng, n: rng.integers(0, 101, n) / 100,
    "any": lambda rng, n: rng.random(n) ** rng.integers(1, 12, n),
    "tiny": lambda rng, n: rng.choice(TINY, n),
}
RAW: dict[str, Family] = {
    "whole": lambda rng, n: rng.integers(-5, 6, n).astype(float),
    "decimals": lambda rng, n: rng.integers(-300, 301, n) / 100,
    "any": _any_bits,
    "huge": lambda rng, n: rng.choice(HUGE, n),
    "cosines": lambda rng, n: rng.uniform(-1, 1, n),
}
# Few rows support coarse levels only, so most are coarse; the last ones no small history supports.
LEVELS = st.sampled_from(
    [
        *("0.1", "0.1", "0.2", "1/3", "0.5", "0.7", "1/4", "3/4", "0.05", "0.15"),
        *(Fraction(k, parts) for parts in (7, 11, 13) for k in (1, 2, 4, 6)),
        *(0.1, 1 - 0.9, 1 / 3, 0.3, 0.6, 0.45),
    ]
)


@dataclass(frozen=True)
class History:
    """Labelled scores of one precision, with scores to decide on, perhaps of the other."""

    scores: Array
    labels: list[int]
    probes: Array
    score_kind: str

    @property
    def single(self) -> bool:
        return self.scores.dtype == np.float32

    def reference(self, alpha: ref.Level = "0.1", **options: Any) -> ref.Gate:
        """The slow gate on the same rows."""
        return ref.gate(self.scores, self.labels, alpha, single=self.single, **options)

    def numbers(self) -> list[ref.Number]:
        """The probes for the slow gate."""
        return ref.numbers(self.probes, self.probes.dtype == np.float32)

    def of(self, label: int) -> Array:
        """The scores of one class."""
        return self.scores[np.array(self.labels) == label]


@st.composite
def histories(
    draw: st.DrawFn, kinds: tuple[str, ...] = ("fraction", "raw"), least: int = 1, most: int = 20
) -> History:
    """Labelled scores of both classes, `least` to `most` of each, with probes at and beside many of them."""
    score_kind = draw(st.sampled_from(kinds))
    families = FRACTIONS if score_kind == "fraction" else RAW
    family = families[draw(st.sampled_from(sorted(families)))]
    n0, n1 = draw(st.integers(least, most)), draw(st.integers(least, most))
    dtype, probe_dtype = draw(st.sampled_from([(np.float64, np.float64), (np.float64, np.float32), *NARROW]))
    rng = np.random.default_rng([67, draw(st.integers(0, 2**32 - 1))])
    scores = _array(family(rng, n0 + n1), dtype)
    labels = rng.permutation(np.r_[np.zeros(n0, int), np.ones(n1, int)])
    probes = _probes(rng.permutation(scores)[:8], family(rng, 3), probe_dtype, score_kind)
    return History(scores, labels.tolist(), probes, score_kind)


NARROW = ((np.float32, np.float64), (np.float32, np.float32))


def _array(values: Array, dtype: Any) -> Array:
    """Values in a precision; what its range does not hold is brought to its ends."""
    limit = float(np.finfo(dtype).max)
    return np.clip(values, -limit, limit).astype(dtype)


def _probes(scores: Array, others: Array, dtype: Any, score_kind: str) -> Array:
    """Each score, its neighbours in the precision of the probes, and some others."""
    at = np.unique(_array(scores.astype(np.float64), dtype))
    with np.errstate(over="ignore"):
        beside = [np.nextafter(at, dtype(-math.inf)), at, np.nextafter(at, dtype(math.inf))]
    values = np.concatenate([*beside, _array(others, dtype)])
    values = values[np.isfinite(values)]
    if score_kind == "fraction":
        values = values[(values >= 0) & (values <= 1)]
    return values
