"""A labelled history is checked once: scores, labels, groups, and columns that belong together."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import Kinds, named, refuse

from rag_confidence._history import (
    check_aligned,
    check_fractions,
    check_group,
    check_groups,
    check_history,
    check_labels,
    check_scores,
    check_two_classes,
)

EITHER = (TypeError, ValueError)
finite = st.floats(allow_nan=False, allow_infinity=False)


class Column:
    """A column of another data frame library: it has a length and an array, and no index."""

    def __init__(self, values: list[Any]) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.values, dtype=dtype)

    def __iter__(self) -> Any:
        return iter(self.values)


# --- scores


@given(st.lists(finite, min_size=1, max_size=20))
def test_scores_come_out_as_they_were(scores: list[float]) -> None:
    """Finite floats pass through bit for bit."""
    checked = check_scores("scores", scores)
    assert checked.dtype == np.float64
    assert checked.tobytes() == np.array(scores).tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_precision_of_scores_is_kept(dtype: Any) -> None:
    """Scores keep the precision that they came in: it decides how they are compared."""
    assert check_scores("scores", np.array([0.1, 0.2], dtype=dtype)).dtype == dtype
    assert check_scores("scores", [dtype(0.1), dtype(0.2)]).dtype == dtype


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_the_byte_order_of_scores_changes_nothing(dtype: str) -> None:
    """Floats of another byte order become those of this machine, of the same precision and value."""
    foreign = np.array([0.1, 0.2], dtype=dtype).astype(np.dtype(dtype).newbyteorder("S"))
    checked = check_scores("scores", foreign)
    assert checked.dtype == np.dtype(dtype)
    assert checked.dtype.isnative
    assert checked.tolist() == foreign.tolist()


@pytest.mark.parametrize(
    ("scores", "dtype"),
    [
        ([np.float32(0.1), 0.5], np.float32),
        ((0.5, np.float32(0.1)), np.float32),
        ([np.float32(0.1), 1], np.float32),
        ([np.float32(0.1), np.float64(0.5)], np.float32),
        ([np.float32(0.1), np.float16(0.5), 0.5], np.float16),
        ([np.float64(0.1), 0.5, 1], np.float64),
    ],
    ids=named,
)
def test_a_mixed_list_has_the_precision_of_its_coarsest_float(scores: Any, dtype: Any) -> None:
    """A narrow float in a list stays known as one: plain floats beside it do not hide its rounding."""
    assert check_scores("scores", scores).dtype == dtype


@pytest.mark.parametrize("odd", [True, False, np.True_], ids=named)
@pytest.mark.parametrize("wrap", [list, tuple])
def test_a_boolean_among_numbers_is_no_score(odd: Any, wrap: Any) -> None:
    """True is not 1.0, beside numbers no more than alone."""
    call = lambda: check_scores("scores", wrap([odd, 0.5] * 200))  # noqa: E731
    refuse(TypeError, f"^`scores` must hold real numbers; got bool such as .*{odd}", call)


@pytest.mark.parametrize(
    "scores",
    [
        [0, 1],
        (0, 1),
        np.array([0, 1], dtype=np.int8),
        np.array([0, 1], dtype=np.uint64),
        np.array([0, 1], dtype=np.longdouble),
        np.array([0.0, 1.0])[::1],
        np.array([[0.0, 9.0], [1.0, 9.0]])[:, 0],
        Column([0.0, 1.0]),
        memoryview(np.array([0.0, 1.0])),
    ],
    ids=lambda value: f"{type(value).__name__} {getattr(value, 'dtype', '')}",
)
def test_numbers_of_any_kind_are_scores(scores: Any) -> None:
    """Whole numbers, views, tuples and foreign columns are scores too."""
    checked = check_scores("scores", scores)
    assert checked.tolist() == [0.0, 1.0]
    assert checked.dtype.kind == "f"


BAD_SCORES: list[tuple[Kinds, Any, str]] = [
    (ValueError, [], "at least one score; got none"),
    (ValueError, np.zeros((0,)), "at least one score; got none"),
    (ValueError, [0.1, math.nan, 0.3], r"finite; got nan .*1 bad.* rows? 1\."),
    (ValueError, [math.inf], "finite; got inf "),
    (ValueError, [0.1, -math.inf], "finite; got -inf "),
    (ValueError, np.full(1000, math.nan), "finite; got nan .*1000 bad"),
    (EITHER, ["0.1", "0.2"], "got .*'0.1'"),
    (EITHER, [0.1, "0.2"], "got .*str|got .*'0"),
    (EITHER, [0.1, None], "got .*None"),
    (EITHER, [None], "got .*None"),
    (EITHER, [True, False], "got bool"),
    (EITHER, np.array([True]), "got bool"),
    (EITHER, [0.1 + 0j], "got complex"),
    (EITHER, [object()], "got object"),
    (EITHER, [b"0.1"], "got "),
    (EITHER, [np.datetime64("2026-01-01")], "got datetime"),
    (EITHER, [np.timedelta64(1, "D")], "got timedelta"),
    (EITHER, [{"score": 0.1}], "got dict"),
    (ValueError, [[0.1, 0.2]], r"shape \(n,\); got \(1, 2\)"),
    (ValueError, [[0.1], [0.1, 0.2]], r"shape \(n,\); got "),
    (ValueError, np.zeros((2, 0)), r"shape \(n,\); got "),
    (EITHER, 0.1, "got "),
    (EITHER, np.array(0.1), "got "),
    (EITHER, "0.1", "got "),
    (EITHER, None, "got "),
    (EITHER, {0.1, 0.2}, "got "),
    (EITHER, {0.1: 1}, "got "),
    (EITHER, (x for x in [0.1]), "got "),
    (ValueError, np.ma.masked_array([0.1, 0.2], mask=[False, True]), "mask"),
    (ValueError, [np.ma.masked, 0.2], "mask"),
]


def shown(value: Any) -> str:
    return named(value)[:30].replace("\n", " ") if not isinstance(value, type) else value.__name__


@pytest.mark.parametrize(("kind", "scores", "says"), BAD_SCORES, ids=shown)
def test_bad_scores_are_refused(kind: Kinds, scores: Any, says: str) -> None:
    """nan, infinities, texts, booleans, objects, masks, no scores and other shapes: one clear error each."""
    refuse(kind, f"(?s)^`scores` must .*{says}", lambda: check_scores("scores", scores))


@pytest.mark.parametrize("scores", [[Fraction(1, 2)], [0.1, Decimal("0.5")]], ids=named)
def test_exact_numbers_are_named(scores: Any) -> None:
    """Fractions and Decimals are refused by name: no score is silently rounded."""
    refuse(
        TypeError, f"^`scores` must .*got {type(scores[-1]).__name__}", lambda: check_scores("scores", scores)
    )


def test_huge_whole_numbers_are_refused_by_name() -> None:
    """A whole number beyond floats is no score, and says so in the one form."""
    refuse((ValueError, TypeError), "^`scores` must ", lambda: check_scores("scores", [10**400]))


def test_a_refusal_has_the_name_of_the_argument() -> None:
    """The error names what the caller passed, and the first bad rows only."""
    message = refuse(
        ValueError, "^`mine` must be finite", lambda: check_scores("mine", np.full(50, math.nan))
    )
    assert len(message) < 300


# --- fractions


def test_fractions_include_both_ends() -> None:
    """0 and 1 are fractions, and so is negative zero."""
    check_fractions("scores", np.array([0.0, 1.0, -0.0, 0.5]), "Pass 'raw'.")


@pytest.mark.parametrize("scores", [[85.0, 92.0], [0.5, 2.0], [100.0]])
def test_percentages_are_named(scores: list[float]) -> None:
    """Scores between 0 and 100 that are no fractions are called percentages."""
    call = lambda: check_fractions("scores", np.array(scores), "Pass 'raw'.")  # noqa: E731
    refuse(ValueError, r"^`scores` must be fractions in \[0, 1\]; got .*percentages", call)


@pytest.mark.parametrize("scores", [[-0.1, 0.5], [101.0], [-85.0, 85.0], [1e300], [1.5]])
def test_other_scales_are_refused_as_what_they_are(scores: list[float]) -> None:
    """Scores that cannot be percentages are refused without that guess."""
    call = lambda: check_fractions("scores", np.array(scores), "Pass 'raw'.")  # noqa: E731
    message = refuse(ValueError, r"^`scores` must be fractions in \[0, 1\]; got ", call)
    assert "percentages" not in message


def test_a_score_a_hair_too_large_is_shown_in_full() -> None:
    """The next number above 1 is not shown as 1, and is no percentage."""
    call = lambda: check_fractions("scores", np.array([np.nextafter(1.0, 2.0)]), "Pass 'raw'.")  # noqa: E731
    assert "percentages" not in refuse(ValueError, r"got 1\.0000000000000002\. ", call)


# --- labels


@pytest.mark.parametrize(
    "labels",
    [
        [True, False],
        [1, 0],
        [1.0, 0.0],
        [1.0, -0.0],
        (np.True_, np.False_),
        [np.int64(1), np.int64(0)],
        [True, 0],
        [1.0, False],
        np.array([1, 0], dtype=np.uint8),
        np.array([1, 0], dtype=np.float32),
        np.array([True, False]),
        np.array([True, 0], dtype=object),
        Column([1, 0]),
    ],
    ids=named,
)
def test_labels_that_are_meant_are_taken(labels: Any) -> None:
    """Booleans, and 0 and 1 as whole numbers or floats, are labels."""
    checked = check_labels("labels", labels)
    assert checked.dtype == np.bool_
    assert checked.tolist() == [True, False]


BAD_LABELS: list[tuple[Any, str]] = [
    (["False", "no"], "'False'"),
    (["no"], "'no'"),
    (["0", "1"], "'0'"),
    ([1, "0"], "'0'"),
    ([True, "no"], "'no'"),
    (np.array(["0", "1"]), "'0'"),
    (np.array([0, "1"], dtype=object), "'1'"),
    ([0, 2], "2"),
    ([0, -1], "-1"),
    ([0, 1, 0.5], "0.5"),
    ([0, math.nan], "nan"),
    ([0, math.inf], "inf"),
    ([0, None], "None"),
    ([None, None], "None"),
    (np.array([0, None], dtype=object), "None"),
    ([b"0"], "b'0'"),
    ([0, 1j], "j"),
    ([np.datetime64("2026-01-01")], "2026"),
    ([np.timedelta64(1, "D")], ""),
    ([1.0000000001, 0], "1.0000000001"),
]


@pytest.mark.parametrize(("labels", "odd"), BAD_LABELS, ids=shown)
def test_what_is_no_label_is_named(labels: Any, odd: str) -> None:
    """Texts, other numbers, nan and None are never labels; the first one is shown as it came."""
    refuse(EITHER, rf"^`labels` must be 0 or 1 .*got .*{odd}", lambda: check_labels("labels", labels))


@pytest.mark.parametrize(
    "labels",
    [1, "01", None, [[0, 1]], np.array(1), {0, 1}, np.zeros((2, 2)), [[0], [0, 1]], object()],
    ids=shown,
)
def test_labels_are_one_column(labels: Any) -> None:
    """Anything but one label a row is refused."""
    refuse(EITHER, "^`labels` must ", lambda: check_labels("labels", labels))


def test_hidden_labels_are_refused() -> None:
    """A masked label is not the number beneath its mask."""
    masked = np.ma.masked_array([0, 1], mask=[False, True])
    refuse(ValueError, "^`labels` must .*mask", lambda: check_labels("labels", masked))


@given(st.lists(st.booleans(), min_size=1, max_size=20))
def test_labels_mean_the_same_in_every_form(labels: list[bool]) -> None:
    """Booleans, whole numbers and floats give the same labels."""
    for form in (np.array(labels), [int(y) for y in labels], np.array(labels, dtype=float)):
        assert check_labels("labels", form).tolist() == labels


@pytest.mark.parametrize(("labels", "held", "missing"), [([1, 1], 1, 0), ([0, 0, 0], 0, 1), ([1], 1, 0)])
def test_both_classes_are_needed(labels: list[int], held: int, missing: int) -> None:
    """Labels that are all alike are refused, naming the class that is there and the one that is not."""
    call = lambda: check_two_classes(np.array(labels, dtype=bool))  # noqa: E731
    message = refuse(
        ValueError, f"^`labels` must hold both classes; got {len(labels)} rows, all {held}", call
    )
    assert f"({missing})" in message
    check_two_classes(np.array([True, False]))


# --- groups


def test_groups_are_strings_or_integers() -> None:
    """Strings and integers name groups, NumPy's too; a group keeps its type."""
    assert check_groups("groups", ["a", 1, np.str_("b"), np.int64(2)]).tolist() == ["a", 1, "b", 2]
    assert check_groups("groups", np.array([1, 2])).tolist() == [1, 2]
    assert [type(g) for g in check_groups("groups", np.array(["a"]))] == [str]


