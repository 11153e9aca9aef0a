"""What one transaction adds: calls and labels with their numbers, written at its end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from rag_confidence.store.backend import Transaction
from rag_confidence.store.schema import CALLS, LABELS, META

CallRow: TypeAlias = dict[str, Any]
LabelRow: TypeAlias = dict[str, Any]

_INSERT_CALL = f"""INSERT INTO {CALLS}
    (id, tool_name, context, scores, fingerprints, group_name, decision, calibrator, recorded_us, uid)
    VALUES (:id, :tool_name, :context, :scores, :fingerprints, :group_name, :decision, :calibrator,
    :recorded_us, :uid)"""
_INSERT_LABEL = f"""INSERT INTO {LABELS} (seq, call_id, outcome, labeling_source, labeled_us)
    VALUES (:seq, :call_id, :outcome, :labeling_source, :labeled_us)"""
_COUNTERS = f"SELECT name, value FROM {META} WHERE name IN ('next_call', 'next_label')"
_SET_COUNTER = f"UPDATE {META} SET value = :value WHERE name = :name"
_HELD = f"SELECT 1 FROM {CALLS} WHERE id = :id"


class UnitOfWork:
    """New rows of an exclusive transaction.

    Numbers come from counters in the database and are given in the order of commits, so that a reader who
    goes on after the last number that it saw misses nothing. They are never used twice.
    """

    def __init__(self, transaction: Transaction) -> None:
        self.transaction = transaction
        counters = {name: int(value) for name, value in transaction.rows(_COUNTERS)}
        self._first_call = self._next_call = counters["next_call"]
        self._first_label = self._next_label = counters["next_label"]
        self._calls: list[CallRow] = []
        self._labels: list[LabelRow] = []

    def add(self, call: Mapping[str, Any], label: Mapping[str, Any] | None) -> int:
        """Queue a call, and its label where it has one; the number of the call."""
        number = self._next_call
        self._next_call += 1
        self._calls.append({**call, "id": number})
        if label is not None:
            self._append_label(number, label)
        return number

    def label(self, call_id: int, label: Mapping[str, Any]) -> None:
        """Queue a label for a call that exists."""
        new = self._first_call <= call_id < self._next_call
        old = call_id < self._first_call and self.transaction.rows(_HELD, {"id": call_id})
        if not (new or old):
            raise ValueError(
                f"`call_id` must be a call in this store; got {call_id}. Use the number that add() returned."
            )
        self._append_label(call_id, label)

    def label_all(self, labels: Iterable[tuple[int, Mapping[str, Any]]]) -> None:
        """The same for many."""
        for call_id, label in labels:
            self.label(call_id, label)

    def _append_label(self, call_id: int, label: Mapping[str, Any]) -> None:
        self._labels.append({**label, "call_id": call_id, "seq": self._next_label})
        self._next_label += 1

    def flush(self) -> None:
        """Write what is queued, and the counters."""
        if self._calls:
            self.transaction.run_many(_INSERT_CALL, self._calls)
        if self._labels:
            self.transaction.run_many(_INSERT_LABEL, self._labels)
        self._set("next_call", self._first_call, self._next_call)
        self._set("next_label", self._first_label, self._next_label)
        self._first_call, self._first_label = self._next_call, self._next_label
        self._calls, self._labels = [], []

    def _set(self, name: str, before: int, after: int) -> None:
        if after != before:
            self.transaction.run(_SET_COUNTER, {"name": name, "value": str(after)})
