"""Records become rows of text and whole numbers, and come back as they were, to the last bit."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from rag_confidence._artefact import decode_float, encode_float
from rag_confidence._calls import CallRecord, ToolCallContext
from rag_confidence.errors import StoreError
from rag_confidence.store.backend import Row
from rag_confidence.store.unit_of_work import CallRow, LabelRow

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_NUMBERS = (int, float, np.integer, np.floating)
_CURE = "Keep it out of the context with a `context_builder`, or convert it first."
# In ASCII: databases refuse lone surrogates and NUL, which JSON can write as escapes.
_encode = json.JSONEncoder(allow_nan=False, separators=(",", ":"), sort_keys=False).encode


def call_row(record: CallRecord, *, recorded_at: datetime | None, uid: str | None = None) -> CallRow:
    """The row of a call without its label; refused if it could not be read back as it is."""
    return {
        "tool_name": plain_text("tool_name", record.context.tool_name),
        "context": context_text(record.context),
        "scores": to_json({name: encode_float(score) for name, score in sorted(record.scores.items())}),
        "fingerprints": to_json(dict(sorted(record.fingerprints.items()))),
        "group_name": None if record.group is None else to_json(record.group),
        "decision": None if record.decision is None else record.decision.value,
        "calibrator": plain_text("calibrator", record.calibrator),
        "recorded_us": microseconds(recorded_at),
        "uid": plain_text("uid", uid),
    }


def label_row(outcome: bool, labeling_source: str | None, labeled_at: datetime | None) -> LabelRow:
    """The row of a label."""
    return {
        "outcome": int(outcome),
        "labeling_source": plain_text("labeling_source", labeling_source),
        "labeled_us": microseconds(labeled_at),
    }


def record_of(row: Row) -> CallRecord:
    """The record of a row of `statements.SELECT`."""
    number, tool_name, context, scores, fingerprints, group, decision, calibrator, recorded, *label = row
    outcome, source, labeled = label
    try:
        return CallRecord(
            context=_context_of(tool_name, json.loads(context)),
            outcome=None if outcome is None else bool(outcome),
            scores=scores_of(scores),
            fingerprints=json.loads(fingerprints),
            labeling_source=source,
            group=None if group is None else json.loads(group),
            decision=decision,
            calibrator=calibrator,
            recorded_at=moment(recorded),
            labeled_at=moment(labeled),
            id=int(number),
        )
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
        raise StoreError(
            f"`store` must hold rows as they were written; got call {number}, which cannot be read "
            f"({error}). Restore it from a copy."
        ) from error


def scores_of(text: str) -> dict[str, float]:
    """Scores by check, from their column."""
    return {name: decode_float(score) for name, score in json.loads(text).items()}


def to_json(value: Any) -> str:
    """JSON text of a value that is known to have one."""
    return _encode(value)


def plain_text(name: str, text: str | None) -> str | None:
    """A text that stands in a column of its own, as it is."""
    if text is None:
        return None
    plain = str(text)
    try:
        plain.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(f"`{name}` must be text in Unicode; got {plain!r}. Repair it first.") from error
    if "\x00" in plain:
        raise ValueError(f"`{name}` must not hold a NUL; got {plain!r}. Leave it out.")
    return plain


def microseconds(moment: datetime | None) -> int | None:
    """Whole microseconds since 1970, which sort as times do."""
    return None if moment is None else (moment - _EPOCH) // _MICROSECOND


def moment(microseconds: int | None) -> datetime | None:
    """The time that `microseconds` wrote."""
    return None if microseconds is None else _EPOCH + int(microseconds) * _MICROSECOND


def context_text(context: ToolCallContext) -> str:
    """JSON text of a context without its tool name; what JSON would lose or change is refused."""
    plain = context.to_dict()
    del plain["tool_name"]
    logprobs, judged = plain["token_logprobs"], plain["judge_score"]
    if logprobs is not None:
        plain["token_logprobs"] = [_logprob(at, value) for at, value in enumerate(logprobs)]
    if isinstance(judged, np.generic) and _is_number(judged):
        plain["judge_score"] = judged.item()
    try:
        for name, value in plain.items():
            _check(name, value)
        return _encode(plain)
    except RecursionError as error:
        raise ValueError(
            f"`context` must not be nested so deeply, nor within itself; got {error}. {_CURE}"
        ) from error


def _context_of(tool_name: str, plain: dict[str, Any]) -> ToolCallContext:
    logprobs = plain["token_logprobs"]
    values = None if logprobs is None else tuple(map(decode_float, logprobs))
    return ToolCallContext.from_dict({**plain, "tool_name": tool_name, "token_logprobs": values})


def _logprob(at: int, value: Any) -> float | str:
    number = _as_float(value) if _is_number(value) else math.nan
    if math.isnan(number):
        raise ValueError(
            f"`token_logprobs[{at}]` must be a number; got {value!r:.80}. Leave out tokens without one."
        )
    return encode_float(number)


def _is_number(value: Any) -> bool:
    # A length of time is an integer to NumPy.
    return isinstance(value, _NUMBERS) and not isinstance(value, (bool, np.timedelta64))


def _as_float(value: Any) -> float:
    """A number as a float; nan for an integer that no float can hold."""
    try:
        return float(value)
    except OverflowError:
        return math.nan


def _check(name: str, value: Any) -> None:
    """Refuse what JSON would lose, change or not write."""
    if value is None or isinstance(value, (str, bool)):
        return
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"`{name}` must be finite to be kept as JSON; got {value!r}. {_CURE}")
    elif isinstance(value, int):
        _check_size(name, value)
    elif isinstance(value, (list, tuple)):
        for at, entry in enumerate(value):
            _check(f"{name}[{at}]", entry)
    elif isinstance(value, Mapping):
        _check_mapping(name, value)
    else:
        raise TypeError(f"`{name}` must be a value of JSON; got {type(value).__name__}. {_CURE}")


def _check_mapping(name: str, value: Mapping[Any, Any]) -> None:
    if not isinstance(value, dict):
        raise TypeError(f"`{name}` must be a dict to be kept as JSON; got {type(value).__name__}. {_CURE}")
    for key, entry in value.items():
        if not isinstance(key, str):
            raise TypeError(f"`{name}` must have strings as keys to be kept as JSON; got {key!r}. {_CURE}")
        _check(f"{name}[{key!r}]", entry)


def _check_size(name: str, value: int) -> None:
    # Python does not write or read integers of some thousand digits.
    if value.bit_length() > 4096:
        raise ValueError(
            f"`{name}` must be of at most 4096 bits; got {value.bit_length()}. Keep it as a string."
        )
