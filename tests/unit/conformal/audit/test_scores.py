"""The audit of scores against labels."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from rag_confidence.conformal.audit.scores import Confusion, audit_scores

SCORE = st.one_of(st.integers(0, 10).map(lambda i: i / 10), st.floats(0, 1))
ROWS = st.lists(st.tuples(SCORE, st.booleans()), min_size=1, max_size=16)
Rows = list[tuple[float, bool]]

SIX = ([0.9, 0.8, 0.7, 0.6, 0.4, 0.2], [1, 0, 1, 1, 0, 0])


def columns(rows: Rows) -> tuple[list[float], list[bool]]:
    return [s for s, _ in rows], [y for _, y in rows]


@pytest.mark.parametrize(
    ("scores", "labels", "ece"),
    [([0.95, 1.0], [1, 0], 19 / 40), ([0.0], [1], 1.0), ([0.3, 0.35], [1, 0], 7 / 40)],
)
def test_ece_of_the_edges(scores: list[float], labels: list[int], ece: float) -> None:
    """Ten right-open bins with edges i/10, the last one closed."""
    assert audit_scores(scores, labels).ece == pytest.approx(ece, abs=1e-15)


def test_auroc_counts_ties_as_halves() -> None:
    """Two tied rows of different labels count one half, so this AUROC is 7/8."""
    audit = audit_scores([0.5, 0.5, 0.2, 0.8], [1, 0, 0, 1])
    assert audit.auroc == 7 / 8
    assert audit.auroc_low is not None
    assert audit.auroc_high is not None
    assert audit.auroc_low < 7 / 8 < audit.auroc_high


def test_one_label_leaves_auroc_undefined() -> None:
    """With one label AUROC and the rates of the other are None, and a warning says why."""
    audit = audit_scores([0.1, 0.2], [1, 1])
    assert (audit.auroc, audit.auroc_low, audit.auroc_high) == (None, None, None)
    assert audit.confusion.false_sufficiency.rate is None
    assert audit.warnings[0].startswith("All 2 rows are sufficient")


def test_brier_decomposition() -> None:
    """Scores .1 .4 .35 .8 with labels 0 0 1 1: Brier 253/1600, parts 53/1600, 1/8 and 1/4."""
    audit = audit_scores([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
    parts = (audit.brier, audit.miscalibration, audit.discrimination, audit.uncertainty)
    assert parts == pytest.approx((253 / 1600, 53 / 1600, 1 / 8, 1 / 4), abs=1e-15)


def test_area_under_the_risk_coverage_curve() -> None:
    """Scores .9 .8 .7 .6 with labels 1 0 1 0: AURC 1/3, optimum 5/24, excess 1/8."""
    curve = audit_scores([0.9, 0.8, 0.7, 0.6], [1, 0, 1, 0]).risk_coverage
    assert (curve.aurc, curve.optimum, curve.e_aurc) == pytest.approx((1 / 3, 5 / 24, 1 / 8), abs=1e-15)


@given(ROWS, SCORE)
def test_the_confusion_is_that_of_the_threshold(rows: Rows, threshold: float) -> None:
    """Counts at the threshold are those of score >= threshold, and every rate is its own quotient."""
    at = audit_scores(*columns(rows), threshold=threshold).confusion
    pairs = [(s >= threshold, y) for s, y in rows]
    assert at.true_accepts == pairs.count((True, True))
    assert at.false_accepts == pairs.count((True, False))
    assert at.false_rejects == pairs.count((False, True))
    assert at.true_rejects == pairs.count((False, False))
    expected = quotients(at)
    rates = (at.acceptance, at.false_sufficiency, at.selective_risk, at.sufficient_accepted)
    assert [(one.count, one.total) for one in rates] == expected
    assert [one.rate for one in rates] == [k / n if n else None for k, n in expected]


def quotients(at: Confusion) -> list[tuple[int, int]]:
    accepted = at.true_accepts + at.false_accepts
    zeros, ones = at.false_accepts + at.true_rejects, at.true_accepts + at.false_rejects
    return [
        (accepted, zeros + ones),
        (at.false_accepts, zeros),
        (at.false_accepts, accepted),
        (at.true_accepts, ones),
    ]


def test_rates_at_the_threshold_have_exact_intervals() -> None:
    """False sufficiency 1/3 and selective risk 1/4 of these rows carry Clopper-Pearson intervals."""
    at = audit_scores(*SIX, threshold=0.6).confusion
    for found, (count, total) in ((at.false_sufficiency, (1, 3)), (at.selective_risk, (1, 4))):
        wanted = binomtest(count, total).proportion_ci(0.95, method="exact")
        assert (found.rate, found.low, found.high) == pytest.approx((count / total, wanted.low, wanted.high))


def test_a_float_threshold_meets_float32_scores_in_their_precision() -> None:
    """A threshold of 0.7 accepts a single-precision 0.7, which is below the double 0.7."""
    scores = np.array([0.7, 0.2], dtype=np.float32)
    assert float(scores[0]) < 0.7
    assert audit_scores(scores, [1, 0], threshold=0.7).confusion.true_accepts == 1


@given(ROWS)
def test_acceptance_meets_its_target(rows: Rows) -> None:
    """The acceptance at the target is the coverage of a cut whose risk is within it, and the largest one."""
    audit = audit_scores(*columns(rows), target_risk=0.25)
    curve = audit.risk_coverage
    allowed = curve.coverage[curve.risk <= 0.25]
    assert audit.acceptance_at_target == (allowed.max() if allowed.size else 0.0)


@given(ROWS, st.randoms())
def test_the_order_of_rows_never_matters(rows: Rows, random: Any) -> None:
    """Shuffled rows give the same record to the last bit."""
    shuffled = list(rows)
    random.shuffle(shuffled)
    assert audit_scores(*columns(shuffled)).to_dict() == audit_scores(*columns(rows)).to_dict()


@given(ROWS, st.integers(1, 15))
def test_numbers_stay_in_their_ranges(rows: Rows, bins: int) -> None:
    """Errors lie in [0, 1], bins and counts add up to the rows, and the record is plain JSON."""
    audit = audit_scores(*columns(rows), num_bins=bins)
    assert audit.n == len(rows) == audit.n0 + audit.n1 == sum(one.count for one in audit.bins)
    assert audit.prevalence == audit.n1 / audit.n
    errors = [audit.brier, audit.ece, audit.ece_equal_mass, audit.risk_coverage.aurc]
    errors += [] if audit.ece_debiased is None else [audit.ece_debiased]
    assert all(0 <= error <= 1 for error in errors)
    record = json.loads(json.dumps(audit.to_dict(), allow_nan=False))
    assert record["n"] == len(rows)
    assert len(record["bins"]) == bins


def test_a_negative_debiased_error_counts_as_none() -> None:
    """Where chance explains more than the whole difference the debiased error is 0, not a root of less."""
    rows = [(0.5, bool(i % 2)) for i in range(20)]
    audit = audit_scores(*columns(rows))
    assert audit.ece_debiased == 0.0


def test_the_record_has_the_documented_keys() -> None:
    """The keys of the record are fixed."""
    assert list(audit_scores(*SIX).to_dict()) == [
        *("n", "prevalence", "n0", "n1", "brier", "miscalibration", "discrimination", "uncertainty"),
        *("ece", "ece_equal_mass", "ece_debiased", "auroc", "auroc_low", "auroc_high", "bins", "confusion"),
        *("risk_coverage", "target_risk", "acceptance_at_target", "warnings"),
    ]


def test_calibrated_scores_that_separate_give_no_warning() -> None:
    """Many calibrated rows with both labels, separated well and a threshold in between: nothing to say."""
    rng = np.random.default_rng([21, 0])
    scores = rng.beta(0.2, 0.2, 4000)
    labels = rng.random(4000) < scores
    assert audit_scores(scores, labels).warnings == ()


def test_every_part_can_warn() -> None:
    """Few rows, a narrow spread, weak separation, overconfidence and a risky threshold are all named."""
    scores, labels = np.linspace(0.82, 0.88, 30), np.arange(30) % 3 == 0
    said = " ".join(audit_scores(scores, labels).warnings)
    for words in ("Only 20 insufficient rows", "Only 10 sufficient rows", "read them as ranks", "AUROC is"):
        assert words in said
    for words in ("overconfident", "All 30 scores reach the threshold 0.5", "above the target 0.1"):
        assert words in said


@pytest.mark.parametrize(
    ("scores", "labels", "options", "message"),
    [
        ([87.0, 40.0], [1, 0], {}, r"must be fractions in \[0, 1\]; got 87[.0]*\. .*percentages"),
        ([-0.1, 0.4], [1, 0], {}, r"must be fractions in \[0, 1\]; got -0\.1\. Pass other scales to `auroc`"),
        ([0.1, float("nan")], [1, 0], {}, "`scores` must be finite"),
        ([], [], {}, "`scores` must hold at least one score"),
        ([0.1, 0.2], [1, 2], {}, "`labels` must be 0 or 1"),
        ([0.1, 0.2], [1], {}, "`labels` must have one entry for each of the 2 rows of `scores`; got 1"),
        ([0.1, 0.2], [1, 0], {"threshold": 50}, r"`threshold` must be a number in \[0, 1\]; got 50"),
        ([0.1, 0.2], [1, 0], {"target_risk": 10}, r"`target_risk` must be a number in \[0, 1\]; got 10"),
        ([0.1, 0.2], [1, 0], {"num_bins": 0}, "`num_bins` must be an integer of at least 1; got 0"),
        ([0.1, 0.2], [1, 0], {"num_bins": 1001}, "`num_bins` must be at most 1000; got 1001"),
    ],
)
def test_bad_input_is_named(
    scores: list[float], labels: list[int], options: dict[str, Any], message: str
) -> None:
    """Each wrong argument is one error that names it."""
    with pytest.raises(ValueError, match=message):
        audit_scores(scores, labels, **options)


@pytest.mark.parametrize(
    ("scores", "options"),
    [(["0.1", "0.2"], {}), ([0.1, 0.2], {"num_bins": 2.5}), ([0.1, 0.2], {"threshold": "0.5"})],
)
def test_wrong_types_are_type_errors(scores: Any, options: dict[str, Any]) -> None:
    """Strings for numbers, and fractions for counts, are of the wrong type."""
    with pytest.raises(TypeError, match="must"):
        audit_scores(scores, [1, 0], **options)
