"""One check as columns: aligned, with its origin, and with a warning where it is of two kinds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refuse
from store_places import call

from rag_confidence.errors import CalibrationRefused, MixedScorersWarning, StaleCalibrationWarning
from rag_confidence.store import CalibrationStore

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def filled(place: str, *, recorded_at: datetime | None = NOW) -> CalibrationStore:
    """Three labelled scores of one scorer and one of another, one unlabelled, one without the score."""
    store = CalibrationStore(place)
    for at, (outcome, made_by, group) in enumerate(
        [(True, "f", None), (False, "f", "g"), (True, "f", 3), (True, "other", None), (None, "f", None)]
    ):
        store.add(
            call(),
            outcome,
            scores={"x": 0.1 + at},
            fingerprints={"x": made_by},
            labeling_source=None if outcome is None else "human",
            group=group,
            recorded_at=recorded_at,
        )
    store.add(call(), True, scores={"y": 1.0}, recorded_at=recorded_at)
    return store


def test_columns_are_aligned(place: str) -> None:
    """Scores, labels, groups and numbers of the rows that have both score and label; others are counted."""
    with filled(place) as store:
        history = store.history("x", fingerprint="f", now=NOW)
    np.testing.assert_array_equal(history.scores, [0.1, 1.1, 2.1])
    np.testing.assert_array_equal(history.labels, [True, False, True])
    np.testing.assert_array_equal(history.row_ids, [1, 2, 3])
    assert history.groups == (None, "g", 3)
    assert (history.n_unlabelled, history.n_without, len(history)) == (1, 1, 3)
    assert (history.collected, history.labeling_source) == (("2026-11-30", "2026-11-30"), "human")
    assert (history.fingerprints, history.provenance) == ({"f": 3}, None)


def test_scores_of_several_scorers_warn_or_are_refused(place: str) -> None:
    """A mixture claims no provenance; strict=True refuses it."""
    with filled(place) as store:
        with pytest.warns(MixedScorersWarning, match=r"made by 2 scorers \(3 of 4 rows by 'f'\)"):
            history = store.history("x", now=NOW)
        assert (history.fingerprints, history.provenance) == ({"f": 3, "other": 1}, None)
        with pytest.raises(CalibrationRefused, match="got 2 of them"):
            store.history("x", now=NOW, strict=True)


def test_old_scores_warn(place: str) -> None:
    """Calls of the past may not be those of today."""
    with filled(place) as store:
        with pytest.warns(StaleCalibrationWarning, match="91 days old"):
            store.history("x", fingerprint="f", now=NOW + 91 * DAY)
        assert len(store.history("x", fingerprint="f", now=NOW + 91 * DAY, max_age=99 * DAY)) == 3


def test_what_is_not_known_of_every_row_is_not_claimed(place: str) -> None:
    """A day or a source that some rows lack is none of the history."""
    with filled(place) as store:
        store.add(call(), True, scores={"x": 1.0}, fingerprints={"x": "f"}, recorded_at=NOW + DAY)
        history = store.history("x", fingerprint="f", now=NOW)
        assert history.labeling_source is None
        assert history.collected == ("2026-11-30", "2026-12-01")
        assert store.history("y", now=NOW).groups is None
        store.label(1, True, "judge")
        assert (
            store.history("x", fingerprint="f", now=NOW, until=NOW + DAY).labeling_source == "human + judge"
        )


def test_a_check_that_nobody_scored_is_an_empty_history(place: str) -> None:
    """Whatever is fitted on it then says that it has no rows."""
    with filled(place) as store:
        history = store.history("z", now=NOW)
    assert (len(history), history.n_without, history.collected, history.provenance) == (0, 5, None, None)


@pytest.mark.parametrize("odd", [None, 90, "90 days"])
def test_an_age_is_a_length_of_time(tmp_path: Path, odd: Any) -> None:
    """Also where no call is there to be compared with it."""
    with CalibrationStore(tmp_path / "calls.db") as store:
        refuse(TypeError, "`max_age` must be a timedelta", lambda: store.history("x", max_age=odd))
        refuse(TypeError, "`max_age` must be a timedelta", lambda: store.summary(max_age=odd))
