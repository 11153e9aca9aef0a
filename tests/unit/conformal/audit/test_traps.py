"""Lexical traps: insufficient rows that a threshold would accept."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_confidence.conformal.audit.traps import find_lexical_traps

ROWS = st.lists(
    st.tuples(st.one_of(st.sampled_from([0.0, 0.5, 0.7, 0.9]), st.floats(0, 1)), st.booleans()),
    min_size=1,
    max_size=16,
)
Rows = list[tuple[float, bool]]

NAMES: list[str | int] = ["report-2024", "report-2026", 7]


@given(ROWS, st.sampled_from([0.0, 0.5, 0.7, 0.95, 1.0]))
def test_the_traps_are_the_accepted_insufficient_rows(rows: Rows, threshold: float) -> None:
    """Exactly the rows with score >= threshold and label 0, by falling score and then in their order."""
    found = find_lexical_traps([s for s, _ in rows], [y for _, y in rows], threshold)
    wanted = sorted(
        (row for row, (s, y) in enumerate(rows) if s >= threshold and not y), key=lambda row: -rows[row][0]
    )
    assert [trap.row for trap in found.traps] == wanted
    assert [trap.rank for trap in found.traps] == list(range(1, len(wanted) + 1))
    assert [trap.score for trap in found.traps] == [rows[row][0] for row in wanted]
    assert len(found) == len(wanted)


@given(ROWS, st.sampled_from([0.0, 0.7, 1.0]))
def test_shares_are_those_of_the_two_groups(rows: Rows, threshold: float) -> None:
    """Traps as a share of the insufficient rows, and of the accepted ones; None of an empty group."""
    found = find_lexical_traps([s for s, _ in rows], [y for _, y in rows], threshold)
    insufficient, accepted = sum(not y for _, y in rows), sum(s >= threshold for s, _ in rows)
    assert (found.n, found.n_insufficient, found.n_accepted) == (len(rows), insufficient, accepted)
    assert found.share_of_insufficient == (len(found) / insufficient if insufficient else None)
    assert found.share_of_accepted == (len(found) / accepted if accepted else None)


def test_a_trap_carries_its_name_texts_and_overlap() -> None:
    """The 2024 report that is offered for a question about 2026 shares two of its three content words."""
    found = find_lexical_traps(
        [0.91, 0.88, 0.30],
        [0, 1, 0],
        item_ids=NAMES,
        queries=["Acme revenue 2026?"] * 3,
        passages=["Acme states its revenue for 2024.", "Revenue of Acme in 2026 ...", "Unrelated."],
    )
    (trap,) = found.traps
    assert trap.to_dict() == {
        "rank": 1,
        "row": 0,
        "score": 0.91,
        "item_id": "report-2024",
        "query": "Acme revenue 2026?",
        "passage": "Acme states its revenue for 2024.",
        "word_overlap": pytest.approx(2 / 3),
    }
    assert found.mean_word_overlap == pytest.approx(2 / 3)
    assert found.summary == (
        "1 of the 2 insufficient rows (50.0 %) reaches the threshold 0.7; of the 2 rows accepted there "
        "1 (50.0 %) is insufficient. On average their passages hold 67 % of the content words of the query."
    )


def test_without_texts_there_is_no_overlap() -> None:
    """Overlap needs both texts; names alone, or one kind of text, leave it None."""
    found = find_lexical_traps([0.9, 0.8], [0, 0], queries=["a question", "another one"])
    assert [trap.word_overlap for trap in found.traps] == [None, None]
    assert (found.mean_word_overlap, found.traps[0].query, found.traps[0].passage) == (
        None,
        "a question",
        None,
    )


def test_no_traps_are_said_so() -> None:
    """Without traps the list is empty and the sentence says why."""
    none = find_lexical_traps([0.2, 0.9], [0, 1])
    assert none.traps == ()
    assert none.summary == "None of the 1 insufficient rows reaches the threshold 0.7."
    assert find_lexical_traps([0.9], [1]).summary.startswith("No row is insufficient")


def test_the_record_is_plain_json() -> None:
    """NumPy names and scores come out as plain values."""
    found = find_lexical_traps(np.array([0.9], dtype=np.float32), np.array([0]), item_ids=np.array([3]))
    record = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert record["traps"][0]["item_id"] == 3
    assert record["share_of_accepted"] == 1.0


def test_a_float_threshold_meets_float32_scores_in_their_precision() -> None:
    """A threshold of 0.7 is met by a single-precision 0.7, which is below the double 0.7."""
    assert len(find_lexical_traps(np.array([0.7], dtype=np.float32), [0])) == 1


def test_raw_scores_need_to_be_declared() -> None:
    """Percentages and logits are refused unless the kind says raw, and then take any threshold."""
    with pytest.raises(
        ValueError, match=r"`scores` must be fractions in \[0, 1\]; got 92[.0]*\. .*percentages"
    ):
        find_lexical_traps([92.0, 30.0], [0, 1])
    assert len(find_lexical_traps([4.2, -1.0], [0, 0], 3.0, score_kind="raw")) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"item_ids": ["a"]}, "`item_ids` must have one entry for each of the 2 rows of `scores`; got 1"),
        ({"queries": ["a"]}, "`queries` must have one entry for each of the 2 rows of `scores`; got 1"),
        ({"passages": ["a"] * 3}, "`passages` must have one entry for each of the 2 rows of `scores`; got 3"),
        ({"threshold": 70}, r"`threshold` must be a number in \[0, 1\]; got 70"),
        ({"score_kind": "percent"}, "`score_kind` must be one of 'fraction', 'raw'; got 'percent'"),
    ],
)
def test_wrong_values_are_named(options: dict[str, Any], message: str) -> None:
    """Each wrong option is one error that names it."""
    with pytest.raises(ValueError, match=message):
        find_lexical_traps([0.9, 0.1], [0, 1], **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"item_ids": "ab"}, "`item_ids` must be an array or a list; got str"),
        ({"item_ids": [1, None]}, r"`item_ids\[1\]` must be a string or an integer; got None"),
        ({"item_ids": [True, 2]}, r"`item_ids\[0\]` must be a string or an integer; got True"),
        ({"passages": ["a", float("nan")]}, r"`passages\[1\]` must be a string; got nan"),
    ],
)
def test_wrong_types_are_type_errors(options: dict[str, Any], message: str) -> None:
    """Names and texts of another type are refused with their place."""
    with pytest.raises(TypeError, match=message):
        find_lexical_traps([0.9, 0.1], [0, 1], **options)
