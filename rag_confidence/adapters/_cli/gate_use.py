"""`gate apply` and `gate evaluate`: a saved gate on new scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from rag_confidence import (
    CalibrationMismatch,
    GateEvaluation,
    GatePredictions,
    Provenance,
    apply_conformal_gate,
    evaluate_conformal_gate,
)
from rag_confidence.adapters._cli.artefacts import SavedGate, load_gate
from rag_confidence.adapters._cli.history import Columns, from_rows, numbers, provenance_of
from rag_confidence.adapters._cli.options import (
    Data,
    GroupColumn,
    Json,
    LabelColumn,
    Limit,
    Lines,
    ScoreColumn,
    refuse_lines_in_document,
)
from rag_confidence.adapters._cli.printing import Part, facts, finish, rate_table, strict, table, write
from rag_confidence.adapters._cli.reading import check_lengths, read_rows

GateFile = Annotated[Path, typer.Option(help="A file that `gate fit --out` wrote.")]
COLUMNS = ("row", "score", "decision", "labels", "p insufficient", "p sufficient", "margin")
NO_SCORE = "no_score"


def apply(
    data: Data,
    gate: GateFile,
    score_column: ScoreColumn = "kpi",
    group_column: GroupColumn = None,
    limit: Limit = 50,
    lines: Lines = False,
    as_json: Json = False,
) -> None:
    """Decide on new scores: ACCEPT, REJECT or ABSTAIN."""
    refuse_lines_in_document(lines, as_json)
    found, rows = load_gate(gate), read_rows(data)
    scores = numbers(rows, score_column)
    check_made_alike(found, provenance_of(rows) if score_column == "kpi" else None)
    known = {row: score for row, score in enumerate(scores) if score is not None}
    groups = None if group_column is None else rows.column(group_column)
    check_lengths(rows.name, {score_column: scores, str(group_column): groups})
    chosen = None if groups is None else [groups[row] for row in known]
    decided = apply_conformal_gate([*known.values()], found, chosen)
    listed = decisions(decided, [*known], len(scores))
    if lines:
        for one in listed:
            write(f"{strict(one)}\n")
        return
    counts = {
        "n_accept": int(decided.accepted.sum()),
        "n_reject": int(decided.rejected.sum()),
        "n_abstain": int(decided.abstained.sum()),
        "n_without_score": len(scores) - len(known),
    }
    every = [*listed]
    document = {"gate": found.fingerprint, **counts, "decisions": every}
    finish(as_json, document, decisions_page(every, counts, limit))


def check_made_alike(gate: SavedGate, made: Provenance | None) -> None:
    """Refuse scores that say themselves that they were made otherwise than those of the gate."""
    if gate.provenance is None or made is None or gate.provenance == made:
        return
    raise CalibrationMismatch(
        f"`DATA` must hold scores made like those of the gate; got {made.to_dict()} where the gate has "
        f"{gate.provenance.to_dict()}. Fit a gate to scores like these."
    )


def decisions(decided: GatePredictions, kept: Sequence[int], total: int) -> Iterator[dict[str, Any]]:
    """One mapping for each row of the file, also for those without a score."""
    found = dict(zip(kept, decided, strict=True))
    for row in range(total):
        if row in found:
            plain = found[row].to_dict()
            del plain["guarantee"]
            yield {"row": row, **plain}
        else:
            yield {"row": row, "score": None, "decision": None, "reason_code": NO_SCORE}


def decisions_page(listed: list[dict[str, Any]], counts: dict[str, int], limit: int) -> list[Part]:
    """Decisions for people: how many, then the first of them."""
    left = len(listed) - limit
    return [
        facts((name.removeprefix("n_").replace("_", " "), count) for name, count in counts.items()),
        "",
        table(COLUMNS, map(_line, listed[:limit]), left=("decision", "labels")),
        *([f"{left} more; --lines prints all, --limit more of them."] if left > 0 else []),
    ]


def _line(one: dict[str, Any]) -> tuple[object, ...]:
    if one["decision"] is None:
        return (one["row"], None, "no score", None, None, None, None)
    labels = one["prediction_set"]
    shown = "-" if labels is None else "{" + ", ".join(map(str, labels)) + "}"
    p_values = one["p_value_0"], one["p_value_1"]
    return (one["row"], one["score"], one["decision"], shown, *p_values, one["margin_to_threshold"])


def evaluate(
    data: Data,
    gate: GateFile,
    score_column: ScoreColumn = "kpi",
    label_column: LabelColumn = "label",
    group_column: GroupColumn = None,
    as_json: Json = False,
) -> None:
    """Hold a gate against labelled rows that it was not fitted on.

    Exit code 1 if a rate lies beyond what a sound gate allows by chance.
    """
    found, rows = load_gate(gate), read_rows(data)
    history = from_rows(rows, Columns(score_column, label_column, group_column))
    check_made_alike(found, history.provenance)
    measured = evaluate_conformal_gate(history.scores, history.labels, found, history.groups)
    finish(as_json, measured.to_dict(), evaluation_page(measured), negative=bool(measured.beyond_band))


def evaluation_page(found: GateEvaluation) -> list[Part]:
    """An evaluation for people, whole and by group."""
    parts = _rates(found)
    for group, one in found.by_group.items():
        parts += ["", f"Group {group}:", *_rates(one)]
    return parts


def _rates(found: GateEvaluation) -> list[Part]:
    rates = {
        "insufficient rows accepted": found.false_sufficiency_rate,
        "sufficient rows rejected": found.false_rejection_rate,
        "accepted rows insufficient": found.selective_risk,
        "sufficient rows accepted": found.sufficient_accepted,
        "label 0 kept": found.coverage_0,
        "label 1 kept": found.coverage_1,
        "ACCEPT": found.acceptance_rate,
        "REJECT": found.rejection_rate,
        "ABSTAIN": found.abstention_rate,
        "empty sets": found.conflict_rate,
    }
    parts: list[Part] = [
        f"{found.n} rows, {found.n0} insufficient and {found.n1} sufficient.",
        "",
        rate_table(rates),
    ]
    return parts if found.beyond_band is None else [*parts, "", _bands(found)]


def _bands(found: GateEvaluation) -> str:
    """The exact bands of a sound gate, and whether the rates keep to them."""
    bands = ((0, found.band_0, found.coverage_0), (1, found.band_1, found.coverage_1))
    told = [
        f"label {label} excluded at {1.0 - kept.rate:.4f}, allowed up to {band:.4f}"
        for label, band, kept in bands
        if band is not None and kept.rate is not None
    ]
    verdict = "beyond the band of a sound gate" if found.beyond_band else "within the bands of a sound gate"
    return f"Against chance: {'; '.join(told)}: {verdict}."
