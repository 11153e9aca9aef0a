"""Where trials come from: fresh draws, splits of one pool, shifted draws."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_confidence.conformal.validation.draws import fresh_draws, random_splits, shifted
from rag_confidence.synthetic import LabelledScores, draw_rag_rows


def numbered(rows: int) -> LabelledScores:
    """A pool whose scores are the row numbers."""
    return LabelledScores(np.arange(rows, dtype=float), np.arange(rows) % 2 == 0, np.array(["row"] * rows))


def test_fresh_draws_cut_one_draw_in_two() -> None:
    """The first n rows calibrate and the others test, in the order drawn."""
    calibration, test = fresh_draws(draw_rag_rows)(np.random.default_rng(5), 30, 12)
    whole = draw_rag_rows(np.random.default_rng(5), 42)
    assert (len(calibration), len(test)) == (30, 12)
    assert np.array_equal(np.concatenate([calibration.scores, test.scores]), whole.scores)
    assert np.array_equal(np.concatenate([calibration.kind, test.kind]), whole.kind)


@given(st.integers(2, 40), st.data())
def test_splits_share_no_row(rows: int, data: st.DataObject) -> None:
    """A split takes as many rows as asked for, none of them twice, with their labels."""
    n = data.draw(st.integers(1, rows - 1))
    n_test = data.draw(st.integers(1, rows - n))
    calibration, test = random_splits(numbered(rows))(np.random.default_rng(0), n, n_test)
    assert (len(calibration), len(test)) == (n, n_test)
    assert len({*calibration.scores.tolist(), *test.scores.tolist()}) == n + n_test
    assert np.array_equal(test.labels, test.scores % 2 == 0)


@given(
    st.lists(st.integers(0, 9), min_size=3, max_size=40).filter(lambda names: len(set(names)) > 2), st.data()
)
def test_rows_of_a_query_stay_together(names: list[int], data: st.DataObject) -> None:
    """No query has rows in both parts, and sizes count queries."""
    distinct = len(set(names))
    n = data.draw(st.integers(1, distinct - 1))
    draw = random_splits(numbered(len(names)), [f"q{name}" for name in names])
    calibration, test = draw(np.random.default_rng(1), n, distinct - n)
    known, new = ({names[int(row)] for row in part.scores} for part in (calibration, test))
    assert known.isdisjoint(new)
    assert (len(known), len(new)) == (n, distinct - n)
    assert len(calibration) + len(test) == len(names)


def test_every_split_is_as_likely() -> None:
    """All six ways to take two of four rows come up equally often."""
    draw, rng = random_splits(numbered(4)), np.random.default_rng(2)
    found = Counter(tuple(sorted(draw(rng, 2, 2)[0].scores)) for _ in range(1200))
    assert len(found) == 6
    assert all(abs(count - 200) < 60 for count in found.values())


def test_shifted_moves_the_test_scores_only() -> None:
    """The calibration part and all labels stay, every test score moves by the same amount."""
    plain, moved = fresh_draws(draw_rag_rows), shifted(fresh_draws(draw_rag_rows), -0.25)
    before, after = (draw(np.random.default_rng(3), 20, 10) for draw in (plain, moved))
    assert np.array_equal(before[0].scores, after[0].scores)
    assert np.allclose(after[1].scores, before[1].scores - 0.25)
    assert np.array_equal(before[1].labels, after[1].labels)


def test_errors_name_the_argument() -> None:
    """A pool that is too small and a list of queries of another length are refused."""
    with pytest.raises(ValueError, match=r"`n` \+ `n_test` must be at most the 5 queries of the pool; got 4"):
        random_splits(numbered(5))(np.random.default_rng(0), 4, 2)
    with pytest.raises(ValueError, match="`queries` must have one entry for each of the 5 rows of `pool`"):
        random_splits(numbered(5), ["a", "b"])
    with pytest.raises(TypeError, match="`queries` must be one name a row; got str"):
        random_splits(numbered(5), "abcde")