@pytest.mark.parametrize("group", [None, 1.0, math.nan, True, b"a", ("a",), ["a"]], ids=named)
def test_other_groups_are_refused_with_their_row(group: Any) -> None:
    """A group that is missing or of another kind is refused, and its row is named."""
    refuse(EITHER, r"^`groups\[1\]` must be ", lambda: check_groups("groups", ["a", group]))
    refuse(EITHER, r"^`group` must be ", lambda: check_group("group", group))


@pytest.mark.parametrize("group", [2**64, -(2**63) - 1, 10**5000], ids=["above", "below", "huge"])
def test_whole_numbers_that_name_have_64_bits(group: int) -> None:
    """A longer integer names no group: its digits cannot even be shown."""
    refuse(ValueError, r"^`group` must be of at most 64 bits", lambda: check_group("group", group))
    refuse(ValueError, r"^`groups\[0\]` must be of at most 64", lambda: check_groups("groups", [group]))
    assert check_group("group", 2**64 - 1) == 2**64 - 1


@pytest.mark.parametrize("groups", ["ab", 1, {"a": 1}, {"a"}], ids=named)
def test_groups_are_one_column(groups: Any) -> None:
    """One text, a set or a mapping is no column of groups."""
    refuse(EITHER, r"^`groups` must be ", lambda: check_groups("groups", groups))


