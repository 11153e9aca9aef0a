"""What is recorded is read back, labels follow each other, and nothing is written by halves."""

from __future__ import annotations

import math
import os
import pickle
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from refusals import refuse
from store_places import call, plain

from rag_confidence import Decision
from rag_confidence._calls import CallRecord, LabelingSource, ToolCallContext
from rag_confidence.errors import StoreError
from rag_confidence.store import CalibrationStore

NOON = datetime(2026, 11, 30, 12, 0, 0, 1, tzinfo=UTC)


@pytest.fixture
def store(place: str) -> Iterator[CalibrationStore]:
    """An empty store."""
    with CalibrationStore(place) as opened:
        yield opened


def test_a_record_comes_back_as_it_was_written(store: CalibrationStore) -> None:
    """Every field is equal, floats to the last bit, infinities and odd text included."""
    context = ToolCallContext(
        tool_name="súche",
        args={"q": "\ud800\x00", "deep": [{"a": None}, 2**80, -0.0, 5e-324, True]},
        result={"rows": [1, 2.5]},
        token_logprobs=(-0.1, -math.inf),
        judge_score=0.1 + 0.2,
        call_id="call_1",
        metadata={"finish": "stop"},
    )
    record = CallRecord(
        context=context,
        outcome=False,
        scores={"logprob": 0.1 + 0.2, "schema": math.inf, "judge": 1e300},
        fingerprints={"logprob": "v1", "judge": "{}"},
        labeling_source=LabelingSource.HUMAN,
        group=2**64 - 1,
        decision=Decision.REJECT,
        calibrator="c" * 64,
        recorded_at=NOON,
        labeled_at=NOON - timedelta(days=400),
        id=1,
    )
    assert store.add_record(record) == 1
    assert store.query() == [record]
    assert math.copysign(1.0, store.query()[0].context.args["deep"][2]) == -1.0


def test_missing_times_are_filled_in_and_a_group_keeps_its_type(store: CalibrationStore) -> None:
    """A call is recorded now, a label is given now, and group "1" is not group 1."""
    store.add(call("text"), True, group="1")
    store.add(call("number"), group=1)
    first, second = store.query()
    assert first.recorded_at is not None
    assert first.labeled_at == first.recorded_at
    assert second.labeled_at is None
    assert plain(store.query(group=1)) == ["number"]
    assert plain(store.query(group="1")) == ["text"]


def test_the_label_that_was_written_last_counts(store: CalibrationStore) -> None:
    """Labels follow their sequence, even where the clock says otherwise."""
    number = store.add(call(), True, labeling_source="judge", recorded_at=NOON)
    store.label(number, 0, LabelingSource.HUMAN, labeled_at=NOON)
    store.label(number, True, "deterministic", labeled_at=NOON - timedelta(days=9))
    (record,) = store.query()
    assert (record.outcome, record.labeling_source, record.labeled_at) == (
        True,
        "deterministic",
        NOON - timedelta(days=9),
    )
    assert store.count(outcome=False) == 0


def test_labels_of_many_calls_are_all_or_none(store: CalibrationStore) -> None:
    """One unknown number refuses all labels of the list."""
    numbers = store.add_many([(call("a"), None), (call("b"), None)])
    refuse(
        ValueError, "call in this store", lambda: store.label_many([(numbers[0], True), (99, True)], "human")
    )
    assert store.count(labelled=True) == 0
    store.label_many({numbers[0]: True, numbers[1]: False}, "human")
    assert [record.outcome for record in store.query()] == [True, False]


def test_many_calls_are_all_or_none(store: CalibrationStore) -> None:
    """The first that cannot be kept is named, and none is written."""
    rows = [(call("a"), True), (ToolCallContext("search", {"when": object()}), True)]
    refuse(TypeError, r"records\[1\].*args\['when'\]", lambda: store.add_many(rows))
    refuse(ValueError, r"records\[1\].*outcome", lambda: store.add_many([(call(), True), (call(), "no")]))  # type: ignore[list-item]
    assert store.count() == 0
    assert store.add_many([]) == []


