"""The short way from a context to a decision, for ordinary scores; all else goes the general way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from rag_confidence._calls import ToolCallContext
from rag_confidence.guard.judging import Rule
from rag_confidence.guard.result import GuardResult, assembled
from rag_confidence.guard.scorers import Scored, Scorer

_Decide: TypeAlias = Callable[[ToolCallContext], GuardResult]


def decider_of(rule: Rule, scorers: Sequence[Scorer]) -> _Decide:
    """What decides on a context, with the same results as `Rule.judge`.

    Notes
    -----
    This runs before every guarded call. Without ranks, and where scores are ordinary floats, it fills in a
    result that was prepared: of an accepted call, or of one that was stopped by these very checks.
    """
    if rule.ranks is not None:
        return lambda context: rule.judge(context, [scorer.score(context) for scorer in scorers])
    return _of_one(rule, scorers[0]) if len(scorers) == 1 else _of_several(rule, scorers)


def _of_one(rule: Rule, scorer: Scorer) -> _Decide:
    function, name, least, most = scorer.function, scorer.name, scorer.least, scorer.most
    accepted, limit, above = rule.accepted, rule.accept_to, (scorer.name,)
    stopped = _Stopped(rule)

    def decide(context: ToolCallContext) -> GuardResult:
        try:
            value = function(context)
        except Exception as error:  # noqa: BLE001
            return rule.judge(context, [scorer.failed(error)])
        if type(value) is not float or not least <= value <= most:
            return rule.judge(context, [scorer.read(value)])
        if value <= limit:
            fields = accepted.copy()
        elif stopped.known:
            fields = stopped.by(above)
        else:
            return rule.judge(context, [Scored(value)])
        return _filled(fields, {name: value}, value, context)

    return decide


def _of_several(rule: Rule, scorers: Sequence[Scorer]) -> _Decide:
    names, limit, accepted = rule.names, rule.accept_to, rule.accepted
    parts = [(scorer.function, scorer.least, scorer.most) for scorer in scorers]
    stopped = _Stopped(rule)

    def decide(context: ToolCallContext) -> GuardResult:
        values: list[float] = []
        for function, least, most in parts:
            try:
                value = function(context)
            except Exception as error:  # noqa: BLE001
                return rule.judge(
                    context, _continued(scorers, values, context, scorers[len(values)].failed(error))
                )
            if type(value) is not float or not least <= value <= most:
                return rule.judge(
                    context, _continued(scorers, values, context, scorers[len(values)].read(value))
                )
            values.append(value)
        statistic = max(values)
        if statistic <= limit:
            fields = accepted.copy()
        elif stopped.known:
            fields = stopped.by(
                tuple([name for name, value in zip(names, values, strict=True) if value > limit])
            )
        else:
            return rule.judge(context, [Scored(value) for value in values])
        return _filled(fields, dict(zip(names, values, strict=True)), statistic, context)

    return decide


def _filled(
    fields: dict[str, Any], scores: dict[str, float], statistic: float, context: ToolCallContext
) -> GuardResult:
    fields["scores"] = scores
    fields["statistic"] = statistic
    fields["context"] = context
    fields["failed_scorers"] = {}
    return assembled(fields)


def _continued(
    scorers: Sequence[Scorer], values: Sequence[float], context: ToolCallContext, odd: Scored
) -> list[Scored]:
    """Scores of all checks, where that after `values` is no ordinary float; none is asked twice."""
    later = [scorer.score(context) for scorer in scorers[len(values) + 1 :]]
    return [*map(Scored, values), odd, *later]


class _Stopped:
    """Prepared results of calls that some checks find too strange, where that alone decides."""

    def __init__(self, rule: Rule) -> None:
        self.known = rule.thresholds.bad_from is None and rule.thresholds.accepts
        self._rule = rule
        self._prepared: dict[tuple[str, ...], dict[str, Any]] = {}

    def by(self, above: tuple[str, ...]) -> dict[str, Any]:
        """The fields of a result with these checks above the threshold, for the caller to fill in."""
        found = self._prepared.get(above)
        if found is None:
            found = self._prepared[above] = {**self._rule.accepted, **self._rule.stopped_by(above)}
        return found.copy()
