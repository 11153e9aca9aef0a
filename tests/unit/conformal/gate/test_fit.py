"""The gate decides as the definition of split conformal prediction says, for any scores and levels."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import reference_conformal as ref
from histories import LEVELS, History, few, histories
from hypothesis import assume, given
from hypothesis import strategies as st
from refusals import quiet, refuse

from rag_confidence._predictions import GatePredictions
from rag_confidence._types import Decision
from rag_confidence.conformal.gate.fit import fit_conformal_gate
from rag_confidence.conformal.gate.fitted import ConformalGate
from rag_confidence.errors import (
    CalibrationRefused,
    OutOfRangeWarning,
    SmallCalibrationWarning,
    WeakSeparationWarning,
)

CONFLICTS = st.sampled_from(["abstain", "accept", "reject"])


def fitted(history: History, alpha: Any = "0.1", **options: Any) -> ConformalGate:
    """A gate on a history, where warnings are not the subject."""
    with quiet():
        return fit_conformal_gate(
            history.scores, history.labels, alpha, score_kind=history.score_kind, **options
        )


def predicted(gate: ConformalGate, history: History) -> GatePredictions:
    """Its predictions at the probes, warnings aside."""
    with quiet():
        return gate.predict(history.probes)


def outcome(predictions: GatePredictions) -> list[Any]:
    """All that is decided, row by row."""
    return list(
        zip(
            predictions.decision.tolist(),
            predictions.prediction_sets,
            predictions.reason_code.tolist(),
            strict=True,
        )
    )


def normal_history(n: int, gap: float = 3.0, seed: int = 0) -> tuple[Any, Any]:
    """Raw scores of n rows a class, well separated by default."""
    rng = np.random.default_rng([61, seed])
    return np.r_[rng.normal(0, 1, n), rng.normal(gap, 1, n)], np.r_[np.zeros(n, int), np.ones(n, int)]


# --- against the definition


@given(histories(), LEVELS)
def test_thresholds_are_order_statistics(history: History, alpha: Any) -> None:
    """q0 is the k0-th smallest class-0 score and t1 the k1-th largest class-1 score; q1 = 1 - t1."""
    gate, slow = fitted(history, alpha), history.reference(alpha)
    assert (gate.q0, gate.t1) == (slow.q0, slow.t1)
    assert gate.q1 == 1 - gate.t1
    assert (gate.n0, gate.n1) == (len(slow.class0), len(slow.class1))
    assert gate.alpha == float(ref.level(alpha))


@given(histories(), LEVELS, CONFLICTS)
def test_decisions_follow_the_p_values(history: History, alpha: Any, on_conflict: str) -> None:
    """Sets and decisions are those of the definition by p-values, in both precisions and on any scale."""
    gate = fitted(history, alpha, on_conflict=on_conflict)
    slow = history.reference(alpha, on_conflict=on_conflict)
    found = predicted(gate, history)
    assert found.prediction_sets == [slow.prediction_set(s) for s in history.numbers()]
    assert found.decision.tolist() == [slow.decide(s) for s in history.numbers()]


@few
@given(histories(), LEVELS, LEVELS)
def test_two_levels_for_two_errors(history: History, alpha: Any, alpha_reject: Any) -> None:
    """`alpha` bounds a false ACCEPT (label 0 excluded), `alpha_reject` a false REJECT (label 1 excluded)."""
    gate = fitted(history, alpha, alpha_reject=alpha_reject)
    slow = history.reference(alpha, alpha_reject=alpha_reject)
    assert (gate.q0, gate.t1) == (slow.q0, slow.t1)
    assert predicted(gate, history).prediction_sets == [slow.prediction_set(s) for s in history.numbers()]


@given(histories())
def test_p_values_are_exact(history: History) -> None:
    """p_y is the share of class-y scores, the new one counted in, that are at least as strange."""
    gate, slow = fitted(history), history.reference()
    with quiet():
        p0, p1 = gate.p_values(history.probes)
    exact = [slow.p_values(s) for s in history.numbers()]
    assert np.asarray(p0).tolist() == [float(p) for p, _ in exact]
    assert np.asarray(p1).tolist() == [float(p) for _, p in exact]


@few
@given(histories(), LEVELS, LEVELS)
def test_a_label_is_excluded_iff_its_p_value_is_small(
    history: History, alpha: Any, alpha_reject: Any
) -> None:
    """p_0 <= alpha iff label 0 is excluded, p_1 <= alpha_reject iff label 1 is: two ways, one answer."""
    gate = fitted(history, alpha, alpha_reject=alpha_reject)
    found = predicted(gate, history)
    with quiet():
        p0, p1 = gate.p_values(history.probes)
    excluded0 = [exact(p, gate.n0) <= ref.level(alpha) for p in p0]
    excluded1 = [exact(p, gate.n1) <= ref.level(alpha_reject) for p in p1]
    assert found.label0_kept.tolist() == [not e for e in excluded0]
    assert found.label1_kept.tolist() == [not e for e in excluded1]


def exact(p: float, n: int) -> Fraction:
    """The multiple of 1/(n + 1) that a p-value is."""
    return Fraction(round(float(p) * (n + 1)), n + 1)


@few
@given(histories())
def test_p_values_are_monotone(history: History) -> None:
    """As the score rises, p_0 falls and p_1 rises; both lie in [1/(n + 1), 1]."""
    gate = fitted(history)
    with quiet():
        p0, p1 = map(np.asarray, gate.p_values(np.sort(history.probes)))
    assert np.all(np.diff(p0) <= 0)
    assert np.all(np.diff(p1) >= 0)
    assert np.all((p0 >= 1 / (gate.n0 + 1)) & (p0 <= 1))
    assert np.all((p1 >= 1 / (gate.n1 + 1)) & (p1 <= 1))


# --- one score and many


@few
@given(histories(), LEVELS, CONFLICTS)
def test_one_score_is_decided_like_many(history: History, alpha: Any, on_conflict: str) -> None:
    """predict_one, predict and its rows agree in every field."""
    gate = fitted(history, alpha, on_conflict=on_conflict)
    found = predicted(gate, history)
    with quiet():
        singles = [gate.predict_one(score) for score in history.probes]
        rows = [found[i] for i in range(len(found))]
        p0, p1 = gate.p_values(history.probes)
    assert singles == rows
    assert [(s.decision.value, s.prediction_set, s.reason_code.value) for s in singles] == outcome(found)
    assert [s.p_value_0 for s in singles] == np.asarray(p0).tolist()
    assert [s.p_value_1 for s in singles] == np.asarray(p1).tolist()
    assert [s.score for s in singles] == history.probes.tolist()


@few
@given(histories(), LEVELS, CONFLICTS)
def test_columns_agree_with_each_other(history: History, alpha: Any, on_conflict: str) -> None:
    """Masks, words, sets and reasons of a batch say the same, and each row has one decision."""
    found = predicted(fitted(history, alpha, on_conflict=on_conflict), history)
    assert len(found) == len(history.probes)
    masks = {"accept": found.accepted, "reject": found.rejected, "abstain": found.abstained}
    for word, mask in masks.items():
        assert (found.decision == word).tolist() == mask.tolist()
    for i, kept in enumerate(found.prediction_sets):
        assert (0 in kept, 1 in kept) == (bool(found.label0_kept[i]), bool(found.label1_kept[i]))
        assert found.decision[i] == ref.decision(kept, on_conflict)


@few
@given(histories(), LEVELS)
def test_reasons_say_which_set_it_is(history: History, alpha: Any) -> None:
    """Each of the four sets has a reason of its own, and infinite thresholds have another."""
    gate = fitted(history, alpha)
    infinite = math.isinf(gate.q0), math.isinf(gate.t1)
    for decision, kept, reason in outcome(predicted(gate, history)):
        if kept in {(1,), (0,)}:
            assert reason == f"gate_{decision}"
        elif kept == ():
            assert reason == "gate_empty_set"
        else:
            assert reason in {"gate_infinite"} if all(infinite) else {"gate_infinite", "gate_ambiguous"}
            assert reason == "gate_ambiguous" or any(infinite)


@few
@given(histories(), LEVELS, CONFLICTS)
def test_the_margin_is_the_distance_to_accepting(history: History, alpha: Any, on_conflict: str) -> None:
    """The margin is the score minus where ACCEPT begins, as the two are compared: its sign decides."""
    gate = fitted(history, alpha, on_conflict=on_conflict)
    begins = gate.q0 if on_conflict == "accept" else max(gate.q0, gate.t1)
    with quiet():
        found = [gate.predict_one(score) for score in history.probes]
    for one, number in zip(found, history.numbers(), strict=True):
        score, at = ref.compared(number, ref.Number(begins, history.single))
        if math.isinf(at):
            assert one.margin_to_threshold is None
            continue
        if not math.isfinite(score - at):
            assert one.margin_to_threshold is None
            continue
        assert one.margin_to_threshold == pytest.approx(score - at, rel=1e-12, abs=0)
        assert one.margin_to_threshold >= 0 or one.decision is not Decision.ACCEPT
        assert one.margin_to_threshold <= 0 or one.decision is Decision.ACCEPT


# --- what may not matter, and what must


@few
@given(histories(), LEVELS, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(history: History, alpha: Any, order: Any) -> None:
    """A shuffled history gives the same thresholds, guarantee and decisions."""
    places = list(range(len(history.labels)))
    order.shuffle(places)
    labels = [history.labels[i] for i in places]
    shuffled = History(history.scores[places], labels, history.probes, history.score_kind)
    gate, again = fitted(history, alpha), fitted(shuffled, alpha)
    assert (gate.q0, gate.t1, gate.auroc) == (again.q0, again.t1, again.auroc)
    assert gate.guarantee == again.guarantee
    assert outcome(predicted(gate, history)) == outcome(predicted(again, history))


@few
@given(histories(), LEVELS, CONFLICTS)
def test_only_the_order_of_scores_matters(history: History, alpha: Any, on_conflict: str) -> None:
    """A strictly increasing change of scale, here to ranks and to cubes, changes no decision."""
    assume(history.probes.dtype == history.scores.dtype)
    values = np.unique(np.concatenate([history.scores, history.probes]))
    plain = outcome(predicted(fitted(history, alpha, on_conflict=on_conflict), history))
    for scale in (lambda rank: rank - 7.0, lambda rank: rank**3.0):
        scores, probes = (scale(np.searchsorted(values, x)) for x in (history.scores, history.probes))
        scaled = History(scores, history.labels, probes, "raw")
        assert outcome(predicted(fitted(scaled, alpha, on_conflict=on_conflict), scaled)) == plain


@few
@given(histories(), LEVELS)
def test_the_classes_mirror_each_other(history: History, alpha: Any) -> None:
    """Negated scores with swapped labels swap ACCEPT with REJECT."""
    mirrored = History(-history.scores, [1 - y for y in history.labels], -history.probes, "raw")
    there = predicted(fitted(history, alpha), history)
    back = predicted(fitted(mirrored, alpha), mirrored)
    assert there.accepted.tolist() == back.rejected.tolist()
    assert there.rejected.tolist() == back.accepted.tolist()
    assert there.label0_kept.tolist() == back.label1_kept.tolist()


@few
@given(histories(), LEVELS, LEVELS)
def test_sets_are_nested(history: History, a: Any, b: Any) -> None:
    """A smaller level keeps every label that a larger one keeps."""
    strict, lenient = sorted((a, b), key=ref.level)
    wide, narrow = (predicted(fitted(history, level), history) for level in (strict, lenient))
    assert np.all(wide.label0_kept >= narrow.label0_kept)
    assert np.all(wide.label1_kept >= narrow.label1_kept)


@few
@given(histories(), LEVELS)
def test_decisions_are_monotone_in_the_score(history: History, alpha: Any) -> None:
    """A higher score never loses label 1 and never regains label 0: REJECT, ABSTAIN, ACCEPT in this order."""
    gate = fitted(history, alpha)
    with quiet():
        found = gate.predict(np.sort(history.probes))
    ladder = found.accepted.astype(int) - found.rejected.astype(int)
    assert np.all(np.diff(ladder) >= 0)


@few
@given(histories(), LEVELS)
def test_on_conflict_moves_only_the_empty_set(history: History, alpha: Any) -> None:
    """The three choices differ on empty sets alone, and the set stays visible."""
    found = {
        c: predicted(fitted(history, alpha, on_conflict=c), history) for c in ("abstain", "accept", "reject")
    }
    for word, predictions in found.items():
        assert predictions.prediction_sets == found["abstain"].prediction_sets
        for i, kept in enumerate(predictions.prediction_sets):
            assert predictions.decision[i] == (word if kept == () else found["abstain"].decision[i])


@few
@given(histories(), LEVELS)
def test_calibration_scores_of_a_class_are_mostly_kept(history: History, alpha: Any) -> None:
    """At least n - floor((n + 1) alpha) of a class's own scores keep their label: what the rank promises."""
    gate = fitted(history, alpha)
    for label in (0, 1):
        own = history.of(label)
        with quiet():
            kept = (gate.predict(own).label0_kept, gate.predict(own).label1_kept)[label]
        assert int(kept.sum()) >= len(own) - math.floor((len(own) + 1) * ref.level(alpha))


