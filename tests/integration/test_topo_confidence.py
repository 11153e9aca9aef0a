"""scripts/topo_confidence.py as a user runs it: in its own process, with warnings as errors."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag_confidence import report_from_embeddings

Main = Callable[..., tuple[int, str, str]]

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "topo_confidence.py"


def run(*arguments: object, data: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the script, by default without a data folder."""
    return subprocess.run(
        [sys.executable, "-W", "error", str(SCRIPT), *map(str, arguments)],
        capture_output=True,
        encoding="utf-8",
        env=os.environ | {"RAG_CONFIDENCE_DATA": str(data or SCRIPT.parent / "no-such-folder")},
        timeout=120,
        check=False,
    )


@pytest.fixture
def main(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Main:
    """The script's main() in this process, without a data folder: exit code, stdout, stderr."""
    monkeypatch.setenv("RAG_CONFIDENCE_DATA", str(SCRIPT.parent / "no-such-folder"))
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    script = importlib.import_module(SCRIPT.stem)

    def call(*arguments: object) -> tuple[int, str, str]:
        try:
            code = script.main([*map(str, arguments)])
        except SystemExit as stop:
            code = stop.code
        out, err = capsys.readouterr()
        return code, out, err

    return call


def text(*arguments: object, data: Path | None = None) -> str:
    """What a successful run prints."""
    done = run(*arguments, data=data)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def record(*arguments: object, data: Path | None = None) -> Any:
    """What a successful run with --json prints, parsed."""
    return json.loads(text(*arguments, "--json", data=data))


def sections(out: str) -> dict[str, list[str]]:
    """Title -> lines of each section."""
    parts = [part.splitlines() for part in out.split("== ")[1:]]
    return {title: [line for line in lines if line] for title, *lines in parts}


@pytest.fixture
def arrays(tmp_path: Path) -> Path:
    """Five passages in an .npz file: two groups, and the last one a copy of the first."""
    passages = np.array([[2, 1, 0, 0], [2, 1, 0.6, 0], [1.5, 0, 0, 2], [1.5, 0, 0.6, 2], [4, 2, 0, 0]])
    np.savez(tmp_path / "in.npz", query=[1.0, 0, 0, 0], passages=passages)
    return tmp_path / "in.npz"


def test_it_runs_without_data_and_without_arguments() -> None:
    """Vectors made for the purpose show two regions, a near copy and every section."""
    out = sections(text())
    assert out["Retrieval"] == ["made vectors (no data folder)", "10 passages as a flat list, 1 left out"]
    assert len(out["Cosines to the query"]) == 10
    assert sum("left out: most like [0]" in line for line in out["Cosines to the query"]) == 1
    assert {"Merge tree", "Betti curve", "Regions of relevance", "Stability", "Loops"} < set(out)
    assert any("never dies" in line for line in out["Barcode: from death (left) to birth (right)"])


def test_the_numbers_are_those_of_the_report(arrays: Path) -> None:
    """The JSON holds the values, bars and merges of `report_from_embeddings`."""
    found = record("--npz", arrays, "--loops", "off", "--seed", 3)
    with np.load(arrays) as file:
        report = report_from_embeddings(file["query"], file["passages"], seed=3)
    curvature = report.curvature[np.isfinite(report.curvature)]
    beside = {
        "movement_bound": report.movement_bound,
        "curvature_mean": curvature.mean(),
        "curvature_min": curvature.min(),
    }
    assert found["values"] == report.values | beside
    assert found["merge_tree"] == report.merge_tree()
    assert [bar["birth"] for bar in found["bars"]] == report.barcode.bars[:, 0].tolist()
    assert [bar["death"] for bar in found["bars"]] == [None, *report.barcode.finite_bars[:, 1].tolist()]
    assert [entry["passage"] for entry in found["passages"]] == report.nodes.tolist()
    assert found["left_out"] == [{"passage": 4, "most_like": 0}]


def test_text_and_json_agree(arrays: Path) -> None:
    """Each bar is a line, each merge a line below the region that absorbs it."""
    out, found = sections(text("--npz", arrays)), record("--npz", arrays)
    bars = out["Barcode: from death (left) to birth (right)"]
    assert [line.split("|")[0].strip() for line in bars] == [f"[{bar['passage']}]" for bar in found["bars"]]
    merges = [f"[{m['younger']}] joins [{m['elder']}] at {m['level']:+.4f}" for m in found["merge_tree"]]
    assert sorted(line.lstrip("|`- ") for line in out["Merge tree"][1:]) == sorted(merges)
    assert len(out["Betti curve"]) == len(found["betti_curve"]) + 1


def test_betti_steps_leave_no_gap(arrays: Path) -> None:
    """Every step begins where the one above ends, and one region is left at the bottom."""
    curve = record("--npz", arrays)["betti_curve"]
    assert [step["to"] for step in curve[:-1]] == [step["from"] for step in curve[1:]]
    assert (curve[-1]["to"], curve[-1]["regions"]) == (None, 1)


def test_parents_make_a_tree(arrays: Path, tmp_path: Path) -> None:
    """With --parents the barcode is that of the tree, and copies stay in."""
    (tmp_path / "parents.json").write_text("[null, 0, 0, 2, 1]")
    found = record("--npz", arrays, "--parents", tmp_path / "parents.json")
    assert found["parents"] == [-1, 0, 0, 2, 1]
    assert (found["left_out"], found["values"]["n_nodes"]) == ([], 5.0)


def test_one_passage_is_enough(tmp_path: Path) -> None:
    """A single passage gives one bar, no merge, and dashes for what needs two."""
    np.savez(tmp_path / "one.npz", query=[1.0, 0.5], passages=[[1.0, 0.0]])
    out = sections(text("--npz", tmp_path / "one.npz"))
    assert out["Merge tree"] == ["[0] the best passage's region"]
    assert "not assessed" in out["Stability"][0]
    assert out["Loops"][0].startswith("not assessed")


@pytest.mark.needs_data
def test_a_query_of_a_real_set_is_shown_with_its_texts(data_dir: Path) -> None:
    """The k nearest passages of the set, with the question and the start of each text."""
    out = sections(text("--set", "scifact", "--model", "usem3", "--query", 7, "-k", 12, data=data_dir))
    assert out["Retrieval"][0].startswith("scifact, usem3, query 7: ")
    assert out["Retrieval"][1].startswith("12 passages")
    assert all(len(line) > 30 for line in out["Cosines to the query"] if "left out" not in line)


@pytest.mark.needs_data
def test_real_data_is_the_default_where_it_is(data_dir: Path) -> None:
    """Without arguments and with a data folder, query 0 of squad2 is shown."""
    assert record("--loops", "off", data=data_dir)["source"].startswith("squad2, minilm, query 0: ")


@pytest.mark.needs_extra("plots")
def test_the_plot_is_written(arrays: Path, tmp_path: Path) -> None:
    """--plot leaves a picture and prints the same text."""
    assert text("--npz", arrays, "--plot", tmp_path / "out.png") == text("--npz", arrays)
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.needs_extra("topology")
def test_surrogates_give_a_p_value(arrays: Path) -> None:
    """--loops surrogate fills in the p-value that the ratio test leaves open."""
    by_ratio = record("--npz", arrays)["values"]
    by_rotation = record("--npz", arrays, "--loops", "surrogate")["values"]
    assert by_ratio["loop_p_value"] is None
    assert 0.05 <= by_rotation["loop_p_value"] <= 1.0


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--set", "squad2"], "the data folder must hold"),
        (["--data", "no-such-folder"], "the data folder must hold"),
        (["--npz", "no-such.npz"], "No such file"),
        (["--npz", SCRIPT], "must be an .npz file"),
        (["--npz", "in.npz", "--set", "squad2"], "not allowed with"),
        (["--npz", "other.npz"], "got other"),
        (["--npz", "bent.npz"], "`passage_embeddings` must have shape (n, 2)"),
        (["--npz", "in.npz", "--parents", "cycle.json"], "`parents`"),
        (["--npz", "in.npz", "--parents", "text.json"], "must be a JSON file"),
        (["--npz", "in.npz", "--parents", "number.json"], "must hold a list"),
        (["--npz", "in.npz", "--seed", "-1"], "`seed`"),
        (["--set", "nothing"], "invalid choice"),
    ],
    ids=lambda part: part if isinstance(part, str) else None,
)
def test_bad_input_is_one_sentence_and_exit_code_2(
    arguments: list[object], complaint: str, arrays: Path, tmp_path: Path, main: Main
) -> None:
    """No traceback, nothing on stdout, and the option or argument is named."""
    np.savez(tmp_path / "other.npz", other=np.ones(3))
    np.savez(tmp_path / "bent.npz", query=np.ones(2), passages=np.ones((2, 3)))
    for name, content in (("cycle", "[1, 0, 0, 0, 0]"), ("text", "null 0"), ("number", "3")):
        (tmp_path / f"{name}.json").write_text(content)
    there = [tmp_path / part if (tmp_path / str(part)).is_file() else part for part in arguments]
    code, out, problem = main(*there)
    assert (code, out) == (2, "")
    assert complaint in problem


@pytest.mark.needs_data
@pytest.mark.parametrize(
    ("option", "value"), [("--query", "3000"), ("--query", "-1"), ("-k", "0"), ("-k", "99999")]
)
def test_a_row_that_is_not_there_is_refused(option: str, value: int, data_dir: Path, main: Main) -> None:
    """The range of the set is named."""
    code, _, problem = main("--set", "squad2", option, value, "--data", data_dir)
    assert code == 2
    assert f"{option} must be" in problem


def test_the_exit_code_reaches_the_shell() -> None:
    """A refused run of the script itself ends with 2 and without a traceback."""
    done = run("--npz", "no-such.npz")
    assert done.returncode == 2
    assert done.stderr.startswith("topo_confidence.py: ")
