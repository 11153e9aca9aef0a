"""`guard inspect|threshold|coverage-check`: what a store holds, and what one check makes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from rag_confidence import JointGate, fit_joint_gate
from rag_confidence.adapters._cli.options import ExistingStore, Group, Json, Seed, Store, ToolName, age
from rag_confidence.adapters._cli.pool import Pool, Selection, pool_of, stored_group
from rag_confidence.adapters._cli.printing import Part, facts, finish, finite, notes, table
from rag_confidence.adapters._cli.progress import working
from rag_confidence.guard.coverage import HEADER, CoverageCheck, coverage_check
from rag_confidence.store import CalibrationStore, StoreSummary

RequiredAlpha = Annotated[str, typer.Option("--alpha", help="Level in (0, 1), exact as written.")]
Check = Annotated[str | None, typer.Option(help="The check; needed where there are several.")]
JudgedCalls = Annotated[
    Path | None,
    typer.Option("--data", help='JSON or JSONL of {"scores": {"check": 0.1}, "outcome": true}.'),
]
CalibrationSize = Annotated[int, typer.Option(help="Calls that set the threshold in each trial.")]
Trials = Annotated[int, typer.Option(min=1, help="Random splits.")]
Fingerprint = Annotated[
    str | None, typer.Option(help="Only scores of this scorer, as `guard inspect` shows it.")
]
StalenessDays = Annotated[float, typer.Option(help="Age of the newest call from which to warn.")]


def inspect(
    store: ExistingStore,
    tool_name: ToolName = None,
    group: Group = None,
    staleness_days: StalenessDays = 90.0,
    recommended_minimum: Annotated[int, typer.Option(help="Good calls below which to warn.")] = 1000,
    strict: Annotated[bool, typer.Option("--strict", help="Exit code 1 if anything is amiss.")] = False,
    as_json: Json = False,
) -> None:
    """Show what a store holds: counts, times, scorers, and what is amiss."""
    span = age("--staleness-days", staleness_days)
    with CalibrationStore(store, create=False) as opened:
        found = opened.summary(
            enough=recommended_minimum, max_age=span, tool_name=tool_name, group=stored_group(opened, group)
        )
    negative = strict and bool(found.notes)
    finish(as_json, found.to_dict(), summary_page(found), negative=negative)


def summary_page(found: StoreSummary) -> list[Part]:
    """A store for people."""
    counts = (("tool", found.tools), ("group", found.groups), ("labelled by", found.labeling_sources))
    scorers = [
        (check, fingerprint or "unknown", count)
        for check, made_by in found.scorers.items()
        for fingerprint, count in made_by.items()
    ]
    scorer_table = table(("check", "scorer", "scores"), scorers, left=("check", "scorer"))
    parts: list[Part] = [
        facts(
            [
                ("calls", found.n_calls),
                ("good", found.n_good),
                ("bad", found.n_bad),
                ("unlabelled", found.n_unlabelled),
                ("first", found.first),
                ("last", found.last),
                *((f"{what} {name}", count) for what, names in counts for name, count in names.items()),
            ]
        ),
    ]
    return [*parts, *notes(found.notes)] if not scorers else [*parts, "", scorer_table, *notes(found.notes)]


def threshold(
    alpha: RequiredAlpha,
    store: Store = None,
    data: JudgedCalls = None,
    check: Check = None,
    tool_name: ToolName = None,
    group: Group = None,
    staleness_days: StalenessDays = 90.0,
    fingerprint: Fingerprint = None,
    as_json: Json = False,
) -> None:
    """Print the threshold of one check from its good calls; exit code 1 if they are too few."""
    chosen = Selection(tool_name, group, age("--staleness-days", staleness_days), fingerprint)
    pool = pool_of(data, store, (check,) if check else (), chosen, single=True)
    gate = joint_gate(pool, alpha)
    finish(as_json, gate_document(gate, pool), gate_page(gate, pool), negative=not gate.certified)


def joint_gate(pool: Pool, alpha: str) -> JointGate:
    """The threshold of a pool."""
    return fit_joint_gate(
        pool.good,
        alpha,
        names=pool.checks,
        collected=pool.collected,
        labeling_source=pool.labeling_source,
    )


def gate_document(gate: JointGate, pool: Pool) -> dict[str, Any]:
    """A threshold for machines; null where it is infinite."""
    return {
        "alpha": gate.alpha,
        "checks": [*gate.names],
        "threshold": finite(gate.threshold),
        "infinite": not gate.certified,
        "n_good": gate.n,
        "n_bad": len(pool.bad),
        "n_failed": gate.n_failed,
        "n_needed": gate.n_needed,
        "guarantee": gate.guarantee.to_dict(),
    }


def gate_page(gate: JointGate, pool: Pool) -> list[Part]:
    """A threshold for people."""
    return [
        facts(
            [
                ("threshold", f"{gate.threshold!r}" if gate.certified else "infinite: every call abstains"),
                ("alpha", f"{gate.alpha:g}"),
                ("good calls", f"{gate.n}, needed at least {gate.n_needed}"),
                ("with a failed check", gate.n_failed),
                ("bad calls, not used", len(pool.bad)),
            ]
        ),
        "",
        gate.guarantee.sentence,
    ]


def check_coverage(
    alpha: RequiredAlpha,
    calibration_size: CalibrationSize,
    store: Store = None,
    data: JudgedCalls = None,
    check: Check = None,
    tool_name: ToolName = None,
    group: Group = None,
    trials: Trials = 100,
    seed: Seed = 0,
    staleness_days: StalenessDays = 90.0,
    fingerprint: Fingerprint = None,
    as_json: Json = False,
) -> None:
    """Hold the coverage of random splits against its exact band; exit code 1 if it lies outside."""
    chosen = Selection(tool_name, group, age("--staleness-days", staleness_days), fingerprint)
    pool = pool_of(data, store, (check,) if check else (), chosen, single=True)
    found = measure(pool, alpha, calibration_size, trials, seed)
    finish(as_json, found.to_dict(), coverage_page(found), negative=failed(found))


def failed(found: CoverageCheck) -> bool:
    """Whether coverage is off, or no guard came out that accepts anything."""
    return found.flagged or found.infinite == found.trials


def measure(pool: Pool, alpha: str, calibration_size: int, trials: int, seed: int) -> CoverageCheck:
    """Coverage of the largest score of each call; with one check, of its score."""
    bad = np.max(pool.bad, axis=1) if len(pool.bad) else None
    with working("splitting"):
        return coverage_check(
            np.max(pool.good, axis=1),
            alpha,
            calibration_size=calibration_size,
            trials=trials,
            seed=seed,
            bad=bad,
        )


def coverage_page(found: CoverageCheck) -> list[Part]:
    """A coverage check for people."""
    rejected = "-" if found.bad_rejection is None else f"{found.bad_rejection:.4f}"
    cells = dict(zip(HEADER[1:], found.row()[1:], strict=True))
    return [
        facts(
            [
                ("good calls", f"{found.n} set the threshold, {found.n_test} test it, {found.trials} times"),
                *cells.items(),
                ("bad calls not accepted", rejected),
                ("infinite thresholds", found.infinite),
            ]
        ),
        "",
        coverage_sentence(found),
    ]


def coverage_sentence(found: CoverageCheck) -> str:
    """What to make of a coverage check, and what it cannot show."""
    if found.flagged:
        return f"Not as it must be: {found.fault}."
    if found.infinite == found.trials:
        return "Every threshold is infinite: such a guard abstains on every call, and nothing was tested."
    if found.tied:
        return "Coverage is not too low; scores tie, so that it may be higher than asked, up to every call."
    return "Coverage is as it must be."