# --- the bound itself, by enumeration


@given(histories(least=2), LEVELS)
def test_each_row_in_turn_is_excluded_by_at_most_its_share(history: History, alpha: Any) -> None:
    """With each row of a class in turn as the new one, at most floor((n + 1) alpha) of n + 1 lose it.

    Exchangeable rows are in random order, so this count over n + 1 is the probability of an error: the bound
    is proven here for these values, with equality where no two are equal.
    """
    for label in (0, 1):
        own, other = history.of(label), history.of(1 - label)
        allowed = math.floor(len(own) * ref.level(alpha))
        excluded = 0
        for row in range(len(own)):
            scores = np.concatenate([np.delete(own, row), other])
            labels = [label] * (len(own) - 1) + [1 - label] * len(other)
            gate = fitted(History(scores, labels, history.probes, history.score_kind), alpha)
            with quiet():
                excluded += label not in (gate.predict_one(own[row]).prediction_set or ())
        assert excluded <= allowed
        assert excluded == allowed or len(np.unique(own)) < len(own)


# --- too few labels


@pytest.mark.parametrize(("n0", "n1", "needs"), [(8, 20, "insufficient"), (20, 8, "sufficient")])
def test_one_small_class_is_always_kept(n0: int, n1: int, needs: str) -> None:
    """A class with too few labels is always kept, with one warning that names it and the count needed."""
    rng = np.random.default_rng([61, 1])
    scores = np.r_[rng.uniform(0.0, 0.4, n0), rng.uniform(0.6, 1.0, n1)]
    with pytest.warns(SmallCalibrationWarning) as caught:
        gate = fit_conformal_gate(scores, [0] * n0 + [1] * n1, 0.1)
    message = str(next(w.message for w in caught if w.category is SmallCalibrationWarning))
    assert all(part in message for part in (needs, "8", "9"))
    found = gate.predict(np.linspace(0, 1, 101))
    assert found.accepted.any() == (n0 >= 9)
    assert found.rejected.any() == (n1 >= 9)
    assert found.label0_kept.all() == (n0 < 9)
    assert found.label1_kept.all() == (n1 < 9)


