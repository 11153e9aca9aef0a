"""The risk-coverage curve and its area."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_confidence.conformal.audit.risk_coverage import RiskCoverage, risk_coverage

SCORE = st.one_of(st.sampled_from([0.0, 0.1, 0.5, 0.5, 0.9]), st.floats(-100, 100, allow_nan=False))
ROWS = st.lists(st.tuples(SCORE, st.booleans()), min_size=1, max_size=14)
Rows = list[tuple[float, bool]]


def of(rows: Rows) -> RiskCoverage:
    return risk_coverage([s for s, _ in rows], [y for _, y in rows])


def selective_risk(rows: Rows, cut: float) -> Fraction:
    """Share of wrong rows among those that score at least `cut`."""
    accepted = [y for s, y in rows if s >= cut]
    return Fraction(accepted.count(False), len(accepted))


def slow_aurc(rows: Rows) -> Fraction:
    """Mean over the rows of the selective risk of a cut at the row's own score."""
    return sum((selective_risk(rows, s) for s, _ in rows), Fraction(0)) / len(rows)


def slow_optimum(rows: Rows) -> Fraction:
    """The area when the correct rows come first, none of them tied."""
    ranked = sorted((y for _, y in rows), reverse=True)
    return slow_aurc([(-float(place), y) for place, y in enumerate(ranked)])


def test_the_four_row_example() -> None:
    """Scores .9 .8 .7 .6 with outcomes 1 0 1 0: AURC 1/3, optimum 5/24, excess 1/8."""
    curve = risk_coverage([0.9, 0.8, 0.7, 0.6], [1, 0, 1, 0])
    assert curve.aurc == pytest.approx(1 / 3, abs=1e-15)
    assert curve.optimum == pytest.approx(5 / 24, abs=1e-15)
    assert curve.e_aurc == pytest.approx(1 / 8, abs=1e-15)
    assert curve.coverage.tolist() == [0.25, 0.5, 0.75, 1.0]
    assert curve.risk == pytest.approx([0, 1 / 2, 1 / 3, 1 / 2])


@pytest.mark.parametrize("correct", [[1, 0, 1, 0], [0, 0, 1, 1], [1, 1, 0, 0], [0, 1, 1, 0]])
def test_four_tied_rows_give_one_half(correct: list[int]) -> None:
    """All scores equal: the area is the error rate, whatever the order of rows."""
    curve = risk_coverage([0.7] * 4, correct)
    assert curve.aurc == 0.5
    assert curve.coverage.tolist() == [1.0]


@given(ROWS)
def test_equals_the_definition(rows: Rows) -> None:
    """Area, optimum and excess are those of exact fractions."""
    curve = of(rows)
    assert curve.aurc == pytest.approx(float(slow_aurc(rows)), abs=1e-14)
    assert curve.optimum == pytest.approx(float(slow_optimum(rows)), abs=1e-14)
    assert curve.e_aurc == pytest.approx(float(slow_aurc(rows) - slow_optimum(rows)), abs=1e-14)


@given(ROWS)
def test_every_point_is_a_cut_between_scores(rows: Rows) -> None:
    """Each point of the curve is what accepting the scores at or above its threshold gives."""
    curve = of(rows)
    assert curve.thresholds.tolist() == sorted({s for s, _ in rows}, reverse=True)
    points = zip(curve.thresholds.tolist(), curve.coverage.tolist(), curve.risk.tolist(), strict=True)
    for cut, coverage, risk in points:
        assert coverage == sum(s >= cut for s, _ in rows) / len(rows)
        assert risk == float(selective_risk(rows, cut))


@given(ROWS)
def test_the_area_is_that_of_the_steps(rows: Rows) -> None:
    """AURC is the sum of risk times rise in coverage, so a plot of the curve shows it."""
    curve = of(rows)
    assert curve.aurc == pytest.approx((curve.risk * np.diff(curve.coverage, prepend=0)).sum(), abs=1e-12)


