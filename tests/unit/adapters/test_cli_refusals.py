"""What the command line refuses instead of guessing, and what it says where a result shows little."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag_confidence.adapters.cli import main
from rag_confidence.store import CalibrationStore

pytestmark = pytest.mark.needs_extra("cli")

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command line in a folder of its own: exit code, output, messages."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments: object) -> tuple[int, str, str]:
        code = main([str(argument) for argument in arguments])
        told = capsys.readouterr()
        return code, told.out, told.err

    return command


def lines(name: str, records: Sequence[dict[str, Any]]) -> str:
    """A file of JSON lines in the folder of the test; its name."""
    Path(name).write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    return name


def labelled(count: int = 60, **more: Any) -> list[dict[str, Any]]:
    """Rows whose score tells their label, most of the time."""
    return [{"kpi": row / count, "label": int(row % 7 * 9 < row), **more} for row in range(count)]


def calls(count: int, **scores: float) -> list[dict[str, Any]]:
    """Good calls with a check of their own and these constant ones."""
    return [{"scores": {"a": row / count, **scores}, "outcome": True} for row in range(count)]


@pytest.mark.parametrize(("scores", "labels"), [(3, 4), (4, 3)])
@pytest.mark.parametrize("command", [("audit",), ("traps",), ("gate", "fit")], ids="-".join)
def test_columns_of_different_length_are_refused(
    run: Run, command: tuple[str, ...], scores: int, labels: int
) -> None:
    """An archive may hold arrays of any length: rows are never paired by cutting the longer one."""
    np.savez("rows.npz", kpi=np.linspace(0, 1, scores), label=np.arange(labels) % 2)
    code, out, err = run(*command, "rows.npz")
    assert (code, out) == (2, "")
    assert "`rows.npz` must hold columns of one length; got {'kpi'" in err


def test_texts_of_another_number_are_refused(run: Run) -> None:
    """A column beside the vectors has one entry a retrieval."""
    rng = np.random.default_rng(0)
    vectors = {"query": rng.normal(size=(2, 4)), "passages": rng.normal(size=(2, 3, 4))}
    np.savez("more.npz", **vectors, query_text=np.array(["one", "two", "three"]))
    np.savez("single.npz", **vectors, k_requested=3)
    assert "columns of one length; got {'query': 2, 'query_text': 3}" in run("score", "more.npz")[2]
    code, _, err = run("score", "single.npz")
    assert (code, "`k_requested` must have one value a row" in err) == (2, True)


@pytest.mark.parametrize("number", ["1e999", "-1e999", "9" * 400], ids=["inf", "-inf", "400 digits"])
def test_a_score_that_is_no_float_is_refused_by_its_line(run: Run, number: str) -> None:
    """The line is that of the file, also behind lines that were left out."""
    text = f'{{"kpi": null, "label": 0}}\n{{"kpi": {number}, "label": 0}}\n'
    Path("rows.jsonl").write_text(text, encoding="utf-8")
    for command in (("audit",), ("gate", "fit"), ("monitor", "drift", "--state", "m.json")):
        code, _, err = run(*command, "rows.jsonl")
        assert (code, "`kpi` must be finite" in err, "rows.jsonl line 2" in err) == (2, True, True)
    assert not Path("m.json").exists()


def test_a_score_of_a_check_that_is_no_float_is_refused(run: Run) -> None:
    """A failed check is the word inf; a number out of range is a slip."""
    Path("c.json").write_text(f'[{{"scores": {{"a": {"9" * 400}}}, "outcome": true}}]', encoding="utf-8")
    code, _, err = run("guard", "threshold", "--data", "c.json", "--alpha", "0.1")
    assert (code, "`scores.a` must be a number" in err, "c.json row 0" in err) == (2, True, True)


def test_lines_are_no_document(run: Run) -> None:
    """--json promises one document, so --lines beside it is refused."""
    lines("rows.jsonl", labelled())
    assert run("gate", "fit", "rows.jsonl", "--out", "g.json")[0] == 0
    lines("s.jsonl", [{"query": [1.0, 0.0], "passages": [[1.0, 0.1], [0.9, 0.3]]}])
    for command in (("gate", "apply", "rows.jsonl", "--gate", "g.json"), ("score", "s.jsonl")):
        code, out, err = run(*command, "--lines", "--json")
        assert (code, out, "`--lines` must be left out with --json" in err) == (2, "", True)


def test_levels_of_another_gate_are_refused(run: Run) -> None:
    """A risk gate has no alpha: it would be left unheard."""
    lines("rows.jsonl", labelled())
    for option in (("--alpha", "0.2"), ("--alpha-reject", "0.1"), ("--guarantee", "pac")):
        code, _, err = run("gate", "fit", "rows.jsonl", "--target-risk", "0.3", *option)
        assert (code, f"`{option[0]}` must be left out with --target-risk" in err) == (2, True)


def test_kept_columns_exist_and_are_not_those_of_the_record(run: Run) -> None:
    """A misspelt --keep would write null, and one of the record's keys would be lost."""
    lines("s.jsonl", [{"id": 1, "kpi": 2, "query": [1.0, 0.0], "passages": [[1.0, 0.1], [0.9, 0.3]]}])
    assert '"id": 1' in run("score", "s.jsonl", "--keep", "id", "--lines")[1]
    assert (
        "`--keep` must name a column of s.jsonl; got 'ident'" in run("score", "s.jsonl", "--keep", "ident")[2]
    )
    assert "`--keep` must name no key of the record; got 'kpi'" in run("score", "s.jsonl", "--keep", "kpi")[2]


