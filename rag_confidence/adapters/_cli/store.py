"""`store export|import|migrate|label|prune|verify`: the calibration store from a shell."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from rag_confidence.adapters._cli.options import ExistingStore, Group, Json, ToolName, age
from rag_confidence.adapters._cli.pool import stored_group
from rag_confidence.adapters._cli.printing import finish
from rag_confidence.adapters._cli.progress import working
from rag_confidence.store import CalibrationStore

Moment = Annotated[str | None, typer.Option(help="Time in ISO 8601 with its zone.")]
Source = Annotated[str | None, typer.Option(help="Who or what decided on the labels.")]
MOST_SHOWN = 20


def export(
    path: Annotated[Path, typer.Argument(help="New file, .jsonl or .parquet.")],
    store: ExistingStore,
    tool_name: ToolName = None,
    group: Group = None,
    labelled: Annotated[
        bool | None, typer.Option("--labelled/--unlabelled", help="Only calls with, or without, a label.")
    ] = None,
    since: Moment = None,
    until: Moment = None,
    as_json: Json = False,
) -> None:
    """Write the calls of a store to a file: all of it, or nothing."""
    with CalibrationStore(store, create=False) as opened, working("exporting"):
        count = opened.export(
            path,
            tool_name=tool_name,
            group=stored_group(opened, group),
            labelled=labelled,
            since=moment("since", since),
            until=moment("until", until),
        )
    finish(as_json, {"path": str(path), "n_calls": count}, [f"Wrote {count} calls to {path}."])


def import_lines(
    path: Annotated[Path, typer.Argument(help="Log of retrievals, or an export of a store; JSON lines.")],
    store: ExistingStore,
    label_column: Annotated[str, typer.Option(help="Key of the label of a retrieval.")] = "label",
    time_column: Annotated[str | None, typer.Option(help="Key of the time of a retrieval.")] = None,
    id_column: Annotated[str | None, typer.Option(help="Key of a name that is added only once.")] = None,
    labeling_source: Source = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Leave out lines it cannot read.")] = False,
    as_json: Json = False,
) -> None:
    """Add a file to a store, which is made where there is none: all of it, or nothing.

    Exit code 1 if lines were left out.
    """
    # A file that is not there must not leave an empty store behind.
    path.open("rb").close()
    with CalibrationStore(store) as opened, working("importing"):
        found = opened.import_jsonl(
            path,
            label_key=label_column,
            time_key=time_column,
            id_key=id_column,
            labeling_source=labeling_source,
            on_error="skip" if skip_bad else "raise",
        )
    document = {
        "n_added": found.n_added,
        "n_known": found.n_known,
        "n_labelled": found.n_labelled,
        "skipped": [{"line": line, "reason": reason} for line, reason in found.skipped],
    }
    told = [
        f"Added {found.n_added} calls; {found.n_known} were there already, of which {found.n_labelled} "
        "got a label.",
        *(f"Left out line {line}: {reason}" for line, reason in found.skipped[:MOST_SHOWN]),
    ]
    finish(as_json, document, told, negative=bool(found.skipped))


def migrate(store: ExistingStore, as_json: Json = False) -> None:
    """Bring an older store up to this release."""
    with CalibrationStore(store, create=False, migrate=False) as opened:
        before, after = opened.migrate()
    told = f"Already at schema version {after}." if before == after else f"Migrated from {before} to {after}."
    finish(as_json, {"before": before, "after": after}, [told])


def label(
    call_id: Annotated[int, typer.Argument(help="Number of the call.")],
    outcome: Annotated[bool, typer.Option("--good/--bad", help="How it turned out.")],
    store: ExistingStore,
    labeling_source: Annotated[str, typer.Option(help="Who or what decided on the label.")],
    as_json: Json = False,
) -> None:
    """Label a call; the latest label counts."""
    with CalibrationStore(store, create=False) as opened:
        opened.label(call_id, outcome, labeling_source)
    document = {"call_id": call_id, "outcome": outcome, "labeling_source": labeling_source}
    finish(as_json, document, [f"Call {call_id} is {'good' if outcome else 'bad'}."])


def prune(
    store: ExistingStore,
    older_than_days: Annotated[float | None, typer.Option(help="Delete calls older than this.")] = None,
    before: Moment = None,
    keep_last: Annotated[int | None, typer.Option(help="Delete all but the last so many.")] = None,
    as_json: Json = False,
) -> None:
    """Delete old calls with their labels, for good."""
    span = None if older_than_days is None else age("--older-than-days", older_than_days)
    with CalibrationStore(store, create=False) as opened, working("deleting"):
        count = opened.prune(older_than=span, before=moment("before", before), keep_last=keep_last)
    finish(as_json, {"n_deleted": count}, [f"Deleted {count} calls."])


def verify(store: ExistingStore, as_json: Json = False) -> None:
    """Read all of a store; exit code 1 if anything is damaged."""
    with CalibrationStore(store, create=False) as opened, working("reading"):
        findings = opened.verify()
    told = list(findings) or ["Nothing is damaged."]
    finish(as_json, {"ok": not findings, "findings": [*findings]}, told, negative=bool(findings))


def moment(name: str, text: str | None) -> datetime | None:
    """A time of an option."""
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError as problem:
        raise ValueError(
            f"`--{name}` must be a time in ISO 8601; got {text!r}. Write 2026-12-01T12:00:00Z."
        ) from problem
