"""Findings on the signals that need no label: not assessed, constant, saturated, saying the same twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from rag_confidence._types import FloatArray
from rag_confidence.learning.evidence import DRIVERS, SignalEvidence
from rag_confidence.learning.findings import Finding, finding
from rag_confidence.learning.ranks import rank_correlation
from rag_confidence.learning.wording import level, listed, of_all, plain

# Two columns that rank retrievals this much alike say one thing twice.
REDUNDANT = 0.95
# A driver that shows 0 or 100 on half of the retrievals tells these apart only by the other half.
OFTEN = 0.5
# With fewer retrievals a constant column or a high correlation may be chance.
LEAST_ROWS = 20

Signals = Sequence[SignalEvidence]


def about_spread(signals: Signals, n: int) -> Iterator[Finding]:
    """Findings that need no label: not assessed, constant, at its bounds."""
    missing = [s for s in signals if s.spread.n_missing or not s.spread.n]
    if missing:
        yield _not_assessed(missing, n)
    constant = [s for s in signals if s.spread.n >= LEAST_ROWS and s.spread.smallest == s.spread.largest]
    for signal in constant:
        yield _constant(signal)
    varying = [s for s in signals if s.spread.n >= LEAST_ROWS and s not in constant]
    for signal in varying:
        if (signal.spread.at_bounds or 0.0) >= OFTEN:
            yield _at_bounds(signal)


def about_redundancy(columns: Mapping[str, FloatArray]) -> Iterator[Finding]:
    """One finding on groups of signals that rank the retrievals alike."""
    groups = redundant_groups(columns)
    if groups:
        text = "; ".join(f"{listed(group)}" for group in groups)
        yield finding(
            "signals_redundant",
            "note",
            f"These rank the retrievals alike (Spearman's correlation beyond {level(REDUNDANT)}): {text}. "
            "Each group counts as one piece of evidence, not several.",
            groups=groups,
            limit=REDUNDANT,
        )


def redundant_groups(columns: Mapping[str, FloatArray]) -> list[list[str]]:
    """Groups of signals joined by |Spearman| > .95 on the rows that both have, in the order of `columns`.

    Chains count as one group. Pairs with fewer than 20 common rows are not compared.
    """
    group = {name: {name} for name in columns}
    names = [*columns]
    for at, first in enumerate(names):
        for second in names[at + 1 :]:
            if second not in group[first] and _alike(columns[first], columns[second]):
                merged = group[first] | group[second]
                group.update(dict.fromkeys(merged, merged))
    return [
        sorted(members, key=names.index)
        for name, members in group.items()
        if len(members) > 1 and name == min(members, key=names.index)
    ]


def _not_assessed(missing: Signals, n: int) -> Finding:
    counts = {s.name: n - s.spread.n for s in missing}
    never = [name for name, count in counts.items() if count == n]
    partly = [f"{name} on {of_all(count, n)}" for name, count in counts.items() if count < n]
    parts = [f"never: {listed(never)}"] if never else []
    parts += [f"not on all: {listed(partly)}"] if partly else []
    drivers = [name for name in counts if name in DRIVERS]
    return finding(
        "not_assessed",
        "warning" if drivers else "note",
        f"Not assessed on these {n} scored retrievals: {'; '.join(parts)}.",
        "A missing driver leaves its weight to the others: lexical vectors have no grounding, and one "
        "distinct passage has neither cohesion nor robustness."
        if drivers
        else "",
        n=n,
        missing=counts,
    )


def _constant(signal: SignalEvidence) -> Finding:
    spread = signal.spread
    return finding(
        "signal_constant",
        "warning" if signal.name in DRIVERS else "note",
        f"{signal.name} is {plain(spread.median or 0.0)} on all {spread.n} retrievals: it cannot tell any "
        "two apart.",
        "",
        name=signal.name,
        n=spread.n,
        value=spread.median,
    )


def _at_bounds(signal: SignalEvidence) -> Finding:
    spread = signal.spread
    count = round((spread.at_bounds or 0.0) * spread.n)
    grounding = signal.name == "topical_grounding"
    return finding(
        "driver_at_bounds",
        "warning",
        f"{signal.name} shows 0 or 100 on {of_all(count, spread.n)} retrievals: it is saturated, and tells "
        "these apart by hidden decimals at most.",
        "Fit the grounding gate to this embedder (MetricPolicy.fit_grounding)." if grounding else "",
        name=signal.name,
        n=spread.n,
        count=count,
    )


def _alike(first: FloatArray, second: FloatArray) -> bool:
    both = ~(np.isnan(first) | np.isnan(second))
    if np.count_nonzero(both) < LEAST_ROWS:
        return False
    correlation = rank_correlation(first[both], second[both])
    return correlation is not None and abs(correlation) > REDUNDANT
