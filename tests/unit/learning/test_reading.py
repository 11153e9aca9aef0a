"""Retrievals in every form that they are kept in, and what is no retrieval."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from refusals import refuse
from retrieval_logs import BASE, PASSAGES, QUERY, log_of

from rag_confidence import score, score_many
from rag_confidence.learning.reading import columns_of, names_of, records_of, words_of

BATCH = score_many([QUERY, QUERY], [PASSAGES, PASSAGES[:1]])


def test_every_form_gives_the_same_records() -> None:
    """A batch, its metrics, their records and the records read back from JSON are one log."""
    records = BATCH.to_dicts()
    forms: list[Any] = [BATCH, [*BATCH], records, [json.loads(json.dumps(record)) for record in records]]
    for form in [*forms, tuple(records), (record for record in records)]:
        assert [dict(record) for record in records_of(form)] == records


def test_columns_hold_nan_where_nothing_was_assessed() -> None:
    """Null and a missing key are nan; numbers come as float64."""
    records: list[dict[str, Any]] = [{"kpi": 0.5, "a": 1}, {"kpi": 0.25, "a": None}, {"kpi": 0}]
    columns = columns_of(records, ["kpi", "a"])
    np.testing.assert_array_equal(columns["kpi"], [0.5, 0.25, 0.0])
    np.testing.assert_array_equal(columns["a"], [1.0, np.nan, np.nan])
    assert columns["a"].dtype == np.float64


def test_names_follow_the_contract_and_then_the_alphabet() -> None:
    """New keys of a later version are found, whichever record has them first."""
    records = [{"kpi": 1, "signals.zz": 1, "signals.aa": 1}, {"kpi": 1, "signals.max_cosine": 1}]
    wanted = ("signals.max_cosine", "signals.aa", "signals.zz")
    assert names_of(records, "signals.") == names_of(records[::-1], "signals.") == wanted


def test_words_are_texts_or_none() -> None:
    """A missing key and null are both None."""
    assert words_of([{"embedder": "e"}, {"embedder": None}, {}], "embedder") == ("e", None, None)


@pytest.mark.parametrize(
    ("metrics", "kind", "message"),
    [
        ([], ValueError, "at least one retrieval; got none"),
        ("a.jsonl", TypeError, "got str"),
        (BASE, TypeError, "got dict"),
        (score(QUERY, PASSAGES), TypeError, "got RagConfidenceMetrics"),
        (3, TypeError, "got int"),
        ([BASE, 3.0], TypeError, r"`metrics\[1\]` must be .* got float"),
        ([BASE, {"rag": BASE}], ValueError, r"metrics\[1\]\['kpi'\]` .* got none"),
        ([{**BASE, "kpi": 55.0}], ValueError, r"\['kpi'\]` must be the KPI in \[0, 1\]; got 55.0"),
        ([{**BASE, "kpi": float("nan")}], ValueError, "got nan"),
        ([{**BASE, "kpi": True}], TypeError, "got True"),
        ([{**BASE, "kpi": "0.5"}], TypeError, "got '0.5'"),
    ],
)
def test_what_is_no_log_is_refused(metrics: Any, kind: type[Exception], message: str) -> None:
    """The refusal names the entry and what it is."""
    refuse(kind, message, lambda: records_of(metrics))


@pytest.mark.parametrize(
    ("value", "kind"), [(float("nan"), ValueError), (float("inf"), ValueError), ("x", TypeError)]
)
def test_a_column_of_odd_values_is_refused(value: Any, kind: type[Exception]) -> None:
    """Not assessed is null; nan in a record was made elsewhere."""
    records = log_of(3, max_cosine=[0.5, None, value])
    refuse(kind, r"metrics\[2\]\['signals.max_cosine'\]", lambda: columns_of(records, ["signals.max_cosine"]))


@pytest.mark.needs_extra("test")
def test_a_data_frame_is_refused_with_a_cure_that_works() -> None:
    """Its nulls are nan, which a record may not hold: the cure makes them None again."""
    import pandas

    records = log_of(3, max_cosine=[0.5, None, 0.25])
    df = pandas.DataFrame(records)
    refuse(TypeError, r'got DataFrame\. Pass df\..*to_dict\("records"\)', lambda: records_of(df))
    cured = df.astype(object).where(df.notna(), None).to_dict("records")
    (cosines,) = columns_of(cured, ["signals.max_cosine"]).values()
    np.testing.assert_array_equal(cosines, [0.5, np.nan, 0.25])
    assert words_of(cured, "gate_fingerprint") == (None, None, None)
