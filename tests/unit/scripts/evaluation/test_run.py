"""Rules of carrying out a run: what is kept is not measured again, and what is cut off is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from evaluation.cache import Cache
from evaluation.plan import QUICK
from evaluation.run import How, Task, done

CALLS: list[int] = []


def squared(number: int) -> dict[str, Any]:
    """Work that is seen to be done."""
    CALLS.append(number)
    return {"square": number * number}


def tasks(numbers: list[int]) -> list[Task[int]]:
    """One task a number."""
    return [Task(n, f"number {n}", "key", squared, (n,)) for n in numbers]


def how(folder: Path, *, fresh: bool = False) -> How:
    """In this process, with results in `folder`."""
    return How(QUICK, Cache(folder), jobs=1, fresh=fresh)


@pytest.fixture(autouse=True)
def _no_calls_yet() -> None:
    CALLS.clear()


def test_finished_tasks_are_read(tmp_path: Path) -> None:
    """A second run does only what is new."""
    assert done(tasks([1, 2]), how(tmp_path)) == {1: {"square": 1}, 2: {"square": 4}}
    assert done(tasks([2, 3]), how(tmp_path)) == {2: {"square": 4}, 3: {"square": 9}}
    assert CALLS == [1, 2, 3]


def test_a_fresh_run_does_all_of_them(tmp_path: Path) -> None:
    """What is kept is written over."""
    done(tasks([1, 2]), how(tmp_path))
    done(tasks([1, 2]), how(tmp_path, fresh=True))
    assert CALLS == [1, 2, 1, 2]


def test_a_file_that_was_cut_off_does_not_count(tmp_path: Path) -> None:
    """Only whole JSON is a result."""
    done(tasks([1, 2]), how(tmp_path))
    path = Cache(tmp_path).path("number 1", "key")
    path.write_text(path.read_text(encoding="utf-8")[:-3], encoding="utf-8")
    assert done(tasks([1, 2]), how(tmp_path))[1] == {"square": 1}
    assert CALLS == [1, 2, 1]


def test_an_error_leaves_what_was_finished(tmp_path: Path) -> None:
    """The results of the tasks before it are kept."""

    def broken() -> dict[str, Any]:
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        done([*tasks([1]), Task(2, "number 2", "key", broken, ())], how(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["number_1_key.json"]


def test_progress_counts_what_was_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A line on standard error for each task that is done now, counted on from those kept."""
    done(tasks([1]), how(tmp_path))
    capsys.readouterr()
    done(tasks([1, 2]), how(tmp_path))
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("2/2 number 2: ")
