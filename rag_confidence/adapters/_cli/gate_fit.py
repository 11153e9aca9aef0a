"""`gate fit`, `gate plan`, `gate inspect`: a gate before it decides anything."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from rag_confidence import ConformalGate, RiskGate, fit_conformal_gate, fit_risk_gate, plan
from rag_confidence._history import GroupName
from rag_confidence.adapters._cli.artefacts import SavedGate, load_gate
from rag_confidence.adapters._cli.history import Columns, History, read_history
from rag_confidence.adapters._cli.options import (
    Alpha,
    GroupColumn,
    Json,
    LabelColumn,
    OptionalData,
    ScoreColumn,
    Store,
)
from rag_confidence.adapters._cli.printing import Part, facts, finish, finite, note, notes, table

CELLS = ("group", "q0", "t1", "insufficient", "sufficient")
RULE = (
    "ACCEPT for scores above q0 and from t1 on, REJECT for scores below t1 and up to q0, ABSTAIN else. "
    "An infinite threshold excludes nothing."
)

Out = Annotated[Path | None, typer.Option(help="File to save the gate in.")]
AlphaReject = Annotated[str | None, typer.Option(help="Level of a false REJECT; by default that of --alpha.")]
Delta = Annotated[str, typer.Option(help="Share of calibration sets that may break the bound.")]


def fit(
    data: OptionalData = None,
    store: Store = None,
    alpha: Alpha = "0.1",
    alpha_reject: AlphaReject = None,
    guarantee: Annotated[
        Literal["marginal", "pac"], typer.Option(help="Bound on average, or for all but a share --delta.")
    ] = "marginal",
    delta: Delta = "0.05",
    target_risk: Annotated[
        str | None, typer.Option(help="Fit a risk gate instead: most insufficient rows among the accepted.")
    ] = None,
    score_column: ScoreColumn = "kpi",
    label_column: LabelColumn = "label",
    group_column: GroupColumn = None,
    id_column: Annotated[str | None, typer.Option(help="Column of row names, to recognise rows.")] = None,
    cluster_column: Annotated[
        str | None, typer.Option(help="Column of the query of each row, where one has several.")
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Scores of any range, not in [0, 1].")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Refuse where the fit would only warn.")] = False,
    labeling_source: Annotated[str | None, typer.Option(help="Who or what decided on the labels.")] = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Fit a gate to labelled scores; exit code 1 if it can never accept."""
    if target_risk is not None:
        _refuse_conformal(alpha, alpha_reject, guarantee)
    columns = Columns(score_column, label_column, group_column, id_column, cluster_column)
    rows = read_history(data, store, columns)
    shared: dict[str, Any] = {
        "score_kind": "raw" if raw else "fraction",
        "provenance": rows.provenance,
        "row_ids": rows.row_ids,
        "collected": rows.collected,
        "labeling_source": labeling_source or rows.labeling_source,
        "strict": strict,
    }
    gate: SavedGate
    if target_risk is None:
        gate = fit_conformal_gate(
            rows.scores,
            rows.labels,
            alpha,
            alpha_reject=alpha_reject,
            groups=rows.groups,
            guarantee=guarantee,
            delta=delta,
            clusters=rows.clusters,
            **shared,
        )
    else:
        gate = _risk_gate(rows, target_risk, delta, shared)
    if out is not None:
        gate.save(out)
        note(f"saved {out}")
    finish(as_json, gate_document(gate), gate_page(gate), negative=_never_accepts(gate))


def _refuse_conformal(alpha: str, alpha_reject: str | None, guarantee: str) -> None:
    """A risk gate has no such levels: they would be left unheard."""
    for name, value, unset in (
        ("--alpha", alpha, "0.1"),
        ("--alpha-reject", alpha_reject, None),
        ("--guarantee", guarantee, "marginal"),
    ):
        if value != unset:
            raise ValueError(
                f"`{name}` must be left out with --target-risk; got {value!r}. Pass one of them."
            )


def _risk_gate(rows: History, target_risk: str, delta: str, shared: dict[str, Any]) -> RiskGate:
    for name, value in (("--group-column", rows.groups), ("--cluster-column", rows.clusters)):
        if value is not None:
            raise ValueError(
                f"`{name}` must be left out with --target-risk; got both. A risk gate has no such rows."
            )
    return fit_risk_gate(rows.scores, rows.labels, target_risk, delta, **shared)


def _never_accepts(gate: SavedGate) -> bool:
    if isinstance(gate, RiskGate):
        return not gate.certified
    return all(math.isinf(gate.thresholds(name)[0]) for name in _names(gate))


def _names(gate: ConformalGate) -> list[GroupName | None]:
    """The groups of a gate; None for one without."""
    return [cell.group for cell in gate.table.groups] or [None]


