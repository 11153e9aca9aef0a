"""`guard multi-check-threshold` and `guard multi-check-coverage-check`: several checks, one threshold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from rag_confidence import JointGate
from rag_confidence.adapters._cli.guard import (
    CalibrationSize,
    JudgedCalls,
    RequiredAlpha,
    StalenessDays,
    Trials,
    coverage_page,
    failed,
    gate_document,
    gate_page,
    joint_gate,
    measure,
)
from rag_confidence.adapters._cli.options import Group, Json, Seed, Store, ToolName, age
from rag_confidence.adapters._cli.pool import Pool, Selection, pool_of, pool_of_file
from rag_confidence.adapters._cli.printing import Part, finish, finite, table
from rag_confidence.adapters._cli.progress import working
from rag_confidence.adapters._cli.reading import STDIN
from rag_confidence.conformal.quantile import as_level
from rag_confidence.guard.comparison import CheckComparison, compare_checks
from rag_confidence.guard.coverage import threshold_of

Checks = Annotated[
    list[str] | None, typer.Option("--check", help="A check to use, repeatable; by default all.")
]
CHECK_COLUMNS = ("check", "lowest", "median", "highest", "own threshold", "was the largest")
COMPARED = ("method", "good accepted", "keeps\ntarget", "bad\nstopped", "more than\nbonferroni")


def threshold(
    alpha: RequiredAlpha,
    data: JudgedCalls = None,
    store: Store = None,
    check: Checks = None,
    tool_name: ToolName = None,
    group: Group = None,
    staleness_days: StalenessDays = 90.0,
    as_json: Json = False,
) -> None:
    """Print the joint threshold of several checks, and what each adds; exit code 1 if it is infinite."""
    chosen = Selection(tool_name, group, age("--staleness-days", staleness_days))
    pool = pool_of(data, store, check or (), chosen, single=False)
    gate = joint_gate(pool, alpha)
    each = [_check(pool, gate, at) for at in range(len(gate.names))]
    document = {**gate_document(gate, pool), "by_check": each}
    lines = [
        [one["check"], one["low"], one["median"], one["high"], one["threshold"], one["share_largest"]]
        for one in each
    ]
    parts = [*gate_page(gate, pool), "", table(CHECK_COLUMNS, lines, left=("check",))]
    finish(as_json, document, parts, negative=not gate.certified)


def _check(pool: Pool, gate: JointGate, at: int) -> dict[str, Any]:
    """What one check looks like among the good calls; null where it is infinite."""
    column, name = pool.good[:, at], gate.names[at]
    return {
        "check": name,
        "low": finite(float(column.min())),
        "median": finite(float(np.median(column))),
        "high": finite(float(column.max())),
        "threshold": finite(threshold_of(column, as_level(gate.level))),
        "share_largest": gate.max_share[name],
    }


def check_coverage(
    alpha: RequiredAlpha,
    calibration_size: CalibrationSize,
    data: JudgedCalls = None,
    store: Store = None,
    bad_data: Annotated[
        Path | None, typer.Option(help="Bad calls in the form of --data; their outcomes are not read.")
    ] = None,
    check: Checks = None,
    tool_name: ToolName = None,
    group: Group = None,
    trials: Trials = 100,
    seed: Seed = 0,
    compare: Annotated[
        bool, typer.Option("--compare", help="Also naive and Bonferroni thresholds, on the same splits.")
    ] = False,
    staleness_days: StalenessDays = 90.0,
    as_json: Json = False,
) -> None:
    """Hold the coverage of a joint threshold against its exact band; exit code 1 if it lies outside.

    Bad calls are those of --bad-data, or without it those of the data whose outcome is false.
    """
    chosen = Selection(tool_name, group, age("--staleness-days", staleness_days))
    pool = pool_of(data, store, check or (), chosen, single=False)
    if bad_data is not None:
        pool = with_bad(pool, _bad_pool(data, bad_data, pool.checks))
    found = measure(pool, alpha, calibration_size, trials, seed)
    document, parts, negative = found.to_dict(), coverage_page(found), failed(found)
    if compare:
        compared = _compare(pool, alpha, calibration_size, trials, seed)
        document["comparison"] = compared.to_dict()
        parts = [*parts, "", *comparison_page(compared)]
        negative = negative or not compared.of("joint").keeps_target
    finish(as_json, document, parts, negative=negative)


def _bad_pool(data: Path | None, bad_data: Path, checks: tuple[str, ...]) -> Pool:
    if data == bad_data == STDIN:
        raise ValueError("`--bad-data` must be a file where --data is -; got - twice. Name a file for one.")
    found = pool_of_file(bad_data, checks, single=False, judged=False)
    if not len(found.scores):
        raise ValueError(f"`{found.name}` must hold bad calls; got none. Leave --bad-data out.")
    return found


def with_bad(pool: Pool, bad: Pool) -> Pool:
    """A pool with these bad calls in place of its own."""
    good = pool.good
    return replace(
        pool,
        scores=np.concatenate([good, bad.scores]),
        outcomes=np.arange(len(good) + len(bad.scores)) < len(good),
    )


def _compare(pool: Pool, alpha: str, calibration_size: int, trials: int, seed: int) -> CheckComparison:
    with working("comparing"):
        return compare_checks(
            pool.good,
            alpha,
            calibration_size=calibration_size,
            bad=pool.bad if len(pool.bad) else None,
            names=pool.checks,
            trials=trials,
            seed=seed,
        )


def comparison_page(found: CheckComparison) -> list[Part]:
    """A comparison for people."""
    told = [] if found.n_bad else ["No bad calls: what each method stops is not known. See --bad-data."]
    # The target is the same in every line and stands above.
    lines = [(method, *cells) for method, _, *cells in found.rows()]
    return [table(COMPARED, lines, left=("method",)), *told]
