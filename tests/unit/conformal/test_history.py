"""What is known of a calibration set beside its numbers: days, and kinds of insufficient rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from refusals import refuse

from rag_confidence.conformal.history import check_collected, check_negatives


@pytest.mark.needs_extra("test")
@pytest.mark.parametrize("missing", ["NA", "NaT"])
def test_missing_values_of_pandas_are_no_days_and_no_kinds(missing: str) -> None:
    """NA and NaT are refused as a day, as one end of a span and as a kind of negative."""
    import pandas as pd

    odd, labels = getattr(pd, missing), np.array([False, True])
    for collected in (odd, (odd, "2026-01-01"), ("2026-01-01", odd)):
        refuse(ValueError, "^`collected` must hold dates", lambda c=collected: check_collected(c))
    for negatives in ([odd, None], {odd: 1}):
        refuse(ValueError, "^`negatives` must name kinds", lambda n=negatives: check_negatives(n, labels))
    assert check_collected(pd.Timestamp("2026-01-02 03:04")) == ("2026-01-02", "2026-01-02")


@pytest.mark.parametrize(
    "negatives", [np.array("near_miss"), b"no", {"near_miss"}, 5, iter([])], ids=lambda v: type(v).__name__
)
def test_negatives_are_a_column_or_counts(negatives: Any) -> None:
    """An array without axes, bytes, sets and iterators are neither."""
    call = lambda: check_negatives(negatives, np.array([False, True]))  # noqa: E731
    refuse(TypeError, "^`negatives` must be one kind a row, or counts; got ", call)


@pytest.mark.needs_extra("test")
def test_any_column_names_kinds() -> None:
    """Lists, arrays and columns of pandas count alike; what stands beside sufficient rows does not matter."""
    import pandas as pd

    kinds, labels = ["near_miss", None, "topic_gap"], np.array([False, True, False])
    wanted = (("topic_gap", 1), ("near_miss", 1))
    for column in (kinds, tuple(kinds), np.array(kinds, dtype=object), pd.Series(kinds), pd.Index(kinds)):
        assert check_negatives(column, labels) == wanted
