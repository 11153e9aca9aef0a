"""Findings on the KPI: does it separate the labels, and does it do so better than the plain best cosine?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rag_confidence.conformal.gate.refusal import AUROC_FLOOR
from rag_confidence.conformal.separation import auroc_interval
from rag_confidence.learning.evidence import LEAST_PER_CLASS, LEVEL, Separation, SignalEvidence
from rag_confidence.learning.findings import Finding, finding
from rag_confidence.learning.ranks import Difference
from rag_confidence.learning.wording import fraction, p_value

COSINE = "max_cosine"
# Beyond a million labels nobody goes, and the search for a number ends.
MOST_ROWS = 10**6


def about_separation(kpi: SignalEvidence, *, profiled: bool) -> Iterator[Finding]:
    """One finding: where the interval of the KPI's AUROC lies; `profiled` with a corpus profile."""
    found = kpi.separation
    if found is None:
        return
    if min(found.n0, found.n1) < LEAST_PER_CLASS:
        yield _too_few(found)
    elif found.low >= AUROC_FLOOR:
        yield _separates(found)
    elif found.high < 0.5:
        yield _inverted(found)
    elif found.high < AUROC_FLOOR:
        yield _does_not(found, profiled)
    else:
        yield _open(found)


def about_cosine(
    kpi: SignalEvidence, signals: tuple[SignalEvidence, ...], *, profiled: bool
) -> Iterator[Finding]:
    """One finding: the KPI beside the best cosine, on the same retrievals; `profiled` with a profile."""
    cosine = next((one for one in signals if one.name == COSINE), None)
    if cosine is None or cosine.separation is None or cosine.separation.p_value is None:
        return
    if cosine.against_kpi is None or kpi.separation is None:
        yield _same_ranking(cosine.separation)
        return
    difference, own = cosine.against_kpi, kpi.separation.auroc
    measured = _compared(cosine.separation.auroc, own, difference)
    numbers: dict[str, Any] = {
        "n0": cosine.separation.n0,
        "n1": cosine.separation.n1,
        "auroc_cosine": cosine.separation.auroc,
        "auroc_kpi": own,
        **difference.to_dict(),
    }
    tell = "more labels" if profiled else "more labels, or a corpus profile,"
    rival = f"{'' if profiled else 'a corpus profile, a fitted grounding gate or '}a ConfidenceModel"
    if difference.p_value >= LEVEL:
        yield finding(
            "kpi_like_cosine",
            "note",
            f"The KPI and the plain best cosine cannot be told apart on these labels: {measured}.",
            f"Use whichever you can explain; {tell} may tell.",
            **numbers,
        )
    elif difference.value > 0.0:
        yield finding(
            "cosine_beats_kpi",
            "warning",
            f"The plain best cosine ranks these retrievals better than the KPI: {measured}.",
            f"Gate on signals.max_cosine (score_kind='raw') until {rival} does better on labels "
            "that it has not seen.",
            **numbers,
        )
    else:
        yield finding(
            "kpi_beats_cosine",
            "note",
            f"The KPI ranks these retrievals better than the plain best cosine: {measured}.",
            **numbers,
        )


def _same_ranking(found: Separation) -> Finding:
    """No variance to test with: both rank these retrievals alike."""
    return finding(
        "kpi_like_cosine",
        "note",
        f"The KPI and the plain best cosine rank the classes alike: {measured_as(found)}, the same for both.",
        "",
        n0=found.n0,
        n1=found.n1,
        auroc_cosine=found.auroc,
        auroc_kpi=found.auroc,
    )


