"""`audit` and `traps`: what scores are worth, before any gate is fitted."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rag_confidence import LexicalTraps, ScoreAudit, audit_scores, find_lexical_traps
from rag_confidence.adapters._cli.history import Columns, from_rows, read_history
from rag_confidence.adapters._cli.options import Data, Json, LabelColumn, OptionalData, ScoreColumn, Store
from rag_confidence.adapters._cli.printing import Part, facts, finish, notes, rate_table, table
from rag_confidence.adapters._cli.reading import Rows, read_rows

CURVE_POINTS = 21
BINS = ("scores", "rows", "mean score", "sufficient", "95 % interval")
TRAPS = ("rank", "row", "score", "overlap", "item", "query", "passage")


def audit(
    data: OptionalData = None,
    store: Store = None,
    score_column: ScoreColumn = "kpi",
    label_column: LabelColumn = "label",
    threshold: Annotated[float, typer.Option(help="Scores of at least this count as accepted.")] = 0.5,
    bins: Annotated[int, typer.Option(help="Bins of the calibration errors.")] = 10,
    target_risk: Annotated[float, typer.Option(help="Insufficient share of the accepted to aim at.")] = 0.10,
    as_json: Json = False,
) -> None:
    """Audit scores against labels: calibration, ranking, and what a threshold does."""
    rows = read_history(data, store, Columns(score_column, label_column))
    found = audit_scores(rows.scores, rows.labels, threshold, bins, target_risk=target_risk)
    document = found.to_dict() | {"risk_coverage": found.risk_coverage.to_dict(CURVE_POINTS)}
    finish(as_json, document, audit_page(found))


def audit_page(found: ScoreAudit) -> list[Part]:
    """An audit for people."""
    at = found.confusion
    measures = [
        ("rows", f"{found.n} ({found.n0} insufficient, {found.n1} sufficient)"),
        ("AUROC", _interval(found.auroc, found.auroc_low, found.auroc_high)),
        ("Brier score", found.brier),
        ("  miscalibration", found.miscalibration),
        ("  discrimination", found.discrimination),
        ("  uncertainty", found.uncertainty),
        ("ECE", found.ece),
        ("ECE, equal mass", found.ece_equal_mass),
        ("area under risk-coverage", found.risk_coverage.aurc),
        (f"acceptance at risk {found.target_risk:g}", found.acceptance_at_target),
    ]
    rates = {
        "accepted": at.acceptance,
        "insufficient rows accepted": at.false_sufficiency,
        "accepted rows insufficient": at.selective_risk,
        "sufficient rows accepted": at.sufficient_accepted,
    }
    return [
        facts(measures),
        "",
        table(BINS, (_bin(one) for one in found.bins), left=("scores",)),
        "",
        f"Accepting every score from {at.threshold:g} on:",
        rate_table(rates),
        *notes(found.warnings),
    ]


def _bin(one: Any) -> tuple[object, ...]:
    rates = _interval(None, one.observed_low, one.observed_high)
    return (f"{one.low:.2f} to {one.high:.2f}", one.count, one.mean_score, one.observed_rate, rates)


def _interval(value: float | None, low: float | None, high: float | None) -> str:
    span = "-" if low is None or high is None else f"[{low:.4f}, {high:.4f}]"
    return span if value is None else f"{value:.4f} {span}"


def traps(
    data: Data,
    score_column: ScoreColumn = "kpi",
    label_column: LabelColumn = "label",
    threshold: Annotated[float, typer.Option(help="Scores of at least this count as accepted.")] = 0.7,
    id_column: Annotated[str, typer.Option(help="Column of names, if there.")] = "id",
    query_column: Annotated[str, typer.Option(help="Column of query texts, if there.")] = "query_text",
    passage_column: Annotated[str, typer.Option(help="Column of passage texts, if there.")] = "passage",
    limit: Annotated[int, typer.Option(min=0, help="Most traps to print.")] = 20,
    as_json: Json = False,
) -> None:
    """List the insufficient rows that score highest, to be read."""
    rows = read_rows(data)
    history = from_rows(rows, Columns(score_column, label_column))
    texts = [_kept(rows, name, history.rows) for name in (id_column, query_column, passage_column)]
    found = find_lexical_traps(history.scores, history.labels, threshold, *texts)
    # Rows are counted as in the file, also where some were left out.
    listed = [{**trap, "row": history.rows[trap["row"]]} for trap in found.to_dict()["traps"][:limit]]
    document = {**found.to_dict(), "traps": listed, "n_traps": len(found)}
    finish(as_json, document, traps_page(found, listed))


def traps_page(found: LexicalTraps, listed: list[dict[str, Any]]) -> list[Part]:
    """Traps for people, the longest texts cut."""
    keys = ("rank", "row", "score", "word_overlap", "item_id", "query", "passage")
    shown = [at for at, key in enumerate(keys) if at < 3 or any(trap[key] is not None for trap in listed)]
    lines = [[_cut(trap[keys[at]]) for at in shown] for trap in listed]
    names = [TRAPS[at] for at in shown]
    left = len(found) - len(listed)
    parts: list[Part] = [found.summary]
    parts += ["", table(names, lines, left=TRAPS[4:])] if listed else []
    return [*parts, f"{left} more; raise --limit to see them."] if left else parts


def _kept(rows: Rows, name: str, kept: Any) -> list[Any] | None:
    values = rows.optional(name)
    if values is None or any(values[row] is None for row in kept):
        return None
    return [values[row] for row in kept]


def _cut(value: object) -> object:
    return f"{value[:57]}..." if isinstance(value, str) and len(value) > 60 else value
