"""The Venn-Abers map gives at every score what two isotonic fits with the new row would give."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
import reference_probability as ref
from histories import History, histories
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_confidence.conformal.probability.isotonic import fit_isotonic
from rag_confidence.conformal.probability.venn_abers import fit_venn_abers

SCORES = [0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9]
LABELS = [0, 0, 1, 0, 1, 0, 1, 1]

few = histories(most=7)


@pytest.mark.parametrize(
    ("score", "p0", "p1", "merged"),
    [(0.35, 1 / 3, 3 / 5, 9 / 19), (0.95, 2 / 3, 1.0, 3 / 4)],
)
def test_a_worked_case(score: float, p0: float, p1: float, merged: float) -> None:
    """Eight rows, two new scores: the exact ends and the exact merged probability."""
    chance = fit_venn_abers(SCORES, LABELS)
    assert chance.interval(score) == (p0, p1)
    assert chance(score) == pytest.approx(merged, abs=1e-15)


@given(h=few)
def test_it_is_two_isotonic_fits(h: History) -> None:
    """At, beside and far from every score both ends are the correctly rounded fractions of the naive way."""
    chance = fit_venn_abers(h.scores, h.labels)
    points = [
        *h.scores[:6].astype(np.float64).tolist(),
        *h.probes[:12].astype(np.float64).tolist(),
        -2.0,
        2.0,
    ]
    p0, p1 = chance.interval(points)
    slow = [ref.venn_abers(h.scores, h.labels, point) for point in points]
    assert list(zip(p0.tolist(), p1.tolist(), strict=True)) == [(float(a), float(b)) for a, b in slow]


def test_all_labels_of_small_histories() -> None:
    """Every labelling of up to five scores agrees with the naive way, at and between all of them."""
    for size in range(2, 6):
        x = [float(i) for i in range(size)]
        points = [i / 2 for i in range(-1, 2 * size)]
        for code in range(1, 2**size - 1):
            y = [code >> i & 1 for i in range(size)]
            p0, p1 = fit_venn_abers(x, y).interval(points)
            slow = [ref.venn_abers(x, y, point) for point in points]
            assert [(float(a), float(b)) for a, b in slow] == list(zip(p0, p1, strict=True))


def test_a_large_history_agrees_with_two_library_fits() -> None:
    """With 2,000 rows, tied and not, the ends are those of two fits of the package's isotonic map."""
    rng = np.random.default_rng([26, 3])
    x = np.round(rng.random(2_000), 3)
    y = rng.random(2_000) < x**2
    chance = fit_venn_abers(x, y)
    for point in (-0.5, 0.0, 0.1234, 0.25, 0.5, 0.50005, 0.8, 0.999, 1.0, 1.5):
        ends = [fit_isotonic(np.append(x, point), np.append(y, label))(point) for label in (False, True)]
        assert chance.interval(point) == tuple(ends)


@settings(max_examples=20)
@given(h=few)
def test_the_merged_probability_lies_inside(h: History) -> None:
    """p0 <= merged <= p1, where merged = p1 / (1 - p0 + p1)."""
    chance, points = fit_venn_abers(h.scores, h.labels), h.probes.astype(np.float64)
    p0, p1 = chance.interval(points)
    merged = chance(points)
    assert ((p0 < p1) & (p0 <= merged + 1e-15) & (merged <= p1 + 1e-15)).all()
    assert merged == pytest.approx(p1 / (1 - p0 + p1), abs=1e-15)


@settings(max_examples=20)
@given(h=few)
def test_the_merged_probability_has_equal_regret(h: History) -> None:
    """Whichever label comes true, the log loss exceeds that of the right end by the same amount."""
    chance, points = fit_venn_abers(h.scores, h.labels), h.probes.astype(np.float64)
    p0, p1 = chance.interval(points)
    merged = chance(points)
    assert merged / p1 == pytest.approx((1 - merged) / (1 - p0), abs=1e-12)


@given(h=few, points=st.lists(st.floats(-2.0, 2.0), max_size=20))
def test_it_never_falls(h: History, points: list[float]) -> None:
    """Both ends and the merged probability never fall as the score rises."""
    everywhere = np.sort(np.concatenate([h.scores.astype(float), h.probes.astype(float), points]))
    chance = fit_venn_abers(h.scores, h.labels)
    for values in (*chance.interval(everywhere), chance(everywhere)):
        assert (np.diff(values) >= 0.0).all()


