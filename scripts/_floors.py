"""How often a sufficient retrieval falls below the floor of a driver, and is reviewed for that alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from _data import FloatArray
from _scored import Scored
from _tables import Cell, Check, Section, Table

from rag_confidence import MetricPolicy, Signal

DRIVERS = {
    "localization": Signal.ANSWER_LOCALIZATION,
    "cohesion": Signal.SUPPORT_COHESION,
    "consistency": Signal.EVIDENCE_CONSISTENCY,
    "robustness": Signal.QUERY_ROBUSTNESS,
}
ONE_IN_TWENTY = 0.05
MANY = 0.20


def floors(scored: Sequence[Scored]) -> Section:
    """Share below each floor, and whether the two constants are where they are said to be."""
    below = np.array([_below_floors(s) for s in scored])
    mean = below.mean(axis=0)
    policy = MetricPolicy()
    names = [f"{name} < {floor:g}" for name, floor in zip(DRIVERS, policy.floors.as_tuple(), strict=True)]
    rows: list[list[Cell]] = [[s.data.label, *row] for s, row in zip(scored, below.tolist(), strict=True)]
    table = Table(
        "Sufficient retrievals below a floor",
        "Share of the sufficient@10 queries whose own retrieval falls below the floor of each driver, and of "
        f"any. {_missed_by_many(scored, below)}",
        ["set / embedder", *names, "any"],
        [*rows, ["mean", *mean.tolist()]],
    )
    bar, turn = policy.floors.answer_localization / 100.0, policy.floors.query_robustness / 100.0
    second_bar = _twentieth(scored, "second_bar", 1.0 - ONE_IN_TWENTY) / (1.0 / bar - 1.0)
    flip_angle = _twentieth(scored, "flip_angle", ONE_IN_TWENTY) * (1.0 / turn - 1.0)
    checks = [
        _check("localization_tau", policy.localization_tau, "localization", float(mean[0]), second_bar),
        _check("robustness_angle", policy.robustness_angle, "robustness", float(mean[3]), flip_angle),
    ]
    return Section("Floors of the drivers, and the two constants that were set by them", [table], checks)


def _below_floors(scored: Scored) -> FloatArray:
    drivers = scored.own.batch.drivers
    values = np.stack([drivers.of(signal) for signal in DRIVERS.values()])[:, scored.sufficient]
    below = 100.0 * values < np.array(scored.policy.floors.as_tuple())[:, None]
    return np.append(below.mean(axis=1), below.any(axis=0).mean())


def _missed_by_many(scored: Sequence[Scored], below: FloatArray) -> str:
    found = [
        f"{s.data.label}, {name} ({share:.0%})"
        for s, row in zip(scored, below, strict=True)
        for name, share in zip(DRIVERS, row, strict=False)
        if share > MANY
    ]
    if not found:
        return f"No floor is missed by more than {MANY:.0%}."
    where = "; ".join(found)
    return f"Missed by more than {MANY:.0%}, so that good answers are reviewed for it alone: {where}."


def _twentieth(scored: Sequence[Scored], name: str, level: float) -> float:
    """Quantile of a signal over all sufficient retrievals, every set and embedder weighing the same."""
    columns = [s.own.batch.signals[name][s.sufficient] for s in scored]
    values = np.concatenate(columns)
    weights = np.concatenate([np.full(len(column), 1.0 / len(column)) for column in columns])
    order = np.argsort(values)
    reached = np.cumsum(weights[order]) / len(columns)
    return float(values[order][np.searchsorted(reached, level)])


def _check(constant: str, value: float, name: str, share: float, exact: float) -> Check:
    return Check(
        f"{constant} = {value:g} puts a few of a hundred sufficient retrievals below the floor of {name}",
        ONE_IN_TWENTY / 2.0 <= share <= ONE_IN_TWENTY * 2.0,
        f"mean share {share:.3f}, wanted .025 to .100; one in twenty would be {exact:.3f}",
    )
