"""Signals as one table: from a batch or from records, made in one way or refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from refusals import refuse
from retrieval_logs import log_of

from rag_confidence import MetricPolicy, score_many
from rag_confidence._types import Provenance
from rag_confidence.errors import CalibrationMismatch
from rag_confidence.learning.table import check_same_making, listed, stacked, table_of

NAMES = ("signals.max_cosine", "signals.flip_angle", "signals.not_yet_invented")


def test_batch_metrics_records_and_json_give_one_table() -> None:
    """Columns, objects, dicts and parsed JSON: the same numbers and provenance, nan for an unknown signal."""
    rng = np.random.default_rng(0)
    queries, passages = rng.standard_normal((4, 8)), rng.standard_normal((4, 5, 8))
    batch = score_many(queries, passages, embedder="made-up")
    plain = batch.to_dicts()
    tables = [table_of(m, NAMES) for m in (batch, [*batch], plain, json.loads(json.dumps(plain)))]
    for table in tables:
        np.testing.assert_array_equal(table.values, tables[0].values)
        np.testing.assert_array_equal(table.kpi, batch.kpi)
        assert table.provenance == batch.provenance
    assert np.isnan(tables[0].values).all(axis=0).tolist() == [False, False, True]


def test_an_iterator_is_read_once() -> None:
    """A generator of records becomes a tuple; what has a length stays itself."""
    records = log_of(2)
    assert listed(iter(records)) == tuple(records)  # type: ignore[arg-type]
    assert listed(records) is records


@pytest.mark.parametrize(
    ("key", "what"),
    [
        ("policy_fingerprint", "one policy"),
        ("profile_fingerprint", "one corpus profile"),
        ("embedder", "one embedder"),
        ("evidence.embedding_backend", "one embedding backend"),
    ],
)
def test_retrievals_made_in_two_ways_are_refused(key: str, what: str) -> None:
    """The message names the key and both values."""
    records = log_of(4, {key: ["a", "a", "lexical", "a"]})
    message = refuse(ValueError, what, lambda: table_of(records, NAMES))
    assert f"`{key}`: 'a', 'lexical'" in message


def test_another_version_of_the_record_is_refused() -> None:
    """Its signals may mean something else."""
    records = log_of(3, {"schema_version": ["0.9", "0.9", "1.0"]})
    assert "'0.9' in 3 of 3" in refuse(ValueError, "schema_version", lambda: table_of(records, NAMES))


@pytest.mark.parametrize("nothing", [[], (), 7, "kpi"])
def test_what_holds_no_retrieval_is_refused(nothing: Any) -> None:
    """Empty lists and other things, by the reader of records."""
    refuse((TypeError, ValueError), "metrics", lambda: table_of(nothing, NAMES))


def test_lexical_records_are_another_embedder() -> None:
    """Their provenance is that of the batch they came from."""
    records = log_of(2, {"evidence.embedding_backend": "lexical", "embedder": "bm25"})
    assert table_of(records, NAMES).provenance.embedder == "lexical:bm25"


def test_a_record_without_its_policy_is_refused() -> None:
    """A part of a record does not say how it was made."""
    records = log_of(2, {"policy_fingerprint": None})
    refuse(ValueError, "whole to_dict", lambda: table_of(records, NAMES))


@pytest.mark.parametrize("key", ["policy", "profile", "embedder"])
def test_another_making_than_in_training_is_refused(key: str) -> None:
    """The message names what differs; a model of its own is no difference."""
    made = Provenance(policy="p", profile="q", embedder="e")
    check_same_making(made, made)
    other = Provenance(**{**made.to_dict(), key: "other"})
    assert f"the {key} 'other'" in refuse(
        CalibrationMismatch, "made as those", lambda: check_same_making(other, made)
    )


def test_columns_without_a_name_are_not_assessed() -> None:
    """Columns of other names are left out, missing ones are nan."""
    values = stacked({"a": np.array([1.0, 2.0]), "z": np.zeros(2)}, ("b", "a"))
    assert np.isnan(values[:, 0]).all()
    assert values[:, 1].tolist() == [1.0, 2.0]
    assert stacked({}, ("a",)).shape == (0, 1)


def test_the_policy_is_part_of_the_making() -> None:
    """Two policies have two fingerprints in their records."""
    one = score_many([[1.0, 0.0]], [[[1.0, 0.1]]])
    other = score_many([[1.0, 0.0]], [[[1.0, 0.1]]], policy=MetricPolicy(answer_at=90.0))
    refuse(ValueError, "one policy", lambda: table_of([*one, *other], NAMES))