def test_conditions_select(store: CalibrationStore) -> None:
    """Each condition does what it says, and several hold together."""
    for hour, (tool, outcome) in enumerate([("a", True), ("b", False), ("a", None), ("b", True)]):
        store.add(
            ToolCallContext(tool, {"query": str(hour)}),
            outcome,
            labeling_source=None if outcome is None else ("human" if hour else "judge"),
            recorded_at=NOON + timedelta(hours=hour),
        )
    selected: dict[str, dict[str, Any]] = {
        "02": {"tool_name": "a"},
        "03": {"outcome": True},
        "1": {"outcome": 0},
        "2": {"labelled": False},
        "13": {"labeling_source": "human"},
        "23": {"since": NOON + timedelta(hours=2)},
        "01": {"until": NOON + timedelta(hours=2)},
        "3": {"after_id": 3},
        "0": {"limit": 1},
        "": {"limit": 0},
        "0123": {"after_id": -1, "limit": 2**80},
        "23 ": {"tool_name": None, "after_id": 2, "limit": 2},
    }
    for wanted, conditions in selected.items():
        assert "".join(plain(store.query(**conditions))) == wanted.strip(), conditions
        assert "".join(plain(list(store.iterate(**conditions)))) == wanted.strip(), conditions
        assert store.count(**conditions) == len(wanted.strip()), conditions


def test_a_store_opened_again_has_what_was_committed(place: str) -> None:
    """Closing loses nothing, numbers go on, and a second store sees the writes of the first."""
    with CalibrationStore(place) as first, CalibrationStore(place, synchronous="normal") as second:
        first.add(call("a"))
        assert plain(second.query()) == ["a"]
        assert second.add(call("b")) == 2
    with CalibrationStore(place, create=False) as again:
        assert plain(again.query()) == ["a", "b"]
        assert again.verify() == ()
        assert again.schema_version == 2


def test_eight_threads_write_and_read_at_once(store: CalibrationStore) -> None:
    """Each number belongs to what was added under it, and none is missing or given twice."""

    def write(thread: int) -> dict[int, str]:
        found = {}
        for at in range(15):
            found[store.add(call(f"{thread}-{at}"), True)] = f"{thread}-{at}"
            store.count()
        return found

    with ThreadPoolExecutor(8) as pool:
        added = {number: text for part in pool.map(write, range(8)) for number, text in part.items()}
    records = store.query()
    assert [record.id for record in records] == list(range(1, 121))
    assert plain(records) == [added[number] for number in sorted(added)]


def test_a_reader_and_a_writer_do_not_wait_for_each_other(place: str) -> None:
    """While a transaction is open to write, others read what was committed before it."""
    with CalibrationStore(place, wait=0.05) as store:
        store.add(call("a"))
        with store._access._backend.writing() as transaction:
            transaction.run("DELETE FROM rag_confidence_calls")
            assert plain(store.query()) == ["a"]
        assert store.count() == 0


def test_a_lock_held_too_long_is_an_error_that_says_what_was_kept(place: str) -> None:
    """Another writer's lock ends in a StoreError; the store works on when it is gone."""
    with CalibrationStore(place) as holder, CalibrationStore(place, wait=0.05) as store:
        with holder._access._backend.writing():
            refuse(StoreError, "Nothing of this write was kept", lambda: store.add(call("late")))
        store.add(call("after"))
        assert plain(store.query()) == ["after"]


def test_a_store_can_be_pickled(store: CalibrationStore) -> None:
    """What comes out of a pickle is the same store, opened again."""
    store.add(call("a"))
    with pickle.loads(pickle.dumps(store)) as copy:
        copy.add(call("b"))
    assert plain(store.query()) == ["a", "b"]


