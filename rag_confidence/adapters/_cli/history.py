"""Labelled scores, from a file or from a store."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rag_confidence import Provenance
from rag_confidence._history import GroupName
from rag_confidence._types import FloatArray, Mask
from rag_confidence.adapters._cli.printing import note
from rag_confidence.adapters._cli.reading import Rows, check_lengths, read_rows
from rag_confidence.store import CalibrationStore

# How a KPI was made, as its record says it.
MADE_BY = ("policy_fingerprint", "profile_fingerprint", "embedder", "evidence.embedding_backend")


@dataclass(frozen=True)
class History:
    """Labelled scores, with what is known of them.

    Attributes
    ----------
    scores, labels : ndarray, shape (n,)
    groups : list or None
    provenance : Provenance or None
    row_ids : list or None
    collected : tuple of str, or None
    labeling_source : str or None
    clusters : list or None
    rows : sequence of int
        Which rows of the file these are.
    """

    scores: FloatArray
    labels: Mask
    groups: Sequence[GroupName] | None
    provenance: Provenance | None = None
    row_ids: Any = None
    collected: tuple[str, str] | None = None
    labeling_source: str | None = None
    clusters: list[Any] | None = None
    rows: Sequence[int] = ()


@dataclass(frozen=True)
class Columns:
    """Names of the columns that make a history."""

    score: str = "kpi"
    label: str = "label"
    group: str | None = None
    row_id: str | None = None
    cluster: str | None = None


def read_history(data: Path | None, store: str | None, columns: Columns) -> History:
    """The labelled rows of a file or of a store; exactly one of them is given."""
    if (data is None) == (store is None):
        got = "neither" if data is None else "both"
        raise ValueError(f"`DATA` must be given, or --store instead; got {got}. Pass one of them.")
    return from_store(store, columns) if data is None else from_rows(read_rows(data), columns)


def from_store(path: str | None, columns: Columns) -> History:
    """The labelled scores of one check in a store that exists."""
    with CalibrationStore(path or "", create=False) as opened:
        found = opened.history(columns.score)
    _tell(found.n_unlabelled, "calls without a label")
    _tell(found.n_without, f"calls without {columns.score!r}")
    return History(
        found.scores,
        found.labels,
        _known_groups(found.groups, str(path)),
        found.provenance,
        found.row_ids,
        found.collected,
        found.labeling_source,
    )


def from_rows(rows: Rows, columns: Columns) -> History:
    """The rows of a file that have both a score and a label; how many have not is told on stderr."""
    scores = numbers(rows, columns.score)
    labels = outcomes(rows, columns.label)
    named = {name: rows.column(name) for name in (columns.group, columns.row_id, columns.cluster) if name}
    check_lengths(rows.name, {columns.score: scores, columns.label: labels, **named})
    kept = [row for row in range(len(scores)) if scores[row] is not None and labels[row] is not None]
    _tell(sum(score is None for score in scores), f"rows without {columns.score!r}")
    _tell(sum(label is None for label in labels), f"rows without {columns.label!r}")

    def of(name: str | None) -> list[Any] | None:
        return None if name is None else [named[name][row] for row in kept]

    return History(
        np.array([scores[row] for row in kept], dtype=np.float64),
        np.array([labels[row] for row in kept], dtype=bool),
        of(columns.group),
        provenance_of(rows) if columns.score == "kpi" else None,
        of(columns.row_id),
        clusters=of(columns.cluster),
        rows=kept,
    )


def numbers(rows: Rows, name: str) -> list[float | None]:
    """A column of numbers, None where a row has none; anything else is refused by its line."""
    values = rows.column(name)
    for row, value in enumerate(values):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise TypeError(
                f"`{name}` must be a number; got {value!r} in {rows.place(row)}. Correct the row."
            )
        if value is not None and not abs(value) <= sys.float_info.max:
            raise ValueError(
                f"`{name}` must be finite; got {value!r} in {rows.place(row)}. Leave the score out where "
                "there is none."
            )
    return values


def outcomes(rows: Rows, name: str) -> list[bool | None]:
    """A column of labels, None where a row has none yet; anything but true, false, 1, 0 is refused."""
    values = rows.column(name)
    for row, value in enumerate(values):
        known = isinstance(value, bool | int | float) and value in (0, 1)
        if value is not None and not known:
            raise TypeError(
                f"`{name}` must be true, false, 1 or 0; got {value!r} in {rows.place(row)}. Correct the row."
            )
    return [None if value is None else bool(value) for value in values]


def provenance_of(rows: Rows) -> Provenance | None:
    """How the KPIs of a log were made, if its rows say so; several ways are refused."""
    if not rows.has(MADE_BY[0]):
        return None
    columns = [rows.optional(name) or [None] * len(rows) for name in MADE_BY]
    ways = {*zip(*columns, strict=True)}
    if len(ways) > 1:
        raise ValueError(
            f"`{rows.name}` must hold scores that were made in one way; got {len(ways)} of policy, profile "
            "and embedder. Keep the rows of one."
        )
    policy, profile, embedder, backend = ways.pop()
    return Provenance.of_kpi(policy, embedder, backend or "precomputed", profile)


def _known_groups(groups: Sequence[GroupName | None] | None, name: str) -> list[GroupName] | None:
    if groups is None:
        return None
    known = [group for group in groups if group is not None]
    if len(known) < len(groups):
        raise ValueError(
            f"`{name}` must give every call a group, or none; got {len(groups) - len(known)} without. Export "
            "it and keep the calls of one group."
        )
    return known


def _tell(count: int, what: str) -> None:
    if count:
        note(f"left out {count} {what}")