def rows_to_clear(auroc: float, n0: int, n1: int, floor: float) -> int | None:
    """Labelled rows, at this mix, from which the interval of an AUROC of this size lies above `floor`.

    None where it never does, or only beyond `MOST_ROWS`.
    """
    if auroc <= floor:
        return None

    def clears(times: float) -> bool:
        low, _ = auroc_interval(auroc, max(round(n0 * times), 1), max(round(n1 * times), 1))
        return low >= floor

    low, high = 1.0, 2.0
    while not clears(high):
        low, high = high, 2 * high
        if high * (n0 + n1) > MOST_ROWS:
            return None
    # To two per cent: the AUROC itself is known to far less.
    while high > 1.02 * low:
        middle = (low + high) / 2
        low, high = (low, middle) if clears(middle) else (middle, high)
    return round(high * (n0 + n1))


def measured_as(found: Separation) -> str:
    """ "AUROC .632, 95 % interval .612 to .652, on 669 sufficient and 831 insufficient retrievals"."""
    return (
        f"AUROC {fraction(found.auroc)}, 95 % interval {fraction(found.low)} to {fraction(found.high)}, on "
        f"{found.n1} sufficient and {found.n0} insufficient retrievals"
    )


def _compared(cosine: float, kpi: float, difference: Difference) -> str:
    return (
        f"AUROC {fraction(cosine)} for the cosine and {fraction(kpi)} for the KPI, difference "
        f"{fraction(difference.value)} (95 % interval {fraction(difference.low)} to "
        f"{fraction(difference.high)}, {p_value(difference.p_value)}, n = {difference.n})"
    )


def _numbers(found: Separation) -> dict[str, float | int]:
    return {
        "n0": found.n0,
        "n1": found.n1,
        "auroc": found.auroc,
        "low": found.low,
        "high": found.high,
        "floor": AUROC_FLOOR,
    }


def _too_few(found: Separation) -> Finding:
    return finding(
        "separation_not_testable",
        "advice",
        f"Whether the KPI separates the classes cannot be said yet: {measured_as(found)}. Below "
        f"{LEAST_PER_CLASS} of each nothing is tested here.",
        f"Label until there are at least {LEAST_PER_CLASS} of each; the interval shows how little is known.",
        **_numbers(found),
    )


def _separates(found: Separation) -> Finding:
    return finding(
        "kpi_separates",
        "note",
        f"The KPI separates the classes: {measured_as(found)}. The lower end reaches the "
        f"{fraction(AUROC_FLOOR)} from which a gate fits without a warning.",
        "",
        **_numbers(found),
    )


def _inverted(found: Separation) -> Finding:
    return finding(
        "kpi_inverted",
        "problem",
        f"The KPI ranks the wrong way round: {measured_as(found)}.",
        "Check first whether the labels are swapped (1 means sufficient), and whether labels and records are "
        "in the same order.",
        **_numbers(found),
    )


def _does_not(found: Separation, profiled: bool) -> Finding:
    chance = (
        "It cannot be told from chance." if found.low <= 0.5 else "It is better than chance, but not enough."
    )
    fit = "" if profiled else ", fit a corpus profile"
    return finding(
        "kpi_does_not_separate",
        "problem",
        f"The KPI does not separate the classes: {measured_as(found)}. {chance} A gate on it would abstain "
        "on most retrievals.",
        "More labels are unlikely to change this. Look at the signals below for one that does better"
        f"{fit}, or check the labels.",
        **_numbers(found),
    )


def _open(found: Separation) -> Finding:
    needed = rows_to_clear(found.auroc, found.n0, found.n1, AUROC_FLOOR)
    chance = "Chance is not ruled out." if found.low <= 0.5 else "It is better than chance."
    more = (
        f"At AUROC {fraction(found.auroc)} more labels would not lift the lower end that far: look for a "
        "better score."
        if needed is None
        else f"If the AUROC stays at {fraction(found.auroc)}, about {needed} labelled rows of this mix would "
        "settle it."
    )
    return finding(
        "separation_open",
        "warning",
        f"Whether the KPI separates the classes well enough is open: {measured_as(found)}. The interval "
        f"reaches from below the {fraction(AUROC_FLOOR)} that a gate wants to above it. {chance}",
        more,
        rows_needed=needed,
        **_numbers(found),
    )
