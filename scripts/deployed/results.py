"""All gates on every stratum of every world."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np
from _data import FloatArray

from deployed.trials import Study, Tally, class_gate, risk_gate, tallies
from deployed.worlds import GAP, STRATA, SUFFICIENT, WITHHELD, World
from rag_confidence import auroc

LEAST = 40
KPI, COSINE = attrgetter("kpi"), attrgetter("cosine")


@dataclass(frozen=True)
class Wrong:
    """One stratum tested by gates that were calibrated on something else."""

    gaps: Tally
    both: Tally


@dataclass(frozen=True)
class Result:
    """One stratum of one set under one embedder.

    Attributes
    ----------
    label, stratum : str
    areas : tuple of float
        AUROC of the KPI and of the best cosine.
    gates, risk_gates : tuple of Tally
        By the KPI and by the best cosine, calibrated on this stratum.
    wrong : Wrong or None
        By the KPI, calibrated on topic gaps, alone or beside this stratum; None for topic gaps.
    """

    label: str
    stratum: str
    rows: tuple[int, int]
    areas: tuple[float, float]
    gates: tuple[Tally, Tally]
    risk_gates: tuple[Tally, Tally]
    wrong: Wrong | None


def strata_of(world: World) -> list[str]:
    """Those that a world has rows of; topic gaps belong to the corpus as it is."""
    own = [WITHHELD] if world.thin else [one for one in STRATA if one != WITHHELD]
    return [one for one in own if world.count(one)]


def is_large_enough(world: World, stratum: str) -> bool:
    """Whether both classes have `LEAST` rows."""
    return min(world.count(stratum), world.count(SUFFICIENT)) >= LEAST


def results_of(world: World, repeats: int) -> list[Result]:
    """Every stratum that is large enough."""
    return [_result(world, one, repeats) for one in strata_of(world) if is_large_enough(world, one)]


def _result(world: World, stratum: str, repeats: int) -> Result:
    own = [
        Study((stratum,), stratum, score, fit) for fit in (class_gate, risk_gate) for score in (KPI, COSINE)
    ]
    wrong = []
    if stratum != GAP and world.count(GAP) >= LEAST:
        wrong = [Study(kinds, stratum, KPI, class_gate) for kinds in ((GAP,), (GAP, stratum))]
    by_kpi, by_cosine, risk_kpi, risk_cosine, *other = tallies(world, [*own, *wrong], repeats)
    return Result(
        label=world.label,
        stratum=stratum,
        rows=(world.count(stratum), world.count(SUFFICIENT)),
        areas=(_area(world, stratum, world.kpi), _area(world, stratum, world.cosine)),
        gates=(by_kpi, by_cosine),
        risk_gates=(risk_kpi, risk_cosine),
        wrong=Wrong(*other) if other else None,
    )


def of_stratum(results: Sequence[Result], stratum: str) -> list[Result]:
    """Those of one stratum."""
    return [one for one in results if one.stratum == stratum]


def _area(world: World, stratum: str, scores: FloatArray) -> float:
    rows = np.isin(world.kind, (SUFFICIENT, stratum))
    found = auroc(scores[rows], world.sufficient[rows])
    return float("nan") if found is None else found
