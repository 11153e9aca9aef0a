"""Findings on the signals that need no label: not assessed, constant, saturated, saying the same twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from rag_confidence._types import FloatArray
from rag_confidence.learning.evidence import DRIVERS, SignalEvidence
from rag_confidence.learning.findings import Finding, finding
from rag_confidence.learning.ranks import midranks, rank_correlation
from rag_confidence.learning.wording import level, listed, of_all, plain

# Two columns that rank retrievals this much alike say one thing twice.
REDUNDANT = 0.95
# A driver that shows 0 or 100 on half of the retrievals tells these apart only by the other half.
OFTEN = 0.5
# With fewer retrievals a constant column or a high correlation may be chance.
LEAST_ROWS = 20

Signals = Sequence[SignalEvidence]

_SATURATED_GROUNDING = "Fit the grounding gate to this embedder (MetricPolicy.fit_grounding)."
_PROFILED_GROUNDING = (
    "With a corpus profile grounding is meant to be near 100 for all but questions on other subjects."
)


def about_spread(signals: Signals, n: int, *, profiled: bool) -> Iterator[Finding]:
    """Findings that need no label: not assessed, constant, at its bounds; `profiled` with a profile."""
    missing = [s for s in signals if s.spread.n_missing or not s.spread.n]
    if missing:
        yield _not_assessed(missing, n)
    constant = [s for s in signals if s.spread.n >= LEAST_ROWS and s.spread.smallest == s.spread.largest]
    if constant:
        yield _constant(constant)
    varying = [s for s in signals if s.spread.n >= LEAST_ROWS and s not in constant]
    for signal in varying:
        if (signal.spread.at_bounds or 0.0) >= OFTEN:
            yield _at_bounds(signal, profiled)


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
    for first, second in _alike(columns):
        if second not in group[first]:
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


def _constant(constant: Signals) -> Finding:
    values = {s.name: s.spread.median or 0.0 for s in constant}
    shown = [f"{name} ({plain(value)})" for name, value in values.items()]
    return finding(
        "signals_constant",
        "warning" if any(name in DRIVERS for name in values) else "note",
        f"The same value on all retrievals, so that no two are told apart: {listed(shown)}.",
        "",
        n=min(s.spread.n for s in constant),
        values=values,
    )


def _at_bounds(signal: SignalEvidence, profiled: bool) -> Finding:
    spread = signal.spread
    count = round((spread.at_bounds or 0.0) * spread.n)
    grounding = signal.name == "topical_grounding"
    return finding(
        "driver_at_bounds",
        "note" if grounding and profiled else "warning",
        f"{signal.name} shows 0 or 100 on {of_all(count, spread.n)} retrievals: it is saturated, and tells "
        "these apart by hidden decimals at most.",
        (_PROFILED_GROUNDING if profiled else _SATURATED_GROUNDING) if grounding else "",
        name=signal.name,
        n=spread.n,
        count=count,
    )


def _alike(columns: Mapping[str, FloatArray]) -> Iterator[tuple[str, str]]:
    """Pairs of columns that rank alike the rows that both have."""
    names = [*columns]
    known = {name: ~np.isnan(column) for name, column in columns.items()}
    whole = {name: _scaled(columns[name]) for name in names if known[name].all() and len(known[name])}
    for at, first in enumerate(names):
        for second in names[at + 1 :]:
            if first in whole and second in whole:
                correlation = float(whole[first] @ whole[second])
            else:
                both = known[first] & known[second]
                correlation = rank_correlation(columns[first][both], columns[second][both]) or 0.0
            if abs(correlation) > REDUNDANT and np.count_nonzero(known[first] & known[second]) >= LEAST_ROWS:
                yield first, second


def _scaled(column: FloatArray) -> FloatArray:
    """Midranks around 0, of length 1; all 0 where the column does not vary."""
    ranks = midranks(column)
    ranks = ranks - ranks.mean()
    return np.asarray(ranks / (np.linalg.norm(ranks) or 1.0))
