"""Record what a guard decided, so that calls can be labelled later and calibrated on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from rag_confidence._calls import ToolCallContext
from rag_confidence._history import GroupName, check_group
from rag_confidence._types import Decision
from rag_confidence.errors import StoreError
from rag_confidence.guard.result import Decider, GuardResult


class Store(Protocol):
    """Where decisions are recorded: a `CalibrationStore`, or anything with its `add`."""

    def add(
        self,
        context: ToolCallContext,
        *,
        scores: Mapping[str, float] | None,
        fingerprints: Mapping[str, str] | None,
        group: GroupName | None,
        decision: Decision | None,
        calibrator: str | None,
    ) -> int:
        """Record one call; its number."""
        ...


class UnrecordedCall(StoreError):
    """A tool ran and was judged, and the store then failed.

    ``result`` is the `GuardResult` that would have been returned, with the output of the tool.
    """

    def __init__(self, message: str, result: GuardResult) -> None:
        super().__init__(message)
        self.result = result


@dataclass(frozen=True, eq=False)
class Recorder:
    """Writes decisions to a store.

    Attributes
    ----------
    store : Store
    tool_name : str
        What a call is recorded under that could not be described.
    fingerprints : mapping of str to str
        Fingerprint of each scorer.
    group : str or int or None
        Group of every call; None takes it from the guarantee of the decision.
    """

    store: Store
    tool_name: str
    fingerprints: Mapping[str, str]
    group: GroupName | None = None

    def record(self, result: GuardResult) -> GuardResult:
        """The result with the number of its record.

        Raises
        ------
        StoreError
            Where the store fails, or the call holds values that it cannot keep.
        """
        try:
            return result.changed(record_id=self._added(result))
        except (TypeError, ValueError) as error:
            raise StoreError(
                f"`store` must be able to keep the call of {self.tool_name}; got {error} "
                "Leave the value out of the context with a `context_builder`."
            ) from error

    def _added(self, result: GuardResult) -> int:
        return self.store.add(
            self._context_of(result),
            scores=result.scores,
            fingerprints={
                name: self.fingerprints[name] for name in result.scores if name in self.fingerprints
            },
            group=self._group_of(result),
            decision=result.decision,
            calibrator=result.calibrator,
        )

    def record_after(self, result: GuardResult) -> GuardResult:
        """`record` for a tool that ran already: what is raised holds the result, so that nothing is lost.

        Raises
        ------
        UnrecordedCall
        """
        try:
            return self.record(result)
        except Exception as error:
            raise UnrecordedCall(
                f"{self.tool_name} ran, but its call was not recorded: {str(error).rstrip('.')}. "
                "`result` of this error holds decision and output.",
                result,
            ) from error

    def _context_of(self, result: GuardResult) -> ToolCallContext:
        if result.context is not None:
            return _keepable(result.context)
        return ToolCallContext(self.tool_name, metadata={"context_failed": result.reason})

    def _group_of(self, result: GuardResult) -> GroupName | None:
        if self.group is not None or result.guarantee is None:
            return self.group
        return result.guarantee.group


def _keepable(context: ToolCallContext) -> ToolCallContext:
    """The context without an output that JSON cannot hold, which the metadata then tell of.

    A builder can leave out arguments, but nobody chooses what a tool returns.
    """
    try:
        json.dumps(context.result, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        left_out = {"result_left_out": type(context.result).__name__}
        return replace(context, result=None, metadata={**context.metadata, **left_out})
    return context


def recorder_for(store: Any, tool_name: str, calibrator: Decider, group: GroupName | None) -> Recorder | None:
    """What writes to a store; None where there is none.

    Raises
    ------
    TypeError
        For what has no `add`.
    """
    if group is not None:
        group = check_group("group", group)
    if store is None:
        return None
    if not callable(getattr(store, "add", None)):
        raise TypeError(
            f"`store` must have a method `add`; got {type(store).__name__}. Pass a CalibrationStore."
        )
    return Recorder(store, tool_name, _fingerprints_of(getattr(calibrator, "scorers", ())), group)


def _fingerprints_of(scorers: Iterable[Any]) -> dict[str, str]:
    return {scorer.name: scorer.fingerprint for scorer in scorers}
