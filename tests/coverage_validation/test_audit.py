"""The rates that an audit claims, measured: coverage of the AUROC interval and false alarms of its bins."""

from __future__ import annotations

from math import erf

import numpy as np
import pytest
from scipy.stats import binom

from rag_confidence.conformal.audit.notes import about_bins
from rag_confidence.conformal.audit.reliability import (
    debiased_squared_error,
    equal_mass,
    equal_width,
    width_bins,
)
from rag_confidence.conformal.distinct import distinct
from rag_confidence.conformal.separation import auroc_interval, auroc_of_sorted

SURELY = 1 - 1e-4


@pytest.mark.parametrize("apart", [0.0, 1.0, 2.0])
@pytest.mark.parametrize(("n0", "n1"), [(10, 10), (200, 20), (100, 100)])
def test_the_auroc_interval_covers_as_claimed(apart: float, n0: int, n1: int) -> None:
    """The 95 % interval misses the true AUROC of two normal classes in at most 6 % of histories."""
    trials, rng = 600, np.random.default_rng([31, n0, n1, int(apart)])
    zeros = np.sort(rng.normal(size=(trials, n0)), axis=1)
    ones = np.sort(rng.normal(size=(trials, n1)) + apart, axis=1)
    true = (1 + erf(apart / 2)) / 2
    ends = [auroc_interval(auroc_of_sorted(a, b), n0, n1) for a, b in zip(zeros, ones, strict=True)]
    missed = sum(not low <= true <= high for low, high in ends)
    assert missed <= binom.ppf(SURELY, trials, 0.06)


@pytest.mark.parametrize("n", [50, 1000])
@pytest.mark.parametrize("shape", [0.3, 5.0])
def test_calibrated_scores_are_seldom_called_miscalibrated(n: int, shape: float) -> None:
    """Scores that are true probabilities give a sentence on their bins in at most 5 % of audits."""
    trials, rng = 300, np.random.default_rng([32, n, int(10 * shape)])
    alarms = 0
    for _ in range(trials):
        scores = rng.beta(shape, shape, n)
        table = distinct(scores, rng.random(n) < scores)
        alarms += bool(about_bins(width_bins(equal_width(table, 10))))
    assert alarms <= binom.ppf(SURELY, trials, 0.05)


def test_the_debiased_error_of_calibrated_scores_is_zero_on_average() -> None:
    """Its mean over calibrated histories is 0 within four standard errors, far below the plain one."""
    rng = np.random.default_rng([33, 0])
    errors, plain = [], []
    for _ in range(1000):
        scores = rng.random(200)
        sums = equal_mass(distinct(scores, rng.random(200) < scores), 10)
        errors.append(debiased_squared_error(sums))
        plain.append(float((sums.counts * ((sums.score_sums - sums.ones) / sums.counts) ** 2).sum() / 200))
    found = np.array(errors, dtype=np.float64)
    assert abs(found.mean()) < 4 * found.std() / len(found) ** 0.5
    assert np.mean(plain) > 10 * abs(found.mean())
