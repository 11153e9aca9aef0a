"""scripts/evaluate.py from end to end: made-up sets in the layout of BEIR, and a slice of a real one."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import beir_folder
import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "evaluate.py"
SMALL = ("--quick", "--draws", "2", "--rounds", "20", "--jobs", "1")
FIRST = ("--sets", "first")
BASELINES = {
    "max",
    "top3",
    "topk",
    "margin",
    "deviation",
    "nqc",
    "smv",
    "a_ratio",
    "excess",
    "seed",
    "plain",
}
METRICS = {"auroc", "aurc", "e_aurc", "nauc", "acceptance", "kept", "brier"}


def run(*options: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the script as a user does."""
    command = [sys.executable, str(SCRIPT), *map(str, options)]
    one_thread = os.environ | dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
    return subprocess.run(command, capture_output=True, text=True, check=False, env=one_thread)


def numbers(folder: Path) -> dict[str, Any]:
    """What results.json holds."""
    return dict(json.loads((folder / "results.json").read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, subprocess.CompletedProcess[str]]:
    """Two made-up sets, the pages written about the first, and what the run said."""
    base = tmp_path_factory.mktemp("evaluate")
    for name in ("first", "second"):
        beir_folder.write_set(base / "sets", name)
    done = run(base / "sets", *SMALL, *FIRST, "--out", base / "pages", "--cache", base / "cache")
    assert done.returncode == 0, done.stderr
    return base, base / "pages", done


def test_every_score_is_measured_on_every_kind_of_negative(tiny: tuple[Path, Path, Any]) -> None:
    """All baselines and metrics, per stratum, as means and for each pair; learned scores at their budgets."""
    found = numbers(tiny[1])
    free = [one for one in found["means"] if one["labels"] == 0]
    strata = [one["stratum"] for one in free]
    assert strata == ["natural", "near miss", "ranking failure", "withheld evidence", "topic gap"]
    for one in free:
        assert set(one["values"]) >= BASELINES
        assert all(set(values) == METRICS for values in one["values"].values())
    learned = {one["labels"] for one in found["means"] if "sorted" in one["values"]}
    assert learned == {25, 50, 100}
    gap = next(one for one in free if one["stratum"] == "topic gap")
    assert gap["values"]["max"]["auroc"] > 0.95


def test_pages_hold_the_numbers_of_the_results(tiny: tuple[Path, Path, Any]) -> None:
    """The index shows the means to three places, one page a stratum is linked, and says that it was quick."""
    _, pages, done = tiny
    text = (pages / "index.md").read_text(encoding="utf-8")
    natural = numbers(pages)["means"][0]["values"]
    row = next(line for line in text.splitlines() if line.startswith("| max cosine"))
    assert row.split("|")[2].strip() == f"{natural['max']['auroc']:.3f}"
    linked = re.findall(r"\]\(([a-z_/]+\.(?:md|png))\)", text)
    assert all((pages / name).is_file() for name in linked)
    assert len([name for name in linked if name.endswith(".md")]) == 5
    assert "This is a quick run" in text
    assert len(done.stdout.splitlines()) == len(list(pages.rglob("*.*")))
    assert "3/3" in done.stderr


def test_a_second_run_measures_nothing_and_writes_the_same(tiny: tuple[Path, Path, Any]) -> None:
    """Finished parts are read from the cache, and every file comes out the same to the byte."""
    base, pages, _ = tiny
    again = run(base / "sets", *SMALL, *FIRST, "--out", base / "again", "--cache", base / "cache")
    assert (again.returncode, again.stderr) == (0, "")
    files = sorted(path.relative_to(pages) for path in pages.rglob("*.*"))
    assert files == sorted(path.relative_to(base / "again") for path in (base / "again").rglob("*.*"))
    assert all((pages / name).read_bytes() == (base / "again" / name).read_bytes() for name in files)


def test_an_interrupted_run_goes_on(tiny: tuple[Path, Path, Any]) -> None:
    """A part that is missing or was cut off is measured again, in other processes with the same results."""
    base, pages, _ = tiny
    first, second, *_ = sorted((base / "cache").iterdir())
    first.unlink()
    second.write_text(second.read_text(encoding="utf-8")[:100], encoding="utf-8")
    options = (*SMALL[:-2], *FIRST, "--jobs", "2", "--out", base / "resumed", "--cache", base / "cache")
    done = run(base / "sets", *options)
    assert done.returncode == 0, done.stderr
    assert re.findall(r"^\d/3", done.stderr, re.MULTILINE) == ["2/3", "3/3"]
    for before, after in zip(numbers(pages)["means"], numbers(base / "resumed")["means"], strict=True):
        assert before["values"]["max"] == pytest.approx(after["values"]["max"], abs=1e-4)


def test_a_set_alone_has_no_topic_gaps(tmp_path: Path) -> None:
    """One set given by its own folder: what needs other sets is left out."""
    place = beir_folder.write_set(tmp_path, "alone", queries=100)
    done = run(place, *SMALL, "--out", tmp_path / "pages", "--cache", tmp_path / "cache")
    assert done.returncode == 0, done.stderr
    assert "topic gap" not in {one["stratum"] for one in numbers(tmp_path / "pages")["means"]}


def test_without_negatives_there_is_nothing_to_say(tmp_path: Path) -> None:
    """Too few rows of a class in every stratum: one line, exit code 2, no page."""
    place = beir_folder.write_set(tmp_path, "few", queries=30, passages=60)
    done = run(place, *SMALL, "--out", tmp_path / "pages", "--cache", tmp_path / "cache")
    assert done.returncode == 2
    assert done.stderr.endswith(
        "evaluate.py: no kind of negatives has 25 rows of each class on a corpus of 100 passages or more.\n"
    )
    assert not (tmp_path / "pages").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["absent"], r"evaluate.py: no folder absent\. Pass a folder of sets, or the folder of one set\.\n"),
        (["."], r"evaluate.py: no set in \.: neither it nor a folder inside it holds emb_<embedder>.npz.*\n"),
    ],
)
def test_a_folder_without_sets_is_one_line(tmp_path: Path, options: list[str], message: str) -> None:
    """What is missing and what to do about it, exit code 2, no page."""
    command = [sys.executable, str(SCRIPT), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(message, done.stderr)


def test_a_broken_set_is_one_line(tmp_path: Path) -> None:
    """The set, the file and the cure."""
    place = beir_folder.write_set(tmp_path, "broken", queries=3, passages=30)
    (place / "corpus.jsonl").unlink()
    done = run(tmp_path, *SMALL, "--out", tmp_path / "pages", "--cache", tmp_path / "cache")
    assert done.returncode == 2
    assert done.stderr == "evaluate.py: broken: corpus.jsonl is missing. Write one JSON object a line.\n"


@pytest.mark.needs_data
def test_a_slice_of_a_real_set(data_dir: Path, tmp_path: Path) -> None:
    """The best cosine predicts near misses on clapnq about as well as its index says (.856 on all rows)."""
    options = ("--embedders", "minilm", "--limit", "200", "--out", tmp_path / "pages")
    done = run(data_dir / "clapnq", *SMALL, *options, "--cache", tmp_path / "cache")
    assert done.returncode == 0, done.stderr
    natural = numbers(tmp_path / "pages")["means"][0]["values"]
    assert natural["max"]["auroc"] == pytest.approx(0.856, abs=0.08)
    assert natural["seed"]["auroc"] < natural["max"]["auroc"]