def inspect(
    gate: Annotated[Path, typer.Argument(help="A file that `gate fit --out` wrote.")],
    as_json: Json = False,
) -> None:
    """Show what a saved gate promises; exit code 1 if it can never accept."""
    found = load_gate(gate)
    finish(as_json, gate_document(found), gate_page(found), negative=_never_accepts(found))


def gate_document(gate: SavedGate) -> dict[str, Any]:
    """A gate for machines, without the scores that it was fitted on."""
    if isinstance(gate, RiskGate):
        return {
            "kind": "risk_gate",
            "threshold": finite(gate.threshold),
            "certified": gate.certified,
            "target_risk": gate.target_risk,
            "delta": gate.delta,
            "n0": gate.n0,
            "n1": gate.n1,
            "accepted": gate.accepted,
            "errors": gate.errors,
            "empirical_risk": gate.empirical_risk,
            "risk_upper": gate.risk_upper,
            "guarantee": gate.guarantee.to_dict(),
            **_origin(gate),
        }
    return {
        "kind": "conformal_gate",
        "bound": gate.kind,
        "alpha": gate.alpha,
        "alpha_reject": gate.alpha_reject,
        "delta": gate.delta,
        "n0": gate.n0,
        "n1": gate.n1,
        "labels_needed": [*gate.labels_needed.values()],
        "auroc": gate.auroc,
        "auroc_low": gate.auroc_low,
        "auroc_high": gate.auroc_high,
        "thresholds": [_cell(gate, name) for name in _names(gate)],
        **_origin(gate),
    }


def _origin(gate: SavedGate) -> dict[str, Any]:
    return {
        "notes": [*gate.notes],
        "provenance": None if gate.provenance is None else gate.provenance.to_dict(),
        "fingerprint": gate.fingerprint,
    }


def _cell(gate: ConformalGate, name: GroupName | None) -> dict[str, Any]:
    """Thresholds of a group; null where they are infinite."""
    q0, t1 = gate.thresholds(name)
    found = gate.guarantee_of(name)
    return {"group": name, "q0": finite(q0), "t1": finite(t1), "guarantee": found.to_dict()}


def gate_page(gate: SavedGate) -> list[Part]:
    """A gate for people."""
    if isinstance(gate, RiskGate):
        return [facts(_risk_facts(gate)), "", gate.guarantee.sentence, *notes(gate.notes)]
    cells = [_cell(gate, name) for name in _names(gate)]
    sentences = dict.fromkeys(cell["guarantee"]["sentence"] for cell in cells)
    return [
        facts(_conformal_facts(gate)),
        "",
        table(CELLS, map(_cell_line, cells), left=("group",)),
        "",
        RULE,
        "",
        *sentences,
        *notes(gate.notes),
    ]


def _risk_facts(gate: RiskGate) -> list[tuple[str, object]]:
    return [
        ("gate", f"risk, target {gate.target_risk:g} at delta {gate.delta:g}"),
        ("accepts", f"above {gate.threshold:.6g}" if gate.certified else "never"),
        ("rows", f"{gate.n0} insufficient, {gate.n1} sufficient"),
        ("accepted of them", f"{gate.accepted}, of which {gate.errors} are insufficient"),
    ]


def _conformal_facts(gate: ConformalGate) -> list[tuple[str, object]]:
    needed = gate.labels_needed
    return [
        ("gate", f"conformal, {gate.kind}, alpha {gate.alpha:g}, alpha_reject {gate.alpha_reject:g}"),
        ("rows", f"{gate.n0} insufficient, {gate.n1} sufficient"),
        ("rows needed", f"{needed[0]} insufficient, {needed[1]} sufficient"),
        ("AUROC", f"{gate.auroc:.4f} [{gate.auroc_low:.4f}, {gate.auroc_high:.4f}]"),
    ]


def _cell_line(cell: dict[str, Any]) -> tuple[object, ...]:
    known = cell["guarantee"]
    bounds = ("infinite" if bound is None else f"{bound:.6g}" for bound in (cell["q0"], cell["t1"]))
    return (cell["group"], *bounds, known["n0"], known["n1"])


def plan_labels(
    alpha: Alpha = "0.1",
    delta: Delta = "0.05",
    alpha_reject: AlphaReject = None,
    tolerance: Annotated[str, typer.Option(help="How far the rate of one gate may exceed alpha.")] = "0.05",
    prevalence: Annotated[str | None, typer.Option(help="Expected share of sufficient rows.")] = None,
    target_risk: Annotated[str | None, typer.Option(help="Target of a risk gate.")] = None,
    attempts: Annotated[int, typer.Option(help="Retrievals of one question that share alpha.")] = 1,
    as_json: Json = False,
) -> None:
    """Say how many labelled rows a gate needs."""
    found = plan(
        alpha,
        delta,
        alpha_reject=alpha_reject,
        tolerance=tolerance,
        prevalence=prevalence,
        target_risk=target_risk,
        attempts=attempts,
    )
    finish(as_json, found.to_dict(), [found.sentence])
