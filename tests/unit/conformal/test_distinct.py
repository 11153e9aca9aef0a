"""Rows collapsed to their distinct scores."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rag_confidence.conformal.distinct import distinct

ROWS = st.lists(
    st.tuples(st.sampled_from([-1.0, -0.0, 0.0, 0.1, 0.3, 2.0]), st.booleans()), min_size=1, max_size=16
)


@given(ROWS)
def test_counts_are_those_of_the_rows(rows: list[tuple[float, bool]]) -> None:
    """Each distinct score carries the number of its rows and of its sufficient rows, in ascending order."""
    table = distinct(np.array([s for s, _ in rows]), np.array([y for _, y in rows]))
    assert table.scores.tolist() == sorted({s for s, _ in rows})
    assert dict(zip(table.scores.tolist(), table.counts.tolist(), strict=True)) == Counter(s for s, _ in rows)
    good = Counter(s for s, y in rows if y)
    assert table.ones.tolist() == [good[s] for s in table.scores.tolist()]
    assert table.n == len(rows)


def test_precision_is_kept() -> None:
    """Single-precision scores stay in single precision, and have their sums in double."""
    table = distinct(np.array([0.1, 0.7], dtype=np.float32), np.array([True, False]))
    assert table.scores.dtype == np.float32
    assert table.values.dtype == np.float64