def test_a_closed_store_says_so(place: str) -> None:
    """Every use after close() is a StoreError, and closing twice is no error."""
    store = CalibrationStore(place)
    store.close()
    store.close()
    uses: list[Callable[[], Any]] = [lambda: store.add(call()), store.query, store.summary, store.count]
    for use in uses:
        refuse(StoreError, "must be open", use)


def test_nothing_is_made_where_nothing_may_be(place: str) -> None:
    """With create=False a place without a store is refused and left as it is."""
    refuse(
        StoreError, "must be a calibration store that exists", lambda: CalibrationStore(place, create=False)
    )
    if "://" not in place:
        assert not Path(place).exists()


@pytest.mark.parametrize(
    ("kind", "pattern", "arguments"),
    [
        (
            TypeError,
            r"`args\['f'\]` must be a value of JSON",
            {"context": ToolCallContext("t", {"f": print})},
        ),
        (
            ValueError,
            r"`metadata\['x'\]\[0\]` must be finite",
            {"context": ToolCallContext("t", metadata={"x": [math.nan]})},
        ),
        (
            TypeError,
            r"`args\['m'\]` must have strings as keys",
            {"context": ToolCallContext("t", {"m": {1: 2}})},
        ),
        (TypeError, "`result` must be a value of JSON", {"context": ToolCallContext("t", result=object())}),
        (
            ValueError,
            r"`token_logprobs\[1\]`",
            {"context": ToolCallContext("t", token_logprobs=(0.0, math.nan))},
        ),
        (ValueError, "`tool_name` must not hold a NUL", {"context": ToolCallContext("a\x00b")}),
        (ValueError, "`tool_name` must be text in Unicode", {"context": ToolCallContext("\ud800")}),
        (ValueError, "`outcome` must be 0 or 1", {"context": call(), "outcome": "False"}),
        (ValueError, "`outcome` must be 0 or 1", {"context": call(), "outcome": 0.5}),
        (ValueError, "`outcome` must be given", {"context": call(), "labeling_source": "human"}),
        (ValueError, "must not be nan", {"context": call(), "scores": {"a": math.nan}}),
        (TypeError, "time zone", {"context": call(), "recorded_at": datetime(2026, 1, 1)}),
        (TypeError, "`context` must be a ToolCallContext", {"context": {"tool_name": "t"}}),
    ],
)
def test_what_cannot_be_kept_is_refused_before_anything_is_written(
    tmp_path: Path, kind: type[Exception], pattern: str, arguments: dict[str, Any]
) -> None:
    """The message names the value, and the store stays empty."""
    with CalibrationStore(tmp_path / "calls.db") as store:
        refuse(kind, pattern, lambda: store.add(**arguments))
        assert store.count() == 0


def test_a_context_within_itself_is_refused(tmp_path: Path) -> None:
    """What has no end cannot be written down."""
    loop: list[Any] = []
    loop.append(loop)
    with CalibrationStore(tmp_path / "calls.db") as store:
        refuse(ValueError, "nested so deeply", lambda: store.add(ToolCallContext("t", {"loop": loop})))


@pytest.mark.parametrize(
    ("kind", "pattern", "options"),
    [
        (ValueError, "`synchronous` must be one of", {"synchronous": "off"}),
        (TypeError, "`create` must be True or False", {"create": "no"}),
        (ValueError, "`wait` must be a number", {"wait": -1}),
    ],
)
def test_options_are_checked(
    tmp_path: Path, kind: type[Exception], pattern: str, options: dict[str, Any]
) -> None:
    """A typo is an error at once, and makes no file."""
    refuse(kind, pattern, lambda: CalibrationStore(tmp_path / "calls.db", **options))
    assert os.listdir(tmp_path) == []


