"""The coverage check: what it counts, what it flags and what it lets pass."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from rag_confidence.conformal.gate.fit import fit_conformal_gate
from rag_confidence.conformal.gate.loose import Thresholds
from rag_confidence.conformal.quantile import conformal_rank
from rag_confidence.conformal.validation.coverage import validate_coverage
from rag_confidence.conformal.validation.draws import Draw, fresh_draws, random_splits, shifted
from rag_confidence.synthetic import (
    LabelledScores,
    draw_rag_rows,
    labelled_scores,
    rag_benchmark,
    uniform_scores,
)

Trial = tuple[LabelledScores, LabelledScores]

FRESH = fresh_draws(draw_rag_rows)


def recorded(draw: Draw, kept: list[Trial]) -> Draw:
    """A draw that also remembers what it gave."""

    def remembering(rng: np.random.Generator, n: int, n_test: int) -> Trial:
        kept.append(draw(rng, n, n_test))
        return kept[-1]

    return remembering


def test_counts_are_those_of_a_hand_written_gate() -> None:
    """Coverage of both classes and the false sufficiency rate equal what sorted lists give."""
    trials: list[Trial] = []
    found = validate_coverage(recorded(FRESH, trials), 60, 0.2, n_test=50, repeats=7)
    covered, accepted, tested = [0, 0], 0, [0, 0]
    for known, new in trials:
        low = sorted(s for s, y in zip(known.scores, known.labels, strict=True) if not y)
        high = sorted((s for s, y in zip(known.scores, known.labels, strict=True) if y), reverse=True)
        q0, t1 = (part[int(conformal_rank(len(part), 0.2)) - 1] for part in (low, high))
        for score, label in zip(new.scores, new.labels, strict=True):
            tested[int(label)] += 1
            covered[int(label)] += bool(score >= t1 if label else score <= q0)
            accepted += bool(not label and score > q0 and score >= t1)
    assert len(trials) == 7
    assert (found.insufficient.mean.covered, found.sufficient.mean.covered) == tuple(covered)
    assert (found.insufficient.mean.tested, found.sufficient.mean.tested) == tuple(tested)
    assert found.false_sufficiency_rate == accepted / tested[0]


def test_an_honest_gate_passes() -> None:
    """Fresh draws and random splits of one pool are both within their bands."""
    assert validate_coverage(FRESH, 300, 0.1, n_test=300, repeats=40).ok
    pool = rag_benchmark(5, 700)
    assert validate_coverage(random_splits(pool), 400, 0.1, n_test=300, repeats=40).ok


def test_a_shift_is_flagged_in_the_class_that_it_harms() -> None:
    """Scores that are too high lose label 0 and keep label 1 more often; the report says which is which."""
    found = validate_coverage(shifted(FRESH, 0.05), 300, 0.1, n_test=300, repeats=40)
    assert found.flagged
    assert "coverage too low" in found.insufficient.faults
    assert "coverage too high" in found.sufficient.faults
    assert found.insufficient.mean.mean < 0.88


def test_a_threshold_that_is_not_calibrated_is_flagged() -> None:
    """A fixed threshold of .70 is no gate at alpha = .1."""
    found = validate_coverage(
        FRESH, 300, 0.1, n_test=300, repeats=20, fit=lambda scores, labels: Thresholds(q0=0.7, q1=0.3)
    )
    assert found.insufficient.faults
    assert found.false_sufficiency_rate == pytest.approx(0.25, abs=0.03)


def test_a_pac_gate_is_held_against_its_own_rank() -> None:
    """With delta the expected coverage is that of the pac rank; without it the same gate covers too much."""
    fit = partial(fit_conformal_gate, alpha=0.1, guarantee="pac", delta=0.1)
    check = partial(validate_coverage, FRESH, 300, 0.1, n_test=300, repeats=40, fit=fit)
    assert check(delta=0.1).ok
    assert "coverage too high" in check().insufficient.faults


def test_the_default_gate_knows_delta() -> None:
    """Setting delta alone fits a pac gate and tests it as one."""
    found = validate_coverage(FRESH, 300, 0.1, n_test=300, repeats=30, delta="0.05")
    assert found.ok
    assert found.insufficient.mean.expected > 0.91


def test_ties_are_judged_by_the_low_side_alone() -> None:
    """Scores of one decimal cover more than they promise: a fault of continuous scores only."""

    def rough(rng: np.random.Generator, n: int) -> LabelledScores:
        rows = draw_rag_rows(rng, n)
        return LabelledScores(np.round(rows.scores, 1), rows.labels, rows.kind)

    check = partial(validate_coverage, fresh_draws(rough), 300, 0.1, n_test=300, repeats=30)
    strict, lenient = check(), check(continuous=False)
    assert strict.flagged
    assert strict.insufficient.repeated > 0.99
    assert "99.8% of test scores occur in the calibration set" in strict.insufficient.faults
    assert lenient.ok
    low = validate_coverage(
        shifted(fresh_draws(rough), 0.2), 300, 0.1, n_test=300, repeats=30, continuous=False
    )
    assert low.insufficient.faults == ("coverage too low",)


def test_scores_of_any_scale_are_checked() -> None:
    """The default gate takes raw scores: logits are covered as their probabilities are."""

    def logits(rng: np.random.Generator, n: int) -> LabelledScores:
        rows = draw_rag_rows(rng, n)
        return LabelledScores(np.log(rows.scores / (1 - rows.scores)), rows.labels, rows.kind)

    plain, scaled = (
        validate_coverage(fresh_draws(source), 200, 0.1, n_test=100, repeats=10)
        for source in (draw_rag_rows, logits)
    )
    assert plain.insufficient.mean == scaled.insufficient.mean
    assert plain.sufficient.mean == scaled.sufficient.mean


def test_a_seed_repeats_and_trials_do_not_depend_on_their_number() -> None:
    """A seed gives one report, and the first trials of a longer run are those of a shorter one."""
    short: list[Trial] = []
    long: list[Trial] = []
    first = validate_coverage(recorded(FRESH, short), 100, 0.1, n_test=50, repeats=3, seed=4)
    validate_coverage(recorded(FRESH, long), 100, 0.1, n_test=50, repeats=5, seed=4)
    assert first == validate_coverage(FRESH, 100, 0.1, n_test=50, repeats=3, seed=4)
    assert np.array_equal(short[2][1].scores, long[2][1].scores)
    assert first != validate_coverage(FRESH, 100, 0.1, n_test=50, repeats=3, seed=5)


def test_the_table_has_a_line_for_each_class() -> None:
    """Markdown with target, expected, observed, band and verdict of both classes."""
    found = validate_coverage(FRESH, 200, "0.1", n_test=100, repeats=20)
    header, rule, zero, one = found.table().splitlines()
    assert header.startswith("| label | target | expected | observed | band of the mean |")
    assert rule.count("---") == header.count("|") - 1
    assert zero.startswith("| 0 | 0.900 |")
    assert one.startswith("| 1 | 0.900 |")
    assert zero.endswith("| yes |")


def test_a_part_without_a_class_is_refused() -> None:
    """Test rows of one class only say nothing about the other."""

    def lopsided(rng: np.random.Generator, n: int, n_test: int) -> tuple[LabelledScores, LabelledScores]:
        known, new = FRESH(rng, n, n_test)
        return known, new.take(new.labels)

    with pytest.raises(ValueError, match="`draw` must give test rows of both classes; got none with label 0"):
        validate_coverage(lopsided, 100, 0.1, n_test=50, repeats=3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "`n` must be an integer of at least 1; got 0"),
        ({"n_test": 1.5}, "`n_test` must be an integer; got 1.5"),
        ({"repeats": 0}, "`repeats` must be an integer of at least 1; got 0"),
        ({"seed": -1}, "`seed` must be an integer of at least 0; got -1"),
        ({"alpha": 0}, "`alpha` must be strictly between 0 and 1; got 0"),
        ({"delta": 1.0}, "`delta` must be strictly between 0 and 1; got 1.0"),
        ({"level": 95}, "`level` must be strictly between 0 and 1; got 95"),
    ],
)
def test_errors_name_the_argument(options: dict[str, object], message: str) -> None:
    """Sizes that are no counts and levels outside (0, 1) are refused by name."""
    arguments = {"n": 50, "alpha": 0.1, "n_test": 50, **options}
    with pytest.raises((TypeError, ValueError), match=message):
        validate_coverage(fresh_draws(partial(labelled_scores, nonconformity=uniform_scores)), **arguments)
