"""Tool calls, as guard and store know them: what is judged, who labelled it, and one recorded call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from enum import StrEnum
from math import inf, isinf, isnan
from types import MappingProxyType
from typing import Any

import numpy as np

from rag_confidence._history import GroupName, check_group
from rag_confidence._options import check_text
from rag_confidence._types import Decision

_ATOMS = frozenset({str, int, float, bool, bytes, type(None)})
_NUMBERS = (int, float, np.integer, np.floating)
# A length of time is an integer to NumPy.
_NO_NUMBERS = (bool, np.bool_, np.timedelta64)
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class LabelingSource(StrEnum):
    """How it was found out whether a call was good."""

    DETERMINISTIC = "deterministic"
    HUMAN = "human"
    JUDGE = "judge"
    USER_FEEDBACK = "user_feedback"
    DOWNSTREAM_PROXY = "downstream_proxy"


@dataclass(frozen=True, init=False)
class ToolCallContext:
    """One tool call, as scorers see it.

    Attributes
    ----------
    tool_name : str
        Name of the tool.
    args : mapping of str to anything
        Its arguments. They are copied, so that a scorer cannot change what the tool runs with; an argument
        that cannot be copied is refused.
    result : anything
        What the tool returned, where the call is scored after it ran; else None.
    token_logprobs : tuple of float, or None
        Log-probabilities of the tokens that made the call; None where the API gave none.
    judge_score : float or None
        What a judge said, in [0, 1], high is good; None where there was none.
    call_id : str or None
        Name of the call in the response of the model.
    metadata : mapping of str to anything
        Whatever else scorers of your own need. Copied like `args`.
    """

    tool_name: str
    args: Mapping[str, Any] = field(default_factory=dict)
    result: Any = None
    token_logprobs: tuple[float, ...] | None = None
    judge_score: float | None = None
    call_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __init__(
        self,
        tool_name: str,
        args: Mapping[str, Any] = _NOTHING,
        result: Any = None,
        token_logprobs: Iterable[float] | None = None,
        judge_score: float | None = None,
        call_id: str | None = None,
        metadata: Mapping[str, Any] = _NOTHING,
    ) -> None:
        name: Any = tool_name
        if not (isinstance(name, str) and name):
            raise TypeError(f"`tool_name` must be a string that is not empty; got {name!r}. Name the tool.")
        if token_logprobs is not None and type(token_logprobs) is not tuple:
            token_logprobs = tuple(token_logprobs)
        # Every guarded call makes one, and setting the fields one after the other takes twice as long.
        values = {
            "tool_name": tool_name,
            "args": _frozen_copy("args", args),
            "result": result,
            "token_logprobs": token_logprobs,
            "judge_score": judge_score,
            "call_id": call_id,
            "metadata": _frozen_copy("metadata", metadata),
        }
        object.__setattr__(self, "__dict__", values)

    def __reduce__(self) -> tuple[Callable[..., ToolCallContext], tuple[Any, ...]]:
        # A mapping that nobody can change cannot be pickled either.
        values = (getattr(self, item.name) for item in fields(self))
        plain = (dict(value) if isinstance(value, MappingProxyType) else value for value in values)
        return ToolCallContext, tuple(plain)

    def with_result(self, result: Any) -> ToolCallContext:
        """The same call after the tool returned."""
        return replace(self, result=result)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; ready for JSON where arguments, result and metadata are."""
        return {
            "tool_name": self.tool_name,
            "args": dict(self.args),
            "result": self.result,
            "token_logprobs": None if self.token_logprobs is None else [*self.token_logprobs],
            "judge_score": self.judge_score,
            "call_id": self.call_id,
            "metadata": dict(self.metadata),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> ToolCallContext:
        """The context that `to_dict` wrote."""
        return cls(**plain)


def _frozen_copy(name: str, values: Any) -> Mapping[str, Any]:
    if type(values) is not dict and not isinstance(values, Mapping):
        raise _not_named(name, values)
    if not values:
        return _NOTHING
    copies = {}
    for key, value in values.items():
        if type(key) is not str:
            raise _not_named(name, values)
        copies[key] = value if type(value) in _ATOMS else _copied(name, key, value)
    return MappingProxyType(copies)


def _not_named(name: str, values: Any) -> TypeError:
    return TypeError(
        f"`{name}` must be a mapping with names as keys; got {type(values).__name__}. "
        "Pass a dictionary such as {'query': 'weather'}."
    )


def _copied(name: str, key: str, value: Any) -> Any:
    try:
        return deepcopy(value)
    except Exception as error:
        raise TypeError(
            f"`{name}[{key!r}]` must be a value that can be copied; got {type(value).__name__} ({error}). "
            "Leave it out of the context with a `context_builder`."
        ) from error


@dataclass(frozen=True)
class CallRecord:
    """One call with what is known of it: a row of the calibration store, and an entry of calibration data.

    Attributes
    ----------
    context : ToolCallContext
    outcome : bool or None
        Whether the call was good in hindsight; None while nobody knows.
    scores : mapping of str to float
        Nonconformity by check, higher is stranger; +inf where a check failed to run.
    fingerprints : mapping of str to str
        Fingerprint of the scorer behind each of them.
    labeling_source : str or None
        Who or what decided on the outcome.
    group : str or int or None
    decision : Decision or None
        What a guard decided at the time; None where none was asked.
    calibrator : str or None
        Fingerprint of the calibrator behind that decision.
    recorded_at, labeled_at : datetime or None
        When the call was recorded and when it was labelled, in UTC. The store fills in what is missing.
    id : int or None
        Its number in the store, ascending in the order of recording.
    """

    context: ToolCallContext
    outcome: bool | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    labeling_source: str | None = None
    group: GroupName | None = None
    decision: Decision | None = None
    calibrator: str | None = None
    recorded_at: datetime | None = None
    labeled_at: datetime | None = None
    id: int | None = None

    def __post_init__(self) -> None:
        keep = object.__setattr__
        if not isinstance(self.context, ToolCallContext):
            raise TypeError(
                f"`context` must be a ToolCallContext; got {type(self.context).__name__}. "
                "Build one: ToolCallContext(tool_name='search', args={'query': 'weather'})."
            )
        if self.outcome is not None:
            keep(self, "outcome", check_outcome(self.outcome))
        keep(self, "scores", check_named_scores(self.scores))
        keep(self, "fingerprints", _checked_fingerprints(self.fingerprints))
        check_text("labeling_source", self.labeling_source)
        check_text("calibrator", self.calibrator)
        if self.group is not None:
            keep(self, "group", check_group("group", self.group))
        if self.decision is not None:
            keep(self, "decision", _checked_decision(self.decision))
        for name in ("recorded_at", "labeled_at"):
            keep(self, name, check_moment(name, getattr(self, name)))


def _checked_decision(decision: Any) -> Decision:
    try:
        return Decision(decision)
    except ValueError:
        known = ", ".join(repr(known.value) for known in Decision)
        raise ValueError(
            f"`decision` must be one of {known}; got {decision!r:.80}. Pass a Decision, or None."
        ) from None


def check_outcome(outcome: Any, name: str = "outcome") -> bool:
    """Whether a call was good: a boolean, or 0 or 1; nothing else is an outcome."""
    known = isinstance(outcome, (bool, np.bool_, *_NUMBERS)) and not isinstance(outcome, np.timedelta64)
    if not known or outcome not in (0, 1):
        raise ValueError(
            f"`{name}` must be 0 or 1 (or booleans); got {outcome!r:.80}. Leave out calls without an outcome."
        )
    return bool(outcome)


def check_moment(name: str, moment: Any) -> datetime | None:
    """A point in time in UTC, or None."""
    if moment is None:
        return None
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        raise TypeError(
            f"`{name}` must be a datetime with a time zone; got {moment!r}. "
            "Pass datetime.now(UTC), for example."
        )
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError(
            f"`{name}` must be a time between the years 1 and 9999 in UTC; got {moment!r}. Leave it out."
        ) from None


def check_named_scores(scores: Any) -> Mapping[str, float]:
    """Scores by check, as floats that are neither nan nor -inf; nobody can change the mapping."""
    _check_names("scores", scores)
    for name, score in scores.items():
        if isinstance(score, _NO_NUMBERS) or not isinstance(score, _NUMBERS):
            raise TypeError(
                f"`scores[{name!r}]` must be a number; got {score!r}. "
                "A check that failed to run counts as +inf."
            )
        number = _as_float(score)
        if isnan(number) or (isinf(number) and number < 0):
            raise ValueError(
                f"`scores[{name!r}]` must not be nan or -inf; got {number!r}. "
                "A check that failed to run counts as +inf."
            )
    return MappingProxyType({name: _as_float(score) for name, score in scores.items()})


def _as_float(number: Any) -> float:
    """A number as a float; one beyond the range of floats is infinite."""
    try:
        return float(number)
    except OverflowError:
        return inf if number > 0 else -inf


def _checked_fingerprints(fingerprints: Any) -> Mapping[str, str]:
    _check_names("fingerprints", fingerprints)
    for name, text in fingerprints.items():
        check_text(f"fingerprints[{name!r}]", text)
    return MappingProxyType(dict(fingerprints))


def _check_names(name: str, values: Any) -> None:
    if not isinstance(values, Mapping) or not all(isinstance(key, str) for key in values):
        raise TypeError(
            f"`{name}` must be a mapping from names of checks; got {values!r}. Pass {{'logprob': ...}}."
        )
