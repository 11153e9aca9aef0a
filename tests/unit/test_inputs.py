"""The input boundary: what arrays become, and which are refused with one clear sentence."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_confidence import score, score_many
from rag_confidence._inputs import check_retrieval, check_retrievals, numbers

FORM = r"^`[\w.\[\]]+` must .+; got .+\. .+\.$"
QUERY = [1.0, 0.0, 0.2]
ROWS = [[0.9, 0.1, 0.2], [0.8, 0.3, 0.1], [0.85, -0.2, 0.3]]


def record(query: Any = QUERY, rows: Any = ROWS, **options: Any) -> dict[str, Any]:
    """The record of one call."""
    return score(query, rows, **options).to_dict()


def refuse(kind: type[Exception], pattern: str, query: Any, rows: Any, many: bool = False) -> str:
    """The message of the refusal, which must name an argument, what it got, and a cure."""
    with pytest.raises(kind, match=pattern) as caught:
        (score_many if many else score)(query, rows)
    message = str(caught.value)
    with pytest.raises(kind, match=FORM):
        raise caught.value
    assert "\n" not in message
    return message


# --- kinds of array


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
def test_float_kinds_agree(dtype: type) -> None:
    """Every float kind is scored, with the cosines of its own rounding."""
    got = record(np.array(QUERY, dtype=dtype), np.array(ROWS, dtype=dtype))
    tolerance = 2e-3 if dtype is np.float16 else 1e-6
    assert got["signals.max_cosine"] == pytest.approx(record()["signals.max_cosine"], abs=tolerance)
    assert got["verdict"] == record()["verdict"]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.int64, np.uint64, np.float16])
def test_integer_products_do_not_wrap(dtype: type) -> None:
    """Entries whose products overflow their own type are widened first."""
    rows = np.array([[100, 90, 3], [120, 10, 99], [60, 127, 5]])
    query = np.array([110, 50, 20])
    assert record(query.astype(dtype), rows.astype(dtype)) == record(query.astype(float), rows.astype(float))


@pytest.mark.parametrize(
    "rows",
    [
        np.asfortranarray(ROWS),
        np.repeat(ROWS, 2, axis=1)[:, ::2],
        np.array(ROWS[::-1])[::-1],
        np.broadcast_to(np.array(ROWS), (3, 3)),
        np.array(ROWS).astype(">f8"),
        np.array(ROWS).view(np.matrix),
        tuple(map(tuple, ROWS)),
        [np.array(row) for row in ROWS],
        [tuple(ROWS[0]), ROWS[1], np.array(ROWS[2])],
    ],
    ids=["fortran", "strided", "reversed", "broadcast", "big-endian", "matrix", "tuples", "arrays", "mixed"],
)
def test_layouts_agree(rows: Any) -> None:
    """Memory order, byte order, strides and containers carry no information."""
    got, wanted = record(rows=rows), record()
    assert got.keys() == wanted.keys()
    for key, value in wanted.items():
        assert got[key] == (pytest.approx(value, rel=1e-12, abs=1e-12) if type(value) is float else value), (
            key
        )


class Frame:
    """Like a data frame: no array itself, but convertible to one."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.rows, dtype=dtype)


def test_array_likes_are_converted() -> None:
    """Anything with `__array__` counts as its array, missing values (nan) included."""
    assert record(Frame(QUERY), Frame(ROWS)) == record()
    assert [m.kpi for m in score_many(Frame([QUERY]), Frame([ROWS]))] == [score(QUERY, ROWS).kpi]
    refuse(ValueError, "`passage_embeddings` must be finite", QUERY, Frame([[np.nan] * 3, *ROWS]))


