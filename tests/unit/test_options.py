"""Options are checked once, each refusal in the form `name` must be ...; got .... cure."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_confidence import score, score_many
from rag_confidence._options import (
    check_candidates,
    check_choice,
    check_contradiction,
    check_fraction_result,
    check_integer,
    check_number,
    check_parents,
    check_text,
    check_texts,
    ranked_candidates,
)

FORM = r"^`[\w.\[\]]+` must .+; got .+\. .+\.$"


def refuse(kind: type[Exception], pattern: str, call: Callable[[], Any]) -> str:
    """The message of a refusal in the one form."""
    with pytest.raises(kind, match=pattern) as caught:
        call()
    with pytest.raises(kind, match=FORM):
        raise caught.value
    return str(caught.value)


# --- words and numbers


@pytest.mark.parametrize("value", ["RAISE", "raises", "", None, True, 0, ["raise"], {"raise"}, b"raise"])
def test_unknown_words_are_refused(value: Any) -> None:
    """A word must be one of the choices, exactly; the choices are listed."""
    message = refuse(ValueError, "^`x` must be one of", lambda: check_choice("x", value, ("raise", "drop")))
    assert "'raise', 'drop'" in message


def test_an_array_is_no_word() -> None:
    """An array where a word belongs is refused like any other wrong value."""
    refuse((ValueError, TypeError), "^`x` must", lambda: check_choice("x", np.array(["a", "b"]), ("a", "b")))


@pytest.mark.parametrize("value", [2, np.int8(2), np.uint64(2)])
def test_integers_of_any_kind(value: Any) -> None:
    """Python and NumPy integers come out as int."""
    assert type(check_integer("x", value, 0)) is int


@pytest.mark.parametrize(
    "value", [2.0, 2.5, "2", None, [2], math.nan, Decimal(2), np.float64(2), np.array([2])]
)
def test_fractions_are_no_integers(value: Any) -> None:
    """Floats are refused even where they are whole: k = 2.0 is a sign of a mistake."""
    refuse(TypeError, "^`x` must be an integer", lambda: check_integer("x", value, 0))


@pytest.mark.parametrize("value", [-1, True, False, np.True_, -(10**30)])
def test_booleans_and_small_integers_are_refused(value: Any) -> None:
    """A boolean is no count, and the least value is enforced."""
    refuse((ValueError, TypeError), "^`x` must be an integer", lambda: check_integer("x", value, 0))


@pytest.mark.parametrize("value", [0, 1, 0.5, np.float32(0.5), Fraction(1, 2), Decimal("0.5"), np.array(0.5)])
def test_numbers_of_any_kind(value: Any) -> None:
    """Whatever is a real number comes out as float."""
    assert type(check_number("x", value, 0.0, 1.0, "Fix it.")) is float


@pytest.mark.parametrize("value", ["0.5", b"1", None, True, np.False_, [0.5, 0.5], 0.5j, {}, object()])
def test_what_is_no_number_is_refused(value: Any) -> None:
    """Strings, booleans, None and containers are type errors."""
    refuse(TypeError, "^`x` must be a number in", lambda: check_number("x", value, 0.0, 1.0, "Fix it."))


@pytest.mark.parametrize("value", [-1e-9, 1.0000001, math.nan, math.inf, -math.inf, np.float32("nan")])
def test_numbers_out_of_range_are_refused(value: Any) -> None:
    """The range is closed; nan is in no range."""
    refuse(ValueError, "^`x` must be a number in", lambda: check_number("x", value, 0.0, 1.0, "Fix it."))


# --- texts


def test_texts_of_any_sequence() -> None:
    """Lists, tuples and arrays of strings are texts."""
    for texts in (["a", "b"], ("a", "b"), np.array(["a", "b"])):
        assert check_texts("texts", texts, 2) == ("a", "b")
    assert check_texts("texts", None, 2) is None


@pytest.mark.parametrize("texts", ["ab", b"ab", ["a", None], ["a", 1], [b"a", b"b"], 5, [["a"], ["b"]]])
def test_what_is_not_a_list_of_strings_is_refused(texts: Any) -> None:
    """One string is not a list of its letters, and a missing text is not a text."""
    refuse(TypeError, "^`texts` must be a list of strings", lambda: check_texts("texts", texts, 2))


@pytest.mark.parametrize("texts", [[], ["a"], ["a", "b", "c"]])
def test_texts_of_wrong_length_are_refused(texts: list[str]) -> None:
    """One text a passage."""
    message = refuse(ValueError, "^`texts` must have one entry", lambda: check_texts("texts", texts, 2))
    assert f"got {len(texts)}." in message


@pytest.mark.parametrize("value", [1, b"x", ["x"]])
def test_a_text_is_a_string(value: Any) -> None:
    """Query text and embedder are strings or None."""
    refuse(TypeError, "^`x` must be a string", lambda: check_text("x", value))
    check_text("x", None)


# --- trees


@st.composite
def trees(draw: st.DrawFn) -> list[int | None]:
    """Any tree in which parents come first."""
    n = draw(st.integers(1, 12))
    return [None, *(draw(st.integers(0, i - 1)) for i in range(1, n))]


@given(trees())
def test_every_tree_is_accepted(parents: list[int | None]) -> None:
    """Root first, parents before children; -1 marks the root inside."""
    got = check_parents("parents", parents, len(parents))
    assert got.tolist() == [-1 if p is None else p for p in parents]


@given(trees(), st.data())
def test_every_broken_tree_is_refused(parents: list[int | None], data: st.DataObject) -> None:
    """One entry that points to itself, forward, out of range or nowhere is found."""
    n, broken = len(parents), list(parents)
    at = data.draw(st.integers(0, n - 1))
    broken[at] = data.draw(st.sampled_from([at, n, n + 7, -1, -n, *range(at, n)]))
    refuse(ValueError, r"^`parents", lambda: check_parents("parents", broken, n))


@pytest.mark.parametrize(
    ("parents", "pattern"),
    [
        ([None, 2, 1], r"must be a tree; got the cycle \[1, 2\]"),
        ([None, 1, 0], r"must be a tree; got the cycle \[1\]"),
        ([None, 0, 3, 2], r"got the cycle \[2, 3\]"),
        ([1, 2, 0], "must have exactly one root .*; got 0"),
        ([None, None, 0], r"must have exactly one root .*; got 2 at \[0, 1\]"),
        ([None, 2, 0], r"must list parents before their children; got parents\[1\] = 2"),
        ([2, 2, None], r"must list parents before their children; got parents\[0\] = 2"),
        ([None, 0, 3], r"must index the 3 passages; got parents\[2\] = 3"),
        ([None, 0, 10**30], "must index the 3 passages"),
        ([None, -1, 0], r"^`parents\[1\]` must be an integer of at least 0; got -1"),
        ([None, 0, True], r"^`parents\[2\]` must be an integer of at least 0; got True"),
    ],
)
def test_what_is_wrong_with_a_tree_is_said(parents: Any, pattern: str) -> None:
    """Cycles are listed, other faults are named by their position."""
    refuse(ValueError, pattern, lambda: check_parents("parents", parents, len(parents)))


@pytest.mark.parametrize("parents", [[], [None], [None, 0], [None, 0, 0, 0]])
def test_trees_of_wrong_length_are_refused(parents: Any) -> None:
    """One parent a passage."""
    message = refuse(ValueError, "one entry for each of the 3", lambda: check_parents("parents", parents, 3))
    assert f"got {len(parents)}." in message


@pytest.mark.parametrize("parents", [[None, 0.0, 0], [None, "0", 0], [None, 0, 1.5], [None, [0], 0]])
def test_parents_are_integers(parents: Any) -> None:
    """Floats and strings are type errors that name the entry."""
    refuse(TypeError, r"^`parents\[\d\]` must be an integer", lambda: check_parents("parents", parents, 3))


def test_parents_that_are_no_sequence_are_refused() -> None:
    """A single number where a list belongs is told so."""
    refuse((TypeError, ValueError), "^`parents` must", lambda: check_parents("parents", 5, 3))  # type: ignore[arg-type]


@pytest.mark.parametrize("parents", [[-1, 0, 0], [math.nan, 0, 0]])
def test_a_root_that_is_not_none_is_told_what_to_write(parents: Any) -> None:
    """-1 and nan, by which other tools mark a root, get the cure that fits: give the root None."""
    assert "None" in refuse(ValueError, "exactly one root", lambda: check_parents("parents", parents, 3))
    message = refuse(ValueError, "exactly one root", lambda: check_parents("parents", parents, 3))
    assert "Join several trees" not in message


def test_a_long_path_is_checked_at_once() -> None:
    """Ten thousand nodes in a row neither recurse nor take long; a cycle at its end is found."""
    path: list[int | None] = [None, *range(9999)]
    assert check_parents("parents", path, 10_000)[-1] == 9998
    path[1] = 9999
    with pytest.raises(ValueError, match="must be a tree; got the cycle"):
        check_parents("parents", path, 10_000)


# --- candidates


SERVED = np.array([0.9, 0.7])


def candidates(values: Any, kept: Any = None) -> Any:
    """The check with two served passages."""
    served = len(SERVED) if kept is None else max(kept) + 1
    dropped = np.array([] if kept is None else sorted(set(range(served)) - set(kept)), dtype=int)
    return ranked_candidates("candidates", check_candidates("candidates", values, dropped), SERVED)


def test_candidates_are_sorted_and_clipped() -> None:
    """Rounding beyond 1 is clipped; the order of the rest does not matter."""
    got = candidates([0.9, 0.7, 0.1, 1.0000002, 0.3])
    assert got.tolist() == [1.0, 0.9, 0.7, 0.3, 0.1]


def test_candidates_agree_with_the_kept_passages() -> None:
    """Entries of passages that were dropped are left out unseen."""
    assert candidates([math.nan, 0.9, 7.0, 0.7, -0.4], np.array([1, 3])).tolist() == [0.9, 0.7, -0.4]


@pytest.mark.parametrize("odd", [1.02, -1.02, math.nan, math.inf, 5.3])
def test_what_is_no_cosine_is_refused(odd: float) -> None:
    """Beyond rounding, a number outside [-1, 1] is not a cosine; nan is none either. It is shown plainly."""
    message = refuse(ValueError, "must be cosines", lambda: candidates([0.9, 0.7, odd]))
    assert f"got {odd!r}." in message


@pytest.mark.parametrize(
    "values",
    [
        [0.1, 0.3],  # 1 - cosine
        [0.2, 0.6],  # squared distances of unit vectors
        [0.0164, 0.0161],  # reciprocal rank fusion
        [0.7, 0.9],  # another order
    ],
    ids=["distances", "squared", "rank-fusion", "reordered"],
)
def test_scores_that_are_not_the_served_cosines_are_refused(values: list[float]) -> None:
    """The served passages' own cosines are known, so other scores are found out."""
    refuse(ValueError, "must start with the cosines of the served", lambda: candidates(values))


