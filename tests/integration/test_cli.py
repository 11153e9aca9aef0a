"""The command line as a process, and its page: every command there runs, and prints what is shown."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import lines_file, run

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cli.md"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
EXIT_CODE = re.compile(r"# exit code (\d+)$")
COMMAND = [sys.executable, "-m", "rag_confidence.adapters.cli"]


def start(*arguments: object) -> subprocess.Popen[bytes]:
    """The command as a process of its own."""
    command = [*COMMAND, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_without_typer_the_process_says_how_to_install_it() -> None:
    """One sentence on standard error, exit code 2, and nothing of the command is loaded."""
    hidden = (
        "import sys; sys.modules['typer'] = None\n"
        "from rag_confidence.adapters.cli import main; sys.exit(main())"
    )
    done = subprocess.run([sys.executable, "-c", hidden, "demo"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        "`typer` is needed for the `cli` features; install it with: pip install 'rag-confidence[cli]'"
    ]


@pytest.mark.needs_extra("cli")
def test_a_closed_pipe_ends_it_quietly(tmp_path: Path) -> None:
    """As with `head`: the first line arrives, then no traceback and the code of a closed pipe."""
    rows = [{"query": [1.0, 0.0, at], "passages": [[1.0, 0.1, at], [0.9, 0.0, at]]} for at in range(600)]
    process = start("score", lines_file(tmp_path / "rows.jsonl", rows), "--lines")
    assert process.stdout is not None
    assert process.stdout.readline().startswith(b'{"schema_version"')
    process.stdout.close()
    process.stdout = None
    _, said = process.communicate()
    assert (process.returncode, said) == (141, b"")


@pytest.mark.needs_extra("cli")
@pytest.mark.parametrize(
    ("arguments", "stdin", "code", "said"),
    [
        (["audit", "-", "--json"], '{"kpi": 0.9, "label": 1}\n{"kpi": 0.1, "label": 0}\n', 0, ""),
        (["gate", "fit", "-"], '{"kpi": 0.9, "label": 1}\n{"kpi": 0.1, "label": 0}\n', 1, "warning: too few"),
        (["audit", "-"], "nonsense\n", 2, "error: `standard input line 1` must be JSON"),
    ],
)
def test_exit_codes_of_the_process(arguments: list[str], stdin: str, code: int, said: str) -> None:
    """Done, a negative finding, bad input; never a traceback."""
    process = start(*arguments)
    _, err = process.communicate(stdin.encode())
    assert process.returncode == code
    assert err.decode().startswith(said)
    assert bool(err) == bool(said)
    assert b"Traceback" not in err


@pytest.mark.needs_extra("cli")
def test_the_page_runs_and_prints_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one folder, in its order; lines with a pipe to another program are left to the reader."""
    monkeypatch.chdir(tmp_path)
    seen = set()
    for language, text, shown in FENCE.findall(PAGE.read_text(encoding="utf-8")):
        if language == "python":
            scope: dict[str, object] = {}
            exec(f"{text}\nwrite_rows(Path())", scope)
        lines = text.replace("\\\n", "").splitlines() if language == "sh" else []
        printed = []
        for line in (line for line in lines if line.startswith("rag-confidence ") and " | " not in line):
            arguments = shlex.split(line, comments=True)[1:]
            done = run(*arguments)
            expected = EXIT_CODE.search(line)
            assert done.code == (int(expected[1]) if expected else 0), f"{line}\n{done.err}"
            seen |= {" ".join(arguments[:size]) for size in (1, 2)}
            printed.append(done.out)
        assert not shown or "\n".join(printed) == shown
    from rag_confidence.adapters._cli.application import application

    assert {" ".join(command) for command in named(application())} <= seen


def named(application: object) -> list[tuple[str, ...]]:
    """The names of all commands."""
    import typer

    top = typer.main.get_command(application)  # type: ignore[arg-type]
    return [
        (name, *inner)
        for name, command in top.commands.items()  # type: ignore[attr-defined]
        for inner in [(each,) for each in getattr(command, "commands", {})] or [()]
    ]