def test_enough_labels_do_not_warn() -> None:
    """Rows enough for the level, well separated: no warning."""
    scores, labels = normal_history(60)
    fit_conformal_gate(scores, labels, 0.1, score_kind="raw")


@pytest.mark.parametrize("guarantee", ["marginal", "pac"])
def test_the_warning_counts_what_the_guarantee_needs(guarantee: str) -> None:
    """The count that the warning asks for is the least that supports the level, for either guarantee."""
    scores, labels = normal_history(8)
    with pytest.warns(SmallCalibrationWarning) as caught:
        fit_conformal_gate(scores, labels, 0.1, score_kind="raw", guarantee=guarantee, delta=0.05)
    needed = ref.smallest_supported("0.1") if guarantee == "marginal" else ref.smallest_pac("0.1", "0.05")
    small = [str(w.message) for w in caught if w.category is SmallCalibrationWarning]
    assert len(small) == 1
    assert str(needed) in small[0]


def test_strict_raises_what_would_warn() -> None:
    """strict=True refuses too few labels and weak separation instead of warning, with the numbers."""
    few, many = normal_history(8), normal_history(200, gap=0.0)
    with pytest.raises(CalibrationRefused, match="9"):
        fit_conformal_gate(*few, 0.1, score_kind="raw", strict=True)
    with pytest.raises(CalibrationRefused, match="AUROC"):
        fit_conformal_gate(*many, 0.1, score_kind="raw", strict=True)
    fit_conformal_gate(*normal_history(60), 0.1, score_kind="raw", strict=True)