@pytest.mark.parametrize("values", [[], [0.9], 0.9, [[0.9, 0.7]]])
def test_too_few_candidates_are_refused(values: Any) -> None:
    """The list holds at least the served passages, in one axis."""
    refuse(ValueError, r"must have shape \(m,\)", lambda: candidates(values))


@pytest.mark.parametrize("values", [[0.9, None], ["0.9", "0.7"], [True, False], "ab", [0.9 + 0j, 0.7]])
def test_a_missing_candidate_is_not_zero(values: Any) -> None:
    """None is a passage without a score, never a score of 0."""
    refuse(TypeError, "^`candidates` must hold cosines", lambda: candidates(values))


def test_ragged_candidates_are_refused() -> None:
    """Rows of different lengths are one error."""
    refuse(ValueError, "^`candidates` must be a rectangular", lambda: candidates([[0.9], [0.7, 0.1]]))


@pytest.mark.parametrize("rows", [[], [[1.0, 0.0]]])
def test_candidates_are_checked_whatever_was_served(rows: Any) -> None:
    """Nonsense is refused also when there is no passage to compare with."""
    refuse((TypeError, ValueError), "^`candidates` must", lambda: score([1.0, 0.0], rows, candidates="junk"))


def test_candidates_of_a_batch_name_their_query() -> None:
    """As texts and parents do."""
    refuse(
        ValueError,
        r"^`candidates\[1\]` must be cosines",
        lambda: score_many([[1.0, 0.0]] * 2, [[[1.0, 0.0]]] * 2, candidates=[None, [1.0, 1.02]]),
    )


