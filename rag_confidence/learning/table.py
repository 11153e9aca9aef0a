"""Signals of assessed retrievals as one table, which must all have been made in one way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from rag_confidence._types import Backend, FloatArray, Provenance
from rag_confidence.errors import CalibrationMismatch
from rag_confidence.learning.reading import Metrics, Record, columns_of, records_of, words_of
from rag_confidence.product.batch import MetricsBatch
from rag_confidence.product.record import SCHEMA_VERSION

# What must be one and the same for signals to be comparable: key of the record, what to call it.
_SAME = (
    ("policy_fingerprint", "policy"),
    ("profile_fingerprint", "corpus profile"),
    ("embedder", "embedder"),
    ("evidence.embedding_backend", "embedding backend"),
)
_CURES = {
    "policy": "Score with the same policy=, or fit the model again.",
    "profile": "Score with the same profile=, or fit the model again.",
    "embedder": "Score with the same embedder=, or fit the model again: other vectors make other signals.",
}
_SHOWN = 4


@dataclass(frozen=True, eq=False)
class SignalTable:
    """Columns of n retrievals.

    Attributes
    ----------
    names : tuple of str
    values : ndarray, shape (n, p)
        nan where not assessed.
    kpi : ndarray, shape (n,)
    provenance : Provenance
        How all of them were made.
    """

    names: tuple[str, ...]
    values: FloatArray
    kpi: FloatArray
    provenance: Provenance


def listed(metrics: Metrics) -> Metrics:
    """A batch as it is, and an iterable that can be read once as a tuple."""
    once = isinstance(metrics, Iterator)
    return cast(Metrics, tuple(metrics)) if once else metrics


def table_of(metrics: Metrics, names: Sequence[str]) -> SignalTable:
    """The signals `names` of each retrieval.

    Raises
    ------
    TypeError, ValueError
        For what holds no retrievals, for records of another version of the contract, and for retrievals
        that were not all made with one policy, profile and embedder.
    """
    if isinstance(metrics, MetricsBatch) and len(metrics):
        columns, made = metrics.columns(), metrics.provenance
    else:
        records = records_of(metrics)
        _check_version(records)
        columns, made = columns_of(records, ("kpi", *names)), _provenance(records)
    missing = np.full(len(columns["kpi"]), np.nan)
    values = np.column_stack([columns.get(name, missing) for name in names])
    return SignalTable(tuple(names), values.astype(np.float64), columns["kpi"], made)


def stacked(columns: Mapping[str, FloatArray], names: Sequence[str]) -> FloatArray:
    """Columns by name as an array (n, p), nan where there is none of that name."""
    length = max((len(column) for column in columns.values()), default=0)
    missing = np.full(length, np.nan)
    found = [np.asarray(columns.get(name, missing), dtype=np.float64) for name in names]
    return np.column_stack(found) if found else np.zeros((length, 0))


def check_same_making(found: Provenance, wanted: Provenance) -> None:
    """Refuse retrievals that were scored in another way than those a model was trained on."""
    here, trained = found.to_dict(), wanted.to_dict()
    for key, cure in _CURES.items():
        if here[key] != trained[key]:
            raise CalibrationMismatch(
                f"`metrics` must be made as those the model was trained on; got the {key} {here[key]!r} "
                f"where the model has {trained[key]!r}. {cure}"
            )


def _check_version(records: Sequence[Record]) -> None:
    odd = [version for version in words_of(records, "schema_version") if version != SCHEMA_VERSION]
    if odd:
        raise ValueError(
            f"`metrics` must hold records of schema_version {SCHEMA_VERSION!r}; got {odd[0]!r} in "
            f"{len(odd)} of {len(records)}. Score these questions again with this version."
        )


def _provenance(records: Sequence[Record]) -> Provenance:
    words = {key: _one(records, key, what) for key, what in _SAME}
    if words["policy_fingerprint"] is None:
        raise ValueError(
            "`metrics` must hold whole to_dict() records; got some without `policy_fingerprint`. "
            "Log the record as it is, under a key of its own."
        )
    backend = cast(Backend, words["evidence.embedding_backend"])
    made = Provenance.of_kpi(str(words["policy_fingerprint"]), words["embedder"], backend)
    return replace(made, profile=words["profile_fingerprint"])


def _one(records: Sequence[Record], key: str, what: str) -> Any:
    found = dict.fromkeys(words_of(records, key))
    if len(found) > 1:
        shown = ", ".join(repr(word) for word in [*found][:_SHOWN])
        raise ValueError(
            f"`metrics` must all be made with one {what}; got {len(found)} in `{key}`: {shown}. "
            "Split the log by it, or score the questions again."
        )
    return next(iter(found))
