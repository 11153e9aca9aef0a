"""What one signal carries here: its spread, and with labels how well it tells the classes apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from rag_confidence._types import FloatArray, Mask, Signal
from rag_confidence.conformal.separation import auroc_interval, auroc_of_sorted
from rag_confidence.learning.ranks import (
    Difference,
    holm,
    paired_difference,
    pairs_won,
    rank_correlation,
    strata_of,
)

# Fewest rows of a class for a test: with ten of each the 95 % interval of an AUROC near one half still spans
# half of [0, 1], and the normal approximation of the test is good from there on.
LEAST_PER_CLASS = 10
# Retrievals whose KPIs count as nearly the same when a signal is asked what it adds. With ten neighbours a
# column that merely repeats the KPI, with noise, is called an addition in at most 5 % of simulated logs;
# with forty in up to 28 %.
STRATUM_ROWS = 10
# Error rate of the tests, over all signals together.
LEVEL = 0.05
# A driver this close to 0 or 1 is shown as 0 or 100.
AT_BOUND = 0.0005
DRIVERS = tuple(map(str, Signal))


@dataclass(frozen=True)
class Spread:
    """Values of the retrievals on which a signal was assessed; None where it never was.

    `low` and `high` are the 5 % and 95 % quantiles, `at_bounds` the share of a driver's values that are shown
    as 0 or 100 (None for other signals), `kpi_correlation` Spearman's correlation with the KPI.
    """

    n: int
    n_missing: int
    smallest: float | None
    low: float | None
    median: float | None
    high: float | None
    largest: float | None
    at_bounds: float | None
    kpi_correlation: float | None


@dataclass(frozen=True)
class Separation:
    """How well values tell labels apart, on n0 insufficient and n1 sufficient rows.

    `auroc` has the 95 % interval from `low` to `high`. `p_value` is of an AUROC of one half; None with
    fewer than ten rows of a class. `p_adjusted` is Holm's over all signals.
    """

    n0: int
    n1: int
    auroc: float
    low: float
    high: float
    p_value: float | None = None
    p_adjusted: float | None = None

    @property
    def tells(self) -> bool:
        """Whether the AUROC differs from one half by more than chance explains."""
        return self.p_adjusted is not None and self.p_adjusted < LEVEL


@dataclass(frozen=True)
class Addition:
    """What a signal says among retrievals of nearly the same KPI.

    `auroc` is the share of pairs won within strata of about ten neighbours by KPI, `pairs` their number on
    `n` rows, `p_value` that of one half, `p_adjusted` Holm's over all signals.
    """

    n: int
    auroc: float
    pairs: int
    p_value: float
    p_adjusted: float = 1.0

    @property
    def tells(self) -> bool:
        """Whether it says more than the KPI does, beyond chance."""
        return self.p_adjusted < LEVEL


@dataclass(frozen=True)
class SignalEvidence:
    """One signal: its spread, and with labels of both classes what it says about them.

    Attributes
    ----------
    name : str
        The key without "signals.".
    spread : Spread
    separation : Separation or None
    beyond_kpi : Addition or None
        None with fewer than ten rows of a class, and for the KPI itself.
    against_kpi : Difference or None
        AUROC minus that of the KPI on the same rows, p-value not adjusted; None likewise.
    """

    name: str
    spread: Spread
    separation: Separation | None = None
    beyond_kpi: Addition | None = None
    against_kpi: Difference | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


Evidence: TypeAlias = tuple[SignalEvidence, tuple[SignalEvidence, ...]]


def evidence_of(kpi: FloatArray, signals: Mapping[str, FloatArray], labels: Mask | None) -> Evidence:
    """Evidence of the KPI, and of each signal; p-values adjusted over the signals.

    Parameters
    ----------
    kpi : ndarray, shape (n,)
    signals : mapping of str to ndarray, shape (n,)
        nan where not assessed.
    labels : ndarray of bool, shape (n,), or None

    Returns
    -------
    SignalEvidence, tuple of SignalEvidence
        In the order of `signals`. O(n log n) for each.
    """
    own = SignalEvidence("kpi", _spread("kpi", kpi, kpi), _separation(kpi, labels))
    found = tuple(_evidence(name, column, kpi, labels) for name, column in signals.items())
    return own, _adjusted(found)


def _evidence(name: str, column: FloatArray, kpi: FloatArray, labels: Mask | None) -> SignalEvidence:
    known = ~np.isnan(column)
    values, beside = column[known], kpi[known]
    spread = replace(_spread(name, values, beside), n_missing=int(np.count_nonzero(~known)))
    if labels is None:
        return SignalEvidence(name, spread)
    classes = labels[known]
    separation = _separation(values, classes)
    if separation is None or separation.p_value is None:
        return SignalEvidence(name, spread, separation)
    won = pairs_won(values, classes, strata_of(beside, STRATUM_ROWS))
    beyond = None if won is None else Addition(len(values), won.auroc, won.pairs, won.p_value)
    return SignalEvidence(name, spread, separation, beyond, paired_difference(values, beside, classes))


def _spread(name: str, values: FloatArray, kpi: FloatArray) -> Spread:
    if not len(values):
        return Spread(0, 0, None, None, None, None, None, None, None)
    points = np.quantile(values, [0.0, 0.05, 0.5, 0.95, 1.0]).tolist()
    bounded = name in DRIVERS or name == "kpi"
    ends = np.count_nonzero((values <= AT_BOUND) | (values >= 1.0 - AT_BOUND))
    return Spread(
        n=len(values),
        n_missing=0,
        smallest=points[0],
        low=points[1],
        median=points[2],
        high=points[3],
        largest=points[4],
        at_bounds=float(ends) / len(values) if bounded else None,
        kpi_correlation=rank_correlation(values, kpi),
    )


def _separation(values: FloatArray, labels: Mask | None) -> Separation | None:
    """None without labels of both classes."""
    if labels is None or labels.all() or not labels.any():
        return None
    zeros, ones = np.sort(values[~labels]), np.sort(values[labels])
    auroc = auroc_of_sorted(zeros, ones)
    won = None
    if min(len(zeros), len(ones)) >= LEAST_PER_CLASS:
        won = pairs_won(values, labels, np.zeros(len(values), dtype=np.intp))
    return Separation(
        len(zeros),
        len(ones),
        auroc,
        *auroc_interval(auroc, len(zeros), len(ones)),
        p_value=None if won is None else won.p_value,
    )


def _adjusted(found: tuple[SignalEvidence, ...]) -> tuple[SignalEvidence, ...]:
    """The same with Holm's p-values over all signals that were tested."""
    alone = _holm({s.name: s.separation.p_value for s in found if s.separation is not None})
    beyond = _holm({s.name: s.beyond_kpi.p_value for s in found if s.beyond_kpi is not None})
    return tuple(
        replace(
            s,
            separation=s.separation and replace(s.separation, p_adjusted=alone.get(s.name)),
            beyond_kpi=s.beyond_kpi and replace(s.beyond_kpi, p_adjusted=beyond[s.name]),
        )
        for s in found
    )


def _holm(p_values: Mapping[str, float | None]) -> dict[str, float]:
    """Adjusted p-values of those signals that have one."""
    tested = {name: value for name, value in p_values.items() if value is not None}
    return dict(zip(tested, holm([*tested.values()]), strict=True))
