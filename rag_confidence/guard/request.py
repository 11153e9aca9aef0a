"""What `calibrate` is asked for, checked once: options, calls, and what is known of their history."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any, Literal, TypeAlias, TypedDict

from rag_confidence._calls import LabelingSource, check_moment
from rag_confidence._history import GroupName, check_group
from rag_confidence._options import check_flag, check_text, entries_of
from rag_confidence.conformal.history import History, check_collected
from rag_confidence.conformal.quantile import Level, as_level
from rag_confidence.guard.reading import CalibrationData, Calls, Traffic, read_calls, read_traffic
from rag_confidence.guard.scorers import ScoreFunction, Scorer, as_scorers

Scorers: TypeAlias = Scorer | ScoreFunction | Iterable[Scorer | ScoreFunction]

ANY_TOOL = "any"
_NOT_RECORDED = "a source that is not recorded"


class Options(TypedDict, total=False):
    """Keywords of `calibrate`, which documents them."""

    beta: Level | None
    labeling_source: LabelingSource | str | None
    collected: Any
    reference: Traffic | None
    group: GroupName | None
    tool_names: Iterable[str] | Literal["any"] | None
    max_age: timedelta | None
    now: datetime | None
    strict: bool


@dataclass(frozen=True)
class Request:
    """The checked arguments of `calibrate`."""

    scorers: tuple[Scorer, ...]
    calls: Calls
    traffic: Calls | None
    level: Fraction
    beta: Fraction | None
    tool_names: frozenset[str] | None
    group: GroupName | None
    history: History
    max_age: timedelta | None
    now: datetime
    strict: bool

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the scorers."""
        return tuple(scorer.name for scorer in self.scorers)

    def refuse_async(self) -> None:
        """Refuse scorers that must be awaited, before each of them fails on every call."""
        for scorer in self.scorers:
            call = getattr(scorer.function, "__call__", None)  # noqa: B004
            if inspect.iscoroutinefunction(scorer.function) or inspect.iscoroutinefunction(call):
                raise TypeError(
                    f"`scorer` must return a number here; got {scorer.name}, which must be awaited. "
                    "Use acalibrate, and adecide for decisions."
                )


def requested(
    scorer: Scorers,
    calibration_data: CalibrationData,
    alpha: Level,
    *,
    beta: Level | None = None,
    labeling_source: LabelingSource | str | None = None,
    collected: Any = None,
    reference: Traffic | None = None,
    group: GroupName | None = None,
    tool_names: Iterable[str] | Literal["any"] | None = None,
    max_age: timedelta | None = timedelta(days=90),
    now: datetime | None = None,
    strict: bool = False,
) -> Request:
    """The checked request, with the calls read."""
    scorers, level = as_scorers(scorer), as_level(alpha)
    bad_level = None if beta is None else as_level(beta, "beta")
    check_text("labeling_source", labeling_source)
    tools, days = _check_tools(tool_names), check_collected(collected)
    moment = check_moment("now", now) or datetime.now(UTC)
    calls = read_calls(calibration_data)
    _refuse_missing(calls, beta=beta is not None)
    _refuse_other_tools(calls, tools)
    source = _labelled_by(calls, None if labeling_source is None else str(labeling_source))
    return Request(
        scorers=scorers,
        calls=calls,
        traffic=None if reference is None else read_traffic(reference),
        level=level,
        beta=bad_level,
        tool_names=_judged_tools(tool_names, tools, calls),
        group=None if group is None else check_group("group", group),
        history=History(days or _days(calls), source),
        max_age=_check_age(max_age),
        now=moment,
        strict=check_flag("strict", strict),
    )


def _judged_tools(asked: Any, named: frozenset[str] | None, calls: Calls) -> frozenset[str] | None:
    """The tools whose calls are judged: those named, else those calibrated on; None for any."""
    if named is not None:
        return named
    return None if asked is not None else frozenset(context.tool_name for context in calls.contexts)


def _check_tools(tool_names: Any) -> frozenset[str] | None:
    if tool_names is None or (isinstance(tool_names, str) and tool_names == ANY_TOOL):
        return None
    if isinstance(tool_names, set | frozenset):
        tool_names = sorted(tool_names, key=str)
    names = entries_of("tool_names", tool_names, "a list of names", "Pass ['search'], for example.")
    if not names or not all(isinstance(name, str) and name for name in names):
        raise TypeError(
            f"`tool_names` must hold names of tools; got {[*names]!r}. Pass ['search'], for example."
        )
    return frozenset(names)


def _check_age(max_age: Any) -> timedelta | None:
    if max_age is not None and not isinstance(max_age, timedelta):
        raise TypeError(
            f"`max_age` must be a timedelta or None; got {max_age!r}. Pass timedelta(days=90), for example."
        )
    if max_age is not None and max_age <= timedelta(0):
        raise ValueError(
            f"`max_age` must be positive; got {max_age!r}. Pass timedelta(days=90), for example."
        )
    return max_age


def _refuse_missing(calls: Calls, *, beta: bool) -> None:
    """Good calls set the threshold, and with beta bad calls too."""
    n, n_good = len(calls.good), sum(calls.good)
    if n == 0:
        left_out = f" and {calls.n_unlabelled} without an outcome" if calls.n_unlabelled else ""
        raise ValueError(
            f"`calibration_data` must hold labelled calls; got none{left_out}. "
            "Say of past calls whether they were good."
        )
    if n_good == 0:
        raise ValueError(
            f"`calibration_data` must hold good calls; got {n}, all bad. Only good calls set the threshold: "
            "add some."
        )
    if beta and n_good == n:
        raise ValueError(
            f"`calibration_data` must hold bad calls for `beta`; got {n}, all good. "
            "Add some, or leave `beta` out."
        )


def _refuse_other_tools(calls: Calls, tools: frozenset[str] | None) -> None:
    if tools is None:
        return
    others = [context.tool_name for context in calls.contexts if context.tool_name not in tools]
    if others:
        raise ValueError(
            f"`calibration_data` must hold calls of {', '.join(sorted(tools))}; got {len(others)} of other "
            f"tools, such as {others[0]}. Leave them out, or add the tool to `tool_names`."
        )


def _labelled_by(calls: Calls, default: str | None) -> str | None:
    """Who judged the calls; several sources are all named."""
    found = {record.labeling_source or default for record in calls.records.values()}
    if len(calls.records) < len(calls.contexts):
        found.add(default)
    named = sorted(source for source in found if source is not None)
    if not named:
        return None
    return " and ".join([*named, _NOT_RECORDED] if None in found else named)


def _days(calls: Calls) -> tuple[str, str] | None:
    """First and last day of the calls, if the day of each is known."""
    moments = [record.recorded_at for record in calls.records.values() if record.recorded_at is not None]
    if len(moments) < len(calls.contexts):
        return None
    return min(moments).date().isoformat(), max(moments).date().isoformat()
