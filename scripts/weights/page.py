"""What the choice of constants found, as a page of Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from textwrap import fill

import numpy as np

from rag_confidence import Signal
from weights.choice import BELOW, held_out
from weights.found import Found, signed
from weights.grid import COHESION, EXPLAINING, FACTORS, areas_of, shipped
from weights.tables import alone, choices, neighbours, scores

TITLE = "# How the weights of the KPI with a profile were chosen"
_INTRO = (
    'Made by `python scripts/choose_profile_weights.py --write`. AUROC of "sufficient at k = 10" for {rows} '
    "labelled retrievals of {sets} sets under {embedders} embedders ({pairs} pairs), at most {limit} "
    "queries a pair. The profile of each pair has {sample} vectors of the corpus and {asked} unlabelled "
    "queries with the lists that were served for them; candidates are the cosines of the best 20. Each "
    "number is one draw of the profile."
)


def _listed(weights: Sequence[float]) -> str:
    return ", ".join(f"{weight:g}" for weight in weights)


def page(found: Found) -> str:
    """The page."""
    run = found.run
    intro = _INTRO.format(
        rows=f"{sum(len(pair.sufficient) for pair in run.pairs):,}",
        sets=len(found.names),
        embedders=len({pair.embedder for pair in run.pairs}),
        pairs=len(run.pairs),
        **run.sizes,
    )
    parts: list[str] = [
        TITLE,
        fill(intro, 110),
        *_verdict(found),
        scores(found).markdown(),
        "## Held out",
        _RULE,
        *(table.markdown() for table in choices(found)),
    ]
    parts += ["## One constant at a time", neighbours(found).markdown()]
    parts += ["## Each driver alone", alone(found).markdown(), _alone_text(found)]
    return "\n\n".join(parts) + "\n"


_RULE = fill(
    "The grid: cap of the contrast = factor / typical companionship with the factor in "
    f"{', '.join(map(str, FACTORS[:-1]))} or no cap; weight of cohesion in {_listed(COHESION)}; weights of "
    f"consistency and of robustness in {_listed(EXPLAINING)}; localization has the rest. For each set the "
    "point "
    "is chosen on the other sets, all embedders of a set being held out together: the best mean AUROC among "
    f"the points at which no training pair is more than {BELOW:g} below its best cosine. Weights are written "
    "localization / cohesion / consistency / robustness.",
    110,
)


def _verdict(found: Found) -> Iterator[str]:
    """What the numbers say, in sentences that follow from them."""
    every, without = (held_out(one, len(found.now)) for one in (found.every, found.without))
    gains = found.by_set(found.now - found.table.cosine)
    most = int(np.argmax(gains))
    rest = np.array([pair.name != found.names[most] for pair in found.run.pairs])
    spread = np.ptp(found.table.areas[:, rest].mean(axis=1))
    yield "\n".join(
        f"- {fill(one, 108, subsequent_indent='  ')}"
        for one in (
            f"The constants in the package: mean AUROC {found.now.mean():.4f}, best cosine "
            f"{found.table.cosine.mean():.4f}. They were set while looking at these sets: *in sample*.",
            f"Chosen by leaving one set out: {every.mean():.4f} on the whole grid (worst pair "
            f"{signed((every - found.table.cosine).min())} against the best cosine), and "
            f"{without.mean():.4f} "
            f"({signed((without - found.table.cosine).min())}) if consistency and robustness keep the "
            "weight 0.",
            f"{gains[most] / gains.sum():.0%} of the gain over the best cosine, summed over sets, is on "
            f"{found.names[most]} ({signed(gains[most])}). On the others all points of the grid lie within "
            f"{spread:.4f} of each other: they cannot tell which constants are right, and what is chosen "
            f"without {found.names[most]} is chosen by noise ({_lost(found, most)}).",
            "Leaving a set out covers the constants only. The *form* of the score (a contrast in distances, "
            "its cap, the companionship that sets the cap) was found on these same sets, and so were the "
            "softness of the cap, the half point of cohesion and the units of the level excess. What another "
            "corpus gains may be less. On the sets other than "
            f"{found.names[most]} the gain is {signed(float(np.mean(np.delete(gains, most))))}: expect no "
            "more, and measure.",
        )
    )


def _lost(found: Found, most: int) -> str:
    one, plain = found.every[most].chosen, found.without[most].chosen
    shipped_there = found.by_set(found.now)[most]
    return (
        f"on it {one.areas.mean():.3f} and {plain.areas.mean():.3f} by the two choices, "
        f"{plain.equals.min():.3f} to {plain.equals.max():.3f} at points as good elsewhere, "
        f"{shipped_there:.3f} "
        f"with the constants in the package, {found.by_set(found.table.cosine)[most]:.3f} by the best cosine"
    )


def _alone_text(found: Found) -> str:
    at, added = shipped(), []
    for name in ("consistency", "robustness"):
        changed = replace(at, **{name: getattr(at, name) + EXPLAINING[1]})
        row = areas_of(found.run.pairs, [changed])[0]
        added.append(f"{name} {signed(row.mean() - found.now.mean())}")
    consistency, robust = (
        found.alone[str(name)] for name in (Signal.EVIDENCE_CONSISTENCY, Signal.QUERY_ROBUSTNESS)
    )
    return fill(
        f"Consistency alone has {consistency.mean():.3f}. Robustness alone has {robust.mean():.3f}, from "
        f"{robust.min():.3f} to {robust.max():.3f} over pairs: it follows localization, and adds nothing. "
        f"A weight of {EXPLAINING[1]:g} more changes the mean by: {', '.join(added)}. Both keep the weight 0 "
        "and explain.",
        110,
    )
