"""Options that several commands share."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from rag_confidence._options import check_number

MOST_DAYS = 100_000.0

Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Alpha: TypeAlias = Annotated[str, typer.Option(help="Level in (0, 1), exact as written: 0.1 or 1/10.")]
Seed: TypeAlias = Annotated[int, typer.Option(help="Seed of the random numbers.")]
Data: TypeAlias = Annotated[
    Path,
    typer.Argument(help="Rows: .jsonl, .json, .parquet or .npz; - reads JSON lines from stdin."),
]
OptionalData: TypeAlias = Annotated[
    Path | None,
    typer.Argument(
        help="Rows: .jsonl, .json, .parquet or .npz; - reads JSON lines from stdin.", show_default=False
    ),
]
Store: TypeAlias = Annotated[
    str | None, typer.Option(help="Read a calibration store instead: a file or a postgresql+psycopg:// URL.")
]
ExistingStore: TypeAlias = Annotated[
    str, typer.Option("--store", help="The store: a file or a postgresql+psycopg:// URL.")
]
ToolName: TypeAlias = Annotated[str | None, typer.Option(help="Only calls of this tool.")]
Group: TypeAlias = Annotated[str | None, typer.Option(help="Only calls of this group.")]
ScoreColumn: TypeAlias = Annotated[str, typer.Option(help="Column of the scores.")]
LabelColumn: TypeAlias = Annotated[str, typer.Option(help="Column of the labels: true, false, 1 or 0.")]
GroupColumn: TypeAlias = Annotated[str | None, typer.Option(help="Column of the groups.")]
Lines: TypeAlias = Annotated[bool, typer.Option("--lines", help="Print one JSON object a row.")]
Limit: TypeAlias = Annotated[int, typer.Option(min=0, help="Most rows of the table.")]


def age(option: str, days: float) -> timedelta:
    """Days of an option as a span of time."""
    return timedelta(days=check_number(option, days, 0.0, MOST_DAYS, "Pass days."))


def refuse_lines_in_document(lines: bool, as_json: bool) -> None:
    """Lines are no document."""
    if lines and as_json:
        raise ValueError("`--lines` must be left out with --json; got both. Choose one form.")
