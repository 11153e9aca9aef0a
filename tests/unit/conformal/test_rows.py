"""A row is used once: histories split by query, and fits refuse the rows of another fit."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from histories import few
from hypothesis import given
from hypothesis import strategies as st
from refusals import named, quiet, refuse

from rag_confidence.conformal.gate.fit import fit_conformal_gate
from rag_confidence.conformal.gate.fitted import ConformalGate
from rag_confidence.conformal.rows import PARTS, HistorySplit, Rows, refuse_overlap, rows_of, split_history
from rag_confidence.errors import RowsReused

IDS = st.lists(st.one_of(st.integers(-5, 10**6), st.text(max_size=8)), min_size=1, max_size=60, unique=True)


def scored(n: int, seed: int) -> tuple[Any, Any]:
    """Distinct raw scores of n rows a class."""
    rng = np.random.default_rng([63, seed])
    return np.r_[rng.normal(0, 1, n), rng.normal(4, 1, n)], [0] * n + [1] * n


def fitted(scores: Any, labels: Any, **options: Any) -> ConformalGate:
    """A gate on raw scores, warnings aside."""
    with quiet():
        return fit_conformal_gate(scores, labels, score_kind="raw", **options)


def parts_of(split: HistorySplit) -> dict[int, str]:
    """The part of every row position."""
    return {int(row): part for part in PARTS for row in getattr(split, part)}


# --- splitting


@few
@given(IDS, st.integers(0, 5))
def test_parts_are_disjoint_and_complete(ids: list[Any], seed: int) -> None:
    """Each row is in exactly one part, and positions ascend."""
    split = split_history(ids, seed=seed)
    positions = [row for part in PARTS for row in getattr(split, part).tolist()]
    assert sorted(positions) == list(range(len(ids)))
    for part in PARTS:
        assert getattr(split, part).tolist() == sorted(getattr(split, part).tolist())


@few
@given(st.lists(st.integers(0, 5), min_size=1, max_size=40), st.integers(0, 5))
def test_rows_of_one_query_stay_together(ids: list[int], seed: int) -> None:
    """Rows with one id come into one part, and so do rows with one cluster whatever their ids."""
    by_id = parts_of(split_history(ids, seed=seed))
    by_cluster = parts_of(split_history(list(range(len(ids))), cluster=ids, seed=seed))
    for found in (by_id, by_cluster):
        for query in set(ids):
            assert len({found[row] for row, other in enumerate(ids) if other == query}) == 1


@few
@given(IDS, IDS, st.randoms(use_true_random=False))
def test_a_row_keeps_its_part_when_the_history_grows(ids: list[Any], more: list[Any], order: Any) -> None:
    """The part of an id depends on the id and the seed alone: not on other rows, nor on the order."""
    found = parts_of(split_history(ids))
    part = {id_: found[row] for row, id_ in enumerate(ids)}
    grown = list(dict.fromkeys([*more, *ids]))
    order.shuffle(grown)
    later = parts_of(split_history(grown))
    assert {id_: later[row] for row, id_ in enumerate(grown) if id_ in part} == part


def test_a_split_is_deterministic_and_the_seed_matters() -> None:
    """The same ids and seed give the same parts in every process; another seed gives others."""
    ids = [f"q{i}" for i in range(400)]
    first, again, other = (parts_of(split_history(ids, seed=seed)) for seed in (0, 0, 1))
    assert first == again != other
    assert [first[row] for row in range(6)] == [parts_of(split_history(ids[:6]))[row] for row in range(6)]


def test_parts_have_their_shares() -> None:
    """Over many rows the sizes are near the shares, those given or .3, .1, .4 and .2."""
    ids = [f"q{i}" for i in range(20_000)]
    for shares in (
        None,
        {"model": 0.5, "gate": 0.25, "evaluation": 0.25},
        {"gate": 1.0},
        {"gate": 0.2, "model": 0.6},
    ):
        split = split_history(ids, shares=shares)
        wanted = shares or {"model": 0.3, "probability": 0.1, "gate": 0.4, "evaluation": 0.2}
        for part in PARTS:
            share = wanted.get(part, 0.0) / sum(wanted.values())
            assert abs(len(getattr(split, part)) / len(ids) - share) < 5 * math.sqrt(0.25 / len(ids))
            assert share > 0 or len(getattr(split, part)) == 0


def test_numpy_ids_are_the_plain_ones() -> None:
    """Ids from arrays split as the same ids from a list."""
    texts = [f"q{i}" for i in range(50)]
    assert parts_of(split_history(np.array(texts))) == parts_of(split_history(texts))
    assert parts_of(split_history(np.arange(50))) == parts_of(split_history(list(range(50))))


BAD_SPLITS: list[tuple[str, Any, dict[str, Any]]] = [
    ("row_ids", ["a", None], {}),
    ("row_ids", ["a", math.nan], {}),
    ("row_ids", "abc", {}),
    ("row_ids", 5, {}),
    ("cluster", ["a", "b"], {"cluster": ["x"]}),
    ("cluster", ["a", "b"], {"cluster": ["x", None]}),
    ("shares", ["a"], {"shares": {"train": 1.0}}),
    ("shares", ["a"], {"shares": {"gate": 0.0}}),
    ("shares", ["a"], {"shares": {"gate": -1.0}}),
    ("shares", ["a"], {"shares": {"gate": math.nan}}),
    ("seed", ["a"], {"seed": -1}),
    ("seed", ["a"], {"seed": 0.5}),
    ("seed", ["a"], {"seed": None}),
]


@pytest.mark.parametrize(("name", "ids", "options"), BAD_SPLITS, ids=named)
def test_bad_splits_are_refused(name: str, ids: Any, options: dict[str, Any]) -> None:
    """Missing ids, other lengths, unknown parts, shares that are negative or all zero: one clear error."""
    refuse((TypeError, ValueError), rf"^`{name}[\[\]'\w]*` must ", lambda: split_history(ids, **options))


@pytest.mark.needs_extra("test")
def test_a_split_pairs_series_by_index() -> None:
    """Ids and clusters of one table pair, whatever its index; another order is refused."""
    import pandas as pd

    table = pd.DataFrame(
        {"id": [f"r{i}" for i in range(40)], "q": [i // 2 for i in range(40)]}, index=range(9, 49)
    )
    split = split_history(table["id"], cluster=table["q"])
    assert parts_of(split) == parts_of(split_history(table["id"].tolist(), cluster=table["q"].tolist()))
    refuse(
        ValueError,
        "^`cluster` must have the index",
        lambda: split_history(table["id"], cluster=table["q"][::-1]),
    )


# --- refusing reuse


def test_a_gate_on_the_rows_of_a_model_is_refused_by_id() -> None:
    """One shared row id is enough, whatever the scores are; the count and the other fit are named."""
    other = fitted(*scored(30, 1), row_ids=[f"a{i}" for i in range(60)])
    scores, labels = scored(30, 2)
    ids = [f"b{i}" for i in range(60)]
    fitted(scores, labels, row_ids=ids, disjoint_from=(other,))
    ids[7] = "a3"
    call = lambda: fitted(scores, labels, row_ids=ids, disjoint_from=(other,))  # noqa: E731
    assert "ConformalGate that shares 1 row" in refuse(RowsReused, "^`disjoint_from` must ", call)


def test_a_gate_on_the_rows_of_a_model_is_refused_by_content() -> None:
    """Without ids, equal scores of many decimals with one label give the reuse away."""
    scores, labels = scored(30, 1)
    other = fitted(scores, labels)
    again, _ = scored(30, 2)
    fitted(again, labels, disjoint_from=(other,))
    again[:3] = scores[:3]
    call = lambda: fitted(again, labels, disjoint_from=(other,))  # noqa: E731
    assert "shares 3 rows" in refuse(RowsReused, "^`disjoint_from` must ", call)


@few
@given(st.integers(0, 59))
def test_any_one_reused_row_is_found(row: int) -> None:
    """Whichever row comes back, with ids on one side only too, it is found."""
    scores, labels = scored(30, 1)
    other = fitted(scores, labels, row_ids=range(60))
    again, _ = scored(30, 2)
    again[row] = scores[row]
    refuse(RowsReused, "^`disjoint_from` must ", lambda: fitted(again, labels, disjoint_from=[other]))
    refuse(
        RowsReused,
        "^`disjoint_from` must ",
        lambda: fitted(scored(30, 3)[0], labels, row_ids=[*range(100, 159), row], disjoint_from=[other]),
    )


def test_ids_decide_where_both_sides_have_them() -> None:
    """Rows with other ids are other rows, even if a score comes twice."""
    scores, labels = scored(30, 1)
    other = fitted(scores, labels, row_ids=range(60))
    fitted(scores, labels, row_ids=range(60, 120), disjoint_from=(other,))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rounded_scores_do_not_look_like_reuse(dtype: Any) -> None:
    """Scores of two decimals coincide by chance, in either precision: they are no sign of reuse."""
    scores = np.linspace(0, 1, 60).round(2).astype(dtype)
    labels = ([0] * 20 + [1] * 10) * 2
    other = fitted(scores, labels)
    fitted(scores, labels, disjoint_from=(other,))


def test_a_score_with_the_other_label_is_another_row() -> None:
    """The same score with the other label is another row."""
    scores, labels = scored(30, 1)
    other = fitted(scores, labels)
    fitted(scores, [1 - y for y in labels], disjoint_from=(other,))


def test_all_other_fits_are_looked_at() -> None:
    """Each fit in disjoint_from is compared, the last one too; none and an empty one are fine."""
    scores, labels = scored(30, 1)
    first, second = fitted(*scored(30, 2)), fitted(scores, labels)
    call = lambda: fitted(scores, labels, disjoint_from=(first, second))  # noqa: E731
    refuse(RowsReused, "^`disjoint_from` must ", call)
    fitted(scores, labels, disjoint_from=())


def test_reuse_is_found_after_loading(tmp_path: Any) -> None:
    """A loaded gate remembers its rows: ids as hashes, scores to the bit."""
    scores, labels = scored(30, 1)
    named, clustered = (
        {"row_ids": [f"secret{i}" for i in range(60)]},
        {"clusters": [i // 3 for i in range(60)]},
    )
    for options in ({}, named, clustered, named | clustered):
        path = tmp_path / "gate.json"
        fitted(scores, labels, **options).save(path)
        assert "secret" not in path.read_text()
        other = ConformalGate.load(path)
        call = lambda o=options, g=other: fitted(scores, labels, disjoint_from=(g,), **o)  # noqa: E731
        refuse(RowsReused, "^`disjoint_from` must ", call)


def test_clusters_hide_no_reuse() -> None:
    """Rows that a clustered gate did not keep were looked at too, and come back as reuse."""
    scores, labels = scored(30, 1)
    other = fitted(scores, labels, clusters=[i // 2 for i in range(60)])
    kept = np.concatenate([other.rows.scores0, other.rows.scores1])
    dropped = ~np.isin(scores, kept) if len(kept) < 60 else np.arange(60) % 2 == 0
    again, of_again = scores[dropped], np.array(labels)[dropped]
    refuse(RowsReused, "^`disjoint_from` must ", lambda: fitted(again, of_again, disjoint_from=(other,)))


@pytest.mark.parametrize(
    "ids",
    [["a"] * 60, ["a", *list(range(58))], ["a", None, *list(range(58))], "a" * 60, 5],
    ids=lambda v: str(v)[:12],
)
def test_row_ids_name_each_row_once(ids: Any) -> None:
    """Ids that repeat, are missing, or are too few are refused."""
    refuse((TypeError, ValueError), "^`row_ids` must ", lambda: fitted(*scored(30, 1), row_ids=ids))


@pytest.mark.parametrize("others", [5, "gate", [object()], [None], [{"rows": 1}]], ids=named)
def test_what_remembers_no_rows_is_refused(others: Any) -> None:
    """Something that was not fitted cannot be compared, and that is said."""
    refuse(
        (TypeError, ValueError),
        r"^`disjoint_from(\[0\])?` must ",
        lambda: fitted(*scored(30, 1), disjoint_from=others),
    )


def test_one_fit_may_stand_alone() -> None:
    """A single fitted object is compared, or refused with a cure; it is never skipped."""
    scores, labels = scored(30, 1)
    other = fitted(scores, labels)
    refuse(
        (RowsReused, TypeError), "^`disjoint_from` must ", lambda: fitted(scores, labels, disjoint_from=other)
    )


# --- rows as a record


@few
@given(st.lists(st.tuples(st.floats(-1e300, 1e300), st.booleans()), min_size=1, max_size=20), st.booleans())
def test_rows_are_written_to_the_bit(table: list[tuple[float, bool]], named: bool) -> None:
    """to_dict is JSON, and from_dict gives the same rows back."""
    scores, labels = np.array([s for s, _ in table]), np.array([y for _, y in table])
    rows = rows_of(scores, labels, list(range(len(table))) if named else None)
    back = Rows.from_dict(json.loads(json.dumps(rows.to_dict(), allow_nan=False)))
    assert back.ids == rows.ids
    assert back.scores0.tobytes() == rows.scores0.tobytes() == np.sort(scores[~labels]).tobytes()
    assert back.scores1.tobytes() == rows.scores1.tobytes() == np.sort(scores[labels]).tobytes()


class Holder:
    """Something fitted on rows."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows


