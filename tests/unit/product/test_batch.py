"""MetricsBatch: columns that read as results."""

from __future__ import annotations

import copy
import json
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rag_confidence import (
    CorpusProfile,
    MetricPolicy,
    MetricsBatch,
    RagConfidenceMetrics,
    Signal,
    score_many,
)
from rag_confidence.product.record import KEY_NAMES

QUERIES = np.eye(4)[[0, 0, 0, 0, 1]]
GOOD = np.array([[0.9, 0.4, 0.1, 0], [0.85, 0.5, 0, 0.1], [0.8, 0.5, 0.1, 0.1], [0.78, 0.5, 0.1, 0.1]])
GROUPS = [GOOD, GOOD[:1], np.zeros((0, 4)), GOOD[::-1], GOOD[:2] * [-1, -1, 1, 1]]
TEXTS = [["a", "b", "c", "d"], ["e"], None, ["f", "g", "h", "i"], None]


def batch(**options: Any) -> MetricsBatch:
    """Five retrievals of different kinds."""
    return score_many(QUERIES, GROUPS, TEXTS, calibrator=lambda kpi: kpi**2, **options)


def test_a_batch_is_a_sequence() -> None:
    """Length, indices from both ends, slices, iteration, and an error beyond the ends."""
    b = batch()
    assert len(b) == 5
    assert isinstance(b[0], RagConfidenceMetrics)
    assert b[-1].to_dict() == b[4].to_dict() == b[np.int64(4)].to_dict()
    assert [m.to_dict() for m in b[1:4]] == [b[i].to_dict() for i in (1, 2, 3)]
    assert [m.to_dict() for m in b[::-2]] == [b[i].to_dict() for i in (4, 2, 0)]
    assert b[5:] == []
    assert [m.to_dict() for m in b] == b.to_dicts() == [m.to_dict() for m in b]
    for index in (5, -6):
        with pytest.raises(IndexError):
            b[index]


def test_columns_equal_the_results() -> None:
    """Every column holds what the results say, nan where they say None."""
    b = batch()
    for i, m in enumerate(b):
        assert b.verdict[i] == m.verdict
        assert b.reason_code[i] == m.reason_code
        assert b.primary_risk[i] == m.primary_risk
        assert b.kpi[i] == m.kpi
        assert b.retrieval_confidence[i] == m.retrieval_confidence
        for name in (*(s.value for s in Signal), "p_sufficient"):
            value, column = getattr(m, name), getattr(b, name)[i]
            assert math.isnan(column) if value is None else column == value, name


def test_every_signal_of_the_record_is_a_column() -> None:
    """With a profile too, and as the record has it: unrounded, nan for null."""
    rng = np.random.default_rng([11, 0])
    profile = CorpusProfile.fit(rng.standard_normal((80, 6)) + 1.0, rng.standard_normal((30, 6)) + 1.0)
    groups = [rng.standard_normal((n, 6)) + 1.0 for n in (1, 5, 8, 25)]
    b = score_many(rng.standard_normal((4, 6)), groups, profile=profile)
    table = b.columns()
    assert {name for name in table if name.startswith("signals.")} == {
        name for name in KEY_NAMES if name.startswith("signals.")
    }
    for i, record in enumerate(b.to_dicts()):
        for name, column in table.items():
            value = record[name]
            assert (value is None and column[i] != column[i]) or column[i] == value, name


def test_the_table_is_ready_for_a_data_frame() -> None:
    """Columns of one length, by their keys in the record."""
    b = batch()
    table = b.columns()
    records = b.to_dicts()
    assert set(table) <= set(records[0])
    for key, column in table.items():
        assert column.shape == (5,)
        for value, record in zip(column.tolist(), records, strict=True):
            assert record[key] == (None if value != value else value), key


def test_records_are_strict_json() -> None:
    """A list of records is JSON with plain values."""
    assert json.loads(json.dumps(batch().to_dicts(), allow_nan=False)) == batch().to_dicts()


@pytest.mark.parametrize(
    "twin",
    [copy.copy, copy.deepcopy, lambda b: pickle.loads(pickle.dumps(b))],
    ids=["copy", "deep", "pickle"],
)
@pytest.mark.parametrize("used", [False, True])
def test_batches_are_copied_and_pickled(twin: Callable[[Any], Any], used: bool) -> None:
    """With callables that cannot be pickled in the call, before and after columns were read."""
    b = score_many(QUERIES[:2], GROUPS[:2], TEXTS[:2], calibrator=lambda k: k, contradiction=lambda t: 0.1)
    if used:
        assert b.verdict.shape == (2,)
    other = twin(b)
    assert other.to_dicts() == b.to_dicts()
    assert [m.support for m in other] == [m.support for m in b]
    assert other.verdict.tolist() == b.verdict.tolist()


def test_contradiction_needs_texts_only_where_there_are_passages() -> None:
    """The fixture gives texts to all but one query that has passages."""
    with pytest.raises(ValueError, match=r"`texts\[4\]` must be given"):
        score_many(QUERIES, GROUPS, TEXTS, contradiction=lambda texts: 0.1)


def test_support_belongs_to_its_query() -> None:
    """Places, cosines and snippets of each list; short lists have less of it."""
    b = batch()
    assert [[s.index for s in m.support] for m in b] == [
        [0, 1, 2],
        [0],
        [],
        [3, 2, 1],
        b[4].support and [0, 1],
    ]
    assert [s.snippet for s in b[3].support] == ["i", "h", "g"]
    assert [s.snippet for s in b[4].support] == [None, None]
    assert b[0].support[0].cosine == pytest.approx(b[0].to_dict()["signals.max_cosine"])


def test_reading_results_does_not_change_them() -> None:
    """Warnings of a record are a copy, so that one reader cannot write into another's."""
    b = score_many(QUERIES, GROUPS, k_requested=9)
    first = b[0].to_dict()
    b[0].to_dict()["warnings"].append("x")
    assert b[0].to_dict() == first
    assert len(first["warnings"]) == 1


def test_all_retrievals_share_one_policy() -> None:
    """The fingerprint is that of the policy of the call."""
    policy = MetricPolicy(answer_at=70)
    prints = {r["policy_fingerprint"] for r in batch(policy=policy).to_dicts()}
    assert prints == {policy.fingerprint}


def test_an_empty_batch_has_empty_columns() -> None:
    """Q = 0."""
    b = score_many(np.zeros((0, 4)), [])
    assert (len(b), list(b), b.to_dicts(), b[:]) == (0, [], [], [])
    assert {column.shape for column in b.columns().values()} == {(0,)}
    assert b.query_robustness.shape == (0,)