# --- separation


@few
@given(histories())
def test_a_gate_reports_its_auroc(history: History) -> None:
    """The AUROC is the exact share of pairs in the right order, with Newcombe's interval."""
    gate = fitted(history)
    area = ref.auroc(history.scores, history.labels)
    low, high = ref.auroc_interval(area, gate.n0, gate.n1)
    assert gate.auroc == pytest.approx(area, abs=1e-15)
    assert gate.auroc_low == pytest.approx(low, abs=1e-9)
    assert gate.auroc_high == pytest.approx(high, abs=1e-9)


def test_weak_separation_warns_in_numbers() -> None:
    """A score that does not separate the classes warns, with its AUROC, the interval and the floor."""
    scores, labels = normal_history(200, gap=0.0)
    with pytest.warns(WeakSeparationWarning, match="AUROC") as caught:
        gate = fit_conformal_gate(scores, labels, 0.1, score_kind="raw")
    message = str(caught[0].message)
    assert f"{gate.auroc:.3f}" in message
    assert f"{gate.auroc_low:.3f} to {gate.auroc_high:.3f}" in message
    assert "0.6" in message


def test_the_floor_of_separation_can_be_moved() -> None:
    """A floor of one's own decides; at 0 nothing is weak."""
    scores, labels = normal_history(200, gap=0.0)
    fit_conformal_gate(scores, labels, 0.1, score_kind="raw", auroc_floor=0.0)
    scores, labels = normal_history(200, gap=2.0)
    with pytest.warns(WeakSeparationWarning):
        fit_conformal_gate(scores, labels, 0.1, score_kind="raw", auroc_floor=0.99)