def test_masked_entries_are_not_data() -> None:
    """A masked array says that entries are missing: they are refused or count as invalid, never read."""
    rows = np.ma.array([*ROWS, [5.0, 5.0, 5.0]], mask=[[False] * 3] * 3 + [[True] * 3])
    with pytest.raises((ValueError, TypeError), match="`passage_embeddings` must"):
        score(QUERY, rows)


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        (np.array(ROWS, dtype=object), TypeError),
        (np.array(ROWS, dtype=complex), TypeError),
        (np.array(ROWS) > 0.2, TypeError),
        (np.array(ROWS).astype(str), TypeError),
        ([["0.9", "0.1", "0.2"]], TypeError),
        ("abc", TypeError),
        (b"abc", TypeError),
        (None, TypeError),
        ([[None, 0.1, 0.2]], TypeError),
        ([ROWS[0], None], ValueError),
        ({"a": 1}, TypeError),
        ((row for row in ROWS), TypeError),
        ([[10**400, 1, 2]], TypeError),
        (np.array(["2020-01-01"], dtype="M8[D]"), TypeError),
        (np.zeros((2, 3), dtype=[("x", "f8")]), TypeError),
        ([[0.9, 0.1, 0.2], [0.8, 0.3]], ValueError),
        (3.0, ValueError),
        (ROWS[0], ValueError),
        ([ROWS], ValueError),
        (np.ones((5, 4)), ValueError),
        (np.ones((5, 0)), ValueError),
    ],
)
def test_what_is_not_a_matrix_of_reals_is_refused(rows: Any, kind: type[Exception]) -> None:
    """Other types and other shapes end in one sentence about `passage_embeddings`."""
    refuse(kind, "^`passage_embeddings` must", QUERY, rows)


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ([QUERY], ValueError),
        (1.0, ValueError),
        ([], ValueError),
        (None, TypeError),
        ("abc", TypeError),
        ([True, False, True], TypeError),
        ([1j, 0, 0], TypeError),
        ([None, 0.0, 0.0], TypeError),
        ([math.nan, 0.0, 0.0], ValueError),
        ([0.0, math.inf, 0.0], ValueError),
        ([0.0, -math.inf, math.nan], ValueError),
    ],
)
def test_what_is_not_a_finite_vector_is_refused(query: Any, kind: type[Exception]) -> None:
    """A bad question ends in one sentence about `query_embedding`; it can never be dropped."""
    refuse(kind, "^`query_embedding` must", query, ROWS)
    with pytest.raises(kind, match=r"^`query_embedding` must"):
        score(query, ROWS, invalid_rows="drop")


def test_a_mismatch_names_both_sides() -> None:
    """The sentence of the design document, word for word."""
    message = refuse(ValueError, "384", np.ones(384), np.ones((5, 768)))
    assert message.startswith(
        "`passage_embeddings` must have shape (n, 384) to match `query_embedding`; got (5, 768). "
    )


# --- rows that cannot be scored


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 0.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bad_rows_are_listed(bad: float, dtype: type) -> None:
    """nan, infinite and zero rows are named by their position; one bad entry is enough for the first two."""
    rows = np.array([*ROWS, *ROWS], dtype=dtype)
    rows[[1, 4]] = bad
    assert "got 2 bad: 1, 4." in refuse(ValueError, "finite and not zero", QUERY, rows)
    if bad != 0.0:
        rows = np.array(ROWS, dtype=dtype)
        rows[2, 1] = bad
        assert "got 1 bad: 2." in refuse(ValueError, "finite and not zero", QUERY, rows)


def test_long_lists_of_bad_rows_are_cut() -> None:
    """At most eight positions are shown."""
    message = refuse(ValueError, "finite", QUERY, np.zeros((20, 3)))
    assert "got 20 bad: 0, 1, 2, 3, 4, 5, 6, 7, .... " in message


def test_batches_name_the_query_and_the_row() -> None:
    """In a batch the argument carries the position of the query."""
    rows = np.array([ROWS, ROWS])
    rows[1, 2] = 0.0
    message = refuse(ValueError, r"^`passage_embeddings\[1\]` must", [QUERY, QUERY], rows, many=True)
    assert "got 1 bad: 2." in message
    message = refuse(ValueError, "^`query_embeddings` must", [QUERY, [math.nan] * 3], rows, many=True)
    assert "got 1 bad: 1." in message


