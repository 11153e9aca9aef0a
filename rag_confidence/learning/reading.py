"""Assessed retrievals, however they were kept, as records and as columns of numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from rag_confidence._types import FloatArray
from rag_confidence.product.batch import MetricsBatch
from rag_confidence.product.metrics import RagConfidenceMetrics
from rag_confidence.product.record import KEY_NAMES

Record: TypeAlias = Mapping[str, Any]
Metrics: TypeAlias = MetricsBatch | Sequence[RagConfidenceMetrics] | Sequence[Record]
"""What `score_many` returns, a list of what `score` returns, or their `to_dict()` records."""

_WANTED = "a MetricsBatch, a list of RagConfidenceMetrics or a list of to_dict() records"
_CURE = "Parse each line of a JSONL log with json.loads, and pass the list."
_FRAME_CURE = 'Pass df.astype(object).where(df.notna(), None).to_dict("records"), which makes nan None again.'
_PLACE = {name: place for place, name in enumerate(KEY_NAMES)}


def records_of(metrics: Metrics) -> tuple[Record, ...]:
    """The record of every retrieval, in their order; at least one.

    Parameters
    ----------
    metrics : MetricsBatch, sequence of RagConfidenceMetrics, or sequence of mappings
        Mappings are `to_dict()` records, possibly read back from JSON and of an older version of the
        contract; each has a `kpi` in [0, 1].

    Returns
    -------
    tuple of mappings
        Not copied: treat them as read-only.

    Raises
    ------
    TypeError, ValueError
        For anything else, for no retrieval, and for a record without a KPI.

    Notes
    -----
    O(n), with one record built for each retrieval of a batch.
    """
    if isinstance(metrics, MetricsBatch):
        records: tuple[Record, ...] = tuple(metrics.to_dicts())
    else:
        records = tuple(_record(place, entry) for place, entry in enumerate(_entries(metrics)))
    if not records:
        raise ValueError(
            "`metrics` must hold at least one retrieval; got none. Score some questions of your log first."
        )
    for place, record in enumerate(records):
        _check_kpi(place, record)
    return records


def columns_of(metrics: Metrics | tuple[Record, ...], names: Iterable[str]) -> dict[str, FloatArray]:
    """Columns (n,) of the numbers under `names`; nan where a record has null or no such key.

    Parameters
    ----------
    metrics : as for `records_of`
    names : iterable of str
        Keys of the JSON contract that hold numbers, such as "kpi" or "signals.max_cosine".

    Returns
    -------
    dict of str to ndarray, shape (n,), float64

    Raises
    ------
    TypeError, ValueError
        As `records_of`, and for values that are neither finite numbers nor null.
    """
    records = records_of(metrics)
    return {name: _column(records, name) for name in names}


def names_of(records: Sequence[Record], prefix: str) -> tuple[str, ...]:
    """Keys that start with `prefix` in any of the records: in the order of the contract, others after it."""
    # Most records have the same keys in the same order.
    shapes = {tuple(record) for record in records}
    found = {name for shape in shapes for name in shape if name.startswith(prefix)}
    return tuple(sorted(found, key=lambda name: (_PLACE.get(name, len(_PLACE)), name)))


def words_of(records: Sequence[Record], name: str) -> tuple[str | None, ...]:
    """The text under one key in every record; None where it is null or missing."""
    found = [record.get(name) for record in records]
    return tuple(None if word is None else str(word) for word in found)


def check_one(signals: Any) -> None:
    """Refuse what is not a mapping from keys of the record to numbers."""
    if not isinstance(signals, Mapping):
        raise TypeError(
            f"`signals` must map keys of the record to numbers; got {type(signals).__name__}. Pass the "
            "to_dict() of a result, or use predict for a batch or a list."
        )


def _entries(metrics: Any) -> tuple[Any, ...]:
    single = isinstance(metrics, (str, bytes, Mapping, RagConfidenceMetrics))
    if single or not isinstance(metrics, Iterable):
        raise TypeError(f"`metrics` must be {_WANTED}; got {type(metrics).__name__}. {_CURE}")
    # A DataFrame iterates over the names of its columns. pandas need not be installed.
    if hasattr(metrics, "columns") and hasattr(metrics, "to_dict"):
        raise TypeError(f"`metrics` must be {_WANTED}; got {type(metrics).__name__}. {_FRAME_CURE}")
    return tuple(metrics)


def _record(place: int, entry: Any) -> Record:
    if isinstance(entry, RagConfidenceMetrics):
        return entry.record
    if isinstance(entry, Mapping):
        return entry
    raise TypeError(
        f"`metrics[{place}]` must be RagConfidenceMetrics or a to_dict() record; "
        f"got {type(entry).__name__}. {_CURE}"
    )


def _check_kpi(place: int, record: Record) -> None:
    name = f"metrics[{place}]['kpi']"
    if record.get("kpi") is None:
        raise ValueError(
            f"`{name}` must be the KPI in [0, 1]; got none. Pass the to_dict() record itself, whole."
        )
    kpi = _number(name, record["kpi"])
    if not 0.0 <= kpi <= 1.0:
        raise ValueError(f"`{name}` must be the KPI in [0, 1]; got {kpi!r}. Pass an unchanged to_dict().")


def _column(records: Sequence[Record], name: str) -> FloatArray:
    values = [record.get(name) for record in records]
    return np.array([_number(f"metrics[{at}][{name!r}]", value) for at, value in enumerate(values)])


def _number(name: str, value: Any) -> float:
    if value is None:
        return math.nan
    if type(value) is float and math.isfinite(value):
        return value
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(
            f"`{name}` must be a finite number or None; got {value!r}. Pass an unchanged to_dict()."
        )
    if not math.isfinite(value):
        raise ValueError(f"`{name}` must be a finite number or None; got {value!r}. Not assessed is None.")
    return float(value)
