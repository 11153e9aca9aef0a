"""A store becomes one file, whole or not at all."""

from __future__ import annotations

import json
import math
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from refusals import refuse
from store_places import call

from rag_confidence._calls import ToolCallContext
from rag_confidence.errors import StoreError
from rag_confidence.store import CalibrationStore

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def filled(place: str) -> CalibrationStore:
    """A store with a full call, a bare one and one of another tool."""
    store = CalibrationStore(place)
    context = ToolCallContext("search", {"query": "ü\ud800"}, token_logprobs=(-math.inf, -0.5), call_id="c")
    store.add(
        context,
        True,
        scores={"x": math.inf, "y": 0.1 + 0.2},
        fingerprints={"x": "f"},
        labeling_source="human",
        group=1,
        recorded_at=NOON,
    )
    store.add(call("bare"))
    store.add(call("c", tool_name="other"), False, scores={"z": 1.0})
    return store


def test_jsonl_has_one_ascii_line_a_call(place: str, tmp_path: Path) -> None:
    """Standard JSON in the order of numbers; conditions select, and the count is returned."""
    path = tmp_path / "out.jsonl"
    with filled(place) as store:
        assert store.export(path) == 3
        lines = [json.loads(line) for line in path.read_bytes().decode("ascii").splitlines()]
        assert [line["id"] for line in lines] == [1, 2, 3]
        assert lines[0]["scores"] == {"x": "inf", "y": 0.1 + 0.2}
        assert lines[0]["recorded_at"] == "2026-11-30T12:00:00+00:00"
        assert len({line["uid"] for line in lines}) == 3
        assert store.export(path, tool_name="other", limit=5) == 1
        assert json.loads(path.read_text())["outcome"] is False


@pytest.mark.needs_extra("parquet")
def test_parquet_has_a_column_for_every_check(place: str, tmp_path: Path) -> None:
    """Floats are exact, times have their zone, and what a call lacks is null."""
    import pyarrow.parquet as parquet

    path = tmp_path / "out.parquet"
    with filled(place) as store:
        assert store.export(path) == 3
    table = parquet.read_table(path)
    assert table.column("scores.y").to_pylist() == [0.1 + 0.2, None, None]
    assert table.column("scores.x").to_pylist() == [math.inf, None, None]
    assert table.column("scores.z").to_pylist() == [None, None, 1.0]
    assert table.column("outcome").to_pylist() == [True, None, False]
    assert table.column("recorded_at").to_pylist()[0] == NOON
    assert table.column("group").to_pylist() == ["1", None, None]
    assert json.loads(table.column("context").to_pylist()[0])["args"] == {"query": "ü\ud800"}


@pytest.mark.needs_extra("parquet")
def test_a_check_whose_name_is_no_unicode_has_a_column(tmp_path: Path) -> None:
    """One odd name does not keep the whole store from being written."""
    import pyarrow.parquet as parquet

    path = tmp_path / "out.parquet"
    with CalibrationStore(tmp_path / "calls.db") as store:
        store.add(call(), scores={"odd\ud800": 1.0})
        assert store.export(path) == 1
    assert parquet.read_table(path).column("scores.odd\\ud800").to_pylist() == [1.0]


@pytest.mark.needs_extra("parquet")
def test_parquet_of_an_empty_store_is_an_empty_table(tmp_path: Path) -> None:
    """With the columns that every table has."""
    import pyarrow.parquet as parquet

    with CalibrationStore(tmp_path / "calls.db") as store:
        assert store.export(tmp_path / "out.parquet") == 0
    assert parquet.read_table(tmp_path / "out.parquet").num_rows == 0


@pytest.mark.parametrize(
    "ending", ["jsonl", pytest.param("parquet", marks=pytest.mark.needs_extra("parquet"))]
)
def test_a_failed_export_leaves_the_earlier_file(tmp_path: Path, ending: str) -> None:
    """A row that cannot be read ends it, and neither half a file nor a draft is left."""
    path = tmp_path / f"out.{ending}"
    path.write_text("earlier")
    with filled(str(tmp_path / "calls.db")) as store:
        with store._access._backend.writing() as transaction:
            transaction.run("UPDATE rag_confidence_calls SET context = '' WHERE id = 3")
        refuse(StoreError, "call 3", lambda: store.export(path))
    assert path.read_text() == "earlier"
    assert sorted(os.listdir(tmp_path)) == ["calls.db", f"out.{ending}"]


@pytest.mark.parametrize("name", ["out.csv", "out", "jsonl"])
def test_other_formats_are_refused(tmp_path: Path, name: str) -> None:
    """The ending names the format, and an unknown one makes no file."""
    with CalibrationStore(tmp_path / "calls.db") as store:
        refuse(ValueError, r"`path` must end in .jsonl or .parquet", lambda: store.export(tmp_path / name))
    assert not (tmp_path / name).exists()


def test_parquet_without_its_package_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The install command is in the message."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    missing = pytest.raises(ImportError, match=r"rag-confidence\[parquet\]")
    with CalibrationStore(tmp_path / "calls.db") as store, missing:
        store.export(tmp_path / "out.parquet")