def test_dropped_rows_are_remembered() -> None:
    """`served` keeps the places of the rows that stay; both counts are kept."""
    rows = np.array([[0.0] * 3, *ROWS, [math.nan] * 3])
    batch = check_retrieval(QUERY, rows, "drop")
    assert batch.served[0].tolist() == [1, 2, 3]
    assert (batch.k_returned.tolist(), batch.n_dropped.tolist()) == ([5], [2])
    assert batch.blocks[0].passages.shape == (1, 3, 3)


def test_all_rows_dropped_is_no_passages() -> None:
    """When nothing valid is left there is nothing to score, and no exception."""
    batch = check_retrieval(QUERY, np.zeros((2, 3)), "drop")
    assert batch.no_passages.tolist() == [True]
    assert batch.blocks == ()


@pytest.mark.parametrize("nothing", [[], (), np.zeros((0, 3)), np.zeros((0, 7)), np.array([])])
def test_no_rows_of_any_width_are_no_passages(nothing: Any) -> None:
    """An empty result has no dimension that could be wrong."""
    assert check_retrieval(QUERY, nothing, "raise").no_passages.tolist() == [True]


@pytest.mark.parametrize("query", [[0.0] * 3, [0] * 3, [-0.0] * 3])
def test_a_zero_query_is_degenerate(query: Any) -> None:
    """A question without a direction is marked, not refused."""
    batch = check_retrieval(query, ROWS, "raise")
    assert batch.degenerate_query.tolist() == [True]
    assert batch.blocks == ()


# --- scale


@pytest.mark.parametrize("factor", [1e-9, 1e9, 1e-150, 1e150, 1e-300, 1e300, 5e-324])
def test_tiny_and_huge_rows_are_scored(factor: float) -> None:
    """Scale is no evidence: rows scaled by 1e-9 keep the verdict, and those by 1e-300 are not zero."""
    axes = np.eye(3)[[0, 0, 1]] + np.eye(3)[[1, 2, 2]]
    plain = record(QUERY, axes)
    for query, rows in (
        (QUERY, axes * factor),
        (np.sign(QUERY) * factor, axes),
        (QUERY, axes * [[factor], [1.0], [1.0]]),
    ):
        got = record(query, rows)
        if query is QUERY:
            assert got["kpi"] == pytest.approx(plain["kpi"], rel=1e-9)
            assert got["verdict"] == plain["verdict"]


def test_float32_at_the_ends_of_its_range() -> None:
    """float32 rows of 3e38 and 1e-44 are scored like others."""
    for factor in (3e38, 1e-44):
        rows = (np.eye(3) * factor).astype(np.float32)
        assert record(np.ones(3), rows)["signals.max_cosine"] == pytest.approx(3**-0.5)


# --- batches


def test_ragged_lists_are_grouped_by_length() -> None:
    """Queries with equally many passages share a block; order is kept by `rows`."""
    groups = [ROWS, ROWS[:1], [], ROWS, ROWS[1:2]]
    batch = check_retrievals(np.tile(QUERY, (5, 1)), groups, "raise")
    assert sorted((len(b.rows), b.passages.shape[1]) for b in batch.blocks) == [(2, 1), (2, 3)]
    assert batch.k_returned.tolist() == [3, 1, 0, 3, 1]
    assert batch.no_passages.tolist() == [False, False, True, False, False]
    assert len(batch) == 5


@pytest.mark.parametrize("passages", [np.zeros((0, 4, 3)), []])
def test_an_empty_batch_is_a_batch(passages: Any) -> None:
    """No queries give no results, not an error."""
    assert len(check_retrievals(np.zeros((0, 3)), passages, "raise")) == 0


