"""The tables of the page on the choice of constants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from _data import FloatArray
from _tables import Cell
from _tables import Table as Printed

from weights.choice import NEAR, LeftOut, held_out
from weights.found import Found, four, signed
from weights.grid import COHESION, EXPLAINING, FACTORS, areas_of, shipped


def scores(found: Found) -> Printed:
    """What each way to score or to choose is worth, by set."""
    pairs, everything = found.run.pairs, np.ones(len(found.now), dtype=bool)
    best = found.table.choose(everything, everything)
    rows: list[tuple[str, FloatArray]] = [
        ("best cosine", found.table.cosine),
        ("KPI of the seed", np.array([pair.auroc(pair.seed_kpi) for pair in pairs])),
        ("constants in the package", found.now),
        ("the same, ten passages and no candidates", np.array([p.auroc(p.served_kpi) for p in pairs])),
        (f"best in sample: {best.setting}", best.areas),
        ("chosen without the set, whole grid", held_out(found.every, len(pairs))),
        ("chosen without the set, two weights 0", held_out(found.without, len(pairs))),
    ]
    close = np.count_nonzero(found.table.areas.mean(axis=1) >= best.training - 0.002)
    return Printed(
        "AUROC, mean over pairs and by set",
        f"Worst: the least difference to the best cosine on any pair. {close} of the {len(found.run.grid)}\n"
        "points are within .002 of the best in sample.",
        ["score", "mean", "worst", *found.names],
        [[name, *found.cells(areas)] for name, areas in rows],
    )


def choices(found: Found) -> Iterator[Printed]:
    """The choice for each set left out, on the whole grid and on a part of it."""
    yield _choice("Whole grid", found, found.every)
    yield _choice("Weights of consistency and robustness 0", found, found.without)


def _choice(title: str, found: Found, choices: Sequence[LeftOut]) -> Printed:
    now, cosine = found.by_set(found.now), found.by_set(found.table.cosine)
    rows: list[list[Cell]] = [
        [
            one.name,
            f"{one.chosen.setting}{'' if one.chosen.within else ' (no point keeps the bound)'}",
            four(one.chosen.training),
            float(one.chosen.areas.mean()),
            _equals(one.chosen.equals),
            float(now[at]),
            float(cosine[at]),
            signed((one.chosen.areas - found.table.cosine[one.rows]).min()),
        ]
        for at, one in enumerate(choices)
    ]
    header = [
        "left out",
        "chosen on the others",
        "mean there",
        "on the set left out",
        "equals",
        "package",
        "best cosine",
    ]
    note = (
        f"Equals: points that are as good on the other sets, to {NEAR:g}; mean (least to most) of theirs on\n"
        "the set left out. Package: the constants in the package, which have seen the set. Worst: of the "
        "choice."
    )
    return Printed(title, note, [*header, "worst"], rows)


def _equals(areas: FloatArray) -> str:
    return f"{len(areas)}: {areas.mean():.3f} ({areas.min():.3f} to {areas.max():.3f})"


def neighbours(found: Found) -> Printed:
    """The package's constants, and one of them changed at a time."""
    at = shipped()
    moved = [replace(at, factor=factor) for factor in FACTORS]
    moved += [replace(at, cohesion=weight) for weight in COHESION]
    moved += [replace(at, consistency=weight) for weight in EXPLAINING[1:]]
    moved += [replace(at, robustness=weight) for weight in EXPLAINING[1:]]
    settings = list(dict.fromkeys([at, *moved]))
    areas = areas_of(found.run.pairs, settings)
    rows: list[list[Cell]] = [[str(one), *found.cells(row)] for one, row in zip(settings, areas, strict=True)]
    note = "The first line is what the package has; each other one changes one constant of it."
    return Printed(
        "Around the constants in the package", note, ["constants", "mean", "worst", *found.names], rows
    )


def alone(found: Found) -> Printed:
    """Each driver by itself."""
    return Printed(
        "AUROC of each driver with a profile",
        "By itself, under the constants in the package.",
        ["driver", "mean", "worst", *found.names],
        [[name, *found.cells(row)] for name, row in found.alone.items()],
    )
