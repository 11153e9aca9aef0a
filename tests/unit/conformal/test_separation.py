"""AUROC with exact ties, and Newcombe's interval."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_confidence.conformal.separation import auroc, auroc_interval, auroc_of_sorted

FEW = st.sampled_from([0.0, 0.1, 0.25, 0.3, 0.5, 0.7, 1.0])
ANY = st.floats(-1e6, 1e6, allow_nan=False)
ROWS = st.lists(st.tuples(st.one_of(FEW, ANY), st.booleans()), min_size=1, max_size=16)


def auroc_by_pairs(scores: list[float], labels: list[bool]) -> Fraction | None:
    """All pairs, one by one, in whole halves."""
    ones = [s for s, y in zip(scores, labels, strict=True) if y]
    zeros = [s for s, y in zip(scores, labels, strict=True) if not y]
    if not ones or not zeros:
        return None
    halves = sum(2 if b > a else 1 if b == a else 0 for a in zeros for b in ones)
    return Fraction(halves, 2 * len(zeros) * len(ones))


def ends_by_root(a: float, n0: int, n1: int, z: float) -> tuple[float, float]:
    """Newcombe's two ends by SciPy's root finder on the equation as printed."""
    from scipy.optimize import brentq

    def gap(t: float) -> float:
        n = (n0 + n1) / 2 - 1
        variance = t * (1 - t) * (1 + n * (1 - t) / (2 - t) + n * t / (1 + t)) / (n0 * n1)
        return (a - t) ** 2 - z * z * variance

    tiny = 1e-13
    low = 0.0 if a == 0 else brentq(gap, tiny, a - tiny, xtol=1e-15)
    high = 1.0 if a == 1 else brentq(gap, a + tiny, 1 - tiny, xtol=1e-15)
    return low, high


def test_a_tied_pair_counts_one_half() -> None:
    """A pair of equal scores counts one half, so this AUROC is 7/8."""
    assert auroc([0.5, 0.5, 0.2, 0.8], [1, 0, 0, 1]) == 7 / 8


def test_one_class_has_no_auroc() -> None:
    """With one label only there is no pair to compare, and the answer is None, never 0 or one half."""
    assert auroc([0.1, 0.2], [1, 1]) is None
    assert auroc([0.1, 0.2], [0, 0]) is None


@given(ROWS)
def test_equals_the_count_of_all_pairs(rows: list[tuple[float, bool]]) -> None:
    """The AUROC is the exact share of ordered pairs, rounded once."""
    scores, labels = [s for s, _ in rows], [y for _, y in rows]
    exact = auroc_by_pairs(scores, labels)
    assert auroc(scores, labels) == (None if exact is None else float(exact))


@given(ROWS)
def test_ignores_the_order_of_rows(rows: list[tuple[float, bool]]) -> None:
    """Rows in another order give the same AUROC to the last bit."""
    back = rows[::-1]
    assert auroc(*map(list, zip(*rows, strict=True))) == auroc(*map(list, zip(*back, strict=True)))


@given(ROWS)
def test_negated_scores_mirror_it(rows: list[tuple[float, bool]]) -> None:
    """Negating every score turns A into 1 - A."""
    scores, labels = [s for s, _ in rows], [y for _, y in rows]
    forward, backward = auroc(scores, labels), auroc([-s for s in scores], labels)
    assert (forward is None) == (backward is None)
    if forward is not None and backward is not None:
        assert forward + backward == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize(("n0", "n1"), [(3, 4000), (4000, 3), (2000, 2000)])
def test_either_class_may_be_the_smaller_one(n0: int, n1: int) -> None:
    """The count is the same whichever class is searched in the other."""
    rng = np.random.default_rng([11, n0, n1])
    zeros, ones = np.sort(rng.integers(0, 50, n0) / 50), np.sort(rng.integers(0, 50, n1) / 50)
    halves = 2 * int((ones[:, None] > zeros).sum()) + int((ones[:, None] == zeros).sum())
    assert auroc_of_sorted(zeros, ones) == halves / (2 * n0 * n1)


def test_float32_scores_keep_their_ties() -> None:
    """Single-precision scores are compared as they are."""
    scores = np.array([0.1, 0.1, 0.3], dtype=np.float32)
    assert auroc(scores, [0, 1, 1]) == 0.75


def test_counts_of_a_million_rows_are_exact() -> None:
    """Large counts stay integers: a million rows, half of them tied, lose nothing to rounding."""
    zeros, ones = np.zeros(500_000), np.repeat([0.0, 1.0], 250_000)
    assert auroc_of_sorted(zeros, ones) == 0.75


@given(
    st.integers(0, 200), st.integers(1, 60), st.integers(1, 60), st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99])
)
def test_the_interval_solves_the_printed_equation(k: int, n0: int, n1: int, level: float) -> None:
    """Both ends are the roots that an independent root finder gives."""
    from scipy.special import ndtri

    low, high = auroc_interval(k / 200, n0, n1, confidence=level)
    assert (low, high) == pytest.approx(ends_by_root(k / 200, n0, n1, ndtri((1 + level) / 2)), abs=1e-9)


@given(st.floats(0, 1), st.integers(1, 10**6), st.integers(1, 10**6))
def test_the_interval_holds_the_measured_value(a: float, n0: int, n1: int) -> None:
    """The ends lie in [0, 1], and the measured value between them."""
    low, high = auroc_interval(a, n0, n1)
    assert 0 <= low <= a + 1e-15
    assert a - 1e-15 <= high <= 1
    assert low < high


@given(st.floats(0, 1), st.integers(1, 500), st.integers(1, 500))
def test_the_interval_is_symmetric_and_shrinks(a: float, n0: int, n1: int) -> None:
    """Mirrored scores mirror the interval, and more rows make it narrower."""
    low, high = auroc_interval(a, n0, n1)
    mirrored = auroc_interval(1 - a, n1, n0)
    assert (1 - high, 1 - low) == pytest.approx(mirrored, abs=1e-12)
    more = auroc_interval(a, 4 * n0, 4 * n1)
    assert more[1] - more[0] < high - low


def test_perfect_separation_is_not_certain() -> None:
    """An AUROC of 1 on five rows of each label has a lower end well below 1."""
    low, high = auroc_interval(1.0, 5, 5)
    assert high == 1.0
    assert low == pytest.approx(0.64270, abs=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1.1, 5, 5, 0.95), r"`auroc` must be between 0 and 1; got 1\.1"),
        ((float("nan"), 5, 5, 0.95), "`auroc` must be between 0 and 1; got nan"),
        ((0.5, 0, 5, 0.95), "`n0` and `n1` must be at least 1; got 0 and 5"),
        ((0.5, 5, 5, 1.0), r"`confidence` must be between 0 and 1, ends excluded; got 1\.0"),
    ],
)
def test_the_interval_names_what_is_wrong(arguments: tuple[Any, ...], message: str) -> None:
    """A value outside its range is refused by name."""
    *first, level = arguments
    with pytest.raises(ValueError, match=message):
        auroc_interval(*first, confidence=level)


@pytest.mark.parametrize(
    ("scores", "labels", "message"),
    [
        ([0.1, float("nan")], [0, 1], "`scores` must be finite"),
        ([0.1, 0.2], [0, 2], "`labels` must be 0 or 1"),
        ([0.1, 0.2], [0], "`labels` must have one entry for each of the 2 rows of `scores`; got 1"),
    ],
)
def test_bad_rows_are_named(scores: list[float], labels: list[int], message: str) -> None:
    """Scores that are no numbers, labels that are no labels and unequal lengths are errors."""
    with pytest.raises(ValueError, match=message):
        auroc(scores, labels)
