"""Lines of JSONL become records: of retrievals that were scored, and of calls that a store exported."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rag_confidence._artefact import decode_float
from rag_confidence._calls import CallRecord, ToolCallContext, check_moment
from rag_confidence._options import check_number, check_text
from rag_confidence._types import Decision, Provenance
from rag_confidence.store.exporting import FORMAT
from rag_confidence.store.rows import to_json

RETRIEVAL = "retrieval"
_SIGNALS = "signals."
_CURE = "Pass to_dict() lines of retrievals, or an export of a store."


@dataclass(frozen=True)
class Keys:
    """Keys of a log line that the record itself does not have."""

    label: str
    time: str | None
    identity: str | None
    labeling_source: str | None


def record_of_line(text: str, keys: Keys) -> tuple[str | None, CallRecord]:
    """A line as a record, and the name by which it is known again, if it has one.

    Raises
    ------
    TypeError, ValueError
        For what is neither a retrieval nor an exported call.
    """
    line = json.loads(text, parse_constant=_refuse_constant)
    if not isinstance(line, dict):
        raise TypeError(f"`line` must be an object of JSON; got {type(line).__name__}. {_CURE}")
    if line.get("format") == FORMAT:
        return _exported(line)
    if "kpi" in line and "policy_fingerprint" in line:
        return _retrieval(line, keys)
    raise ValueError(f"`line` must be a retrieval or an exported call; got keys {[*line][:6]}. {_CURE}")


def _exported(line: dict[str, Any]) -> tuple[str, CallRecord]:
    context = dict(line["context"])
    logprobs = context.pop("token_logprobs")
    values = None if logprobs is None else tuple(map(decode_float, logprobs))
    record = CallRecord(
        context=ToolCallContext(tool_name=line["tool_name"], token_logprobs=values, **context),
        outcome=line["outcome"],
        scores={name: decode_float(score) for name, score in line["scores"].items()},
        fingerprints=line["fingerprints"],
        labeling_source=line["labeling_source"],
        group=line["group"],
        decision=line["decision"],
        calibrator=line["calibrator"],
        recorded_at=_time("recorded_at", line["recorded_at"]),
        labeled_at=_time("labeled_at", line["labeled_at"]),
    )
    if not isinstance(line["uid"], str):
        raise TypeError(f"`uid` must be a string; got {line['uid']!r}. {_CURE}")
    return line["uid"], record


def _retrieval(line: dict[str, Any], keys: Keys) -> tuple[str | None, CallRecord]:
    rest = dict(line)
    outcome = rest.pop(keys.label, None)
    time = None if keys.time is None else rest.pop(keys.time, None)
    scores = _scores(rest)
    made_by = fingerprint_of(provenance_of_line(line))
    group, calibrator = rest.pop("group", None), rest.pop("gate_fingerprint", None)
    decision = rest.pop("decision", None)
    record = CallRecord(
        context=ToolCallContext(tool_name=RETRIEVAL, metadata=rest),
        outcome=outcome,
        scores=scores,
        fingerprints=dict.fromkeys(scores, made_by),
        labeling_source=keys.labeling_source if outcome is not None else None,
        group=group,
        decision=None if decision is None else Decision(decision.lower()),
        calibrator=calibrator,
        recorded_at=_time(keys.time or "time", time),
    )
    return _identity(line, keys.identity), record


def _scores(rest: dict[str, Any]) -> dict[str, float]:
    """The KPI and the signals that were assessed, taken out of the rest of the line."""
    kpi = check_number("kpi", rest.pop("kpi"), 0.0, 1.0, "Pass the unrounded kpi of to_dict().")
    names = [name for name in rest if name.startswith(_SIGNALS)]
    signals = {name: rest.pop(name) for name in names}
    return {"kpi": kpi, **{name: value for name, value in signals.items() if value is not None}}


def provenance_of_line(line: Mapping[str, Any]) -> Provenance:
    """How the KPI of a retrieval was made, from its record."""
    for name in ("policy_fingerprint", "embedder", "profile_fingerprint"):
        check_text(name, line.get(name))
    return Provenance.of_kpi(
        line["policy_fingerprint"],
        line.get("embedder"),
        line.get("evidence.embedding_backend", "precomputed"),
        line.get("profile_fingerprint"),
    )


def fingerprint_of(provenance: Provenance) -> str:
    """A provenance as the fingerprint of the scores that were made so."""
    return to_json(provenance.to_dict())


def _identity(line: Mapping[str, Any], key: str | None) -> str | None:
    if key is None:
        return None
    name = line.get(key)
    if isinstance(name, bool) or not isinstance(name, (str, int)):
        raise TypeError(
            f"`{key}` must be a string or an integer in every line; got {name!r}. Name another key."
        )
    return f"{key}:{name}"


def _time(name: str, text: Any) -> datetime | None:
    if text is None:
        return None
    if not isinstance(text, str):
        raise TypeError(f"`{name}` must be a time in ISO 8601; got {text!r}. Write 2026-12-01T12:00:00Z.")
    return check_moment(name, datetime.fromisoformat(text))


def _refuse_constant(word: str) -> None:
    raise ValueError(f"`line` must be JSON; got the number {word}, which JSON lacks. {_CURE}")
