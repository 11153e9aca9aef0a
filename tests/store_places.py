"""Where tests keep stores: a SQLite file, and a schema of their own in the PostgreSQL server."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from rag_confidence._calls import CallRecord, ToolCallContext

DATABASES = [
    pytest.param("sqlite", id="sqlite"),
    pytest.param(
        "postgres", id="postgres", marks=(pytest.mark.needs_postgres, pytest.mark.needs_extra("postgres"))
    ),
]


@pytest.fixture(params=DATABASES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The path of a file that is not there yet, and in a second run the URL of an empty schema."""
    if request.param == "sqlite":
        yield str(tmp_path / "calls.db")
        return
    yield from a_schema()


def a_schema() -> Iterator[str]:
    """The URL of a new schema, which is dropped afterwards."""
    import sqlalchemy

    name = f"store_{uuid4().hex}"
    server = sqlalchemy.make_url(os.environ["RAG_CONFIDENCE_POSTGRES"])
    engine = sqlalchemy.create_engine(server)
    try:
        with engine.begin() as connection:
            connection.execute(sqlalchemy.text(f"CREATE SCHEMA {name}"))
        url = server.update_query_dict({"options": f"-csearch_path={name}"})
        yield url.render_as_string(hide_password=False)
        with engine.begin() as connection:
            connection.execute(sqlalchemy.text(f"DROP SCHEMA {name} CASCADE"))
    finally:
        engine.dispose()


def call(query: str = "weather", tool_name: str = "search") -> ToolCallContext:
    """A small context."""
    return ToolCallContext(tool_name=tool_name, args={"query": query})


def plain(records: list[CallRecord]) -> list[str]:
    """What the calls were about, in their order."""
    return [record.context.args["query"] for record in records]


def run_python(program: str, *arguments: str) -> str:
    """What a fresh interpreter prints; it must end well."""
    done = subprocess.run(
        command(program, *arguments), env=one_thread(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def command(program: str, *arguments: str) -> list[str]:
    """The command line of a fresh interpreter."""
    return [sys.executable, "-c", program, *arguments]


def one_thread() -> dict[str, str]:
    """An environment in which NumPy starts no threads, so that a process may fork."""
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
    return {**os.environ, **dict.fromkeys(names, "1")}
