"""Levels, ranks and order statistics are exact in every cell, whatever form the level comes in."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
import reference_conformal as ref
from histories import few
from hypothesis import assume, given
from hypothesis import strategies as st
from refusals import Kinds, named, refuse

from rag_confidence.conformal.quantile import (
    as_level,
    conformal_quantile,
    conformal_rank,
    least_pac_rank,
    least_rank,
    pac_rank,
)

THOUSANDTHS = range(1, 1000)
FORMS = {
    "float": lambda i: i / 1000,
    "str": lambda i: f"0.{i:03d}",
    "ratio": lambda i: f"{i}/1000",
    "Decimal": lambda i: Decimal(i) / 1000,
    "Fraction": lambda i: Fraction(i, 1000),
    "numpy": lambda i: np.float64(i / 1000),
    "one minus": lambda i: 1 - (1000 - i) / 1000,
    "product": lambda i: i * 0.001,
}

levels = st.fractions(Fraction(1, 1000), Fraction(999, 1000), max_denominator=1000)
finite = st.floats(allow_nan=False, allow_infinity=False)


def exact_ranks(sizes: Any, i: int) -> Any:
    """ceil((n + 1)(1000 - i) / 1000) for many n at once, in integers."""
    return -((-(sizes + 1) * (1000 - i)) // 1000)


# --- levels


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_every_form_of_a_thousandth_means_that_thousandth(form: Any) -> None:
    """A level is the fraction that its writer meant, as a float, text, Decimal or Fraction."""
    assert [as_level(form(i)) for i in THOUSANDTHS] == [Fraction(i, 1000) for i in THOUSANDTHS]


@given(st.integers(2, 10**6), st.data())
def test_a_float_is_its_simplest_fraction(denominator: int, data: st.DataObject) -> None:
    """The float nearest to a fraction of denominator at most 10^6 means that fraction."""
    level = Fraction(data.draw(st.integers(1, denominator - 1)), denominator)
    assert as_level(float(level)) == level


@given(st.floats(0.0, 1.0, exclude_min=True, exclude_max=True))
def test_a_float_without_a_simple_fraction_is_its_repr(alpha: float) -> None:
    """A float within 1e-15 of a simple fraction is that fraction, any other is the decimal it prints as."""
    assume(1e-12 < alpha < 1 - 1e-12)
    assert as_level(alpha) == ref.level(alpha)


@pytest.mark.parametrize("alpha", [1e-12, 1 - 1e-12, "1e-12", Fraction(1, 10**12), "0.999999999999"])
def test_a_level_at_the_edge_is_taken(alpha: Any) -> None:
    """1e-12 and 1 - 1e-12 are levels, in each form."""
    assert as_level(alpha) in (Fraction(1, 10**12), 1 - Fraction(1, 10**12))


EDGES = [1e-16, 5e-324, 1 - 2**-53, "9.99e-13", "1e-400", Fraction(1, 10**5000), 1 - Fraction(1, 10**5000)]


@pytest.mark.parametrize("alpha", EDGES, ids=range(len(EDGES)))
def test_a_level_beyond_the_edge_is_refused_and_not_moved(alpha: Any) -> None:
    """A level nearer to 0 or 1 than 1e-12 is refused, however many digits it has, and never moved."""
    pattern = "^`alpha` must be between 1e-12 and 1 - 1e-12; got "
    refuse(ValueError, pattern, lambda: as_level(alpha))
    refuse(ValueError, pattern, lambda: conformal_rank(10, alpha))
    refuse(ValueError, "^`delta` must be between 1e-12 ", lambda: pac_rank(10, 0.1, alpha))


@pytest.mark.parametrize("sign", [1, -1])
def test_a_level_of_thousands_of_digits_is_refused_in_words(sign: int) -> None:
    """Numbers too long for Python to write out get the usual sentence."""
    pattern = "^`alpha` must be strictly between 0 and 1; got a number of thousands of digits"
    for alpha in (Fraction(sign * 10**5000, 1), sign * 10**5000, Fraction(sign * 10**5000, 3)):
        refuse(ValueError, pattern, partial(as_level, alpha))
    long = Fraction(10**5000 // 3, 10**5000)
    refuse(ValueError, "^`alpha` must be a fraction of at most 4000 bits; got ", lambda: as_level(long))


@few
@given(st.decimals("0.0000001", "0.9999999", allow_nan=False, places=7))
def test_texts_and_decimals_are_taken_as_they_stand(alpha: Decimal) -> None:
    """A text, a Decimal and a Fraction are not rounded to a simpler level."""
    assert as_level(alpha) == as_level(str(alpha)) == as_level(Fraction(alpha)) == Fraction(alpha)


def test_a_text_of_many_digits_is_not_simplified() -> None:
    """A text within 1e-15 of a simple fraction is still what it says."""
    assert as_level("0.1000000000000000001") == Fraction("0.1000000000000000001") != Fraction(1, 10)


WRONG_LEVELS = [0, 1, 0.0, 1.0, -0.1, 1.1, 10, 90, "0", "1", "-1/2", "3/2", Fraction(0), Fraction(1)]
WRONG_LEVELS += [Decimal(1), Decimal("NaN"), Decimal("Infinity"), math.nan, math.inf, -math.inf]
WRONG_LEVELS += ["", "ten", "10%", "1/0", "nan", "inf", np.float64("nan"), np.int64(1), -0.0]
NO_LEVELS = [
    None,
    True,
    False,
    np.True_,
    [0.1],
    (0.1,),
    {"alpha": 0.1},
    0.1j,
    np.array([0.1]),
    b"0.1",
    object(),
]


@pytest.mark.parametrize("alpha", WRONG_LEVELS, ids=named)
def test_a_level_outside_the_open_interval_is_refused(alpha: Any) -> None:
    """A level must be strictly between 0 and 1; every function names its argument in the same words."""
    pattern = "^`alpha` must be strictly between 0 and 1; got "
    refuse(ValueError, pattern, lambda: as_level(alpha))
    refuse(ValueError, pattern, lambda: conformal_rank(10, alpha))
    refuse(ValueError, pattern, lambda: conformal_quantile([0.1, 0.2], alpha))
    refuse(ValueError, pattern, lambda: pac_rank(10, alpha, 0.1))
    refuse(ValueError, "^`delta` must be strictly between 0 and 1; got ", lambda: pac_rank(10, 0.1, alpha))


@pytest.mark.parametrize("alpha", NO_LEVELS, ids=lambda value: type(value).__name__)
def test_what_is_no_number_is_no_level(alpha: Any) -> None:
    """A level of the wrong type is a TypeError, booleans and arrays included."""
    refuse(TypeError, "^`alpha` must be a float, str, Fraction or Decimal; got ", lambda: as_level(alpha))
    refuse(TypeError, "^`delta` must be ", lambda: pac_rank(10, 0.1, alpha))


def test_a_refused_level_has_the_callers_name() -> None:
    """The error names the argument that the caller knows."""
    refuse(ValueError, "^`alpha_reject` must be ", lambda: as_level(2.0, "alpha_reject"))


# --- ranks


def test_ranks_are_exact_where_floats_go_wrong() -> None:
    """Wherever (n + 1)(1 - alpha) is whole up to n = 2000, the rank of a float level is that number."""
    for i in THOUSANDTHS:
        step = 1000 // math.gcd(i, 1000)
        whole = np.arange(step, 2002, step) - 1
        sizes = whole[whole >= 1]
        expected = [k if k <= n else math.inf for n, k in zip(sizes, exact_ranks(sizes, i), strict=True)]
        assert [conformal_rank(int(n), i / 1000) for n in sizes] == expected


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_the_rank_of_every_form_is_the_rank_of_its_level(form: Any) -> None:
    """Ranks follow from the level alone: 999 rows for every seventh thousandth, in each form."""
    some = THOUSANDTHS[::7]
    assert [conformal_rank(999, form(i)) for i in some] == [1000 - i for i in some]


def test_ranks_are_exact_in_every_cell() -> None:
    """All n to 2000 and all thousandths: the rank is ceil((n + 1)(1 - alpha)), as an array in integers."""
    sizes = np.arange(1, 2001)
    for i in THOUSANDTHS:
        assert np.array_equal(least_rank(sizes, Fraction(i, 1000)), exact_ranks(sizes, i))


def test_the_public_rank_is_exact_and_infinite_above_n() -> None:
    """Every 40th cell of the same table by the public function, another residue of n for each level."""
    for i in THOUSANDTHS:
        sizes = np.arange(1 + i % 40, 2001, 40)
        level, exact = Fraction(i, 1000), exact_ranks(sizes, i)
        found = [conformal_rank(n, level) for n in sizes.tolist()]
        assert np.array_equal(found, np.where(exact <= sizes, exact, math.inf))


@given(st.integers(1, 400), levels)
def test_a_rank_is_the_first_that_is_large_enough(n: int, alpha: Fraction) -> None:
    """The rank is the smallest k with k >= (n + 1)(1 - alpha), and never clamped to n."""
    assert conformal_rank(n, alpha) == ref.rank(n, alpha)


@given(st.integers(1, 10**12), levels)
def test_large_counts_are_exact_too(n: int, alpha: Fraction) -> None:
    """Integers of any size: k - 1 < (n + 1)(1 - alpha) <= k."""
    k, wanted = conformal_rank(n, alpha), (n + 1) * (1 - alpha)
    assert k - 1 < wanted <= k if math.isfinite(k) else wanted > n


@few
@given(st.integers(1, 300), levels, levels)
def test_a_smaller_level_needs_a_higher_rank(n: int, a: Fraction, b: Fraction) -> None:
    """Ranks fall as the level rises."""
    assert conformal_rank(n, min(a, b)) >= conformal_rank(n, max(a, b))


@pytest.mark.parametrize(("alpha", "least"), [("0.1", 9), ("0.05", 19), ("0.01", 99), ("1/3", 2), ("0.5", 1)])
def test_the_least_count_with_a_finite_rank(alpha: str, least: int) -> None:
    """A rank is finite from n = 1/alpha - 1 on, rounded up."""
    assert conformal_rank(least - 1, alpha) == math.inf
    assert conformal_rank(least, alpha) == least == ref.smallest_supported(alpha)


def test_a_rank_is_an_integer_or_infinity() -> None:
    """A finite rank is an int, an infinite one the float inf; numpy counts are counts."""
    assert type(conformal_rank(np.int32(9), 0.1)) is int
    assert conformal_rank(0, 0.1) == math.inf


WRONG_COUNTS = [-1, 9.0, 9.5, "9", None, True, np.False_, [9], math.nan]


@pytest.mark.parametrize("n", WRONG_COUNTS, ids=named)
def test_a_count_is_an_integer(n: Any) -> None:
    """`n` must be an integer of at least 0, in both ranks."""
    refuse((TypeError, ValueError), "^`n` must be an integer", lambda: conformal_rank(n, 0.1))
    refuse((TypeError, ValueError), "^`n` must be an integer", lambda: pac_rank(n, 0.1, 0.1))


@pytest.mark.parametrize("n", [10**15 + 1, 10**400, 10**5000], ids=["1e15", "1e400", "1e5000"])
def test_a_count_that_nobody_has_is_refused(n: int) -> None:
    """More than 10**15 scores are a mistake, in both ranks, and no overflow."""
    pattern = r"^`n` must be an integer of at most 10\*\*15; got "
    refuse(ValueError, pattern, lambda: conformal_rank(n, 0.1))
    refuse(ValueError, pattern, lambda: pac_rank(n, 0.1, 0.05))


# --- ranks that hold with a given probability


@given(st.integers(1, 60), levels, levels)
def test_a_pac_rank_is_the_first_with_a_small_tail(n: int, alpha: Fraction, delta: Fraction) -> None:
    """The pac rank is the smallest k with P(Binomial(n, 1 - alpha) >= k) <= delta, in exact arithmetic."""
    assert pac_rank(n, alpha, delta) == ref.pac_rank(n, alpha, delta)


@pytest.mark.parametrize("n", [1, 2, 28, 29, 150, 300])
@pytest.mark.parametrize(
    ("alpha", "delta"), [("0.1", "0.05"), ("0.05", "0.05"), ("0.2", "0.001"), ("0.5", "0.5")]
)
def test_a_pac_rank_of_usual_sizes(n: int, alpha: str, delta: str) -> None:
    """Levels and sizes that people use, against exact binomial sums."""
    assert (
        pac_rank(n, float(alpha), float(delta)) == pac_rank(n, alpha, delta) == ref.pac_rank(n, alpha, delta)
    )


@given(st.integers(1, 25), st.integers(2, 12), st.data())
def test_a_tail_that_equals_delta_is_small_enough(n: int, parts: int, data: st.DataObject) -> None:
    """Where the tail equals delta exactly, the rank is not one too high."""
    alpha = Fraction(data.draw(st.integers(1, parts - 1)), parts)
    k = data.draw(st.integers(1, n))
    assert least_pac_rank(n, alpha, ref.binomial_tail(n, 1 - alpha, k)) == k


@few
@given(st.integers(1, 60), levels, st.fractions(Fraction(1, 1000), Fraction(36, 100), max_denominator=1000))
def test_a_pac_rank_is_at_least_the_marginal_rank(n: int, alpha: Fraction, delta: Fraction) -> None:
    """For delta below 1/e the pac rank is stricter: a Beta variable is below its mean at least that often."""
    assert pac_rank(n, alpha, delta) >= conformal_rank(n, alpha)


@few
@given(st.integers(1, 200), levels, levels, levels)
def test_a_pac_rank_is_monotone(n: int, alpha: Fraction, a: Fraction, b: Fraction) -> None:
    """A smaller delta and a smaller level need a higher pac rank."""
    assert pac_rank(n, alpha, min(a, b)) >= pac_rank(n, alpha, max(a, b))
    assert pac_rank(n, min(a, b), alpha) >= pac_rank(n, max(a, b), alpha)


@pytest.mark.parametrize("n", [5_000, 100_000])
def test_a_pac_rank_of_many_rows_is_where_scipy_puts_it(n: int) -> None:
    """For many rows the rank has its tail at most delta, and the rank below has not."""
    from scipy.stats import binom

    k = int(pac_rank(n, 0.1, 0.05))
    assert binom.sf(k - 1, n, 0.9) <= 0.05 < binom.sf(k - 2, n, 0.9)


@pytest.mark.parametrize("n", [10**6, 10**7 + 1, 10**15])
def test_a_pac_rank_of_very_many_rows_is_found_in_a_moment(n: int) -> None:
    """Also where the tail equals delta exactly; the rank is then at most a little higher than needed."""
    assert (n + 1) // 2 <= int(pac_rank(n, 0.5, 0.5)) <= (n + 1) // 2 + 10
    for alpha, delta in ((1e-12, 1e-12), (1 - 1e-12, 0.5), (0.5, 1e-12), (0.3, 1 - 1e-12)):
        assert pac_rank(n, alpha, delta) >= 1


# --- quantiles


@given(st.lists(finite, min_size=1, max_size=40), levels)
def test_a_quantile_is_an_order_statistic(scores: list[float], alpha: Fraction) -> None:
    """The quantile is the score at the rank, bit for bit, never an interpolation; infinite beyond n."""
    found = conformal_quantile(scores, alpha)
    assert found == ref.order_statistic(scores, ref.rank(len(scores), alpha))
    assert found in scores or found == math.inf


@few
@given(st.lists(st.integers(0, 5), min_size=1, max_size=40), levels)
def test_ties_are_counted_each(scores: list[int], alpha: Fraction) -> None:
    """Equal scores take one rank each."""
    assert conformal_quantile(scores, alpha) == ref.order_statistic(scores, ref.rank(len(scores), alpha))


def test_a_quantile_leaves_its_input_alone() -> None:
    """The scores that were passed keep their order."""
    scores = np.array([0.3, 0.1, 0.2])
    conformal_quantile(scores, 0.5)
    assert scores.tolist() == [0.3, 0.1, 0.2]


def test_a_quantile_of_narrow_scores_is_one_of_them() -> None:
    """A float32 score comes back as the float that it is."""
    assert conformal_quantile(np.full(9, 0.1, dtype=np.float32), 0.1) == float(np.float32(0.1))


NO_SCORES: list[tuple[Kinds, Any]] = [
    (ValueError, []),
    (ValueError, np.empty((0,))),
    (ValueError, [0.1, math.nan]),
    (ValueError, [0.1, math.inf]),
    (ValueError, [0.1, -math.inf]),
    (TypeError, [0.1, None]),
    (TypeError, ["0.1", "0.2"]),
    (TypeError, [True, False]),
    (TypeError, [0.1j]),
    (TypeError, [object()]),
    (TypeError, np.array(["2020-01-01"], dtype="datetime64[D]")),
    (ValueError, [[0.1], [0.2]]),
    (ValueError, [[0.1], [0.2, 0.3]]),
    ((ValueError, TypeError), 0.5),
    ((ValueError, TypeError), np.array(0.5)),
    ((ValueError, TypeError), "0.5"),
    ((ValueError, TypeError), None),
    (ValueError, np.ma.masked_array([0.1, 0.2], mask=[False, True])),
]


@pytest.mark.parametrize(
    ("kind", "scores"), NO_SCORES, ids=lambda value: named(value)[:40].replace("\n", " ")
)
def test_a_quantile_of_bad_scores_is_refused(kind: Kinds, scores: Any) -> None:
    """No scores, nan, infinities, texts, booleans, masks and other shapes: one clear error."""
    refuse(kind, "^`scores` must ", lambda: conformal_quantile(scores, 0.1))
