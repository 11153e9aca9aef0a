"""The command line as a whole: its frame, its exit codes, and what it says when it cannot go on."""

from __future__ import annotations

import errno
import io
import sys
import warnings
from pathlib import Path
from unittest.mock import patch

import pytest
from command_line import lines_file, run

from rag_confidence import __version__
from rag_confidence.adapters import cli

COMMANDS = [
    ["demo"],
    ["score"],
    ["audit"],
    ["traps"],
    *(["gate", name] for name in ("fit", "apply", "evaluate", "plan", "inspect")),
    *(
        ["guard", name]
        for name in (
            "inspect",
            "threshold",
            "coverage-check",
            "multi-check-threshold",
            "multi-check-coverage-check",
        )
    ),
    *(["monitor", name] for name in ("drift", "risk")),
    *(["store", name] for name in ("export", "import", "migrate", "label", "prune", "verify")),
]


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_without_the_extra_one_sentence_says_how_to_install_it(
    missing: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It goes to standard error, and the exit code is that of bad usage."""
    with patch.dict(sys.modules, {missing: None, "rag_confidence.adapters._cli.running": None}):
        assert cli.main(["demo"]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    if missing == "typer":
        assert "pip install 'rag-confidence[cli]'" in said.err


@pytest.mark.needs_extra("cli")
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help_and_json(command: list[str]) -> None:
    """Each says what it does, and each can answer a machine."""
    found = run(*command, "--help")
    assert (found.code, found.err) == (0, "")
    assert "--json" in found.out
    assert found.out.splitlines()[2].strip()


@pytest.mark.needs_extra("cli")
def test_no_command_is_left_out_of_these_tests() -> None:
    """The commands are those listed here."""
    import typer

    from rag_confidence.adapters._cli.application import application

    top = typer.main.get_command(application())
    found = [
        [name, *([] if inner is None else [inner])]
        for name, command in top.commands.items()  # type: ignore[attr-defined]
        for inner in getattr(command, "commands", {None: None})
    ]
    assert sorted(map(str, found)) == sorted(map(str, COMMANDS))


@pytest.mark.needs_extra("cli")
def test_version() -> None:
    """It is that of the package."""
    assert run("--version").out == f"{__version__}\n"


@pytest.mark.needs_extra("cli")
@pytest.mark.parametrize(
    "arguments",
    ["", "demo --bla", "demo extra", "nothing", "demo --seed x", "gate", "demo --alpha"],
)
def test_bad_usage_is_one_line(arguments: str) -> None:
    """Exit code 2, nothing on standard output, one line on standard error."""
    found = run(*arguments.split())
    assert (found.code, found.out) == (2, "")
    assert found.err.startswith("error: ")
    assert found.err.count("\n") == 1


@pytest.mark.needs_extra("cli")
@pytest.mark.parametrize("alpha", ["0", "1", "2", "nan", "x", "1/0", "-0.1"])
def test_levels_that_cannot_be_meant_are_refused(alpha: str) -> None:
    """The library's own words, without a traceback."""
    found = run("gate", "plan", f"--alpha={alpha}")
    assert (found.code, found.out) == (2, "")
    assert found.err.startswith("error: `alpha` must be ")


@pytest.mark.needs_extra("cli")
def test_levels_are_exact() -> None:
    """A fraction and its decimal ask for the same number of rows."""
    decimal, fraction = (
        run("gate", "plan", "--alpha", level, "--json").document for level in ("0.05", "1/20")
    )
    assert decimal == fraction
    assert decimal["insufficient"]["n_finite"] == 19


@pytest.mark.needs_extra("cli")
def test_demo() -> None:
    """The same numbers for people and for machines, and no sign that only a terminal understands."""
    people, machine = run("demo", "--seed", 3), run("demo", "--seed", 3, "--json")
    assert (people.code, machine.code, people.err) == (0, 0, "")
    assert machine.document["seed"] == 3
    assert f"{machine.document['methods'][3]['false_sufficiency_rate']:.3f}" in people.out
    assert "\x1b" not in people.out
    assert max(map(len, people.out.splitlines())) <= 80


@pytest.mark.needs_extra("cli")
@pytest.mark.parametrize(
    ("problem", "code"),
    [
        (ValueError("`x` must be y;\n got z."), 2),
        (TypeError("t"), 2),
        (OSError(28, "No space left on device", "out"), 2),
        (ImportError("no"), 2),
        (MemoryError(), 2),
        (KeyboardInterrupt(), 130),
        (BrokenPipeError(), 141),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else str(value),
)
def test_what_stops_a_command_is_a_code_and_at_most_a_line(problem: BaseException, code: int) -> None:
    """Users see no traceback; interrupts and closed pipes say nothing."""
    with patch("rag_confidence.adapters._cli.demo.run_demo", side_effect=problem):
        found = run("demo")
    assert (found.code, found.out, found.err.count("\n")) == (code, "", int(code == 2))
    assert found.err == "" or found.err.startswith("error: ")


@pytest.mark.needs_extra("cli")
def test_faults_of_the_program_are_not_hidden() -> None:
    """What no user can cause keeps its traceback."""
    with (
        patch("rag_confidence.adapters._cli.demo.run_demo", side_effect=ZeroDivisionError),
        pytest.raises(ZeroDivisionError),
    ):
        run("demo")


@pytest.mark.needs_extra("cli")
def test_warnings_of_the_library_are_lines(tmp_path: Path) -> None:
    """Each once, on standard error; filters and the way warnings are shown are left as they were."""
    shown, filters = warnings.showwarning, [*warnings.filters]
    rows = lines_file(tmp_path / "rows.jsonl", [{"kpi": at / 10, "label": at > 4} for at in range(10)])
    found = run("gate", "fit", rows, "--json")
    assert found.code == 1
    assert [line.partition(":")[0] for line in found.err.splitlines()] == ["warning"]
    assert "9 are needed" in found.err
    assert found.document["notes"]
    assert warnings.showwarning is shown
    assert [*warnings.filters] == filters


@pytest.mark.needs_extra("cli")
def test_what_would_steer_a_terminal_is_written_out(tmp_path: Path) -> None:
    """Escapes in a file reach neither errors nor tables."""
    rows = [{"kpi": 0.9, "label": False, "id": "\x1b[31mred"}, {"kpi": 0.1, "label": True, "id": "x"}]
    found = run("traps", lines_file(tmp_path / "rows.jsonl", rows))
    assert "\x1b" not in found.out
    assert r"\x1b[31mred" in found.out
    bad = lines_file(tmp_path / "bad.jsonl", [{"kpi": "\x1b[31m", "label": True}])
    assert "\x1b" not in run("traps", bad).err


@pytest.mark.needs_extra("cli")
def test_colours_are_for_terminals_without_no_color(capsys: pytest.CaptureFixture[str]) -> None:
    """Bold headings on a terminal, plain text with NO_COLOR."""
    with patch.dict("os.environ", {"FORCE_COLOR": "1", "TERM": "xterm"}):
        cli.main(["demo"])
        assert "\x1b[1m" in capsys.readouterr().out
        with patch.dict("os.environ", {"NO_COLOR": "1"}):
            cli.main(["demo"])
    assert "\x1b" not in capsys.readouterr().out


class FullDisk(io.StringIO):
    """Standard output on a disk without room."""

    def flush(self) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.needs_extra("cli")
def test_output_that_cannot_be_written_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2: nobody takes half a result for a whole one."""
    with patch.object(sys, "stdout", FullDisk()):
        assert cli.main(["demo", "--json"]) == 2
    assert capsys.readouterr().err == "error: [Errno 28] No space left on device\n"


class Terminal(io.StringIO):
    """Standard error that someone watches."""

    def isatty(self) -> bool:
        return True


@pytest.mark.needs_extra("cli")
@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
def test_bars_are_for_terminals(stream: type[io.StringIO]) -> None:
    """The items are the same; off a terminal nothing is said."""
    from rag_confidence.adapters._cli.progress import advancing, working

    with patch.object(sys, "stderr", stream()) as said, patch.dict("os.environ", {"TERM": "xterm"}):
        assert [*advancing(range(3), "scoring")] == [0, 1, 2]
        with working("splitting"):
            pass
        assert ("scoring" in said.getvalue()) == (stream is Terminal)
