"""Certificates, against loops over sorted lists and exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import reference_risk as ref
from hypothesis import given
from hypothesis import strategies as st

from rag_confidence.conformal.risk.certificate import Certificate, certify
from rag_confidence.conformal.risk.rank_grid import rank_grid
from rag_confidence.conformal.rows import Rows, rows_of

FIFTH, TENTH = Fraction(1, 5), Fraction(1, 10)

# Few distinct scores, so that ties meet every threshold; good rows mostly on top, so that some pass.
tied_rows = st.lists(
    st.integers(0, 9).flatmap(
        lambda s: st.tuples(st.just(s / 10), st.sampled_from([1] * (1 + 3 * s) + [0] * (10 - s)))
    ),
    min_size=1,
    max_size=50,
)
untied_rows = st.lists(
    st.tuples(st.floats(-1e6, 1e6), st.sampled_from([0, 1, 1, 1, 1, 1, 1])), min_size=1, max_size=50
)


def numbers(found: Certificate) -> tuple[float, int, int] | None:
    passed = found.passed
    return None if passed is None else (passed.threshold, passed.accepted, passed.errors)


def rows(scores: list[float], labels: list[int]) -> Rows:
    return rows_of(np.array(scores), np.array(labels, dtype=bool), None)


@given(pairs=st.one_of(tied_rows, untied_rows), target=st.sampled_from([FIFTH, Fraction(1, 2)]))
def test_a_sequence_is_that_of_the_slow_gate(pairs: list[tuple[float, int]], target: Fraction) -> None:
    """Threshold, accepted and errors agree with exact tails on sorted lists, whatever the ties."""
    scores, labels = [score for score, _ in pairs], [label for _, label in pairs]
    grid = rank_grid(len(pairs), target, TENTH, "sequence")
    trials = ref.in_sequence(scores, labels, grid.ranks) if grid.ranks else []
    wanted = ref.certified(trials, [TENTH] * len(trials), target, stops=True)
    assert numbers(certify(rows(scores, labels), target, TENTH, "sequence")) == wanted


@given(pairs=st.one_of(tied_rows, untied_rows), target=st.sampled_from([FIFTH, Fraction(1, 2)]))
def test_bonferroni_is_that_of_the_slow_gate(pairs: list[tuple[float, int]], target: Fraction) -> None:
    """Every rank is tried at its own level, strictly above the next score."""
    scores, labels = [score for score, _ in pairs], [label for _, label in pairs]
    grid = rank_grid(len(pairs), target, TENTH, "bonferroni")
    trials = [ref.by_rank(scores, labels, rank) for rank in grid.ranks]
    wanted = ref.certified(trials, grid.levels, target, stops=False)
    assert numbers(certify(rows(scores, labels), target, TENTH, "bonferroni")) == wanted


@given(untied_rows.filter(lambda pairs: len({s for s, _ in pairs}) == len(pairs)))
def test_without_ties_a_sequence_tries_its_ranks(pairs: list[tuple[float, int]]) -> None:
    """Exactly the ranks of the grid are the numbers of rows that a sequence tries to accept."""
    scores, labels = [score for score, _ in pairs], [label for _, label in pairs]
    ranks = rank_grid(len(pairs), FIFTH, TENTH, "sequence").ranks
    assert [cut[1] for cut in ref.in_sequence(scores, labels, ranks)] == list(ranks)


@given(tied_rows, st.randoms(use_true_random=False))
def test_the_order_of_the_rows_does_not_matter(pairs: list[tuple[float, int]], random: object) -> None:
    """Tied rows in any order give the same certificate."""
    shuffled = list(pairs)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    both = [
        certify(rows([s for s, _ in some], [y for _, y in some]), FIFTH, TENTH, "sequence")
        for some in (pairs, shuffled)
    ]
    assert both[0] == both[1]


@given(untied_rows, st.integers(-8, 8), st.floats(-100, 100))
def test_only_ranks_matter(pairs: list[tuple[float, int]], power: int, shift: float) -> None:
    """A strictly increasing map of the scores keeps the accepted rows."""
    labels = [label for _, label in pairs]
    scores = np.array([score for score, _ in pairs])
    mapped = np.unique(scores, return_inverse=True)[1] * 2.0**power + shift
    before, after = (certify(rows(list(s), labels), FIFTH, TENTH, "sequence") for s in (scores, mapped))
    assert (before.passed is None) == (after.passed is None)
    if before.passed and after.passed:
        assert (before.passed.accepted, before.passed.errors) == (after.passed.accepted, after.passed.errors)


@given(tied_rows)
def test_a_certified_threshold_meets_its_target_with_room(pairs: list[tuple[float, int]]) -> None:
    """The risk among the accepted calibration rows is below the target, and they are enough."""
    passed = certify(rows(*map(list, zip(*pairs, strict=True))), FIFTH, TENTH, "sequence").passed
    if passed is not None:
        assert passed.errors < FIFTH * passed.accepted
        assert passed.accepted >= 11


def test_too_few_rows_give_nothing_and_no_near_miss() -> None:
    """21 perfect rows cannot certify 10 % at delta 10 %; 22 can."""
    few = certify(rows([i / 100 for i in range(21)], [1] * 21), TENTH, TENTH, "sequence")
    assert (few.passed, few.missed, few.threshold) == (None, None, math.inf)
    enough = certify(rows([i / 100 for i in range(22)], [1] * 22), TENTH, TENTH, "sequence")
    assert enough.passed is not None
    assert enough.threshold == -math.inf


def test_a_failed_sequence_names_its_first_trial() -> None:
    """With every row insufficient the first rank ends the sequence, and its counts are kept."""
    found = certify(rows([i / 100 for i in range(100)], [0] * 100), TENTH, TENTH, "sequence")
    assert found.passed is None
    assert found.missed is not None
    assert (found.missed.accepted, found.missed.errors) == (22, 22)


def test_bonferroni_names_the_trial_that_came_nearest() -> None:
    """Of several failures the one with the smallest p-value against its level is kept."""
    labels = [0] * 60 + [1] * 35 + [0] * 5
    found = certify(rows([i / 100 for i in range(100)], labels), TENTH, TENTH, "bonferroni")
    assert found.passed is None
    assert found.missed is not None
    assert (found.missed.accepted, found.missed.errors) == (35, 5)


def test_bad_rows_on_top_end_a_sequence_and_not_bonferroni() -> None:
    """Six traps above 400 good rows: only the method that tests every rank certifies those below."""
    scores = [i / 1000 for i in range(1000)]
    labels = [0] * 594 + [1] * 400 + [0] * 6
    assert certify(rows(scores, labels), TENTH, TENTH, "sequence").passed is None
    passed = certify(rows(scores, labels), TENTH, TENTH, "bonferroni").passed
    assert passed is not None
    assert (passed.accepted, passed.errors) == (352, 6)


def test_ties_at_the_top_do_not_end_a_sequence() -> None:
    """Where the strict ranks fall into one tie they accept nothing, and the next threshold is tried."""
    scores, labels = [1.0] * 40 + [0.5] * 40, [1] * 40 + [0] * 40
    passed = certify(rows(scores, labels), TENTH, TENTH, "sequence").passed
    assert passed is not None
    assert (passed.threshold, passed.accepted, passed.errors) == (0.5, 40, 0)


def test_a_constant_score_accepts_all_or_nothing() -> None:
    """Without any order the only candidate is all rows."""
    good = certify(rows([0.7] * 100, [1] * 97 + [0] * 3), TENTH, TENTH, "bonferroni")
    assert good.threshold == -math.inf
    assert certify(rows([0.7] * 100, [1] * 50 + [0] * 50), TENTH, TENTH, "sequence").passed is None