@settings(max_examples=20)
@given(h=few)
def test_the_isotonic_map_lies_between_the_ends(h: History) -> None:
    """At a fitted score, a 0 more can only lower the fit and a 1 more can only raise it."""
    points = h.scores.astype(np.float64)
    p0, p1 = fit_venn_abers(h.scores, h.labels).interval(points)
    fitted = fit_isotonic(h.scores, h.labels)(points)
    assert ((p0 <= fitted) & (fitted <= p1)).all()


@settings(max_examples=20)
@given(h=few)
def test_exchanged_labels_and_reversed_scores_mirror_the_interval(h: History) -> None:
    """From the other end, with the labels exchanged, (p0, p1) becomes (1 - p1, 1 - p0)."""
    there = fit_venn_abers(h.scores, h.labels)
    mirror = fit_venn_abers(-h.scores, [1 - y for y in h.labels])
    points = h.probes.astype(np.float64)
    p0, p1 = there.interval(points)
    q0, q1 = mirror.interval(-points)
    assert q0 == pytest.approx(1 - p1, abs=1e-15)
    assert q1 == pytest.approx(1 - p0, abs=1e-15)


@settings(max_examples=20)
@given(h=few, exponent=st.integers(-40, 40), shift=st.integers(-3, 3))
def test_only_the_order_of_the_scores_decides(h: History, exponent: int, shift: int) -> None:
    """A rising change of scale leaves the interval of each row as it was."""
    places = np.unique(h.scores.astype(np.float64), return_inverse=True)[1]
    moved = np.ldexp(places + float(shift), exponent)
    there, again = (fit_venn_abers(x, h.labels) for x in (h.scores, moved))
    assert there.p0.tolist() == again.p0.tolist()
    assert there.p1.tolist() == again.p1.tolist()


@given(h=histories(least=2, most=6))
def test_the_end_of_the_true_label_is_calibrated(h: History) -> None:
    """Leave each row out in turn: among rows whose p_label is v, the share of ones is exactly v.

    This is the validity theorem for the one bag of rows, without chance: given the bag, exchangeable rows
    are left out with equal probability.
    """
    found: dict[Fraction, list[int]] = defaultdict(list)
    for out, label in enumerate(h.labels):
        others = np.delete(h.scores, out), np.delete(h.labels, out)
        ends = fit_venn_abers(*others).interval(float(h.scores[out]))
        found[Fraction(ends[label]).limit_denominator(100)].append(label)
    assert {v: Fraction(sum(ys), len(ys)) for v, ys in found.items()} == {v: v for v in found}


def test_equal_scores_add_the_new_row_to_the_block() -> None:
    """Where all scores are tied the new row joins them, or stands alone beyond: the degenerate case."""
    chance = fit_venn_abers([0.5] * 4, [0, 1, 1, 1])
    assert chance.interval(0.5) == (3 / 5, 4 / 5)
    assert chance.interval(0.4) == (0.0, 4 / 5)
    assert chance.interval(0.6) == (3 / 5, 1.0)


def test_intervals_have_the_shape_of_the_scores() -> None:
    """A number gives two floats, an array two arrays of its shape."""
    chance = fit_venn_abers(SCORES, LABELS)
    assert [type(end) for end in chance.interval(0.5)] == [float, float]
    assert [end.shape for end in chance.interval(np.zeros((2, 3)))] == [(2, 3), (2, 3)]
    assert [end.shape for end in chance.interval([])] == [(0,), (0,)]


def test_more_rows_narrow_the_interval() -> None:
    """The width at one score shrinks as rows are added: what is left open is shown."""
    rng = np.random.default_rng([26, 4])
    x = rng.random(4_000)
    y = rng.random(4_000) < x
    widths = [np.subtract(*fit_venn_abers(x[:n], y[:n]).interval(0.5)[::-1]) for n in (20, 200, 4_000)]
    assert widths[0] > widths[1] > widths[2]


def test_a_large_fit_ends() -> None:
    """The work grows with n, not with n squared: 50,000 distinct scores are fitted."""
    rng = np.random.default_rng([26, 5])
    x = rng.random(50_000)
    fit_venn_abers(x, rng.random(50_000) < x)
