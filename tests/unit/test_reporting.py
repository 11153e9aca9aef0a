"""report_from_embeddings(): the boundary of the engine report."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from rag_confidence import EngineReport, report_from_embeddings, score

FORM = r"^`[\w.\[\]]+` must .+; got .+\. .+$"
QUERY = [1.0, 0.0, 0.0]
ROWS = [[0.8, 0.3, 0.1], [0.9, 0.1, 0.2], [0.85, -0.2, 0.3]]


@pytest.mark.parametrize(
    ("query", "rows", "options"),
    [
        (QUERY, [], {}),
        ([0.0] * 3, ROWS, {}),
        ([math.nan, 0, 0], ROWS, {}),
        (QUERY, [[math.nan] * 3], {}),
        (QUERY, [[0.0] * 3], {"invalid_rows": "drop"}),
        (QUERY, np.ones((2, 4)), {}),
        (QUERY, ROWS, {"parents": [None, 2, 1]}),
        (QUERY, ROWS, {"parents": [None, 0]}),
        (QUERY, ROWS, {"invalid_rows": "ignore"}),
        (QUERY, ROWS, {"loops": "on"}),
        (QUERY, ROWS, {"seed": -1}),
        (QUERY, ROWS, {"duplicate_cosine": 2}),
    ],
)
def test_what_cannot_be_measured_is_refused(query: Any, rows: Any, options: dict[str, Any]) -> None:
    """Where score() has a verdict without numbers the report has nothing to show, and says so."""
    with pytest.raises(ValueError, match=FORM):
        report_from_embeddings(query, rows, **options)


@pytest.mark.parametrize("parents", [None, [None, 0, 0]])
def test_the_report_holds_the_signals_of_score(parents: Any) -> None:
    """The same numbers, with the objects they came from."""
    report = report_from_embeddings(QUERY, ROWS, parents, seed=2)
    record = score(QUERY, ROWS, parents=parents, seed=2).to_dict()
    assert isinstance(report, EngineReport)
    for name in ("max_cosine", "second_bar", "lambda_2", "dirichlet_energy", "flip_angle"):
        assert report.signals[name].tolist() == [record[f"signals.{name}"]], name
    assert report.signals["stability_move"].tolist() == [record["evidence.stability_move"]]
    assert report.barcode.second_bar == pytest.approx(record["signals.second_bar"], abs=1e-12)


def test_nodes_are_places_in_the_served_list() -> None:
    """Best cosine first; dropped rows and duplicates leave gaps."""
    rows = [[0.0] * 3, *ROWS, ROWS[1]]
    report = report_from_embeddings(QUERY, rows, invalid_rows="drop")
    assert report.nodes.tolist() == [2, 1, 3]
    assert (np.diff(report.cosines) <= 0).all()
    np.testing.assert_array_equal(np.diag(report.gram), np.ones(3))


def test_a_tree_keeps_its_order() -> None:
    """The nodes of a tree are the passages as served, duplicates included."""
    report = report_from_embeddings(QUERY, [*ROWS, ROWS[0]], [None, 0, 0, 1])
    assert report.nodes.tolist() == [0, 1, 2, 3]


def test_one_passage_has_a_report() -> None:
    """One vertex, one essential bar."""
    report = report_from_embeddings(QUERY, ROWS[:1])
    assert report.barcode.n_components == 1
    assert report.barcode.second_bar == 0.0


def test_inputs_are_left_alone() -> None:
    """Read-only arrays are accepted and unchanged."""
    rows = np.array(ROWS)
    rows.flags.writeable = False
    report_from_embeddings(np.array(QUERY), rows)
    assert rows.tolist() == ROWS
