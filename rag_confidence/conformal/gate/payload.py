"""A gate as plain values, and back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any, get_args

import numpy as np

from rag_confidence._artefact import decode_ascending, encode_float, encode_floats, restored
from rag_confidence._history import check_group
from rag_confidence._options import check_choice, check_number
from rag_confidence._predictions import OnConflict
from rag_confidence.conformal.gate.cells import Cell, Levels
from rag_confidence.conformal.gate.table import CellTable, SmallGroups
from rag_confidence.conformal.provenance import check_provenance
from rag_confidence.conformal.reading import (
    check_precision,
    read_history,
    read_ids,
    read_level,
    read_rows,
    read_scale,
)
from rag_confidence.conformal.rows import Rows
from rag_confidence.conformal.separation import auroc_interval, auroc_of_sorted

_LAST_BITS = 1e-9


def written(gate: Any) -> dict[str, Any]:
    """Everything a gate holds, as JSON values; floats read back to the last bit."""
    levels = gate.levels
    return {
        "alpha": str(levels.accept),
        "alpha_reject": str(levels.reject),
        "delta": None if levels.delta is None else str(levels.delta),
        "on_conflict": gate.on_conflict,
        "small_groups": gate.table.small_groups,
        "whole": _written_cell(gate.table.whole),
        "groups": [_written_cell(cell) for cell in gate.table.groups],
        "scale": asdict(gate.scale),
        "history": gate.history.to_dict(),
        "auroc": [gate.auroc, gate.auroc_low, gate.auroc_high],
        "provenance": None if gate.provenance is None else gate.provenance.to_dict(),
        "row_ids": None if gate.rows.ids is None else sorted(gate.rows.ids),
        # Without clusters the rows are those of the whole cell.
        "rows": gate.rows.to_dict() if gate.history.clustered else None,
        "data_hash": gate.data_hash,
        "auroc_floor": gate.auroc_floor,
    }


def _written_cell(cell: Cell) -> dict[str, Any]:
    return {
        "group": cell.group,
        "scores0": encode_floats(cell.scores0),
        "scores1": encode_floats(cell.scores1),
        "q0": encode_float(cell.q0),
        "t1": encode_float(cell.t1),
    }


def read(payload: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the gate that `written` took apart."""
    return restored("payload", "conformal_gate", payload=payload, build=_fields, written=_rewritten)


def _rewritten(fields: Mapping[str, Any]) -> dict[str, Any]:
    return written(SimpleNamespace(**fields, data_hash=fields["rows"].data_hash))


def _fields(payload: Mapping[str, Any]) -> dict[str, Any]:
    delta = payload["delta"]
    levels = Levels(
        read_level("alpha", payload["alpha"]),
        read_level("alpha_reject", payload["alpha_reject"]),
        None if delta is None else read_level("delta", delta),
    )
    table = _read_table(payload, levels)
    rows = _read_rows(payload, table.whole)
    check_choice("on_conflict", payload["on_conflict"], get_args(OnConflict))
    auroc, low, high = _read_auroc(payload["auroc"], rows, table.whole)
    return {
        "levels": levels,
        "on_conflict": payload["on_conflict"],
        "table": table,
        "scale": read_scale(payload["scale"], rows),
        "history": read_history(payload["history"], rows),
        "auroc": auroc,
        "auroc_low": low,
        "auroc_high": high,
        "provenance": check_provenance(payload["provenance"]),
        "rows": rows,
        "auroc_floor": check_number("auroc_floor", payload["auroc_floor"], 0.0, 1.0, "Fit the gate again."),
    }


def _read_table(payload: Mapping[str, Any], levels: Levels) -> CellTable:
    check_choice("small_groups", payload["small_groups"], get_args(SmallGroups))
    whole, *groups = (_read_cell(plain, levels) for plain in (payload["whole"], *payload["groups"]))
    names = {check_group("group", cell.group) for cell in groups}
    if whole.group is not None or len(names) < len(groups):
        raise ValueError("groups that are not named once each")
    if not whole.n0 or not whole.n1:
        raise ValueError("a class without rows")
    if groups and not _together(whole, groups):
        raise ValueError("groups that do not make up the whole")
    return CellTable(whole, tuple(groups), payload["small_groups"])


def _together(whole: Cell, groups: list[Cell]) -> bool:
    """Whether the groups hold the scores of the whole; a cluster lies within one group."""
    all0 = np.sort(np.concatenate([cell.scores0 for cell in groups]))
    all1 = np.sort(np.concatenate([cell.scores1 for cell in groups]))
    return np.array_equal(all0, whole.scores0) and np.array_equal(all1, whole.scores1)


def _read_rows(payload: Mapping[str, Any], whole: Cell) -> Rows:
    """All rows: those of the whole cell, or with clusters those of which it holds the strangest."""
    if payload["rows"] is None:
        precision = payload["scale"]["precision"]
        rows = Rows(read_ids(payload["row_ids"]), whole.scores0, whole.scores1, precision)
        check_precision(rows.scores0, precision)
        check_precision(rows.scores1, precision)
    else:
        rows = read_rows(payload["rows"])
        _refuse_other_rows(rows, whole)
    if rows.ids is not None and len(rows.ids) != len(rows.scores0) + len(rows.scores1):
        raise ValueError("not one id a row")
    return rows


def _refuse_other_rows(rows: Rows, whole: Cell) -> None:
    known = Counter(whole.scores0.tolist()) <= Counter(rows.scores0.tolist())
    known &= Counter(whole.scores1.tolist()) <= Counter(rows.scores1.tolist())
    if not known or whole.scores0[-1] != rows.scores0[-1] or whole.scores1[0] != rows.scores1[0]:
        raise ValueError("clusters that are not of these rows")


def _read_auroc(plain: Any, rows: Rows, whole: Cell) -> tuple[float, float, float]:
    """The three numbers as written: the ends of an interval may differ in their last bits elsewhere."""
    auroc, low, high = (float(number) for number in plain)
    expected = auroc_of_sorted(rows.scores0, rows.scores1)
    ends = auroc_interval(expected, whole.n0, whole.n1)
    if auroc != expected or not np.allclose((low, high), ends, rtol=0.0, atol=_LAST_BITS):
        raise ValueError("an AUROC that does not follow from the scores")
    if not 0.0 <= low <= auroc <= high <= 1.0:
        raise ValueError("an interval that does not hold its AUROC")
    return auroc, low, high


def _read_cell(plain: Mapping[str, Any], levels: Levels) -> Cell:
    """The thresholds are written for people; those in use follow from the scores again."""
    scores = decode_ascending(plain["scores0"]), decode_ascending(plain["scores1"])
    return Cell.of(plain["group"], *scores, levels)
