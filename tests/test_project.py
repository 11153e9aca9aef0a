"""The project around the package: its commands, its pins and its documents."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rag_confidence

PROJECT = Path(__file__).resolve().parents[1]
FOLDERS = (".ci", "rag_confidence", "tests", "scripts", "docs", "notebooks")
TEXT = {
    "",
    ".py",
    ".pyi",
    ".md",
    ".toml",
    ".txt",
    ".json",
    ".jsonl",
    ".ipynb",
    ".csv",
    ".yml",
    ".yaml",
    ".cfg",
}
PIN = re.compile(r"[A-Za-z0-9._-]+==[0-9][0-9A-Za-z.+!]*")


def files(*suffixes: str) -> list[Path]:
    """The project's own files of these suffixes; caches and virtual environments left out."""
    found = [path for path in PROJECT.iterdir() if path.is_file()]
    for folder in FOLDERS:
        found += [path for path in (PROJECT / folder).rglob("*") if path.is_file()]
    hidden = re.compile(r"/(__pycache__|\.[a-z_]+_cache|\.ipynb_checkpoints)/")
    return sorted(path for path in found if path.suffix in suffixes and not hidden.search(path.as_posix()))


def read(name: str | Path) -> str:
    """Text of a file of the project."""
    return (PROJECT / name).read_text(encoding="utf-8")


def metadata() -> dict[str, Any]:
    """pyproject.toml."""
    return tomllib.loads(read("pyproject.toml"))


def readme_commands() -> dict[str, str]:
    """Name -> one-line command, for each marked block of the README."""
    block = r"<!-- command: (\w+) -->\n```sh\n([^\n]+)\n```\n<!-- end -->"
    return dict(re.findall(block, read("README.md")))


# Commands


def test_the_readme_has_two_commands() -> None:
    """Each command is one line that starts from nothing but `python3`."""
    commands = readme_commands()
    assert set(commands) == {"demo", "test"}
    for command in commands.values():
        assert command.startswith(
            "python3 -m venv .venv && .venv/bin/pip install -q -c constraints.txt -e '.["
        )


def test_ci_runs_the_commands_of_the_readme() -> None:
    """`.ci/run` reads both commands from the README at run time, and installs the extras in no other way."""
    for name, command in readme_commands().items():
        done = subprocess.run(
            ["bash", PROJECT / ".ci" / "run", "--command", name], capture_output=True, text=True, check=True
        )
        assert done.stdout == command + "\n"
        assert re.search(rf"^run_readme_command {name}\b", read(".ci/run"), re.MULTILINE)
    assert "[all" not in read(".ci/run")


# Metadata and pins


def test_the_installed_version_is_the_one_of_the_source() -> None:
    """The version is written once, in the package."""
    from importlib.metadata import version

    assert version("rag-confidence") == rag_confidence.__version__


def test_the_extra_all_is_every_optional_part() -> None:
    """`all` brings what each of the other extras brings, the tools of the tests apart."""
    extras = metadata()["project"]["optional-dependencies"]
    parts = re.fullmatch(r"rag-confidence\[([a-z,]+)\]", extras["all"][0])
    assert parts is not None
    assert set(parts[1].split(",")) == set(extras) - {"all", "test"}


def test_constraints_are_plain_pins() -> None:
    """`constraints.txt` holds name==version lines only: no address of a registry, no file, no option."""
    lines = [line for line in read("constraints.txt").splitlines() if not line.startswith("#")]
    assert [line for line in lines if not PIN.fullmatch(line)] == []
    assert len(lines) == len({line.partition("==")[0].lower() for line in lines})


def test_every_direct_dependency_is_pinned() -> None:
    """Core, extras and test tools all have a line in `constraints.txt`."""
    project = metadata()["project"]
    wanted = [*project["dependencies"], *(r for e in project["optional-dependencies"].values() for r in e)]
    names = {re.split(r"[\[<>=~! ]", requirement, maxsplit=1)[0].lower() for requirement in wanted}
    pinned = {line.partition("==")[0].lower() for line in read("constraints.txt").splitlines()}
    assert names - pinned == {"rag-confidence"}


# Documents


def headings(text: str) -> set[str]:
    """The anchors that a Markdown page gets for its headings."""
    titles = re.findall(r"^#+ +(.+?) *$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def links(text: str) -> Iterator[str]:
    """Targets of the links and pictures of a Markdown page that lie inside the project."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not re.match(r"[a-z]+:", target):
            yield target


@pytest.mark.parametrize("page", files(".md"), ids=lambda path: path.relative_to(PROJECT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link names a file of the project, and every anchor a heading of that file."""
    broken = []
    for target in links(page.read_text(encoding="utf-8")):
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        there = file.exists() and file.is_relative_to(PROJECT)
        if not there or (anchor and anchor not in headings(file.read_text(encoding="utf-8"))):
            broken.append(target)
    assert broken == []


def test_no_file_names_a_place_of_one_machine() -> None:
    """No text, notebook outputs included, holds an absolute path of the machine it was written on."""
    places = re.compile(
        "/(?:" + "|".join(["wor" + "k", "roo" + "t", "hom" + "e", "User" + "s", "tm" + "p"]) + ")/"
    )
    named = [
        f"{path.relative_to(PROJECT)}: {match[0]}"
        for path in files(*TEXT)
        if (match := places.search(path.read_text(encoding="utf-8")))
    ]
    assert named == []