# --- columns of one table


def test_columns_have_one_length() -> None:
    """Columns of different lengths are refused with both lengths; missing columns do not count."""
    check_aligned(scores=[0.1, 0.2], labels=(0, 1), groups=None)
    call = lambda: check_aligned(scores=[0.1, 0.2], groups=None, labels=[0])  # noqa: E731
    refuse(ValueError, "^`labels` must have one entry for each of the 2 rows of `scores`; got 1", call)


@pytest.mark.parametrize(
    "column",
    [0.5, None, "ab", (x for x in [1]), np.array(0.5), object()],
    ids=lambda value: type(value).__name__,
)
def test_what_has_no_length_is_no_column(column: Any) -> None:
    """A number, a text and a generator are refused before anything is paired."""
    refuse(EITHER, "^`(scores|labels)` must ", lambda: check_history(column, [0, 1]))
    refuse(EITHER, "^`(scores|labels)` must ", lambda: check_history([0.1, 0.2], column))


def test_columns_without_an_index_pair_by_position() -> None:
    """Foreign columns that have no index are taken as arrays, beside lists too."""
    scores, labels = check_history(Column([0.1, 0.9]), [0, 1])
    assert scores.tolist() == [0.1, 0.9]
    assert labels.tolist() == [False, True]


def test_a_list_has_an_index_method_and_no_index() -> None:
    """Lists, tuples and arrays of different kinds pair by position."""
    scores, _ = check_history((0.1, 0.9), np.array([False, True]))
    assert scores.tolist() == [0.1, 0.9]


