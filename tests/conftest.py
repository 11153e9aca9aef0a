"""Shared fixtures, the hypothesis profile, and the rule on what may be left out of a run.

Two markers may skip: `needs_data` and `needs_postgres`. Tests of optional packages carry
`needs_extra("topology")` and are left out of the collection, not skipped, where those are not installed.
In a strict run (CI=true or RAG_CONFIDENCE_NO_SKIP=1) every skip is a failure, and the extras that are
installed must be those named by RAG_CONFIDENCE_EXTRAS ("topology,plots", or "none"; not set: all of them),
so that neither a full nor a minimal run can pass by accident.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import settings

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)

PROJECT = Path(__file__).resolve().parents[1]

EXTRAS: dict[str, tuple[str, ...]] = {
    "topology": ("ripser", "persim"),
    "plots": ("matplotlib",),
    "demo": ("wordllama",),
    "mcp": ("mcp",),
    "cli": ("typer", "rich"),
    "parquet": ("pyarrow",),
    "schema": ("jsonschema", "pydantic"),
    "postgres": ("sqlalchemy", "psycopg"),
    "test": ("gudhi", "nbclient", "nbformat", "ipykernel", "pandas", "openai", "anthropic"),
}

STRICT = os.environ.get("CI", "").lower() in {"1", "true"} or os.environ.get("RAG_CONFIDENCE_NO_SKIP") == "1"

# A machine without the data sets says so, and tests of them are then no part of its strict run.
DECLARED_WITHOUT_DATA = os.environ.get("RAG_CONFIDENCE_NO_DATA") == "1"

# Likewise a machine without a PostgreSQL server; one that has it names it by a URL as SQLAlchemy writes them.
POSTGRES = os.environ.get("RAG_CONFIDENCE_POSTGRES")
DECLARED_WITHOUT_POSTGRES = not POSTGRES and os.environ.get("RAG_CONFIDENCE_NO_POSTGRES") == "1"

# Workers side by side share the cores: BLAS threads of each would wait for those of the others.
if "PYTEST_XDIST_WORKER" in os.environ:
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(name, "1")

settings.register_profile("default", deadline=None, max_examples=50)
settings.register_profile("strict", deadline=None, max_examples=50, derandomize=True, database=None)
settings.load_profile("strict" if STRICT else "default")

# Plots are drawn to files or not at all; set before the first import of matplotlib.
os.environ.setdefault("MPLBACKEND", "Agg")


def data_folder() -> Path:
    """The folder of real retrieval sets, whether it exists or not."""
    return Path(os.environ.get("RAG_CONFIDENCE_DATA") or PROJECT.parent / "shared" / "data").resolve()


def installed_extras() -> set[str]:
    """Names of the extras whose packages are all importable."""
    return {name for name, modules in EXTRAS.items() if all(find_spec(module) for module in modules)}


def expected_extras() -> set[str]:
    """Names of the extras that a strict run must find installed."""
    named = os.environ.get("RAG_CONFIDENCE_EXTRAS")
    return set(EXTRAS) if named is None else set(named.split(",")) - {"none", ""}


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a strict run whose data or extras are not what it claims to test."""
    if not STRICT:
        return
    if not data_folder().is_dir() and not DECLARED_WITHOUT_DATA:
        raise pytest.UsageError(
            f"no data folder at {data_folder()}; set RAG_CONFIDENCE_DATA, or RAG_CONFIDENCE_NO_DATA=1 for a "
            "machine that has none"
        )
    if not POSTGRES and not DECLARED_WITHOUT_POSTGRES and "postgres" in expected_extras():
        raise pytest.UsageError(
            "no PostgreSQL server; set RAG_CONFIDENCE_POSTGRES to its URL, or RAG_CONFIDENCE_NO_POSTGRES=1 "
            "for a machine that has none"
        )
    if installed_extras() != expected_extras():
        raise pytest.UsageError(
            f"expected the extras {sorted(expected_extras())}, found {sorted(installed_extras())}; "
            "set RAG_CONFIDENCE_EXTRAS to what this run is meant to test"
        )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests of extras that are not installed; skip tests of data that is not there."""
    if unstable := [item.nodeid for item in items if " at 0x" in item.nodeid]:
        raise pytest.UsageError(f"each process names these otherwise, use ids=named: {unstable[:3]}")
    installed = installed_extras()
    left_out = [item for item in items if not _wanted_extras(item) <= installed]
    missing = _missing_means()
    declared = {"needs_data": DECLARED_WITHOUT_DATA, "needs_postgres": DECLARED_WITHOUT_POSTGRES}
    for marker in (name for name in missing if declared[name]):
        left_out += [item for item in items if item.get_closest_marker(marker) and item not in left_out]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]
    for item in items:
        for marker in (name for name in missing if item.get_closest_marker(name)):
            item.add_marker(pytest.mark.skip(reason=missing[marker]))


def _missing_means() -> dict[str, str]:
    """Marker of what this machine lacks -> why its tests are skipped."""
    missing = {}
    if not data_folder().is_dir():
        missing["needs_data"] = f"no data folder at {data_folder()}; set RAG_CONFIDENCE_DATA"
    if not POSTGRES:
        missing["needs_postgres"] = "no PostgreSQL server; set RAG_CONFIDENCE_POSTGRES"
    return missing


def _wanted_extras(item: pytest.Item) -> set[str]:
    wanted = {name for mark in item.iter_markers("needs_extra") for name in mark.args}
    if unknown := wanted - set(EXTRAS):
        raise pytest.UsageError(f"{item.nodeid}: needs_extra does not know {sorted(unknown)}")
    return wanted


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In a strict run a skipped test is a failed one."""
    return _no_skip((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """In a strict run a skipped module is a failed one."""
    return _no_skip((yield))


def _no_skip(report: Report) -> Report:
    if STRICT and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"a strict run allows no skip: {report.longrepr}"
    return report


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Folder of the real retrieval sets; use it together with `@pytest.mark.needs_data`."""
    return data_folder()
