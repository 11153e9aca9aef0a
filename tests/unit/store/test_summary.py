"""A summary counts, and says what is amiss."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from store_places import call

from rag_confidence.store import CalibrationStore

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def test_an_empty_store_has_a_summary(place: str) -> None:
    """Nothing is counted, and only the lack of good calls is noted."""
    with CalibrationStore(place) as store:
        summary = store.summary()
        assert (summary.n_calls, summary.tools, summary.first, summary.scorers) == (0, {}, None, {})
        assert len(summary.notes) == 1
        assert store.summary(enough=0).notes == ()


def test_everything_is_counted(place: str) -> None:
    """Tools, groups, sources, outcomes, scorers and times, of all calls or of some; ready for JSON."""
    with CalibrationStore(place) as store:
        store.add(
            call(tool_name="b"), True, scores={"x": 1.0}, fingerprints={"x": "f"}, group=1, recorded_at=NOW
        )
        store.add(
            call(tool_name="a"), False, scores={"x": 2.0}, labeling_source="human", recorded_at=NOW - DAY
        )
        number = store.add(call(tool_name="a"), True, group="g", recorded_at=NOW - 2 * DAY)
        store.label(number, False, "judge")
        store.add(call(tool_name="a"), recorded_at=NOW - 3 * DAY)
        summary = store.summary(now=NOW)
        assert (summary.n_calls, summary.n_good, summary.n_bad, summary.n_unlabelled) == (4, 1, 2, 1)
        assert summary.tools == {"a": 3, "b": 1}
        assert summary.groups == {"g": 1, 1: 1}
        assert summary.labeling_sources == {"human": 1, "judge": 1}
        assert (summary.first, summary.last, summary.n_untimed) == (NOW - 3 * DAY, NOW, 0)
        assert summary.scorers == {"x": {"f": 1, "": 1}}
        assert summary.schema_version == 2
        assert store.summary(tool_name="b").n_calls == 1
        assert json.loads(json.dumps(summary.to_dict()))["tools"] == {"a": 3, "b": 1}


def test_notes_say_what_is_amiss(place: str) -> None:
    """Old, few, unlabelled and mixed calls, times ahead and times that go backwards, each in one sentence."""
    with CalibrationStore(place) as store:
        store.add(call(), True, scores={"x": 1.0}, fingerprints={"x": "f"}, recorded_at=NOW + DAY)
        store.add(call(), scores={"x": 1.0}, fingerprints={"x": "g"}, recorded_at=NOW)
        notes = " ".join(store.summary(now=NOW, tool_name="search").notes)
        for words in (
            "1 of 2 calls have no label",
            "1 good calls are fewer than 1000",
            "The scores of 'x' were made by 2 scorers",
            "1 calls were recorded in the future",
            "Time went backwards 1 times",
        ):
            assert words in notes
        assert "The newest call is 364 days old" in " ".join(store.summary(now=NOW + 365 * DAY).notes)


def test_threads_that_queue_do_not_look_like_a_clock_set_back(place: str) -> None:
    """Steps back of less than a second, as queueing makes them, are no finding."""
    with CalibrationStore(place) as store:
        store.add(call(), True, recorded_at=NOW)
        store.add(call(), True, recorded_at=NOW - timedelta(milliseconds=900))
        assert store.summary(now=NOW, enough=1).notes == ()