def test_a_monitor_refuses_scores_that_were_made_otherwise(run: Run) -> None:
    """Scores of another policy drift without any drift: in the reference and in later runs."""
    one = lines("one.jsonl", labelled(policy_fingerprint="p1", embedder="e"))
    two = lines("two.jsonl", labelled(policy_fingerprint="p2", embedder="e"))
    assert (
        "`--reference` must hold scores made like"
        in run("monitor", "drift", one, "--reference", two, "--state", "m.json")[2]
    )
    assert not Path("m.json").exists()
    run("monitor", "drift", one, "--state", "m.json")
    before = Path("m.json").read_bytes()
    code, _, err = run("monitor", "drift", two, "--state", "m.json")
    assert (code, "`--state` must hold scores made like" in err) == (2, True)
    assert Path("m.json").read_bytes() == before


def test_an_empty_rate_is_not_the_default(run: Run) -> None:
    """An unset variable of a shell gives an empty option: no level that anyone chose."""
    rows = lines("rows.jsonl", labelled())
    for command in (("drift",), ("risk", "--target", "0.9")):
        code, _, err = run("monitor", *command, rows, "--state", "m.json", "--false-alarm-rate", "")
        assert (code, "`false_alarm_rate` must be" in err) == (2, True)


def test_words_that_are_no_decisions_are_refused(run: Run) -> None:
    """The wrong column of decisions would leave out every row and see no risk."""
    rows = lines("rows.jsonl", [{"label": 0, "said": "yes"}] * 9)
    code, _, err = run(
        "monitor", "risk", rows, "--state", "m.json", "--target", "0.1", "--decision-column", "said"
    )
    assert (code, "got 'yes' in rows.jsonl line 1" in err) == (2, True)


def test_standard_input_is_read_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second - would read nothing, in silence."""
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"kpi": 0.5}\n'))
    assert (
        "`--reference` must be a file" in run("monitor", "drift", "-", "--reference", "-", "--state", "m")[2]
    )
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{json.dumps(call)}\n" for call in calls(30))))
    options = ("--data", "-", "--bad-data", "-", "--alpha", "0.1", "--calibration-size", "20")
    assert "`--bad-data` must be a file" in run("guard", "multi-check-coverage-check", *options)[2]


def test_standard_input_is_as_strict_as_a_file(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes that are no UTF-8 are refused, and a mark of byte order is no sign."""
    for raw, code in (
        (b'\xef\xbb\xbf{"kpi": 0.5, "label": 0}\n', 0),
        (b'{"kpi": 0.5, "label": 0, "t": "\xff"}\n', 2),
    ):
        stream = io.TextIOWrapper(io.BytesIO(raw), encoding="utf-8", errors="surrogateescape")
        monkeypatch.setattr(sys, "stdin", stream)
        found, _, err = run("audit", "-")
        assert (found, "must be UTF-8" in err) == (code, code == 2)


def test_no_bad_calls_are_no_measure(run: Run) -> None:
    """A file of bad calls that holds none would report nothing about them."""
    Path("good.json").write_text(json.dumps(calls(30)), encoding="utf-8")
    Path("bad.json").write_text("[]", encoding="utf-8")
    options = ("--data", "good.json", "--bad-data", "bad.json", "--alpha", "0.1", "--calibration-size", "20")
    code, _, err = run("guard", "multi-check-coverage-check", *options)
    assert (code, "`bad.json` must hold bad calls" in err) == (2, True)


def test_guards_that_only_abstain_show_nothing(run: Run) -> None:
    """Where every threshold is infinite the coverage is no good news, and the exit code says so."""
    Path("good.json").write_text(json.dumps(calls(30)), encoding="utf-8")
    code, out, _ = run(
        "guard", "coverage-check", "--data", "good.json", "--alpha", "0.01", "--calibration-size", "20"
    )
    assert (code, "abstains on every call" in " ".join(out.split())) == (1, True)


def test_tied_scores_are_told(run: Run) -> None:
    """Of scores that tie the check can only say that coverage is not too low."""
    Path("good.json").write_text(json.dumps(calls(30, b=5.0)), encoding="utf-8")
    options = ("--data", "good.json", "--check", "b", "--alpha", "0.1", "--calibration-size", "20")
    code, out, _ = run("guard", "coverage-check", *options)
    assert (code, "scores tie" in out) == (0, True)


@pytest.mark.parametrize("days", ["nan", "inf", "1e300", "-1"])
def test_spans_of_days_are_checked(run: Run, days: str) -> None:
    """No span that a date cannot have."""
    with CalibrationStore("s.db"):
        pass
    for command, option in (
        (("guard", "inspect"), "--staleness-days"),
        (("store", "prune"), "--older-than-days"),
    ):
        code, _, err = run(*command, "--store", "s.db", option, days)
        assert (code, f"`{option}` must be a number in [0, 100000]" in err) == (2, True)


def test_groups_that_are_numbers_are_found(run: Run) -> None:
    """An option is text; the group 3 of a store is meant by it, unless there is a group '3'."""
    from rag_confidence.guard import ToolCallContext

    with CalibrationStore("s.db") as store:
        for group in (3, 3, "3", "x", 7):
            store.add(ToolCallContext("search"), True, scores={"a": 0.1}, group=group)
    for group, count in (("3", 1), ("7", 1), ("x", 1), ("8", 0)):
        _, out, _ = run("guard", "inspect", "--store", "s.db", "--group", group, "--json")
        assert json.loads(out)["n_calls"] == count
    run("store", "export", "out.jsonl", "--store", "s.db", "--group", "7")
    assert json.loads(Path("out.jsonl").read_text(encoding="utf-8"))["group"] == 7
