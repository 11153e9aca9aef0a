"""Everything that the choice of constants measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from _data import FloatArray
from _tables import Cell

from rag_confidence import Signal
from weights.choice import LeftOut, Table, leave_one_out
from weights.grid import Setting, areas_of, shipped
from weights.pairs import Pair


@dataclass(frozen=True)
class Run:
    """What the page is written from."""

    pairs: Sequence[Pair]
    grid: Sequence[Setting]
    sizes: dict[str, int]


@dataclass(frozen=True)
class Found:
    """Everything measured: AUROC of each point, and both choices by leaving a set out."""

    run: Run
    table: Table
    now: FloatArray
    every: list[LeftOut]
    without: list[LeftOut]

    @classmethod
    def of(cls, run: Run) -> Found:
        """All points on all pairs."""
        areas = areas_of(run.pairs, run.grid)
        cosine = np.array([pair.auroc(pair.signals["max_cosine"]) for pair in run.pairs])
        table = Table(run.grid, areas, cosine)
        plain = [at for at, one in enumerate(run.grid) if not one.consistency and not one.robustness]
        fewer = Table([run.grid[at] for at in plain], areas[plain], cosine)
        return cls(
            run,
            table,
            areas_of(run.pairs, [shipped()])[0],
            leave_one_out(table, run.pairs),
            leave_one_out(fewer, run.pairs),
        )

    @property
    def names(self) -> list[str]:
        """The sets, in their order."""
        return list(dict.fromkeys(pair.name for pair in self.run.pairs))

    def by_set(self, areas: FloatArray) -> FloatArray:
        """Means (sets,) of AUROCs (pairs,)."""
        of = np.array([pair.name for pair in self.run.pairs])
        return np.array([areas[of == name].mean() for name in self.names])

    def cells(self, areas: FloatArray) -> list[Cell]:
        """Mean, worst difference to the best cosine, and the mean of each set."""
        return [four(areas.mean()), signed((areas - self.table.cosine).min()), *self.by_set(areas).tolist()]

    @cached_property
    def alone(self) -> dict[str, FloatArray]:
        """AUROC (pairs,) of each driver by itself; one that was not assessed counts as the lowest."""
        return {
            str(signal): np.array([p.auroc(np.nan_to_num(p.drivers[row])) for p in self.run.pairs])
            for row, signal in enumerate(Signal)
        }


def four(value: float) -> str:
    """Four decimals."""
    return f"{value:.4f}"


def signed(value: float) -> str:
    """Four decimals with a sign."""
    return f"{value:+.4f}"
