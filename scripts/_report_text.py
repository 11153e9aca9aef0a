"""One engine report as text with bars and a tree drawn in characters, and as JSON."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from textwrap import shorten
from typing import Any

import numpy as np

from rag_confidence import EngineReport

WIDTH = 40
MOST_STEPS = 12
SNIPPET = 60
NO_LOOPS = "not assessed: switched off, not 4 to 50 distinct passages, or the extra `topology` is missing"

MEANINGS = {
    "Regions of relevance": {
        "n_components": "bars of the barcode",
        "second_bar": "cosine length of the longest bar that dies; long: two places answer",
        "persistence_margin": "first bar minus second bar",
        "dominance": "first bar over all bars",
        "fragmentation": "total length of all bars but the first",
        "concentration": "1 - normalised entropy of the positive cosines",
        "focus_depth": "depth of the focus over the height of the tree; flat lists have none",
    },
    "Agreement of vectors (not of statements)": {
        "lambda_2": "algebraic connectivity of the passages; 0: they fall apart",
        "dirichlet_energy": "mean disagreement of pairs (tree: of edges), 0 to 1",
        "conditioned_energy": "the same with the query direction projected out",
        "curvature_mean": "Forman curvature, mean over the edges",
        "curvature_min": "the edge most like a bridge",
    },
    "Stability": {
        "flip_angle": "degrees the query must turn to change the top passage; exact",
        "stability_move": "mean movement over 8 probes of 5 degrees (flat list: its bound)",
        "movement_bound": "analytic bound on that mean",
    },
    "Loops": {
        "n_loops": "loops judged real by the test of --loops",
        "n_minor_loops": "the other loops, most of them noise",
        "loop_life": "life of the longest loop",
        "loop_ratio": "death over birth of the longest loop",
        "loop_p_value": "share of rotated copies with as long a loop (surrogate test)",
    },
}


def text(
    report: EngineReport, source: str, same: dict[int, int], served: int, texts: Sequence[str] = ()
) -> str:
    """The report for people, section by section."""
    parts = {
        "Retrieval": [source, counts(report, same, served)],
        "Cosines to the query": list(cosine_lines(report, same, texts)),
        "Barcode: from death (left) to birth (right)": list(bar_lines(report)),
        "Merge tree": list(tree_lines(report)),
        "Betti curve": list(betti_lines(report)),
    }
    held = values(report)
    for title, meanings in MEANINGS.items():
        parts[title] = [measured(name, held[name], words) for name, words in meanings.items()]
    if held["n_loops"] is None:
        parts["Loops"] = [NO_LOOPS]
    return "\n\n".join("\n".join([f"== {title}", *body]) for title, body in parts.items())


def values(report: EngineReport) -> dict[str, float | None]:
    """The signals, and the evidence that no signal holds; None where not assessed."""
    curvature = report.curvature[np.isfinite(report.curvature)]
    return report.values | {
        "movement_bound": report.movement_bound,
        "curvature_mean": float(curvature.mean()) if curvature.size else None,
        "curvature_min": float(curvature.min()) if curvature.size else None,
    }


def counts(report: EngineReport, same: dict[int, int], served: int) -> str:
    """How many passages were served, and what became of them."""
    kind = "a flat list" if report.parents is None else "a tree"
    beyond = served - len(report.nodes) - len(same)
    tail = f", {beyond} beyond the best that are measured" if beyond else ""
    return f"{served} passages as {kind}, {len(same)} left out{tail}"


def measured(name: str, value: float | None, words: str) -> str:
    """A line with name, value and meaning; a count has no decimals."""
    number = "not assessed" if value is None else f"{value:.0f}" if name.startswith("n_") else f"{value:.4f}"
    return f"{name:<20}{number:>12}  {words}"


def cosine_lines(report: EngineReport, same: dict[int, int], texts: Sequence[str]) -> Iterator[str]:
    """One line a passage, best first, the left-out ones behind the passage that they resemble."""
    twins = defaultdict(list)
    for row, kept in same.items():
        twins[kept].append(row)
    for at in np.argsort(-report.cosines, kind="stable"):
        place = int(report.nodes[at])
        snippet = shorten(texts[place], SNIPPET, placeholder="...") if texts else ""
        yield f"{name(place):>6} {report.cosines[at]:+.4f}  {snippet}".rstrip()
        for row in twins[place]:
            yield f"{name(row):>6}    left out: most like {name(place)}"


def name(place: int) -> str:
    """A passage by its served position."""
    return f"[{place}]"


def bars(report: EngineReport) -> list[dict[str, Any]]:
    """Passage, birth and death of each bar, the longest first; the first never dies."""
    code = report.barcode
    owners = code.representatives.tolist()
    deaths = [None if code.elder[v] < 0 else float(code.death[v]) for v in owners]
    return [
        {"passage": int(report.nodes[v]), "birth": float(code.birth[v]), "death": death}
        for v, death in zip(owners, deaths, strict=True)
    ]


def bar_lines(report: EngineReport) -> Iterator[str]:
    """Bars drawn to scale between the floor and the best cosine."""
    floor = report.barcode.floor
    span = max(float(report.cosines.max()) - floor, 1e-12)
    for bar in bars(report):
        low = floor if bar["death"] is None else bar["death"]
        start, stop = (int(WIDTH * (level - floor) / span) for level in (low, bar["birth"]))
        drawn = (" " * start + "#" * max(stop - start, 1)).ljust(WIDTH)
        end = "never dies" if bar["death"] is None else f"dies {low:+.4f}, length {bar['birth'] - low:.4f}"
        yield f"{name(bar['passage']):>6} |{drawn}|  born {bar['birth']:+.4f}, {end}"


def tree_lines(report: EngineReport) -> Iterator[str]:
    """Each region below the one that absorbs it, first merges first."""
    younger = defaultdict(list)
    for merge in report.merge_tree():
        younger[merge["elder"]].append(merge)
    best = bars(report)[0]["passage"]
    waiting = [(best, "", f"{name(best)} the best passage's region")]
    while waiting:
        place, indent, line = waiting.pop()
        yield line
        rows = younger[place]
        ends = ["|- "] * (len(rows) - 1) + ["`- "]
        for merge, end in reversed(list(zip(rows, ends if rows else [], strict=True))):
            below = indent + ("|  " if end == "|- " else "   ")
            words = f"{name(merge['younger'])} joins {name(place)} at {merge['level']:+.4f}"
            waiting.append((merge["younger"], below, indent + end + words))


def steps(report: EngineReport) -> list[tuple[float, float | None, int]]:
    """Upper level, lower level and number of regions between them; the last step has no lower level."""
    levels = np.unique(report.barcode.bars)[::-1]
    counts = report.betti_curve(levels).tolist()
    return list(zip(levels.tolist(), [*levels[1:].tolist(), None], counts, strict=True))


def betti_lines(report: EngineReport) -> Iterator[str]:
    """Number of regions between the levels at which it changes."""
    found = steps(report)
    for upper, lower, count in found[:MOST_STEPS]:
        reach = "down" if lower is None else f"to {lower:+.4f}"
        yield f"from {upper:+.4f} {reach:<10} {count:4d}"
    most = max(count for *_, count in found)
    more = f"{len(found) - MOST_STEPS} more steps; " if len(found) > MOST_STEPS else ""
    yield f"{more}most regions at once: {most}"


def record(report: EngineReport, source: str, same: dict[int, int]) -> str:
    """The report for programs."""
    held = {
        "source": source,
        "values": values(report),
        "passages": [
            {"passage": place, "cosine": cosine}
            for place, cosine in zip(report.nodes.tolist(), report.cosines.tolist(), strict=True)
        ],
        "left_out": [{"passage": row, "most_like": kept} for row, kept in same.items()],
        "parents": None if report.parents is None else report.parents.tolist(),
        "bars": bars(report),
        "merge_tree": report.merge_tree(),
        "betti_curve": [{"from": up, "to": low, "regions": count} for up, low, count in steps(report)],
    }
    return json.dumps(held, indent=2, allow_nan=False)
