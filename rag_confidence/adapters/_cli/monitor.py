"""`monitor drift` and `monitor risk`: alarms over a log that arrives in parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from rag_confidence import (
    CalibrationMismatch,
    Decision,
    DriftMonitor,
    DriftState,
    Provenance,
    RiskMonitor,
    RiskState,
)
from rag_confidence.adapters._cli.history import numbers, outcomes, provenance_of
from rag_confidence.adapters._cli.options import Data, Json, LabelColumn, ScoreColumn
from rag_confidence.adapters._cli.printing import finish, note
from rag_confidence.adapters._cli.reading import STDIN, Rows, check_lengths, read_rows

State = Annotated[
    Path, typer.Option(help="File of the monitor: made by the first run, carried on by later ones.")
]
Rate = Annotated[
    str | None, typer.Option(help="Chance that a sound system ever raises the alarm; first run only.")
]
ACCEPTED = "accept"


def drift(
    data: Data,
    state: State,
    reference: Annotated[
        Path | None, typer.Option(help="Rows of the calibration set; first run only.")
    ] = None,
    score_column: ScoreColumn = "kpi",
    false_alarm_rate: Rate = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the tie-breaks; first run only.")] = None,
    as_json: Json = False,
) -> None:
    """Watch whether new scores still come from where the reference came from; exit code 1 on an alarm."""
    _refuse_twice(data, reference)
    rows = read_rows(data)
    made = provenance_of(rows) if score_column == "kpi" else None
    first = {"reference": reference, "false_alarm_rate": false_alarm_rate, "seed": seed}
    if _goes_on(state, first):
        monitor = DriftMonitor.load(state)
    else:
        known = None if reference is None else read_rows(reference)
        if known is not None and score_column == "kpi":
            _refuse_other("reference", provenance_of(known), made)
        monitor = DriftMonitor(
            () if known is None else _scores(known, score_column),
            false_alarm_rate="0.01" if false_alarm_rate is None else false_alarm_rate,
            seed=seed or 0,
            provenance=made,
        )
    _refuse_other("state", monitor.provenance, made)
    found = monitor.update_many(_scores(rows, score_column))
    _done(monitor, found, state, as_json)


def _refuse_twice(data: Path, reference: Path | None) -> None:
    if data == reference == STDIN:
        raise ValueError("`--reference` must be a file where DATA is -; got - twice. Name a file for one.")


def _refuse_other(option: str, known: Provenance | None, made: Provenance | None) -> None:
    """Scores that were made in another way differ without any drift."""
    if known is not None and made is not None and known != made:
        raise CalibrationMismatch(
            f"`--{option}` must hold scores made like the new ones; got {known.to_dict()} where those have "
            f"{made.to_dict()}. Start another monitor."
        )


def risk(
    data: Data,
    state: State,
    target: Annotated[
        str | None, typer.Option(help="Largest tolerable share of bad outcomes; first run only.")
    ] = None,
    label_column: LabelColumn = "label",
    decision_column: Annotated[
        str | None, typer.Option(help="Column of decisions: only rows that were accepted then count.")
    ] = None,
    false_alarm_rate: Rate = None,
    as_json: Json = False,
) -> None:
    """Watch the share of bad outcomes (false labels) against a target; exit code 1 on an alarm."""
    rows = read_rows(data)
    if _goes_on(state, {"target": target, "false_alarm_rate": false_alarm_rate}):
        monitor = RiskMonitor.load(state)
    elif target is None:
        raise ValueError("`--target` must be given in the first run; got none. Pass the bound to watch.")
    else:
        monitor = RiskMonitor(
            target, false_alarm_rate="0.05" if false_alarm_rate is None else false_alarm_rate
        )
    found = monitor.update_many(_bad(rows, label_column, decision_column))
    _done(monitor, found, state, as_json)


def _goes_on(state: Path, first: Mapping[str, object]) -> bool:
    """Whether a monitor is there to carry on; what only its first run can set is then refused."""
    if not state.exists():
        return False
    for name, value in first.items():
        if value is not None:
            raise ValueError(
                f"`--{name.replace('_', '-')}` must be left out once {state} exists; got {value}. "
                "Drop it, or name another file."
            )
    return True


def _scores(rows: Rows, name: str) -> list[float]:
    known = [score for score in numbers(rows, name) if score is not None]
    _tell(len(rows) - len(known), f"rows without {name!r}")
    return known


def _bad(rows: Rows, label: str, decision: str | None) -> list[bool]:
    labels = outcomes(rows, label)
    decided = [ACCEPTED] * len(labels) if decision is None else rows.column(decision)
    check_lengths(rows.name, {label: labels, str(decision): decided})
    wanted = [
        good
        for row, (good, said) in enumerate(zip(labels, decided, strict=True))
        if _is_accepted(rows, row, said)
    ]
    known = [not good for good in wanted if good is not None]
    _tell(len(labels) - len(wanted), "rows that were not accepted")
    _tell(len(wanted) - len(known), f"rows without {label!r}")
    return known


def _is_accepted(rows: Rows, row: int, said: object) -> bool:
    """Whether a row was accepted; other words than those of decisions would leave out all rows."""
    word = str(said).lower()
    if said is not None and word not in [*Decision]:
        raise ValueError(
            f"`--decision-column` must hold accept, reject or abstain; got {said!r} in {rows.place(row)}. "
            "Name the column of decisions."
        )
    return word == ACCEPTED


def _tell(count: int, what: str) -> None:
    if count:
        note(f"left out {count} {what}")


def _done(
    monitor: DriftMonitor | RiskMonitor, found: DriftState | RiskState, state: Path, as_json: bool
) -> None:
    monitor.save(state)
    document = {**asdict(found), "sentence": found.sentence}
    finish(as_json, document, [found.sentence], negative=found.alarm)
