"""The rules of conftest.py on what a test run may leave out."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import conftest
import pytest

PROJECT = Path(__file__).resolve().parents[1]


def test_no_test_skips_by_itself() -> None:
    """Only the two markers of conftest.py may skip: no test calls skip, importorskip, skipif or xfail."""
    ways = {"skip", "skipif", "importorskip", "xfail"}
    found = [
        f"{path.relative_to(PROJECT)}:{node.lineno}"
        for path in (PROJECT / "tests").rglob("*.py")
        if path.name != "conftest.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in ways and "pytest" in ast.unparse(node.value)
    ]
    assert found == []


SUITE = """
import pytest

def test_plain():
    pass

@pytest.mark.needs_data
def test_data(data_dir):
    assert data_dir.is_dir()

@pytest.mark.needs_extra("topology")
def test_topology():
    import ripser
"""


def run_suite(folder: Path, text: str, **environment: str) -> tuple[int, str]:
    """Exit code and output of a small suite under this project's conftest and configuration."""
    shutil.copy(PROJECT / "tests" / "conftest.py", folder / "conftest.py")
    (folder / "test_it.py").write_text(text, encoding="utf-8")
    own = {"CI", "RAG_CONFIDENCE_NO_SKIP", "RAG_CONFIDENCE_EXTRAS", "RAG_CONFIDENCE_DATA"}
    own |= {"RAG_CONFIDENCE_NO_DATA", "RAG_CONFIDENCE_POSTGRES", "PYTEST_XDIST_WORKER"}
    environ = {name: value for name, value in os.environ.items() if name not in own}
    environ |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "RAG_CONFIDENCE_NO_POSTGRES": "1"}
    environ |= {"RAG_CONFIDENCE_DATA": str(folder)} | environment
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-c",
        PROJECT / "pyproject.toml",
        "-p",
        "no:cacheprovider",
        folder,
    ]
    done = subprocess.run(command, env=environ, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def installed() -> str:
    """The extras of this run, in the form of RAG_CONFIDENCE_EXTRAS."""
    return ",".join(sorted(conftest.installed_extras())) or "none"


def test_data_tests_skip_without_data_outside_ci(tmp_path: Path) -> None:
    """A missing data folder skips with a reason that names the folder and the cure."""
    code, output = run_suite(tmp_path, SUITE, RAG_CONFIDENCE_DATA=str(tmp_path / "nowhere"))
    assert code == 0
    assert "1 skipped" in output
    assert "nowhere; set RAG_CONFIDENCE_DATA" in output


@pytest.mark.parametrize("switch", [{"CI": "true"}, {"RAG_CONFIDENCE_NO_SKIP": "1"}], ids=["ci", "no-skip"])
def test_a_strict_run_refuses_to_start_without_data(tmp_path: Path, switch: dict[str, str]) -> None:
    """In CI a missing data folder is an error of the whole run."""
    missing = {"RAG_CONFIDENCE_DATA": str(tmp_path / "nowhere")}
    code, output = run_suite(tmp_path, SUITE, RAG_CONFIDENCE_EXTRAS=installed(), **missing, **switch)
    assert code != 0
    assert "no data folder at" in output


def test_a_machine_declared_without_data_leaves_their_tests_out(tmp_path: Path) -> None:
    """A strict run on a machine that has no data sets deselects their tests and skips nothing."""
    missing = {"RAG_CONFIDENCE_DATA": str(tmp_path / "nowhere"), "RAG_CONFIDENCE_NO_DATA": "1"}
    code, output = run_suite(tmp_path, SUITE, CI="true", RAG_CONFIDENCE_EXTRAS=installed(), **missing)
    assert code == 0
    assert "deselected" in output
    assert "skipped" not in output


SERVER = """
import pytest

@pytest.mark.needs_postgres
def test_server():
    pass
"""


def test_server_tests_skip_without_a_server_outside_ci(tmp_path: Path) -> None:
    """Without the URL of a server its tests skip, and the reason names the variable to set."""
    code, output = run_suite(tmp_path, SERVER, RAG_CONFIDENCE_NO_POSTGRES="0")
    assert code == 0
    assert "1 skipped" in output
    assert "set RAG_CONFIDENCE_POSTGRES" in output


def test_server_tests_run_where_a_server_is_named(tmp_path: Path) -> None:
    """With the URL of a server a strict run runs its tests."""
    means = {"RAG_CONFIDENCE_POSTGRES": "postgresql+psycopg://x@127.0.0.1/x", "CI": "true"}
    code, output = run_suite(tmp_path, SERVER, RAG_CONFIDENCE_EXTRAS=installed(), **means)
    assert code == 0
    assert "1 passed" in output


@pytest.mark.needs_extra("postgres")
def test_a_strict_run_refuses_to_start_without_a_server(tmp_path: Path) -> None:
    """In CI an install with the client says whether there is a server."""
    unsaid = {"RAG_CONFIDENCE_NO_POSTGRES": "0", "CI": "true"}
    code, output = run_suite(tmp_path, SERVER, RAG_CONFIDENCE_EXTRAS=installed(), **unsaid)
    assert code != 0
    assert "no PostgreSQL server" in output


def test_a_machine_declared_without_a_server_leaves_its_tests_out(tmp_path: Path) -> None:
    """A strict run on a machine that has no server deselects its tests and skips nothing."""
    code, output = run_suite(tmp_path, SERVER + SUITE, CI="true", RAG_CONFIDENCE_EXTRAS=installed())
    assert code == 0
    assert "deselected" in output
    assert "skipped" not in output


@pytest.mark.parametrize("where", ["module", "test"])
def test_a_strict_run_fails_on_a_skip(tmp_path: Path, where: str) -> None:
    """In CI a skip, of one test or of a module, is a failure that says why."""
    call = "pytest.skip('not today', allow_module_level=True)"
    text = f"import pytest\n{call}" if where == "module" else f"import pytest\ndef test_it():\n    {call}"
    code, output = run_suite(tmp_path, text, CI="true", RAG_CONFIDENCE_EXTRAS=installed())
    assert code != 0
    assert "a strict run allows no skip" in output
    assert "skipped" not in output.splitlines()[-1]


def test_a_strict_run_refuses_other_extras_than_it_names(tmp_path: Path) -> None:
    """A run that claims to test an install checks that it is that install."""
    claimed = "none" if installed() != "none" else "topology"
    code, output = run_suite(tmp_path, SUITE, CI="true", RAG_CONFIDENCE_EXTRAS=claimed)
    assert code != 0
    assert "set RAG_CONFIDENCE_EXTRAS to what this run is meant to test" in output


def test_tests_of_missing_extras_are_not_collected(tmp_path: Path) -> None:
    """Where ripser is missing its tests are deselected, not skipped, and the rest runs."""
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util as util\nfind = util.find_spec\n"
        "util.find_spec = lambda name, *more: None if name == 'ripser' else find(name, *more)\n"
    )
    code, output = run_suite(tmp_path, SUITE, PYTHONPATH=str(tmp_path))
    assert code == 0
    assert "2 passed, 1 deselected" in output


def test_an_unknown_extra_is_an_error(tmp_path: Path) -> None:
    """A misspelt extra stops the run instead of leaving its test out for ever."""
    text = "import pytest\n@pytest.mark.needs_extra('toplogy')\ndef test_it():\n    pass"
    code, output = run_suite(tmp_path, text)
    assert code != 0
    assert "needs_extra does not know ['toplogy']" in output


def test_needs_extra_knows_the_extras_of_the_project() -> None:
    """The names that conftest knows are the extras that pyproject.toml defines, `all` being their sum."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(conftest.EXTRAS) == set(project["optional-dependencies"]) - {"all"}
