"""Bottleneck and Wasserstein distances between barcodes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from diagram_oracle import oracle_bottleneck, oracle_wasserstein, superlevel_bars
from hypothesis import assume, given
from hypothesis import strategies as st

from rag_confidence.engine.distances import bottleneck_distance, wasserstein_distance

NONE = np.empty((0, 2))
BOTH = pytest.mark.parametrize("distance", [bottleneck_distance, wasserstein_distance])


@st.composite
def barcodes(draw, n_essential=1):
    """Finite bars and a fixed number of essential ones, in any order."""
    finite = draw(superlevel_bars(5))
    births = draw(st.lists(st.floats(0.0, 1.0, width=32), min_size=n_essential, max_size=n_essential))
    essential = np.array([(birth, -np.inf) for birth in births]).reshape(-1, 2)
    rows = np.concatenate([finite, essential])
    return rows[draw(st.permutations(range(len(rows))))] if len(rows) else rows


def _has_length(bars):
    return len(bars) > 0 and bool((bars[:, 0] != bars[:, 1]).any())


@given(superlevel_bars(), superlevel_bars())
def test_finite_bars_agree_with_the_oracle(a, b):
    """Without essential bars both distances are those of the augmented assignment."""
    assert bottleneck_distance(a, b) == pytest.approx(oracle_bottleneck(a, b), abs=1e-12)
    assert wasserstein_distance(a, b) == pytest.approx(oracle_wasserstein(a, b), abs=1e-12)


@pytest.mark.needs_extra("topology")
@given(superlevel_bars(), superlevel_bars())
def test_bottleneck_agrees_with_persim(a, b):
    """persim gives the same once it is handed the orientation that it can take."""
    import persim

    assume(_has_length(a) and _has_length(b))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = persim.bottleneck(1 - a, 1 - b)
    assert bottleneck_distance(a, b) == pytest.approx(expected, abs=1e-9)


@pytest.mark.needs_extra("test")
def test_bottleneck_is_never_above_gudhi():
    """gudhi 3.13 misses the best pairing in about 1 % of cases; ours is lower there and equal elsewhere."""
    import gudhi

    rng = np.random.default_rng(0)
    gaps = []
    for _ in range(300):
        a, b = (np.sort(rng.random((rng.integers(1, 7), 2))) for _ in range(2))
        a[0, 1] = b[0, 1] = np.inf
        gaps.append(gudhi.bottleneck_distance(a, b) - bottleneck_distance(a, b))
    assert min(gaps) >= -1e-9
    assert np.mean(np.array(gaps) <= 1e-9) > 0.95


def test_the_pairing_that_gudhi_misses():
    """.625 goes to .375 and everything else to the diagonal: .25, not the .3125 of gudhi 3.13."""
    a, b = np.array([[0.125, 0.0], [0.375, 0.0]]), np.array([[0.5, 0.0]] * 3 + [[0.625, 0.0]])
    assert bottleneck_distance(a, b) == oracle_bottleneck(a, b) == 0.25


@BOTH
@given(a=barcodes(2))
def test_a_barcode_is_at_distance_zero_from_itself(distance, a):
    """d(A, A) is exactly 0, also with the rows in another order."""
    assert distance(a, a[::-1]) == 0.0


@BOTH
@given(a=barcodes(2), b=barcodes(2), c=barcodes(2))
def test_metric_axioms(distance, a, b, c):
    """Both are symmetric, non-negative and satisfy the triangle inequality."""
    ab, bc, ac = distance(a, b), distance(b, c), distance(a, c)
    assert ab == pytest.approx(distance(b, a), abs=1e-12)
    assert ab >= 0
    assert ac <= ab + bc + 1e-12


@given(barcodes(), barcodes())
def test_bottleneck_is_symmetric_to_the_bit(a, b):
    """No order of operations depends on which barcode is named first."""
    assert bottleneck_distance(a, b) == bottleneck_distance(b, a)


@given(barcodes(), barcodes())
def test_wasserstein_is_at_least_bottleneck(a, b):
    """A total is never below its largest term."""
    assert wasserstein_distance(a, b) >= bottleneck_distance(a, b) - 1e-12


@BOTH
@given(a=barcodes(), b=barcodes())
def test_orientation_does_not_matter(distance, a, b):
    """Superlevel bars and their negated sublevel twins are equally far apart."""
    assert distance(a, b) == distance(-a, -b)


@BOTH
@given(a=barcodes(), b=barcodes())
def test_zero_length_bars_count_for_nothing(distance, a, b):
    """A bar that is born and dies at once may be added to one side."""
    assert distance(np.concatenate([a, [[0.5, 0.5]]]), b) == pytest.approx(distance(a, b), abs=1e-12)


@BOTH
def test_essential_bars_move_by_their_births(distance):
    """Essential bars are paired among themselves by sorted birth."""
    a = [[0.9, -np.inf], [0.2, -np.inf]]
    b = [[0.3, -np.inf], [0.8, -np.inf]]
    expected = 0.1 if distance is bottleneck_distance else 0.2
    assert distance(a, b) == pytest.approx(expected)


@BOTH
def test_unequal_numbers_of_essential_bars_are_infinitely_far(distance):
    """An essential bar has no diagonal to go to; persim says .5 here."""
    assert distance([[0.0, np.inf], [0.1, 0.5]], [[0.0, 1.0], [0.1, 0.5]]) == np.inf


@BOTH
def test_empty_diagrams(distance):
    """Two empty diagrams coincide; against an empty one every bar goes to the diagonal."""
    assert distance(NONE, NONE) == 0.0
    assert distance([[0.8, 0.2]], NONE) == distance(NONE, [[0.8, 0.2]]) == pytest.approx(0.3)


def test_empty_side_takes_the_longest_or_the_sum():
    """Against nothing the bottleneck is half the longest bar, the Wasserstein half of all."""
    bars = [[1.0, 0.0], [0.5, 0.25]]
    assert bottleneck_distance(bars, NONE) == 0.5
    assert wasserstein_distance(bars, NONE) == 0.625


def test_superlevel_bars_are_not_zero():
    """Bars with births above deaths are taken as they are (gudhi returns 0, persim a negative number)."""
    assert bottleneck_distance([[1.0, 0.2]], [[0.9, 0.2]]) == pytest.approx(0.1)


@given(superlevel_bars(6), st.integers(0, 2**32 - 1))
def test_moving_ends_moves_the_barcode_no_further(a, seed):
    """Stability: moving every end by at most epsilon moves the barcode by at most epsilon."""
    moved = np.sort(a + np.random.default_rng(seed).uniform(-0.1, 0.1, a.shape))[:, ::-1]
    assert bottleneck_distance(a, moved) <= 0.1 + 1e-12
    assert wasserstein_distance(a, moved) <= 0.1 * len(a) + 1e-12


def test_sorted_lengths_bound_holds_for_shared_deaths():
    """d <= sup of sorted length differences <= 2 d for bars that share one death."""
    rng = np.random.default_rng(4)
    for _ in range(100):
        x, y = np.sort(rng.exponential(size=(2, 6)))
        d = bottleneck_distance(np.column_stack([x, 0 * x]), np.column_stack([y, 0 * y]))
        assert d <= np.abs(x - y).max() + 1e-12 <= 2 * d + 2e-12


def test_lists_and_integers_are_accepted():
    """Plain nested lists of integers are bars."""
    assert bottleneck_distance([[4, 0]], [[3, 0]]) == 1.0


BAD = {
    "three columns": ([[1, 0, 0]], r"`a` must have shape \(m, 2\).*got \(1, 3\)"),
    "one dimension": ([1, 0], r"`a` must have shape \(m, 2\).*got \(2,\)"),
    "flat and empty": ([], r"got \(0,\)\. Pass np\.empty\(\(0, 2\)\)"),
    "ragged": ([[1, 0], [1]], "`a` must be an array of real numbers; got list"),
    "words": ([["a", "b"]], "`a` must be an array of real numbers; got list"),
    "complex": (np.array([[1j, 0]]), "`a` must be an array of real numbers; got ndarray"),
    "nan birth": ([[1, 0], [np.nan, 0]], r"`a` must hold no NaN; got rows \[1\]"),
    "nan death": ([[1, np.nan]], r"`a` must hold no NaN; got rows \[0\]"),
    "infinite birth": ([[np.inf, 0]], r"`a` must have finite births; got rows \[0\]"),
    "mixed": ([[1, 0], [0, 1]], "`a` must have bars of one orientation"),
    "mixed essentials": ([[1, -np.inf], [0, np.inf]], "`a` must have bars of one orientation"),
}


@BOTH
@pytest.mark.parametrize(("bars", "message"), BAD.values(), ids=BAD)
def test_bad_bars_are_refused_in_one_sentence(distance, bars, message):
    """What is not a set of bars raises a ValueError that names the argument, the rule and the cure."""
    with pytest.raises(ValueError, match=message):
        distance(bars, NONE)
    with pytest.raises(ValueError, match=message.replace("`a`", "`b`")):
        distance(NONE, bars)


@BOTH
def test_opposite_orientations_are_refused(distance):
    """Superlevel bars cannot be compared with sublevel bars."""
    with pytest.raises(ValueError, match=r"`b` must be oriented as `a`.*\(1 - birth, 1 - death\)"):
        distance([[1.0, 0.0]], [[0.0, 1.0]])


@BOTH
def test_inputs_are_not_changed(distance):
    """The caller's arrays stay as they were."""
    a, b = np.array([[0.2, 0.9], [0.1, np.inf]]), np.array([[0.1, 0.7], [0.3, np.inf]])
    before = a.copy(), b.copy()
    distance(a, b)
    np.testing.assert_array_equal(a, before[0])
    np.testing.assert_array_equal(b, before[1])