# --- pac


@given(histories(most=40), LEVELS, st.sampled_from(["0.05", "0.1", "0.3"]))
def test_pac_thresholds(history: History, alpha: Any, delta: str) -> None:
    """With guarantee="pac" the thresholds are the order statistics at the pac ranks."""
    gate = fitted(history, alpha, guarantee="pac", delta=delta)
    assert (gate.q0, gate.t1) == ref.pac_thresholds(history.scores, history.labels, alpha, delta)


@few
@given(histories(most=40), LEVELS)
def test_pac_is_at_least_as_strict(history: History, alpha: Any) -> None:
    """For delta below 1/e the pac gate keeps every label that the marginal one keeps."""
    marginal, pac = fitted(history, alpha), fitted(history, alpha, guarantee="pac", delta="0.3")
    assert pac.q0 >= marginal.q0
    assert pac.t1 <= marginal.t1
    ours, theirs = predicted(pac, history), predicted(marginal, history)
    assert np.all(ours.label0_kept >= theirs.label0_kept)
    assert np.all(ours.label1_kept >= theirs.label1_kept)


@few
@given(histories(most=40), LEVELS)
def test_pac_decides_by_its_thresholds(history: History, alpha: Any) -> None:
    """A pac gate keeps label 0 up to q0 and label 1 from t1, in the coarser precision."""
    gate = fitted(history, alpha, guarantee="pac", delta="0.1")
    found = predicted(gate, history)
    q0, t1 = ref.Number(gate.q0, history.single), ref.Number(gate.t1, history.single)
    numbers = history.numbers()
    assert found.label0_kept.tolist() == [q0.value == math.inf or ref.at_least(q0, s) for s in numbers]
    assert found.label1_kept.tolist() == [t1.value == -math.inf or ref.at_least(s, t1) for s in numbers]


