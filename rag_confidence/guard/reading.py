"""Calibration data become labelled calls here: pairs of a context and an outcome, and records of a store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Any, TypeAlias

from rag_confidence._calls import CallRecord, ToolCallContext, check_outcome

CalibrationData: TypeAlias = Iterable[tuple[ToolCallContext, Any] | CallRecord]
Traffic: TypeAlias = Iterable[ToolCallContext | CallRecord | tuple[ToolCallContext, Any]]

_CURE = "Pass pairs (ToolCallContext, outcome), or records of a CalibrationStore."
_TRAFFIC_CURE = "Pass contexts, or records of a CalibrationStore."


@dataclass(frozen=True)
class Calls:
    """Labelled calls, in the order in which they came.

    Attributes
    ----------
    contexts : list of ToolCallContext
    good : list of bool
    records : dict of int to CallRecord
        Place -> what else is known of the call there.
    n_unlabelled : int
        Records that were left out, because nobody knows yet whether the call was good.
    """

    contexts: list[ToolCallContext]
    good: list[bool]
    records: dict[int, CallRecord]
    n_unlabelled: int


def read_calls(data: CalibrationData) -> Calls:
    """Labelled calls from pairs and records; an outcome is a boolean, or 0 or 1."""
    entries = [*_entries("calibration_data", data, _CURE)]
    plain = _plain_pairs(entries)
    if plain is not None:
        return plain
    calls, unlabelled = Calls([], [], {}, 0), 0
    for at, entry in enumerate(entries):
        if not isinstance(entry, CallRecord):
            context, outcome = _pair(f"calibration_data[{at}]", entry)
            _append(calls, context, good=outcome)
        elif entry.outcome is None:
            unlabelled += 1
        else:
            _append(calls, entry.context, good=entry.outcome, record=entry)
    _refuse_repeated(calls)
    return Calls(calls.contexts, calls.good, calls.records, unlabelled)


def read_traffic(traffic: Traffic) -> Calls:
    """Calls without regard to their outcome, which may be unknown."""
    calls = Calls([], [], {}, 0)
    for at, entry in enumerate(_entries("reference", traffic, _TRAFFIC_CURE)):
        if isinstance(entry, CallRecord):
            _append(calls, entry.context, good=True, record=entry)
            continue
        context = entry[0] if isinstance(entry, tuple | list) and entry else entry
        _check_context(f"reference[{at}]", context, _TRAFFIC_CURE)
        _append(calls, context, good=True)
    if not calls.contexts:
        raise ValueError(f"`reference` must hold calls; got none. {_TRAFFIC_CURE}")
    return calls


def _entries(name: str, data: Any, cure: str) -> Iterable[Any]:
    if isinstance(data, str | bytes | Mapping | Set) or not isinstance(data, Iterable):
        raise TypeError(f"`{name}` must be an iterable of calls; got {type(data).__name__}. {cure}")
    return data


def _pair(name: str, entry: Any) -> tuple[ToolCallContext, bool]:
    if not isinstance(entry, tuple | list) or len(entry) != 2:
        raise TypeError(f"`{name}` must be a pair or a record; got {type(entry).__name__}. {_CURE}")
    context, outcome = entry
    _check_context(name, context, _CURE)
    return context, check_outcome(outcome, f"{name}[1]")


def _check_context(name: str, context: Any, cure: str) -> None:
    if not isinstance(context, ToolCallContext):
        raise TypeError(f"`{name}` must hold a ToolCallContext; got {type(context).__name__}. {cure}")


def _append(calls: Calls, context: ToolCallContext, *, good: bool, record: CallRecord | None = None) -> None:
    if record is not None:
        calls.records[len(calls.contexts)] = record
    calls.contexts.append(context)
    calls.good.append(good)


def _plain_pairs(entries: list[Any]) -> Calls | None:
    """The calls, if all are pairs of a context and a bool; found without a loop in Python."""
    if set(map(type, entries)) != {tuple}:
        return None
    try:
        contexts = [context for context, _ in entries]
    except ValueError:
        return None
    good = [outcome for _, outcome in entries]
    plain = set(map(type, contexts)) == {ToolCallContext} and set(map(type, good)) == {bool}
    return Calls(contexts, good, {}, 0) if plain else None


def _refuse_repeated(calls: Calls) -> None:
    counts = Counter(record.id for record in calls.records.values() if record.id is not None)
    twice = next((number for number, count in counts.items() if count > 1), None)
    if twice is not None:
        raise ValueError(
            f"`calibration_data` must hold each record once; got the record {twice} again. "
            "Leave out the copies: they count as evidence that is not there."
        )
