"""Hypothesis strategies for labelled scores: ties, decimals, signed zeros, both precisions, any scale."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import reference_conformal as ref
from hypothesis import strategies as st
from numpy.typing import NDArray

Array = NDArray[Any]

FRACTIONS = {
    "tenths": st.integers(0, 10).map(lambda i: i / 10),
    "hundredths": st.integers(0, 100).map(lambda i: i / 100),
    "any": st.floats(0.0, 1.0),
    "tiny": st.sampled_from([0.0, -0.0, 5e-324, 1e-310, 1e-45, 1e-30, 1.0, 1 - 2**-53]),
}
RAW = {
    "whole": st.integers(-5, 5).map(float),
    "decimals": st.integers(-300, 300).map(lambda i: i / 100),
    "any": st.floats(allow_nan=False, allow_infinity=False),
    "huge": st.sampled_from([-1e308, -1e39, -1.0, -0.0, 0.0, 1e-300, 1.0, 3.4e38, 1e39, 1.7e308]),
    "cosines": st.floats(-1.0, 1.0),
}
# Few rows support coarse levels only, so most are coarse; the last ones no small history supports.
LEVELS = st.one_of(
    st.sampled_from(["0.1", "0.2", "1/3", "0.5", "0.7", "1/4", "3/4", "0.05"]),
    st.fractions(Fraction(1, 20), Fraction(19, 20), max_denominator=20),
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
    draw: Any, kinds: tuple[str, ...] = ("fraction", "raw"), least: int = 1, most: int = 24
) -> History:
    """Labelled scores of both classes, `least` to `most` of each, with probes at and beside each of them."""
    score_kind = draw(st.sampled_from(kinds))
    families = FRACTIONS if score_kind == "fraction" else RAW
    values = families[draw(st.sampled_from(sorted(families)))]
    class0 = draw(st.lists(values, min_size=least, max_size=most))
    class1 = draw(st.lists(values, min_size=least, max_size=most))
    order = draw(st.randoms(use_true_random=False))
    rows = [(s, 0) for s in class0] + [(s, 1) for s in class1]
    order.shuffle(rows)
    scores = _array([s for s, _ in rows], draw(st.sampled_from([np.float64, np.float32])))
    probe_dtype = draw(st.sampled_from([np.float64, np.float32]))
    probes = _probes(scores, draw(st.lists(values, max_size=4)), probe_dtype, score_kind)
    return History(scores, [y for _, y in rows], probes, score_kind)


def _array(values: list[float], dtype: Any) -> Array:
    """Values in a precision; what its range does not hold is brought to its ends."""
    limit = float(np.finfo(dtype).max)
    return np.array([min(max(v, -limit), limit) for v in values], dtype=dtype)


def _probes(scores: Array, others: list[float], dtype: Any, score_kind: str) -> Array:
    """Each distinct score, its neighbours in the precision of the probes, and some others."""
    at = np.unique(_array(scores.astype(np.float64).tolist(), dtype))[:12]
    with np.errstate(over="ignore"):
        beside = [np.nextafter(at, dtype(-math.inf)), at, np.nextafter(at, dtype(math.inf))]
    values = np.concatenate([*beside, _array(others, dtype)])
    values = values[np.isfinite(values)]
    if score_kind == "fraction":
        values = values[(values >= 0) & (values <= 1)]
    return values
