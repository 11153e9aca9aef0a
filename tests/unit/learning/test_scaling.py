"""Signals on a common scale: means and deviations of what was assessed, and what does not vary."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rag_confidence.learning.scaling import standardised

NAN = np.nan
entries = st.one_of(st.just(NAN), st.integers(-8, 8).map(float))


@given(values=arrays(np.float64, st.tuples(st.integers(1, 12), st.integers(1, 4)), elements=entries))
def test_it_is_what_numpy_says_of_the_assessed_entries(values: np.ndarray) -> None:
    """Each column alone, its nan left out: mean, deviation, range and count."""
    found = standardised(values)
    for at, column in enumerate(values.T):
        known = column[~np.isnan(column)]
        assert found.counts[at] == len(known)
        assert found.usable[at] == (len(known) > 0 and np.ptp(known) > 0)
        if found.usable[at]:
            wanted = np.where(np.isnan(column), 0.0, (column - known.mean()) / known.std())
            assert found.design[:, at] == pytest.approx(wanted, abs=1e-12)
            assert (found.low[at], found.high[at]) == (known.min(), known.max())
        else:
            assert not found.design[:, at].any()
            assert found.scale[at] == 1.0


def test_rounding_is_no_variation() -> None:
    """A constant with noise of the last digit is constant, at any size; a small signal is not."""
    noise = 1e-16 * np.arange(10)
    assert not standardised(0.7 + noise[:, None]).usable[0]
    assert standardised(1e-9 * np.arange(10.0)[:, None]).usable[0]


def test_no_rows_have_no_scale() -> None:
    """An empty table is defined."""
    found = standardised(np.zeros((0, 2)))
    assert found.counts.tolist() == [0, 0]
    assert not found.usable.any()