@pytest.mark.parametrize(
    ("queries", "passages", "kind", "pattern"),
    [
        (QUERY, [ROWS], ValueError, "`query_embeddings` must have shape"),
        ([], [], ValueError, "`query_embeddings` must have shape"),
        ([QUERY, QUERY[:2]], [ROWS, ROWS], ValueError, "`query_embeddings` must be a rectangular"),
        ([QUERY, QUERY], [ROWS], ValueError, "one entry for each of the 2 queries; got 1"),
        ([QUERY], np.ones((2, 3, 3)), ValueError, "one entry for each of the 1 queries; got 2"),
        ([QUERY, QUERY], np.ones((2, 3)), ValueError, r"shape \(Q, k, 3\)"),
        ([QUERY], np.ones((1, 2, 4)), ValueError, r"shape \(Q, k, 3\)"),
        ([QUERY, QUERY], [ROWS, np.ones((2, 4))], ValueError, r"`passage_embeddings\[1\]`"),
        ([QUERY, QUERY], [ROWS, None], TypeError, r"`passage_embeddings\[1\]`"),
        ([QUERY, QUERY], [ROWS, [[1.0, 2.0, 3.0], [1.0]]], ValueError, r"`passage_embeddings\[1\]`"),
        ([QUERY], None, TypeError, "`passage_embeddings`"),
        ([QUERY], 3.0, ValueError, "`passage_embeddings`"),
        ([QUERY], (rows for rows in [ROWS]), TypeError, "`passage_embeddings`"),
        ([QUERY], {0: ROWS}, TypeError, "`passage_embeddings`"),
        ([QUERY], "a", TypeError, "`passage_embeddings"),
    ],
)
def test_bad_batches_are_refused(queries: Any, passages: Any, kind: type[Exception], pattern: str) -> None:
    """Wrong counts, widths and types name the argument, and the query where there is one."""
    refuse(kind, pattern, queries, passages, many=True)


def test_dropping_in_a_batch_touches_only_its_query() -> None:
    """The other queries of a block keep all their passages."""
    rows = np.array([ROWS, ROWS, ROWS])
    rows[1, 0] = math.nan
    batch = check_retrievals([QUERY] * 3, rows, "drop")
    assert {tuple(b.rows.tolist()): b.passages.shape[1] for b in batch.blocks} == {(0, 2): 3, (1,): 2}
    assert batch.n_dropped.tolist() == [0, 1, 0]


@given(st.integers(0, 4), st.integers(0, 4), st.sampled_from([0.0, math.nan, math.inf]))
def test_single_and_batch_agree_on_what_is_valid(good: int, bad: int, value: float) -> None:
    """One query alone or as a batch of one is checked alike."""
    rows = np.array([*(ROWS * 2)[:good], *[[value] * 3] * bad]).reshape(-1, 3)
    one = check_retrieval(QUERY, rows, "drop")
    many = check_retrievals([QUERY], [rows], "drop")
    assert one.no_passages.tolist() == many.no_passages.tolist() == [good == 0]
    assert one.n_dropped.tolist() == many.n_dropped.tolist() == [bad]
    assert one.k_returned.tolist() == many.k_returned.tolist() == [good + bad]


# --- numbers


def test_numbers_keeps_float32_and_float64() -> None:
    """Arrays that are fit already are not copied; others are widened, half precision to single."""
    for dtype in (np.float32, np.float64):
        array = np.ones(3, dtype=dtype)
        assert numbers("x", array) is array
    for dtype in (np.int8, np.uint64):
        assert numbers("x", np.ones(3, dtype=dtype)).dtype == np.float64
    assert numbers("x", np.ones(3, dtype=np.float16)).dtype == np.float32


def test_an_object_that_breaks_on_conversion_is_refused_in_one_line() -> None:
    """Errors of a foreign `__array__` are told in the form of every other."""

    class Broken:
        def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
            raise RuntimeError("on the graph\nsee detach()")

    assert "on the graph" in refuse(ValueError, "`passage_embeddings` must be a rect", QUERY, Broken())