def test_polars_like_columns_may_hold_nulls_only_by_name() -> None:
    """A null in a foreign column is a missing score or label, never zero."""
    refuse(EITHER, "^`scores` must ", lambda: check_history(Column([0.1, None]), [0, 1]))
    refuse(EITHER, "^`labels` must ", lambda: check_history([0.1, 0.2], Column([0, None])))


@pytest.mark.needs_extra("test")
def test_series_with_other_indexes_are_never_paired() -> None:
    """Two pandas columns with different indexes are refused, naming the index: nothing pairs by position."""
    import pandas as pd

    scores, labels = pd.Series([0.9, 0.1], index=[0, 1]), pd.Series([0, 1], index=[1, 0])
    message = refuse(
        ValueError, "^`labels` must have the index of `scores`", lambda: check_history(scores, labels)
    )
    assert "[1, 0]" in message
    assert "[0, 1]" in message


@pytest.mark.needs_extra("test")
def test_series_with_one_index_are_paired() -> None:
    """Equal indexes pair, whatever they are; a Series beside a list pairs by position."""
    import pandas as pd

    index = pd.Index(["b", "a"])
    scores, labels = pd.Series([0.9, 0.1], index=index), pd.Series([True, False], index=index)
    for other in (
        labels,
        labels.tolist(),
        labels.to_numpy(),
        labels.astype("boolean"),
        labels.astype("Int64"),
    ):
        checked = check_history(scores, other)
        assert checked[0].tolist() == [0.9, 0.1]
        assert checked[1].tolist() == [True, False]


