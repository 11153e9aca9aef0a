"""Scores of judged calls, a column a check, from a file or from a store."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np

from rag_confidence._artefact import decode_float
from rag_confidence._history import GroupName
from rag_confidence._types import FloatArray, Mask
from rag_confidence.adapters._cli.history import outcomes
from rag_confidence.adapters._cli.printing import note
from rag_confidence.adapters._cli.reading import Rows, read_rows
from rag_confidence.store import CalibrationStore, StoredHistory

SCORES = "scores"
OUTCOME = "outcome"


@dataclass(frozen=True)
class Pool:
    """Judged calls.

    Attributes
    ----------
    name : str
        Where they come from.
    checks : tuple of str
    scores : ndarray, shape (n, K)
        Higher is stranger; +inf for a check that failed to run.
    outcomes : ndarray of bool, shape (n,)
        Whether each call was good.
    collected, labeling_source
        As a store knows them; None for files.
    """

    name: str
    checks: tuple[str, ...]
    scores: FloatArray
    outcomes: Mask
    collected: tuple[str, str] | None = None
    labeling_source: str | None = None

    @property
    def good(self) -> FloatArray:
        """Scores of the good calls; there is at least one."""
        found = self.scores[self.outcomes]
        if not len(found):
            raise ValueError(
                f"`{self.name}` must hold good calls with scores of {', '.join(self.checks)}; got none among "
                f"{len(self.scores)} calls. Label some."
            )
        return found

    @property
    def bad(self) -> FloatArray:
        """Scores of the bad calls."""
        return self.scores[~self.outcomes]


@dataclass(frozen=True)
class Selection:
    """Which calls of a store are meant."""

    tool_name: str | None = None
    group: str | None = None
    max_age: timedelta = timedelta(days=90)
    fingerprint: str | None = None


def pool_of(
    data: Path | None, store: str | None, checks: Sequence[str], chosen: Selection, *, single: bool
) -> Pool:
    """The judged calls of a file or of a store; exactly one of them is given."""
    if (data is None) == (store is None):
        got = "neither" if data is None else "both"
        raise ValueError(f"`--store` must be given, or --data instead; got {got}. Pass one of them.")
    if store is not None:
        return pool_of_store(store, checks, chosen, single=single)
    if chosen.tool_name is not None or chosen.group is not None:
        raise ValueError("`--tool-name` and `--group` must come with --store; got --data. Leave them out.")
    if chosen.fingerprint is not None:
        raise ValueError("`--fingerprint` must come with --store; got --data. Leave it out.")
    return pool_of_file(data or Path(), checks, single=single)


def stored_group(opened: CalibrationStore, group: str | None) -> GroupName | None:
    """The group of a store that an option means: 3 is the number, unless a group has that as its text."""
    try:
        number = int(group or "")
    except ValueError:
        return group
    return group if opened.count(group=group) else number


def pool_of_store(store: str, checks: Sequence[str], chosen: Selection, *, single: bool) -> Pool:
    """The labelled calls of a store that have a score of every check."""
    with CalibrationStore(store, create=False) as opened:
        conditions: Any = {"tool_name": chosen.tool_name, "group": stored_group(opened, chosen.group)}
        present = () if checks else opened.summary(**conditions).scorers
        names = chosen_checks(store, checks, [*present], single=single)
        # One threshold on the scores of several scorers promises nothing: it is refused, not warned of.
        found = [
            opened.history(
                name, max_age=chosen.max_age, fingerprint=chosen.fingerprint, strict=True, **conditions
            )
            for name in names
        ]
    return _joined(store, names, found)


def _joined(store: str, names: tuple[str, ...], found: list[StoredHistory]) -> Pool:
    shared = sorted(set.intersection(*({*one.row_ids.tolist()} for one in found)))
    judged = len(found[0]) + found[0].n_without
    _tell(judged - len(shared), f"labelled calls without a score of {', '.join(names)}")
    _tell(max(one.n_unlabelled for one in found), "calls without a label")
    places = [{number: at for at, number in enumerate(one.row_ids.tolist())} for one in found]
    rows = [[place[number] for number in shared] for place in places]
    first = found[0]
    return Pool(
        store,
        names,
        np.column_stack([one.scores[at] for one, at in zip(found, rows, strict=True)]),
        first.labels[rows[0]],
        first.collected,
        first.labeling_source,
    )


def pool_of_file(path: Path, checks: Sequence[str], *, single: bool, judged: bool = True) -> Pool:
    """The calls of a file of `{"scores": {...}, "outcome": true}`; without outcomes all count as bad."""
    rows = read_rows(path)
    scores = _score_rows(rows)
    present = [*scores[0]] if scores else []
    names = chosen_checks(rows.name, checks, present, single=single)
    labels = outcomes(rows, OUTCOME) if judged else [False] * len(rows)
    kept = [row for row, label in enumerate(labels) if label is not None]
    _tell(len(labels) - len(kept), "records without an outcome")
    table = [_numbers(rows, row, scores[row], names, exact=not checks) for row in kept]
    return Pool(
        rows.name,
        names,
        np.array(table, dtype=np.float64).reshape(len(kept), len(names)),
        np.array([labels[row] for row in kept], dtype=bool),
    )


def chosen_checks(
    name: str, asked: Sequence[str], present: Sequence[str], *, single: bool
) -> tuple[str, ...]:
    """The checks that were asked for, or those that there are."""
    names = tuple(dict.fromkeys(asked)) or tuple(sorted(present))
    if single and len(names) != 1:
        raise ValueError(
            f"`--check` must name one check of {name}; got {len(names)}: {', '.join(names) or 'none'}. "
            "Choose one with --check."
        )
    if not names:
        raise ValueError(f"`{name}` must hold scores of checks; got none. Record some first.")
    return names


def _score_rows(rows: Rows) -> list[Mapping[str, Any]]:
    found = rows.column(SCORES)
    for row, scores in enumerate(found):
        if not isinstance(scores, dict):
            raise TypeError(
                f"`{SCORES}` must be an object of numbers; got {scores!r} in {rows.place(row)}. "
                'Write {"check": 0.5}.'
            )
    return found


def _numbers(
    rows: Rows, row: int, scores: Mapping[str, Any], names: tuple[str, ...], *, exact: bool
) -> list[float]:
    """Scores of one call in the order of the checks, which with `exact` are all that it has."""
    if not {*names} <= {*scores} or (exact and len(scores) != len(names)):
        raise ValueError(
            f"`{SCORES}` must be of {', '.join(names)} in every record; got {', '.join(scores) or 'none'} in "
            f"{rows.place(row)}. Record all checks, or choose with --check."
        )
    return [_score(rows, row, name, scores[name]) for name in names]


def _score(rows: Rows, row: int, name: str, value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max:
        return float(value)
    if value == "inf":
        return decode_float(value)
    raise TypeError(
        f'`{SCORES}.{name}` must be a number, or "inf" for a failed check; got {value!r} in '
        f"{rows.place(row)}. Correct the record."
    )


def _tell(count: int, what: str) -> None:
    if count:
        note(f"left out {count} {what}")