# --- other levels from the same gate


@few
@given(histories(), LEVELS, LEVELS, CONFLICTS)
def test_another_level_is_a_refit(history: History, alpha: Any, other: Any, on_conflict: str) -> None:
    """at_alpha gives what a fit at that level gives, but for what the fit warned of."""
    gate, again = (fitted(history, level, on_conflict=on_conflict) for level in (alpha, other))
    with quiet():
        moved = gate.at_alpha(other)
    assert written(moved) == written(again)
    assert (moved.q0, moved.t1, moved.alpha) == (again.q0, again.t1, again.alpha)
    assert outcome(predicted(moved, history)) == outcome(predicted(again, history))
    assert moved.guarantee == again.guarantee


def written(gate: ConformalGate) -> dict[str, Any]:
    """What is saved of a gate, without the warnings of its fit."""
    return dict(gate.to_dict()["payload"])


@few
@given(histories(), LEVELS, LEVELS, LEVELS)
def test_two_other_levels_are_a_refit(history: History, alpha: Any, accept: Any, reject: Any) -> None:
    """at_alpha takes a level for each error."""
    with quiet():
        moved = fitted(history, alpha).at_alpha(accept, reject)
    again = fitted(history, accept, alpha_reject=reject)
    assert (moved.q0, moved.t1) == (again.q0, again.t1)
    assert written(moved) == written(again)


@few
@given(histories(), LEVELS, st.integers(1, 6), st.data())
def test_an_attempt_is_a_refit_at_its_level(history: History, alpha: Any, attempts: int, data: Any) -> None:
    """for_attempt(j, m) is the gate at the level of that attempt, of both errors."""
    gate, j = fitted(history, alpha), data.draw(st.integers(1, attempts))
    with quiet():
        moved = gate.for_attempt(j, attempts)
        again = gate.at_alpha(gate.alpha_for_attempt(j, attempts))
    assert (moved.q0, moved.t1) == (again.q0, again.t1)
    assert outcome(predicted(moved, history)) == outcome(predicted(again, history))


@few
@given(LEVELS, st.integers(1, 50))
def test_the_levels_of_a_known_number_of_attempts_sum_to_alpha(alpha: Any, attempts: int) -> None:
    """The levels of all attempts of a session sum to alpha, exactly; each is positive."""
    gate = small_gate(alpha)
    levels = [gate.alpha_for_attempt(j, attempts) for j in range(1, attempts + 1)]
    assert all(isinstance(level, Fraction) and level > 0 for level in levels)
    assert sum(levels) == ref.level(alpha)


@few
@given(LEVELS)
def test_the_levels_of_open_attempts_never_exceed_alpha(alpha: Any) -> None:
    """Without a number of attempts every partial sum stays below alpha, and most of alpha is spent."""
    gate = small_gate(alpha)
    levels = [gate.alpha_for_attempt(j) for j in range(1, 200)]
    assert all(level > 0 for level in levels)
    assert levels == sorted(levels, reverse=True)
    assert Fraction(9, 10) * ref.level(alpha) < sum(levels) < ref.level(alpha)


def small_gate(alpha: Any) -> ConformalGate:
    """A gate whose level is all that matters."""
    with quiet():
        return fit_conformal_gate([0.2, 0.4, 0.6, 0.8], [0, 0, 1, 1], alpha)


@pytest.mark.parametrize("j", [0, -1, 1.0, True, "1", None, 4], ids=repr)
def test_attempts_are_counted_from_one(j: Any) -> None:
    """An attempt is an integer from 1 to the number of attempts."""
    refuse(
        (TypeError, ValueError),
        "^`(j|attempt|attempts)` must ",
        lambda: small_gate(0.1).alpha_for_attempt(j, 3),
    )


# --- scales


def test_raw_scores_far_outside_warn() -> None:
    """A raw score far outside the calibrated range warns and is still decided; one near it does not."""
    scores, labels = normal_history(60)
    gate = fit_conformal_gate(scores, labels, 0.1, score_kind="raw")
    gate.predict([scores.min(), scores.max(), float(scores.max()) + 0.1])
    for odd in (85.0, -1e6):
        with pytest.warns(OutOfRangeWarning):
            found = gate.predict([1.0, odd])
        assert found.decision[1] == ("accept" if odd > 0 else "reject")
        with pytest.warns(OutOfRangeWarning):
            gate.predict_one(odd)


