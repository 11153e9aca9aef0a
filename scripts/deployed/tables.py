"""The tables of the page from profile to gate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import fill

import numpy as np
from _tables import Cell, Table

from deployed.results import Result, Wrong, of_stratum
from deployed.trials import ALPHA, DELTA, LEVEL, TARGET, Tally
from deployed.worlds import STRATA


def summary(results: Sequence[Result], repeats: int) -> Table:
    """One line a stratum: means over sets and embedders."""
    rows: list[list[Cell]] = []
    for stratum in STRATA:
        found = of_stratum(results, stratum)
        if found:
            rows.append([stratum, len(found), *_summary(found)])
    return Table(
        f"Every stratum, at alpha {float(ALPHA):g}",
        _wrapped(
            f"Means over sets and embedders of {repeats} random halves each (least to most). Sufficient "
            "accepted: P(ACCEPT | sufficient). Risk gate: share of all rows that it accepts, where "
            f"P(insufficient | ACCEPT) is to be at most {float(TARGET):g}."
        ),
        [
            "negatives",
            "pairs",
            "AUROC, KPI",
            "AUROC, cosine",
            "FSR, KPI",
            "FSR, cosine",
            "sufficient accepted, KPI",
            "sufficient accepted, cosine",
            "abstained, KPI",
            "risk gate accepts, KPI",
            "risk gate accepts, cosine",
        ],
        rows,
    )


def _summary(found: Sequence[Result]) -> Iterator[Cell]:
    yield from (float(np.mean([one.areas[score] for one in found])) for score in (0, 1))
    yield from (ranged([one.gates[score].fsr for one in found]) for score in (0, 1))
    yield from (ranged([one.gates[score].kept for one in found]) for score in (0, 1))
    yield ranged([abstained(one.gates[0]) for one in found])
    yield from (ranged([one.risk_gates[score].accepted for one in found]) for score in (0, 1))


def price(results: Sequence[Result], stratum: str) -> Table:
    """What gates do to one stratum that were calibrated on other negatives."""
    known = [(one, one.wrong) for one in of_stratum(results, stratum) if one.wrong]
    rows: list[list[Cell]] = [[one.label, *_price(one, wrong)] for one, wrong in known]
    columns = [_price(one, wrong) for one, wrong in known]
    rows.append(["**mean**", *(float(np.mean(column)) for column in zip(*columns, strict=True))])
    calibrated = ("topic gaps only", "both in equal numbers", f"{stratum} only")
    return Table(
        f"Tested on {stratum}",
        _wrapped(
            f"FSR, which is to be at most {float(ALPHA):.2f}, and share of the sufficient rows accepted, by "
            "the negatives that the gate was calibrated on. The score is the KPI."
        ),
        [
            "set / embedder",
            *(f"{rate}: {on}" for rate in ("FSR", "sufficient accepted") for on in calibrated),
        ],
        rows,
    )


def _price(one: Result, wrong: Wrong) -> list[float]:
    gates = (wrong.gaps, wrong.both, one.gates[0])
    return [*(gate.fsr for gate in gates), *(gate.kept for gate in gates)]


def stratum_tables(found: Sequence[Result]) -> Iterator[Table]:
    """Three tables of one stratum: the class-conditional gate, what the KPI buys, the risk gate."""
    yield Table(
        "Class-conditional gate on the KPI",
        "Columns: see [how to read](#how-to-read-the-tables).",
        [
            "set / embedder",
            "rows",
            "FSR",
            "lost",
            "band of the mean",
            "band of one half",
            "coverage of 0",
            "coverage of 1",
            "sufficient accepted",
            "accepted",
            "rejected",
            "abstained",
            "selective risk",
        ],
        [_gate(one) for one in found],
    )
    yield Table(
        "What the KPI buys",
        "The same rows and halves with the best cosine as the score.",
        [
            "set / embedder",
            "AUROC, KPI",
            "AUROC, cosine",
            "FSR, cosine",
            "sufficient accepted, KPI",
            "sufficient accepted, cosine",
            "difference",
            "abstained, cosine",
        ],
        [_bought(one) for one in found],
    )
    yield Table(
        f"Risk gate: P(insufficient | ACCEPT) at most {float(TARGET):g}",
        f"With delta {float(DELTA):g}; on the KPI, and on the best cosine.",
        [
            "set / embedder",
            "insufficient",
            "certified",
            "accepted",
            "sufficient accepted",
            "risk",
            "over",
            "certified, cosine",
            "accepted, cosine",
            "risk, cosine",
        ],
        [_risk(one) for one in found],
    )


def _gate(one: Result) -> list[Cell]:
    gate = one.gates[0]
    lost = gate.coverage[0]
    return [
        one.label,
        f"{one.rows[0]} / {one.rows[1]}",
        gate.fsr,
        1.0 - lost.mean,
        f"{1.0 - lost.high:.3f} to {1.0 - lost.low:.3f}",
        "{:.3f} to {:.3f}".format(*gate.one_draw()),
        lost.mean,
        gate.coverage[1].mean,
        gate.kept,
        gate.accepted,
        gate.rejected,
        abstained(gate),
        or_dash(gate.risk),
    ]


def _bought(one: Result) -> list[Cell]:
    by_kpi, by_cosine = one.gates
    tested = by_kpi.column("tested1")
    apart = (by_kpi.column("right") - by_cosine.column("right")) / tested
    low, high = np.quantile(apart, [0.05, 0.95])
    return [
        one.label,
        *one.areas,
        by_cosine.fsr,
        by_kpi.kept,
        by_cosine.kept,
        f"{by_kpi.kept - by_cosine.kept:+.3f} ({low:+.3f} to {high:+.3f})",
        abstained(by_cosine),
    ]


def _risk(one: Result) -> list[Cell]:
    by_kpi, by_cosine = one.risk_gates
    return [
        one.label,
        one.rows[0] / sum(one.rows),
        by_kpi.some_accepted,
        by_kpi.accepted,
        by_kpi.kept,
        or_dash(by_kpi.risk),
        by_kpi.over_target / len(by_kpi.counts),
        by_cosine.some_accepted,
        by_cosine.accepted,
        or_dash(by_cosine.risk),
    ]


READING = (
    "FSR: P(ACCEPT | insufficient). Sufficient accepted: P(ACCEPT | sufficient). Accepted, rejected and "
    "abstained are shares of all rows of the stratum.",
    "Rows: insufficient / sufficient, half of the queries for calibration.",
    "Lost: share of the insufficient rows whose label is not in the set. FSR does not exceed it, and is "
    "lower where rows are strange for both labels and abstain.",
    f"Bands: exact {LEVEL:.0%} bands of the share lost, for the mean of all halves (a sum of "
    "beta-binomial counts) and for a single half, which is what one calibration and one test would show.",
    f"Coverage of y: P(y in set | y), which is to be at least {float(1 - ALPHA):.2f} on average.",
    "Difference: of the sufficient accepted, KPI minus best cosine, mean (5% to 95% of halves).",
    "Selective risk, and risk of the risk gate: P(insufficient | ACCEPT) in the mix of the table.",
    "Insufficient: their share of the rows. Where it is below the target, everything may be accepted. "
    "Certified: share of halves that accept anything.",
    "Over: share of halves whose threshold lets in more than the target among all rows of the pool, which is "
    f"to be at most delta, {float(DELTA):g}. Half of the pool calibrated it, so that less than delta is "
    "expected.",
)


def _wrapped(note: str) -> str:
    return fill(note, 110)


def abstained(gate: Tally) -> float:
    """Share of all test rows that are neither accepted nor rejected."""
    return 1.0 - gate.accepted - gate.rejected


def ranged(values: Sequence[float]) -> str:
    """Mean, least and most."""
    return f"{np.mean(values):.3f} ({min(values):.3f} to {max(values):.3f})"


def or_dash(value: float) -> Cell:
    """A dash for nan."""
    return "-" if np.isnan(value) else value
