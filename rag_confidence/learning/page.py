"""A diagnosis as a page of text: what matters most first, then the tables."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import groupby

from rag_confidence.learning.evidence import SignalEvidence
from rag_confidence.learning.findings import Finding
from rag_confidence.learning.inert import ThresholdUse
from rag_confidence.learning.wording import fraction, percent, plain

WIDTH = 100
_TITLES = {
    "problem": "Problems: fix these first",
    "warning": "Warnings",
    "advice": "What to do next",
    "note": "Good to know",
}


def page(
    title: str,
    findings: Sequence[Finding],
    signals: Sequence[SignalEvidence],
    thresholds: Sequence[ThresholdUse],
) -> str:
    """The whole page, without a line break at its end; the first of `signals` is the KPI."""
    parts = [title]
    for severity, group in groupby(findings, key=lambda found: found.severity):
        parts.append("\n".join([_TITLES[severity], *(_entry(found) for found in group)]))
    parts.append(_signals(signals[0], signals[1:]))
    if any(use.n for use in thresholds):
        parts.append(_thresholds(thresholds))
    return "\n\n".join(parts)


def _entry(found: Finding) -> str:
    text = _wrapped(f"{found.code}: {found.sentence}", "- ")
    return f"{text}\n{_wrapped(found.action, '  -> ')}" if found.action else text


def _wrapped(text: str, lead: str) -> str:
    filled = textwrap.fill(
        # A number keeps its unit: only plain spaces are broken.
        text.replace(" %", "\u00a0%"),
        WIDTH,
        initial_indent=lead,
        subsequent_indent=" " * len(lead),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return filled.replace("\u00a0", " ")


def _signals(kpi: SignalEvidence, signals: Sequence[SignalEvidence]) -> str:
    known = [one for one in signals if one.spread.n]
    ordered = [kpi, *sorted(known, key=_distance)]
    header = ("signal", "n", "5 %", "median", "95 %", "with KPI", "AUROC", "95 % interval", "beyond KPI")
    labelled = kpi.separation is not None
    table = [header, *(_signal_row(one) for one in ordered if one.spread.n)]
    if labelled:
        legend = (
            '"with KPI" is the rank correlation with the KPI; "beyond KPI" the AUROC among retrievals of '
            "nearly the same KPI; * differs from .5 beyond chance, Holm over all signals."
        )
        return "\n".join(["Signals, strongest first", *_aligned(table), _wrapped(legend, "")])
    table = [row[:6] for row in table]
    return "\n".join(["Signals", *_aligned(table), '"with KPI" is the rank correlation with the KPI.'])


def _distance(one: SignalEvidence) -> float:
    return 0.0 if one.separation is None else -abs(one.separation.auroc - 0.5)


def _signal_row(one: SignalEvidence) -> tuple[str, ...]:
    spread, found, beyond = one.spread, one.separation, one.beyond_kpi
    return (
        one.name,
        str(spread.n),
        *(_short(value) for value in (spread.low, spread.median, spread.high)),
        _short(None if one.name == "kpi" else spread.kpi_correlation),
        "-" if found is None else fraction(found.auroc) + (" *" if found.tells else ""),
        "-" if found is None else f"{fraction(found.low)} to {fraction(found.high)}",
        "-" if beyond is None else fraction(beyond.auroc) + (" *" if beyond.tells else ""),
    )


def _short(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _thresholds(uses: Sequence[ThresholdUse]) -> str:
    header = ("threshold", "value", "fires", "decides", "observed", "fires on 10 % at")
    table = [header, *(_threshold_row(use) for use in uses if use.n)]
    return "\n".join(["Thresholds of the policy", *_aligned(table)])


def _threshold_row(use: ThresholdUse) -> tuple[str, ...]:
    return (
        use.name,
        plain(use.value),
        f"{use.fired} of {use.n} ({percent(use.fired, use.n)})",
        str(use.decided),
        f"{plain(use.lowest or 0.0)} to {plain(use.highest or 0.0)}",
        "-" if use.for_tenth is None else plain(use.for_tenth),
    )


def _aligned(table: list[tuple[str, ...]]) -> list[str]:
    """Rows of the table with columns as wide as their widest cell; the first one flush left."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        "  " + "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip()
        for row in table
    ]