@pytest.mark.parametrize("dtype", [np.float16, np.int64, np.uint8, np.longdouble])
def test_scores_of_other_precisions_keep_their_own_threshold(dtype: Any) -> None:
    """A score in any precision at its own threshold keeps the label: none is lost to rounding."""
    for score in (0, 1) if dtype in (np.int64, np.uint8) else (0.1, 0.2, 0.3, 0.7):
        with quiet():
            gate = fit_conformal_gate([score] * 18, [0] * 9 + [1] * 9)
        probes = np.array([score], dtype=dtype)
        assert gate.predict(probes).prediction_sets == [(0, 1)]
        assert gate.predict_one(probes[0]).prediction_set == (0, 1)


def test_half_precision_histories_compare_in_half_precision() -> None:
    """Thresholds of a float16 history keep the float64 scores that round to them."""
    narrow = np.full(18, 0.3, dtype=np.float16)
    with quiet():
        gate = fit_conformal_gate(narrow, [0] * 9 + [1] * 9)
    assert gate.predict_one(0.3).prediction_set == (0, 1)


def test_both_zeros_are_one_score() -> None:
    """Negative zero is zero: at the threshold both keep their labels."""
    with quiet():
        gate = fit_conformal_gate([-0.0] * 9 + [0.0] * 9, [0] * 9 + [1] * 9)
    assert gate.predict([0.0, -0.0]).prediction_sets == [(0, 1), (0, 1)]


# --- functions beside the methods


def test_a_gate_is_frozen_and_leaves_its_input_alone() -> None:
    """A gate cannot be changed, and neither the caller's arrays nor the gate follow each other."""
    scores, labels = normal_history(30)
    before = scores.copy()
    gate = fit_conformal_gate(scores, labels, 0.1, score_kind="raw")
    q0 = gate.q0
    assert np.array_equal(scores, before)
    scores[:] = 0.0
    labels[:] = 1
    assert gate.q0 == q0
    assert gate.at_alpha(0.2).at_alpha(0.1).q0 == q0
    with pytest.raises(AttributeError):
        gate.alpha = 0.5  # type: ignore[misc]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_columns_that_were_read_stay(dtype: Any) -> None:
    """Columns are computed once, when first read; the scores behind them are the caller's array."""
    gate = fit_conformal_gate([0.2] * 9 + [0.8] * 9, [0] * 9 + [1] * 9)
    scores = np.array([0.1, 0.5, 0.9], dtype=dtype)
    found = gate.predict(scores)
    assert found.decision.tolist() == ["reject", "abstain", "accept"]
    scores[:] = 0.0
    assert found.decision.tolist() == ["reject", "abstain", "accept"]


def test_many_threads_decide_like_one() -> None:
    """Many threads predicting on one gate, batches and single scores, give the serial results."""
    scores, labels = normal_history(300, gap=1.5)
    gate = fit_conformal_gate(scores, labels, 0.1, score_kind="raw")
    grids = [np.linspace(-2, 4, 200 + i) for i in range(64)]

    def work(grid: Any) -> list[Any]:
        found = gate.predict(grid)
        one = gate.predict_one(float(grid[7]))
        other = gate.at_alpha("0.2").predict(grid).decision.tolist()
        return [outcome(found), one, np.asarray(gate.p_values(grid)).tolist(), other]

    with ThreadPoolExecutor(16) as pool:
        threaded = list(pool.map(work, grids))
    serial = [work(grid) for grid in grids]
    assert threaded == serial


def test_threads_may_fit_too() -> None:
    """Fits in threads do not disturb each other: there is no global state."""
    histories_ = [normal_history(50, gap=3.0, seed=seed) for seed in range(32)]

    def fit(history: Any) -> str:
        return fit_conformal_gate(*history, 0.1, score_kind="raw").fingerprint

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(fit, histories_)) == [fit(h) for h in histories_]