@pytest.mark.needs_extra("test")
@pytest.mark.parametrize("shape", ["longer", "filtered", "shuffled", "multi", "named"])
def test_every_column_is_held_to_one_index(shape: str) -> None:
    """Filtered, shuffled and longer columns differ in their index; a name alone does not matter."""
    import pandas as pd

    table = pd.DataFrame({"s": [0.1, 0.9, 0.4], "y": [0, 1, 0], "g": ["a", "b", "a"]}, index=[5, 6, 7])
    other = {
        "longer": pd.Series([0, 1, 0, 1], index=[5, 6, 7, 8]),
        "filtered": table["g"][table["y"] == 0],
        "shuffled": table["g"].iloc[[2, 0, 1]],
        "multi": table["g"].set_axis(pd.MultiIndex.from_tuples([(5, 0), (6, 0), (7, 0)])),
        "named": table["g"].rename_axis("row"),
    }[shape]
    if shape == "named":
        check_aligned(scores=table["s"], labels=table["y"], groups=other)
        return
    call = lambda: check_aligned(scores=table["s"], labels=table["y"], groups=other)  # noqa: E731
    refuse(ValueError, "^`groups` must have the index of `scores`; got ", call)


@pytest.mark.needs_extra("test")
@pytest.mark.parametrize("dtype", ["Float64", "Float32", "float64", "float32", "Int64"])
def test_nullable_columns_are_scores_unless_something_is_missing(dtype: str) -> None:
    """pandas' nullable numbers are scores; a missing one is refused."""
    import pandas as pd

    whole = pd.Series([0, 1], dtype=dtype)
    assert check_scores("scores", whole).tolist() == [0.0, 1.0]
    if dtype[0] in "FI":
        missing = pd.Series([0, None], dtype=dtype)
        refuse(EITHER, "^`scores` must ", lambda: check_scores("scores", missing))
        refuse(EITHER, "^`labels` must ", lambda: check_labels("labels", missing))


@pytest.mark.needs_extra("test")
def test_a_table_is_no_column() -> None:
    """A data frame where a column belongs is refused by its shape."""
    import pandas as pd

    table = pd.DataFrame({"s": [0.1, 0.9]})
    refuse(EITHER, "^`scores` must have shape", lambda: check_history(table, [0, 1]))
    refuse(EITHER, "^`labels` must have shape", lambda: check_history([0.1, 0.9], table))
