"""Calibrator: the threshold on how strange a call may be, and the decision that follows from it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from rag_confidence._calls import ToolCallContext
from rag_confidence.conformal.quantile import Level
from rag_confidence.guard.result import GuardResult


class Calibrator:
    """Accepts a call whose score good calls rarely exceed, abstains otherwise."""

    def decide(self, context: ToolCallContext) -> GuardResult:
        """The decision on one call, without running its tool."""
        raise NotImplementedError

    async def adecide(self, context: ToolCallContext) -> GuardResult:
        """`decide` for scorers that are awaited."""
        raise NotImplementedError

    def decide_scores(
        self, scores: Mapping[str, float], context: ToolCallContext | None = None
    ) -> GuardResult:
        """The decision on scores that were made elsewhere, one a check; +inf for a check that failed."""
        raise NotImplementedError

    def at_level(self, alpha: Level, beta: Level | None = None) -> Calibrator:
        """The calibrator at another level, from the same calls."""
        raise NotImplementedError

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the calibrator, without its scorers, to a JSON file."""
        raise NotImplementedError

    @classmethod
    def load(cls, path: str | os.PathLike[str], scorers: Any | Iterable[Any]) -> Calibrator:
        """The calibrator that `save` wrote, with its scorers given again."""
        raise NotImplementedError
