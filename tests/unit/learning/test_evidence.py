"""The table of evidence: spread, AUROC with interval, and what a signal adds, against slow counts."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from retrieval_logs import healthy

from rag_confidence import auroc
from rag_confidence.conformal.separation import auroc_interval
from rag_confidence.learning.evidence import LEAST_PER_CLASS, evidence_of
from rag_confidence.learning.log import read_log
from rag_confidence.learning.ranks import holm

RECORDS, LABELS = healthy(120)
LOG = read_log(RECORDS, LABELS)
KPI, SIGNALS = evidence_of(LOG.kpi, LOG.signals, LOG.labels)


def pairs(values: Any, labels: Any) -> Fraction:
    """AUROC from all pairs, in whole halves."""
    halves = sum(
        2 if a > b else 1 if a == b else 0
        for a, y in zip(values, labels, strict=True)
        if y
        for b, z in zip(values, labels, strict=True)
        if not z
    )
    return Fraction(halves, 2 * sum(labels) * (len(labels) - sum(labels)))


def test_every_signal_of_the_records_is_there() -> None:
    """In the order of the contract, keys of later versions after it."""
    assert [one.name for one in SIGNALS] == [*LOG.signals]
    extra = [{**record, "signals.zz_excess": 0.1} for record in RECORDS]
    assert [*read_log(extra, None).signals] == [*LOG.signals, "zz_excess"]


def test_aurocs_are_counted_pair_by_pair_with_newcombes_interval() -> None:
    """Exact ties, and the interval of the sizes of the classes."""
    for one in (KPI, *SIGNALS):
        values = LOG.kpi if one.name == "kpi" else LOG.signals[one.name]
        found = one.separation
        assert found is not None
        assert found.auroc == float(pairs(values.tolist(), LOG.labels.tolist()))
        assert (found.n0, found.n1) == (60, 60)
        assert (found.low, found.high) == auroc_interval(found.auroc, 60, 60)


def test_p_values_are_adjusted_over_all_signals() -> None:
    """Holm's adjustment of the single p-values, alone and beyond the KPI; the KPI itself is not in it."""
    alone = [one.separation for one in SIGNALS if one.separation]
    assert [one.p_adjusted for one in alone] == holm([one.p_value or 0.0 for one in alone])
    beyond = [one.beyond_kpi for one in SIGNALS if one.beyond_kpi]
    assert [one.p_adjusted for one in beyond] == holm([one.p_value for one in beyond])
    assert len(alone) == len(beyond) == len(SIGNALS)
    assert KPI.separation is not None
    assert KPI.separation.p_adjusted is None


def test_missing_values_are_left_out_row_by_row() -> None:
    """A signal is compared on the rows that have it, and the KPI beside it on the same ones."""
    column = LOG.signals["max_cosine"].copy()
    column[:30] = np.nan
    _, (one,) = evidence_of(LOG.kpi, {"max_cosine": column}, LOG.labels)
    _, (same,) = evidence_of(LOG.kpi[30:], {"max_cosine": column[30:]}, LOG.labels[30:])
    assert (one.spread.n, one.spread.n_missing) == (90, 30)
    assert (one.separation, one.beyond_kpi, one.against_kpi) == (
        same.separation,
        same.beyond_kpi,
        same.against_kpi,
    )
    assert one.against_kpi is not None
    wanted = auroc(column[30:], LOG.labels[30:]) - auroc(LOG.kpi[30:], LOG.labels[30:])
    assert one.against_kpi.value == pytest.approx(wanted, abs=1e-12)


def test_a_signal_that_was_never_assessed_has_no_numbers() -> None:
    """Nothing but the count of what is missing."""
    _, (one,) = evidence_of(LOG.kpi, {"x": np.full(120, np.nan)}, LOG.labels)
    assert (one.spread.n, one.spread.n_missing, one.spread.median) == (0, 120, None)
    assert (one.separation, one.beyond_kpi, one.against_kpi) == (None, None, None)


@pytest.mark.parametrize("n1", [1, LEAST_PER_CLASS - 1, LEAST_PER_CLASS])
def test_below_ten_rows_of_a_class_nothing_is_tested(n1: int) -> None:
    """The AUROC and its interval are shown, p-values are not."""
    labels = np.random.default_rng(1).permutation(120) < n1
    kpi, signals = evidence_of(LOG.kpi, LOG.signals, labels)
    for one in (kpi, *signals):
        assert one.separation is not None
        assert (one.separation.p_value is not None) == (n1 >= LEAST_PER_CLASS)
        assert one.separation.low < one.separation.auroc < one.separation.high
        assert (one.beyond_kpi is not None) == (n1 >= LEAST_PER_CLASS and one.name != "kpi")


def test_without_both_classes_there_is_no_separation() -> None:
    """Neither without labels nor with labels that are all alike."""
    for labels in (None, np.ones(120, dtype=bool)):
        kpi, signals = evidence_of(LOG.kpi, LOG.signals, labels)
        assert [one.separation for one in (kpi, *signals)] == [None] * (len(signals) + 1)


def test_spread_is_that_of_the_column() -> None:
    """Quantiles, the ends, and the share of a driver that shows 0 or 100."""
    column = np.array([0.0, 0.0004, 0.2, 0.5, 0.9996, 1.0])
    _, (driver, signal) = evidence_of(LOG.kpi[:6], {"support_cohesion": column, "lambda_2": column}, None)
    assert (driver.spread.smallest, driver.spread.largest) == (0.0, 1.0)
    assert driver.spread.median == pytest.approx(0.35)
    assert driver.spread.low == pytest.approx(np.quantile(column, 0.05))
    assert driver.spread.at_bounds == pytest.approx(4 / 6)
    assert signal.spread.at_bounds is None


def test_evidence_is_json_ready() -> None:
    """Plain values, nothing that is not a number."""
    for one in (KPI, *SIGNALS):
        assert json.loads(json.dumps(one.to_dict(), allow_nan=False))["name"] == one.name