def test_any_fit_that_holds_rows_can_be_compared() -> None:
    """refuse_overlap works for whatever remembers its rows, and names its class."""
    labels = np.array([False, True])
    mine = rows_of(np.array([0.1, 0.9]), labels, ["a", "b"])
    refuse_overlap(mine, [Holder(rows_of(np.array([0.1, 0.9]), labels, ["c", "d"]))])
    other = Holder(rows_of(np.array([0.5, 0.6]), labels, ["b", "c"]))
    refuse(RowsReused, "got a Holder that shares 1 row", lambda: refuse_overlap(mine, [other]))


# --- names that are none


@pytest.mark.parametrize("ids", [[7, "7", 8, 9], [7, 7.0, 8, 9], ["7", 7.0, 8, 9]], ids=named)
def test_ids_that_count_as_one_are_both_shown(ids: list[Any]) -> None:
    """7, 7.0 and "7" are one id, and the refusal shows each as it came."""
    call = lambda: rows_of(np.arange(4.0), np.array([0, 1, 0, 1], dtype=bool), ids)  # noqa: E731
    message = refuse(ValueError, "^`row_ids` must differ", call)
    assert f"{ids[0]!r}, {ids[1]!r} more than once" in message


@pytest.mark.parametrize("odd", [10**5000, 2**64, ([],)], ids=["huge", "65 bits", "list in tuple"])
@pytest.mark.parametrize("name", ["row_ids", "clusters"])
def test_names_can_be_hashed_and_shown(name: str, odd: Any) -> None:
    """An integer beyond 64 bits and what has no hash name nothing."""
    names = {name: [odd, *range(17)]}
    call = lambda: fit_conformal_gate([0.1, 0.9] * 9, [0, 1] * 9, **names)  # noqa: E731
    refuse((TypeError, ValueError), f"^`{name}` must be ", call)


