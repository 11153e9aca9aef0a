"""Sections of the gate benchmark: made-up retrievals, then real ones by the kind of their negatives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import _above  # noqa: F401  (the modules below live in scripts/)
import numpy as np
from _gate_runs import Run, Split, mean_of, run
from _methods import ALPHA, DELTA, MARGINAL, RISK_DELTA, methods
from _strata import LEAST, STRATA, Pool
from _tables import Cell, Check, Section, Table

from rag_confidence.conformal.separation import auroc
from rag_confidence.conformal.validation.draws import random_splits
from rag_confidence.synthetic import LabelledScores, rag_benchmark

FIRST_SEED = 42
ROWS, CALIBRATION = 2000, 1000
RATE_NAMES = (
    ("FSR", "fsr"),
    ("selective risk", "risk"),
    ("sufficient accepted", "sufficient"),
    ("acceptance", "accept"),
    ("abstention", "abstain"),
    ("conflict", "conflict"),
)
COVERAGE_NAMES = (("coverage of 0", "kept_0"), ("coverage of 1", "kept_1"))
FALSE_ALARMS = 0.05
_SALT = 0xBE9C4

DEFINITIONS = (
    "FSR = P(ACCEPT | insufficient). Selective risk = P(insufficient | ACCEPT), over the seeds in which "
    'anything was accepted. Sufficient accepted = P(ACCEPT | sufficient), elsewhere called "true evidence '
    'coverage". Coverage of y = P(y in set | y), what a gate promises; for a fixed threshold it is what a '
    "set {accepted label} would cover. Conflict = share of empty sets. Held = share of seeds in which the "
    "bounded error was at most its level on the test rows: FSR at most "
    f"{ALPHA:.2f}, or selective risk at most the target of the risk gate. Expected = the same share for a "
    "sound gate, from the exact distribution: about one half for a marginal gate, because its FSR is "
    f"{ALPHA:.2f} on average over calibration sets and not for each. The pac gate has delta {DELTA:.2f}, "
    f"the risk gate {RISK_DELTA:.2f}; test rows add their own chance to all of them."
)


def synthetic(seeds: int) -> Section:
    """The benchmark on `rag_benchmark`."""
    found = run(methods(), _benchmark_splits(seeds))
    rows = [[*_cells(one), f"{one.truly_held():.3f}", *_true_cells(one)] for one in found]
    names = [name for name, _ in (*RATE_NAMES, *COVERAGE_NAMES)]
    table = Table(
        f"{ROWS:,} made-up retrievals, {CALIBRATION:,} for calibration, {seeds} seeds from {FIRST_SEED}",
        f"Mean over seeds (5 % to 95 %). {DEFINITIONS} True = over all future rows, which is known here: the "
        "share of seeds in which the bound holds, and the mean of the exact error rates.",
        ["method", *names, "held", "expected", "truly held", "true FSR", "true selective risk"],
        rows,
    )
    return Section("Made-up retrievals", [table], _coverage_checks([("made-up retrievals", found)]))


def _benchmark_splits(seeds: int) -> Iterator[Split]:
    for seed in range(FIRST_SEED, FIRST_SEED + seeds):
        rows = rag_benchmark(seed, ROWS)
        yield rows.take(slice(CALIBRATION)), rows.take(slice(CALIBRATION, None))


@dataclass(frozen=True)
class PoolRuns:
    """All methods on one pool, by the KPI; and the gates by the best cosine."""

    pool: Pool
    by_kpi: list[Run]
    by_cosine: list[Run]


def run_pool(pool: Pool, seeds: int) -> PoolRuns:
    """Random halves of the queries calibrate and test."""
    gates = [method for method in methods() if method.is_gate]
    return PoolRuns(
        pool,
        run(methods(), _pool_splits(pool.kpi, pool, seeds)),
        run(gates, _pool_splits(pool.max_cosine, pool, seeds)),
    )


def _pool_splits(scores: LabelledScores, pool: Pool, seeds: int) -> Iterator[Split]:
    draw, queries = random_splits(scores, pool.query), len(np.unique(pool.query))
    for seed in range(seeds):
        yield draw(np.random.default_rng([_SALT, seed]), queries // 2, queries - queries // 2)


def stratum_section(stratum: str, found: Sequence[PoolRuns], left_out: Sequence[Pool], seeds: int) -> Section:
    """Two tables and the checks of one kind of negative."""
    title = f"Real retrievals: {stratum}"
    if not found:
        return Section(title, skipped=_left_out(left_out))
    return Section(
        title,
        [_by_method(stratum, found, left_out, seeds), _by_pool(stratum, found, seeds)],
        _coverage_checks([(f"{p.pool.label}, {score}", runs) for p in found for score, runs in _scores(p)]),
    )


def _scores(one: PoolRuns) -> Iterator[tuple[str, list[Run]]]:
    yield "KPI", one.by_kpi
    yield "best cosine", one.by_cosine


def _by_method(stratum: str, found: Sequence[PoolRuns], left_out: Sequence[Pool], seeds: int) -> Table:
    rows: list[list[Cell]] = []
    for at, method in enumerate(methods()):
        runs = [one.by_kpi[at] for one in found]
        columns = [_over_pools(runs, name) for _, name in (*RATE_NAMES, *COVERAGE_NAMES)]
        held = np.mean([one.mean("held") for one in runs])
        expected = np.mean([one.expected for one in runs])
        rows.append([method.name, *columns, f"{held:.3f}", _or_dash(float(expected))])
    skipped = f" Left out: {_left_out(left_out)}." if left_out else ""
    return Table(
        f"Each method, {stratum}",
        f"Insufficient rows: {STRATA[stratum]}. The KPI under a policy fitted on other queries; {seeds} "
        f"random halves of the queries of each of {len(found)} sets and embedders. Mean over sets and "
        f"embedders of their means over seeds (least to most).{skipped} Definitions as above; the selective "
        "risk is that of the mix of rows in each pool.",
        ["method", *(name for name, _ in (*RATE_NAMES, *COVERAGE_NAMES)), "held", "expected"],
        rows,
    )


def _by_pool(stratum: str, found: Sequence[PoolRuns], seeds: int) -> Table:
    rows: list[list[Cell]] = []
    for one in found:
        gate = next(r for r in one.by_kpi if r.method.name == MARGINAL)
        cosine = next(r for r in one.by_cosine if r.method.name == MARGINAL)
        lost = gate.coverage(0, 0.95).mean
        labels = one.pool.kpi.labels
        rows.append(
            [
                one.pool.label,
                f"{np.count_nonzero(~labels)} / {np.count_nonzero(labels)}",
                f"{auroc(one.pool.kpi.scores, labels):.3f}",
                gate.cell("fsr"),
                f"{1 - lost.high:.4f} to {1 - lost.low:.4f}",
                *(gate.cell(name) for _, name in RATE_NAMES[1:]),
                f"{gate.mean('held'):.3f}",
                f"{gate.expected:.3f}",
                f"{auroc(one.pool.max_cosine.scores, labels):.3f}",
                f"{cosine.mean('sufficient'):.3f}",
            ]
        )
    return Table(
        f"The marginal gate on each set, {stratum}",
        f"Mean over {seeds} random halves (5 % to 95 %). Band: exact 95 % band of the mean share of "
        "insufficient rows whose label is lost, which FSR does not exceed; ties and conflicts put FSR below. "
        "The last two columns are those of a gate on the best cosine, on the same rows.",
        [
            "set / embedder",
            "rows 0 / 1",
            "AUROC",
            "FSR",
            "band of the mean",
            *(name for name, _ in RATE_NAMES[1:]),
            "held",
            "expected",
            "AUROC, cosine",
            "sufficient accepted, cosine",
        ],
        rows,
    )


def _cells(one: Run) -> list[Cell]:
    columns = [one.cell(name) for _, name in (*RATE_NAMES, *COVERAGE_NAMES)]
    return [one.method.name, *columns, f"{one.mean('held'):.3f}", _or_dash(one.expected)]


def _true_cells(one: Run) -> list[Cell]:
    fsr, risk = one.true_rates()
    return [f"{fsr.mean():.3f}", _or_dash(mean_of(risk))]


def _over_pools(runs: Sequence[Run], name: str) -> str:
    means = np.array([one.mean(name) for one in runs])
    seen = means[~np.isnan(means)]
    return f"{mean_of(means):.3f} ({seen.min():.3f} to {seen.max():.3f})" if seen.size else "-"


def _or_dash(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.3f}"


def _left_out(pools: Sequence[Pool]) -> str:
    few = ", ".join(f"{pool.label} ({pool.smaller_class})" for pool in pools)
    return f"fewer than {LEAST} rows of one class in {few}"


def _coverage_checks(found: Sequence[tuple[str, Sequence[Run]]]) -> list[Check]:
    """One check a gate: no pool has less coverage than the exact distribution of its mean allows."""
    checks = []
    gates = [method.name for method in methods() if method.is_gate]
    level = 1.0 - FALSE_ALARMS / (len(found) * len(gates))
    for gate in gates:
        missed = []
        for name, runs in found:
            one = next(r for r in runs if r.method.name == gate)
            classes = [one.coverage(label, level) for label in (0, 1)]
            missed += [f"{name}, label {c.label}: {c.mean.mean:.4f}" for c in classes if c.faults]
            over = one.mean("fsr") > 1.0 - classes[0].mean.low
            missed += [f"{name}, FSR {one.mean('fsr'):.4f}"] if over else []
        detail = "; ".join(missed) or f"{2 * len(found)} coverages, {FALSE_ALARMS:.0%} false alarms in all"
        checks.append(
            Check(f"{gate}: FSR and the coverage of both classes keep their exact bands", not missed, detail)
        )
    return checks
