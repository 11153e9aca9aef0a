"""Old calls go with all their labels, on request only."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from refusals import refuse
from store_places import call, plain

from rag_confidence.store import CalibrationStore

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("rule", "left"),
    [
        ({"keep_last": 2}, "23"),
        ({"keep_last": 0}, ""),
        ({"keep_last": 99}, "0123"),
        ({"before": NOON + timedelta(hours=1)}, "123"),
        ({"older_than": timedelta(hours=2), "now": NOON + timedelta(hours=4)}, "23"),
        ({"older_than": timedelta(0), "now": NOON + timedelta(hours=9)}, ""),
        ({"older_than": timedelta.max, "now": NOON + timedelta(hours=9)}, "0123"),
    ],
)
def test_calls_go_with_their_labels(place: str, rule: dict[str, Any], left: str) -> None:
    """By age or by number; what is left keeps its labels, and numbers are not used again."""
    with CalibrationStore(place) as store:
        for hour in range(4):
            number = store.add(call(str(hour)), True, recorded_at=NOON + timedelta(hours=hour))
            store.label(number, False, "human")
        assert store.prune(**rule) == 4 - len(left)
        assert "".join(plain(store.query(outcome=False))) == left
        ((labels,),) = store._access.rows("SELECT COUNT(*) FROM rag_confidence_labels", {})
        assert labels == 2 * len(left)
        assert store.add(call("new")) == 5
        assert store.verify() == ()


@pytest.mark.parametrize("rule", [{}, {"keep_last": 1, "before": NOON}])
def test_one_rule_is_needed(tmp_path: Any, rule: dict[str, Any]) -> None:
    """No rule deletes nothing, and two are not guessed at."""
    with CalibrationStore(tmp_path / "calls.db") as store:
        refuse(ValueError, "one of older_than, before and keep_last", lambda: store.prune(**rule))


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        (ValueError, {"older_than": timedelta(days=-1)}),
        (ValueError, {"older_than": 90}),
        (ValueError, {"keep_last": -1}),
        (TypeError, {"keep_last": 1.5}),
        (TypeError, {"before": "2026-01-01"}),
    ],
)
def test_an_odd_rule_deletes_nothing(tmp_path: Any, kind: type[Exception], rule: dict[str, Any]) -> None:
    """It is refused with its name."""
    with CalibrationStore(tmp_path / "calls.db") as store:
        store.add(call())
        refuse(kind, f"`{next(iter(rule))}` must be", lambda: store.prune(**rule))
        assert store.count() == 1