def test_a_seed_has_64_bits() -> None:
    """A seed too long to be written out is refused as such."""
    refuse(ValueError, "^`seed` must be of at most 64 bits", lambda: split_history([1, 2], seed=10**5000))


@pytest.mark.needs_extra("test")
@pytest.mark.parametrize("name", ["row_ids", "clusters"])
@pytest.mark.parametrize("missing", ["NA", "NaT"])
def test_the_missing_values_of_pandas_name_nothing(name: str, missing: str) -> None:
    """NA and NaT among names are refused as missing, like None."""
    import pandas as pd

    names = {name: [getattr(pd, missing), *range(17)]}
    call = lambda: fit_conformal_gate([0.1, 0.9] * 9, [0, 1] * 9, **names)  # noqa: E731
    refuse(ValueError, f"^`{name}` must name every row", call)


# --- rows of two precisions


@pytest.mark.parametrize("narrow_first", [True, False])
def test_reuse_is_found_across_precisions(narrow_first: bool) -> None:
    """The same rows stored as float32 and as float64 are met again, in either order."""
    scores, labels = np.random.default_rng(5).random(40), np.arange(40) % 2 == 0
    wide, narrow = rows_of(scores, labels, None), rows_of(scores.astype(np.float32), labels, None)
    first, second = (narrow, wide) if narrow_first else (wide, narrow)
    with pytest.raises(RowsReused, match=r"shares [234]\d rows"):
        refuse_overlap(first, Stored(second))


