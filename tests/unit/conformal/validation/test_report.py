"""What the counts of repeated trials are taken to mean."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from scipy.stats import binom

from rag_confidence.conformal.bands import Trial
from rag_confidence.conformal.validation import report
from rag_confidence.conformal.validation.report import ClassCounts, class_coverage
from rag_confidence.conformal.validation.trials import mean_test, spread_test

N, N_TEST, RANK = 200, 300, 181
judge = partial(class_coverage, 0, alpha=Fraction(1, 10), delta=None, level=0.95)


def counts(covered: Callable[[np.random.Generator], int], *, repeated: int = 0) -> list[ClassCounts]:
    """Sixty trials of one size."""
    rng = np.random.default_rng(8)
    return [ClassCounts(N, N_TEST, covered(rng), 0, repeated) for _ in range(60)]


def sound(rng: np.random.Generator) -> int:
    """A beta-binomial count: that of a gate that keeps its promise."""
    return int(rng.binomial(N_TEST, rng.beta(RANK, N - RANK + 1)))


def test_sound_counts_have_no_fault() -> None:
    """Beta-binomial counts pass, and the report shows both tests at a quarter of the level each."""
    given = counts(sound)
    found, trials = judge(given, continuous=True), [Trial(N, RANK, N_TEST)] * 60
    covered = np.array([one.covered for one in given])
    assert found.faults == ()
    assert found.mean == mean_test(covered, trials, 1 - 0.05 / 4)
    assert found.spread == spread_test(covered, trials, 1 - 0.05 / 4)
    assert found.in_band > 0.85


@pytest.mark.parametrize(
    ("covered", "fault"),
    [
        (lambda rng: sound(rng) - 8, "coverage too low"),
        (lambda rng: min(sound(rng) + 8, N_TEST), "coverage too high"),
        (lambda rng: 255 + 30 * int(rng.random() < 0.5), "trials differ too much"),
        (lambda rng: 270 + int(rng.random() < 0.5), "trials differ too little"),
    ],
)
def test_each_fault_is_named(covered: Callable[[np.random.Generator], int], fault: str) -> None:
    """Too low, too high, too far apart and too alike are told from each other."""
    assert fault in judge(counts(covered), continuous=True).faults


def test_repeated_scores_are_a_fault_of_continuous_scores_only() -> None:
    """Where scores may tie, a test score that was seen in calibration means nothing."""
    given = counts(sound, repeated=3)
    assert judge(given, continuous=True).faults == ("1.0% of test scores occur in the calibration set",)
    assert judge(given, continuous=False).faults == ()


def test_ties_excuse_what_is_too_high_and_too_spread_only() -> None:
    """With ties only coverage that is too low is a fault."""
    high, low = (counts(partial(_moved, by=by)) for by in (8, -8))
    assert judge(high, continuous=False).faults == ()
    assert judge(low, continuous=False).faults == ("coverage too low",)


def _moved(rng: np.random.Generator, by: int) -> int:
    return min(sound(rng) + by, N_TEST)


def test_a_pac_rank_changes_what_is_expected() -> None:
    """The same counts are too low for a pac gate, which promises more."""
    found = judge(counts(sound), continuous=True)
    pac = class_coverage(
        1, counts(sound), alpha=Fraction(1, 10), delta=Fraction(1, 20), level=0.95, continuous=True
    )
    assert pac.mean.expected > found.mean.expected
    assert "coverage too low" in pac.faults
    assert pac.label == 1


@pytest.mark.parametrize("delta", [None, Fraction(1, 20)])
@pytest.mark.parametrize("continuous", [True, False])
def test_a_rank_that_is_too_low_is_a_fault_although_counts_agree_with_it(
    monkeypatch: pytest.MonkeyPatch, delta: Fraction | None, continuous: bool
) -> None:
    """Gate and bands share their rank, so one that is off by one shows in no count; it is named by itself."""
    options = {"alpha": Fraction(1, 10), "delta": delta, "level": 0.95, "continuous": continuous}
    right = RANK if delta is None else next(k for k in range(N) if binom.sf(k - 1, N, 0.9) <= 0.05)
    for off, faults in ((0, ()), (-1, ("rank too low for the level",))):
        rank = right + off
        rng = np.random.default_rng(8)
        covered = rng.binomial(N_TEST, rng.beta(rank, N - rank + 1, 60)).tolist()
        given = [ClassCounts(N, N_TEST, count, 0, 0) for count in covered]
        for name in ("conformal_rank", "pac_rank"):
            monkeypatch.setattr(report, name, lambda *sizes, rank=rank: rank)
        assert class_coverage(0, given, **options).faults == faults


@pytest.mark.parametrize("alpha", [Fraction(1, 10), Fraction(1, 3), Fraction(1, 1000), Fraction(7, 20)])
@pytest.mark.parametrize("delta", [None, Fraction(1, 20), Fraction(1, 1000)])
def test_no_rank_of_the_library_is_too_low(alpha: Fraction, delta: Fraction | None) -> None:
    """Each rank in use keeps its level, those that meet it exactly included, and one below does not."""
    for n in (*range(1, 60), 199, 999, 1000, 1999):
        rank = report._rank(n, alpha, delta)
        assert report._supports(n, rank, alpha, delta)
        assert math.isinf(rank) or not report._supports(n, rank - 1, alpha, delta)


def test_infinite_thresholds_have_no_spread_to_show() -> None:
    """With too few calibration rows everything is covered; the row shows a dash for the spread."""
    found = judge([ClassCounts(8, 20, 20, 0, 0)] * 5, continuous=True)
    assert found.faults == ()
    assert found.row()[-2:] == ("-", "yes")
