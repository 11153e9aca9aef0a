"""`score`: retrievals in, assessments out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from rag_confidence import ConfidenceModel, CorpusProfile
from rag_confidence._artefact import whole_file
from rag_confidence.adapters._cli.artefacts import load_gate, load_policy
from rag_confidence.adapters._cli.options import (
    Data,
    GroupColumn,
    Json,
    Limit,
    Lines,
    Seed,
    refuse_lines_in_document,
)
from rag_confidence.adapters._cli.printing import Part, facts, finish, note, strict, table, write
from rag_confidence.adapters._cli.reading import read_rows
from rag_confidence.adapters._cli.retrievals import Retrievals, Scored, scored

COLUMNS = ("row", "verdict", "kpi", "weakest signal", "reason")


def score(
    data: Data,
    query_column: Annotated[str, typer.Option(help="Column of query vectors.")] = "query",
    passages_column: Annotated[str, typer.Option(help="Column of passage vectors.")] = "passages",
    group_column: GroupColumn = None,
    keep: Annotated[list[str] | None, typer.Option(help="Column to carry over into the records.")] = None,
    policy: Annotated[Path | None, typer.Option(help="JSON file of a MetricPolicy.")] = None,
    profile: Annotated[Path | None, typer.Option(help="Saved corpus profile.")] = None,
    model: Annotated[Path | None, typer.Option(help="Saved confidence model.")] = None,
    gate: Annotated[Path | None, typer.Option(help="Saved gate, which then decides.")] = None,
    embedder: Annotated[str | None, typer.Option(help="Name of the embedding model.")] = None,
    backend: Annotated[
        Literal["precomputed", "lexical"], typer.Option(help="What made the vectors.")
    ] = "precomputed",
    k_requested: Annotated[int | None, typer.Option(help="Passages that were asked for.")] = None,
    invalid_rows: Annotated[
        Literal["raise", "drop"], typer.Option(help="What to do with passages that are no direction.")
    ] = "raise",
    duplicate_cosine: Annotated[float | None, typer.Option(help="Passages above it count once.")] = None,
    loops: Annotated[
        Literal["off", "ratio", "surrogate"], typer.Option(help="Test of loops; extra topology.")
    ] = "off",
    seed: Seed = 0,
    out: Annotated[Path | None, typer.Option(help="File for the records, one JSON object a line.")] = None,
    limit: Limit = 50,
    lines: Lines = False,
    as_json: Json = False,
) -> None:
    """Score retrievals from their vectors: verdict, KPI, and what a gate decides.

    Columns texts, query_text, candidates, parents and k_requested are read where they exist.
    """
    refuse_lines_in_document(lines, as_json)
    settings: dict[str, Any] = {
        "policy": None if policy is None else load_policy(policy),
        "profile": None if profile is None else CorpusProfile.load(profile),
        "model": None if model is None else ConfidenceModel.load(model),
        "gate": None if gate is None else load_gate(gate),
        "embedder": embedder,
        "embedding_backend": backend,
        "invalid_rows": invalid_rows,
        "loops": loops,
        "seed": seed,
        **({} if duplicate_cosine is None else {"duplicate_cosine": duplicate_cosine}),
    }
    retrievals = Retrievals.of(read_rows(data), query_column, passages_column, group_column, keep or ())
    found = scored(retrievals, settings, k_requested)
    if out is not None:
        found = saved(found, out)
    if lines:
        for one in found:
            write(f"{strict(one.record)}\n")
        return
    every = [*found]
    finish(as_json, {"n": len(every), "records": [one.record for one in every]}, page(every, limit))


def saved(found: Iterator[Scored], path: Path) -> Iterator[Scored]:
    """Pass assessments on, and write their records to a file, which appears when all are written."""
    count = 0
    with whole_file(path) as file:
        for one in found:
            file.write(f"{strict(one.record)}\n".encode("ascii"))
            count += 1
            yield one
    note(f"saved {count} records in {path}")


def page(found: list[Scored], limit: int) -> list[Part]:
    """Assessments for people: a single one in words, several in a table."""
    if len(found) == 1:
        return [*found[0].words.splitlines()]
    records = [one.record for one in found]
    gated = any(record["gate_fingerprint"] is not None for record in records)
    columns = [*COLUMNS[:2], *(["decision"] if gated else []), *COLUMNS[2:]]
    counts = Counter(record["verdict"] for record in records)
    left = len(records) - limit
    rows = [_line(row, record, gated) for row, record in enumerate(records[:limit])]
    return [
        facts(counts.items()),
        "",
        table(columns, rows, left=("verdict", "decision", "weakest signal", "reason")),
        *([f"{left} more; --lines prints all, --limit more of them."] if left > 0 else []),
    ]


def _line(row: int, record: dict[str, Any], gated: bool) -> list[object]:
    decision = [record["decision"]] if gated else []
    risk = record["primary_risk"]
    return [row, record["verdict"], *decision, record["kpi"], risk, record["reason_code"]]