def test_half_precision_tells_no_rows_apart() -> None:
    """Scores in half precision coincide by chance, so they are no sign of reuse beside any other."""
    scores, labels = np.random.default_rng(5).random(40), np.arange(40) % 2 == 0
    half, wide = rows_of(scores.astype(np.float16), labels, None), rows_of(scores, labels, None)
    refuse_overlap(half, Stored(wide))
    refuse_overlap(wide, Stored(half))


def test_written_scores_of_two_precisions_do_not_look_like_reuse() -> None:
    """Scores of six decimals coincide without being one row, whatever they are stored in."""
    scores, labels = np.round(np.random.default_rng(5).random(40), 6), np.arange(40) % 2 == 0
    wide, narrow = rows_of(scores, labels, None), rows_of(scores.astype(np.float32), labels, None)
    refuse_overlap(wide, Stored(narrow))
    refuse_overlap(narrow, Stored(wide))


def test_scores_beyond_single_precision_tell_nothing_there() -> None:
    """A score that float32 cannot hold is compared with none of them, and warns of nothing."""
    labels = np.array([True, False])
    wide = rows_of(np.array([1e300, -1e300]), labels, None)
    refuse_overlap(wide, Stored(rows_of(np.array([0.1234567891, 0.2], dtype=np.float32), labels, None)))


class Stored:
    """Something fitted on rows."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows


def test_the_largest_scores_tell_nothing_and_overflow_nowhere() -> None:
    """Scores near the end of the doubles are compared without a warning, and are no sign of reuse."""
    scores, labels = [1.7e308, 1.7e308, -1.7e308, 2.0**52, 1e300, 5.0], [0, 1, 0, 1, 0, 1]
    other = fitted(scores, labels)
    fitted(scores, labels, disjoint_from=other)