@given(ROWS, st.randoms())
def test_the_order_of_rows_never_matters(rows: Rows, random: object) -> None:
    """Shuffled rows give the same numbers to the last bit."""
    shuffled = list(rows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert of(shuffled).to_dict() == of(rows).to_dict()


@given(ROWS)
def test_no_order_beats_the_optimum(rows: Rows) -> None:
    """The excess is never negative, up to rounding, and 0 for scores that rank the rows perfectly."""
    assert of(rows).e_aurc >= -1e-15
    perfect = [(float(y) + place / 1000, y) for place, (_, y) in enumerate(rows)]
    assert of(perfect).e_aurc == pytest.approx(0, abs=1e-15)


@given(ROWS, st.sampled_from([0.0, 0.1, 0.25, 1 / 3, 0.5, 1.0]))
def test_acceptance_is_the_largest_allowed_share(rows: Rows, limit: float) -> None:
    """Acceptance at a risk is the largest coverage of a cut within it, and its threshold attains it."""
    curve = of(rows)
    allowed = [s for s, _ in rows if float(selective_risk(rows, s)) <= limit]
    shares = [sum(other >= s for other, _ in rows) / len(rows) for s in allowed]
    assert curve.acceptance_at(limit) == max(shares, default=0.0)
    assert curve.threshold_at(limit) == min(allowed, default=None)


def test_a_tie_cannot_be_cut() -> None:
    """A wrong row that is tied with right ones is accepted with them or not at all."""
    curve = risk_coverage([0.9, 0.8, 0.8, 0.8], [1, 1, 1, 0])
    assert curve.acceptance_at(0.2) == 0.25
    assert curve.acceptance_at(0.25) == 1.0


def test_outcomes_that_are_all_alike() -> None:
    """All correct has area 0 and all wrong area 1; neither has an excess."""
    assert risk_coverage([3.0, 1.0], [1, 1]).to_dict()["aurc"] == 0.0
    wrong = risk_coverage([3.0, 1.0], [0, 0])
    assert (wrong.aurc, wrong.optimum, wrong.e_aurc, wrong.acceptance_at(0.9)) == (1.0, 1.0, 0.0, 0.0)
    assert wrong.threshold_at(0.9) is None


def test_the_record_is_thinned_and_plain() -> None:
    """A record keeps at most the asked number of cuts, both ends among them, and is plain JSON."""
    curve = risk_coverage(np.arange(1000.0), np.arange(1000) % 2)
    record = json.loads(json.dumps(curve.to_dict(points=11), allow_nan=False))
    assert len(record["coverage"]) == len(record["risk"]) == len(record["thresholds"]) == 11
    assert (record["coverage"][0], record["coverage"][-1]) == (0.001, 1.0)
    assert len(curve.to_dict()["risk"]) == 101


@pytest.mark.parametrize(
    ("scores", "correct", "message"),
    [
        ([0.1, float("inf")], [0, 1], "`scores` must be finite"),
        ([0.1, 0.2], [0, 2], "`correct` must be 0 or 1"),
        ([0.1, 0.2], [0], "`correct` must have one entry for each of the 2 rows of `scores`; got 1"),
        ([], [], "`scores` must hold at least one score"),
    ],
)
def test_bad_rows_are_named(scores: list[float], correct: list[int], message: str) -> None:
    """Scores that are no numbers, outcomes that are no outcomes and unequal lengths are errors."""
    with pytest.raises(ValueError, match=message):
        risk_coverage(scores, correct)


@pytest.mark.parametrize("risk", [-0.1, 10, float("nan")])
def test_a_risk_is_a_share(risk: float) -> None:
    """A risk outside [0, 1] is refused, so that 10 is not taken for 10 %."""
    with pytest.raises(ValueError, match=r"`risk` must be a number in \[0, 1\]"):
        risk_coverage([0.1], [1]).acceptance_at(risk)
