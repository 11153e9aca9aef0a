"""A gate as plain values, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from fractions import Fraction
from typing import Any, get_args

from rag_confidence._artefact import decode_ascending, encode_float, encode_floats
from rag_confidence._options import check_choice
from rag_confidence._predictions import OnConflict
from rag_confidence._types import Provenance
from rag_confidence.conformal.gate.cells import Cell, Levels
from rag_confidence.conformal.gate.guarantee import History
from rag_confidence.conformal.gate.table import CellTable, SmallGroups
from rag_confidence.conformal.new_scores import Scale
from rag_confidence.conformal.rows import Rows
from rag_confidence.errors import ArtefactError


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
    try:
        return _fields(payload)
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise ArtefactError(
            f"`payload` must be that of a conformal gate; got one that cannot be read ({error!r}). "
            "Fit the gate again."
        ) from error


def _fields(payload: Mapping[str, Any]) -> dict[str, Any]:
    delta = payload["delta"]
    levels = Levels(
        Fraction(payload["alpha"]),
        Fraction(payload["alpha_reject"]),
        None if delta is None else Fraction(delta),
    )
    provenance, ids, rows = payload["provenance"], payload["row_ids"], payload["rows"]
    auroc, low, high = payload["auroc"]
    whole = _read_cell(payload["whole"], levels)
    scale = Scale(**payload["scale"]).checked()
    hashes = None if ids is None else frozenset(ids)
    check_choice("on_conflict", payload["on_conflict"], get_args(OnConflict))
    check_choice("small_groups", payload["small_groups"], get_args(SmallGroups))
    return {
        "levels": levels,
        "on_conflict": payload["on_conflict"],
        "table": CellTable(
            whole,
            tuple(_read_cell(cell, levels) for cell in payload["groups"]),
            payload["small_groups"],
        ),
        "scale": scale,
        "history": History.from_dict(payload["history"]),
        "auroc": auroc,
        "auroc_low": low,
        "auroc_high": high,
        "provenance": None if provenance is None else Provenance(**provenance),
        "rows": Rows(hashes, whole.scores0, whole.scores1, scale.precision)
        if rows is None
        else Rows.from_dict(rows),
        "auroc_floor": payload["auroc_floor"],
    }


def _read_cell(plain: Mapping[str, Any], levels: Levels) -> Cell:
    """The thresholds are written for people; those in use follow from the scores again."""
    scores = decode_ascending(plain["scores0"]), decode_ascending(plain["scores1"])
    cell = Cell.of(plain["group"], *scores, levels)
    if [encode_float(cell.q0), encode_float(cell.t1)] != [plain["q0"], plain["t1"]]:
        raise ValueError("thresholds that do not follow from the scores")
    return cell