# --- what callables return


@pytest.mark.parametrize("value", [0, 1, 0.5, np.float32(0.5), np.array(0.5), np.int8(1)])
def test_one_number_is_a_fraction(value: Any) -> None:
    """Any real number in [0, 1] will do."""
    assert check_fraction_result("calibrator", value) == float(value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -0.1, 1.0000001, 65.0, np.float32("nan")])
def test_a_result_out_of_range_is_refused(value: Any) -> None:
    """nan, percentages and logits are no probability."""
    refuse(ValueError, "^`calibrator` must return", lambda: check_fraction_result("calibrator", value))


@pytest.mark.parametrize("value", [None, "0.5", True, [0.5, 0.5], np.array([0.1, 0.2]), 0.5j, {}, object()])
def test_a_result_that_is_no_number_is_refused(value: Any) -> None:
    """Vectors, strings, booleans and None are type errors."""
    refuse(TypeError, "^`calibrator` must return", lambda: check_fraction_result("calibrator", value))


def test_an_unawaited_coroutine_is_refused() -> None:
    """An async function is not called for its result."""

    async def later() -> float:
        return 0.5

    made = later()
    refuse(TypeError, "^`calibrator` must return", lambda: check_fraction_result("calibrator", made))
    made.close()


def test_the_largest_pair_counts() -> None:
    """A matrix of pairs gives its maximum off the diagonal, the diagonal alone nothing."""
    pairs = np.array([[0.9, 0.2, 0.1], [0.3, 0.9, 0.0], [0.0, 0.0, 0.9]])
    assert check_contradiction("contradiction", pairs, 3) == pytest.approx(0.3)
    assert check_contradiction("contradiction", np.zeros((3, 3), dtype=int).tolist(), 3) == 0.0
    assert check_contradiction("contradiction", 0.25, 3) == 0.25


@pytest.mark.parametrize(
    "value",
    [
        [0.1, 0.2, 0.3],
        np.zeros((2, 3)),
        np.zeros((3, 3, 1)),
        np.full((3, 3), math.nan),
        np.full((3, 3), 1.5),
        np.full((3, 3), -0.1),
        np.array([["a"] * 3] * 3),
        [[0.1], [0.1, 0.2]],
        [],
        None,
        "0.9",
        True,
        math.nan,
    ],
)
def test_other_contradictions_are_refused(value: Any) -> None:
    """Vectors, other shapes, nan, other ranges and ragged lists name `contradiction`."""
    refuse(
        (ValueError, TypeError),
        "^`contradiction` must return",
        lambda: check_contradiction("contradiction", value, 3),
    )