def test_arguments_of_methods_are_checked(tmp_path: Path) -> None:
    """What no store could answer is refused with the name of the argument."""
    with CalibrationStore(tmp_path / "calls.db") as store:
        number = store.add(call())
        refuse(TypeError, "`labeling_source`", lambda: store.label(number, True, None))  # type: ignore[arg-type]
        refuse(ValueError, "`outcome`", lambda: store.label(number, "yes", "human"))  # type: ignore[arg-type]
        refuse(ValueError, "`call_id`", lambda: store.label(2**80, True, "human"))
        refuse(TypeError, "`labels`", lambda: store.label_many("ab", "human"))  # type: ignore[arg-type]
        refuse(TypeError, r"`labels\[0\]`", lambda: store.label_many([1], "human"))  # type: ignore[list-item]
        refuse(TypeError, "`records`", lambda: store.add_many(call()))  # type: ignore[arg-type]
        refuse(TypeError, "`record`", lambda: store.add_record(call()))  # type: ignore[arg-type]
        refuse(ValueError, "`limit`", lambda: store.iterate(limit=-1))
        refuse(TypeError, "`since`", lambda: store.query(since="today"))  # type: ignore[arg-type]
        refuse(TypeError, "`group`", lambda: store.query(group=1.5))  # type: ignore[arg-type]
        refuse(TypeError, "`check`", lambda: store.history(None))  # type: ignore[arg-type]
        assert store.query() == store.query(labelled=False)


@pytest.mark.parametrize(("kind", "path"), [(ValueError, ":memory:"), (TypeError, ""), (TypeError, 5)])
def test_paths_are_checked(kind: type[Exception], path: Any) -> None:
    """A path is one of a file, which threads and processes can share."""
    refuse(kind, "`path` must be", lambda: CalibrationStore(path))


def test_folders_are_made_and_a_relative_path_stays_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store in folders that are not there yet is made with them, and survives a change of folder."""
    monkeypatch.chdir(tmp_path)
    with CalibrationStore(Path("new") / "folder with 100 %?#" / "calls.db") as store:
        monkeypatch.chdir("/")
        store.add(call())
    assert (tmp_path / "new" / "folder with 100 %?#" / "calls.db").is_file()


def test_an_iteration_may_be_left_and_goes_on_beside_writes(store: CalibrationStore) -> None:
    """Nothing is locked between its pages."""
    store.add_many([(call(str(at)), None) for at in range(3)])
    started = store.iterate()
    next(started)
    store.add(call("new"))
    started.close()  # type: ignore[attr-defined]
    assert store.count() == 4


def test_verify_finds_rows_that_cannot_be_read(store: CalibrationStore) -> None:
    """Changed text of a row is named by its call, and is an error to whoever reads it."""
    store.add(call("a"))
    with store._access._backend.writing() as transaction:
        transaction.run("UPDATE rag_confidence_calls SET scores = '[]'")
    (found,) = store.verify()
    assert "call 1" in found
    refuse(StoreError, "call 1", store.query)


def test_a_store_that_is_not_closed_closes_with_its_last_reference(tmp_path: Path) -> None:
    """Its log is gone from the folder, as after close()."""
    store = CalibrationStore(tmp_path / "calls.db")
    store.add(call())
    assert "calls.db-wal" in os.listdir(tmp_path)
    del store
    assert os.listdir(tmp_path) == ["calls.db"]


def test_closing_while_others_write_leaves_whole_records(tmp_path: Path) -> None:
    """Whoever comes too late gets a StoreError, and every number that was returned is in the file."""
    store = CalibrationStore(tmp_path / "calls.db")
    kept: list[int] = []
    begun = threading.Barrier(5)

    def write() -> None:
        begun.wait()
        try:
            kept.extend(store.add(call()) for _ in range(500))
        except StoreError:
            return

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    begun.wait()
    store.close()
    for thread in threads:
        thread.join()
    with CalibrationStore(tmp_path / "calls.db") as again:
        assert {record.id for record in again.query()} >= set(kept)
        assert again.verify() == ()
