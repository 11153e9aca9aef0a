"""A decider for tests of the guard: it accepts calls whose query is short, without any calibration."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rag_confidence._calls import ToolCallContext
from rag_confidence._types import Decision
from rag_confidence.guard.result import GuardReason, GuardResult

LONGEST = 10
SHORT, LONG = "weather", "weather in every city of the world"


def length(context: ToolCallContext) -> float:
    """How many characters the query has."""
    return float(len(context.args["query"]))


@dataclass
class ShortQueries:
    """Accepts queries of at most ten characters, and remembers what it was asked."""

    refusal: Decision = Decision.ABSTAIN
    score: Callable[[ToolCallContext], float] = length
    tool_names: frozenset[str] | None = None
    asked: list[ToolCallContext] = field(default_factory=list)
    fingerprint: str = "of-the-decider"
    threshold: float = float(LONGEST)

    def decide(self, context: ToolCallContext) -> GuardResult:
        """ACCEPT or `refusal`, from the score of the context."""
        self.asked.append(context)
        score = self.score(context)
        fits = score <= self.threshold
        return GuardResult(
            Decision.ACCEPT if fits else self.refusal,
            "The query is short." if fits else "The query is long.",
            GuardReason.ACCEPTED if fits else GuardReason.ABOVE_THRESHOLD,
            failed_checks=() if fits else ("length",),
            scores={"length": score},
            statistic=score,
            threshold=self.threshold,
            context=context,
            calibrator=self.fingerprint,
        )

    async def adecide(self, context: ToolCallContext) -> GuardResult:
        """The same, after the event loop had its turn."""
        await asyncio.sleep(0)
        return self.decide(context)


@dataclass
class Ledger:
    """A store that keeps what it is given, or raises what it is told to."""

    error: Exception | None = None
    rows: list[dict[str, Any]] = field(default_factory=list)

    def add(self, context: ToolCallContext, **facts: Any) -> int:
        """Keep a call; its number, from 1."""
        if self.error is not None:
            raise self.error
        self.rows.append({"context": context, **facts})
        return len(self.rows)


class Calls(list[Any]):
    """What a tool was called with: `tool` returns its query in capitals, and adds it here."""

    def tool(self, query: str) -> str:
        """The query in capitals."""
        self.append(query)
        return query.upper()
