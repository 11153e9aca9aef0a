"""The table of a gate finds what each group meets, once for all calls."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import quiet

from rag_confidence.conformal.gate.evaluation import evaluate_conformal_gate
from rag_confidence.conformal.gate.fit import fit_conformal_gate
from rag_confidence.conformal.gate.fitted import ConformalGate
from rag_confidence.conformal.gate.table import rows_by_place

GROUPS = ["a", "b", "c", "c"] * 50


def grouped(small_groups: Literal["abstain", "pool"]) -> ConformalGate:
    """A gate with two groups that have enough rows for their level and one that has more."""
    rng = np.random.default_rng(3)
    with quiet():
        return fit_conformal_gate(
            rng.random(200), rng.random(200) < 0.5, 0.03, groups=GROUPS, small_groups=small_groups
        )


@pytest.mark.parametrize("small_groups", ["abstain", "pool"])
def test_bars_are_those_of_each_group(small_groups: Literal["abstain", "pool"]) -> None:
    """Thresholds and flags in columns are those that each group meets alone, unseen ones last."""
    table = grouped(small_groups).table
    names, places, found = table.find_many([0.5] * 4, ["c", "new", "a", "c"])
    assert names == ["c", "new", "a", "c"]
    for name, at in zip(names, places.tolist(), strict=True):
        one = table.find(name)
        assert (one.unfit, one.pooled) == (found[at].unfit, found[at].pooled)
        assert (table.bars.q0[at], table.bars.t1[at]) == (one.cell.q0, one.cell.t1)
        assert (table.bars.unfit[at], table.bars.infinite[at]) == (one.unfit, one.cell.is_infinite)


def test_what_can_be_met_is_found_once() -> None:
    """A second call finds the same objects: many groups cost a table once and not with every call."""
    table = grouped("abstain").table
    assert table.find_many([0.5], ["a"])[2] is table.find_many([0.1], ["new"])[2]
    assert table.bars is table.bars


@given(st.lists(st.integers(0, 5), max_size=30))
def test_rows_by_place_are_all_rows_once(places: list[int]) -> None:
    """Each place comes with the rows that have it, ascending."""
    found = {at: rows.tolist() for at, rows in rows_by_place(np.array(places, dtype=np.intp))}
    assert found == {at: [row for row, p in enumerate(places) if p == at] for at in sorted(set(places))}


@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_an_evaluation_takes_groups_of_any_kind(kind: Any) -> None:
    """A NumPy column of groups is evaluated like a list of them, by plain names."""
    gate, rng = grouped("abstain"), np.random.default_rng(4)
    found = evaluate_conformal_gate(rng.random(200), rng.random(200) < 0.5, gate, kind(GROUPS))
    assert {group: one.n for group, one in found.by_group.items()} == {"a": 50, "b": 50, "c": 100}
    assert all(type(group) is str for group in found.by_group)
