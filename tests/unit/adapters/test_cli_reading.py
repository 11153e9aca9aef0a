"""Files of rows: every format gives the same columns, and what is wrong is named by file and line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import lines_file, run
from refusals import refuse

from rag_confidence import audit_scores

pytestmark = pytest.mark.needs_extra("cli")

SCORES = [0.9, 0.2, 0.7, 0.4, 0.6, 0.1]
LABELS = [True, False, False, True, True, False]
ROWS = [{"kpi": score, "label": label} for score, label in zip(SCORES, LABELS, strict=True)]


def write(folder: Path, ending: str) -> Path:
    """The rows in a file of that format."""
    path = folder / f"rows{ending}"
    if ending in (".jsonl", ".ndjson"):
        return lines_file(path, ROWS)
    if ending == ".npz":
        np.savez(path, kpi=SCORES, label=np.array(LABELS))
    elif ending == ".parquet":
        from pyarrow import Table, parquet

        parquet.write_table(Table.from_pylist(ROWS), path)
    else:
        path.write_text(json.dumps(ROWS if ending == ".json" else {"kpi": SCORES, "label": LABELS}))
    return path


@pytest.mark.parametrize(
    "ending",
    [
        ".jsonl",
        ".ndjson",
        ".json",
        ".npz",
        pytest.param(".parquet", marks=pytest.mark.needs_extra("parquet")),
    ],
)
def test_every_format_gives_the_same(tmp_path: Path, ending: str) -> None:
    """The audit of a file is that of its columns."""
    found = run("audit", write(tmp_path, ending), "--json")
    assert (found.code, found.err) == (0, "")
    assert found.document["brier"] == audit_scores(SCORES, LABELS).brier


def test_json_of_columns_and_standard_input(tmp_path: Path) -> None:
    """An object of lists is read too, and `-` is JSON lines from a pipe, blank lines and all."""
    columns = tmp_path / "rows.json"
    columns.write_text(json.dumps({"kpi": SCORES, "label": LABELS}))
    piped = "\n\n".join(map(json.dumps, ROWS))
    assert run("audit", columns, "--json").out == run("audit", "-", "--json", stdin=piped).out


def test_columns_are_found_by_name_and_inside_of_objects(tmp_path: Path) -> None:
    """`a.b` is b inside of a, unless a column has that very name."""
    nested = [{"scores": {"judge": row["kpi"]}, "judge.ok": row["label"]} for row in ROWS]
    path = lines_file(tmp_path / "rows.jsonl", nested)
    found = run("audit", path, "--score-column", "scores.judge", "--label-column", "judge.ok", "--json")
    assert found.document["n"] == len(ROWS)


def test_rows_without_score_or_label_are_left_out_and_counted(tmp_path: Path) -> None:
    """A log is never labelled as a whole."""
    path = lines_file(
        tmp_path / "rows.jsonl", [*ROWS, {"kpi": 0.5, "label": None}, {"kpi": None, "label": 1}]
    )
    found = run("audit", path, "--json")
    assert found.document["n"] == len(ROWS)
    assert found.err.splitlines() == ["left out 1 rows without 'kpi'", "left out 1 rows without 'label'"]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("r.jsonl", '{"kpi": 0.5, "label": 1}\n\nnonsense', "r.jsonl line 3` must be JSON"),
        ("r.jsonl", '{"kpi": NaN, "label": 1}', "r.jsonl line 1` must be JSON; got the number NaN"),
        ("r.jsonl", "[1, 2]", "r.jsonl line 1` must be one JSON object; got list"),
        ("r.jsonl", "[" * 100_000, "r.jsonl line 1` must be JSON"),
        ("r.jsonl", '{"kpi": 0.5, "label": 1}\n{"label": 1}', "r.jsonl line 2` must have the column 'kpi'"),
        ("r.jsonl", '{"kpi": "0.5", "label": 1}', "`kpi` must be a number; got '0.5' in .*r.jsonl line 1"),
        ("r.jsonl", '{"kpi": true, "label": 1}', "`kpi` must be a number; got True"),
        (
            "r.jsonl",
            '{"kpi": 0.5, "label": "no"}',
            "`label` must be true, false, 1 or 0; got 'no' in .* line 1",
        ),
        ("r.jsonl", '{"kpi": 0.5, "label": 2}', "`label` must be true, false, 1 or 0; got 2"),
        ("r.json", "{", "r.json` must be JSON"),
        ("r.json", "3", "r.json` must hold a list of objects"),
        ("r.json", '{"kpi": [1], "label": []}', "r.json` must hold columns of one length"),
        ("r.npz", "not an archive", "r.npz` must be a NumPy archive"),
        ("r.csv", "kpi,label", "r.csv` must end in .jsonl"),
        ("r", "", "r` must end in .jsonl"),
    ],
)
def test_bad_files_are_named(tmp_path: Path, name: str, text: str, said: str) -> None:
    """One line with the file, and the line in it where it has lines."""
    path = tmp_path / name
    path.write_text(text)
    found = run("audit", path)
    assert (found.code, found.out, found.err.count("\n")) == (2, "", 1)
    with pytest.raises(ValueError, match=said):
        raise ValueError(found.err)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    """Missing files, folders, and what is no UTF-8."""
    assert "none.jsonl: No such file" in run("audit", tmp_path / "none.jsonl").err
    (tmp_path / "folder.jsonl").mkdir()
    assert "folder.jsonl: Is a directory" in run("audit", tmp_path / "folder.jsonl").err
    (tmp_path / "latin.jsonl").write_bytes(b'{"kpi": "\xe9"}\n')
    assert "must be UTF-8" in run("audit", tmp_path / "latin.jsonl").err


def test_archives_of_objects_are_refused(tmp_path: Path) -> None:
    """Nothing in a file is ever run."""
    np.savez(tmp_path / "rows.npz", kpi=np.array([{}], dtype=object), label=np.array([1]))
    assert "must be a NumPy archive of plain arrays" in run("audit", tmp_path / "rows.npz").err


@pytest.mark.needs_extra("parquet")
def test_a_damaged_parquet_file_is_refused(tmp_path: Path) -> None:
    """In one line, with its name."""
    (tmp_path / "rows.parquet").write_bytes(b"PAR1 nothing PAR1")
    found = run("audit", tmp_path / "rows.parquet")
    assert (found.code, found.err.count("\n")) == (2, 1)
    assert "rows.parquet` must be a Parquet file" in found.err


def test_refusals_have_the_form_of_the_library(tmp_path: Path) -> None:
    """What, got, cure."""
    from rag_confidence.adapters._cli.history import Columns, read_history

    refuse(ValueError, "DATA", lambda: read_history(None, None, Columns()))
    refuse(ValueError, "DATA", lambda: read_history(tmp_path, "store", Columns()))
