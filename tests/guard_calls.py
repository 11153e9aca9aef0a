"""Tool calls that carry their scores as arguments, for tests of the guard."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from refusals import quiet

from rag_confidence._calls import ToolCallContext
from rag_confidence.guard.calibration import calibrate
from rag_confidence.guard.calibrator import Calibrator
from rag_confidence.guard.scorers import Scorer

INF = math.inf


def call(*scores: float, tool: str = "search", **more: Any) -> ToolCallContext:
    """A call with scores s0, s1, ...; infinity stands for a check that fails on it."""
    return ToolCallContext(tool, {f"s{at}": score for at, score in enumerate(scores)}, **more)


def reader(at: int, **options: Any) -> Scorer:
    """A scorer that reads one of them."""

    def read(context: ToolCallContext) -> float:
        score: float = context.args[f"s{at}"]
        if score == INF:
            raise ConnectionError("no answer")
        return score

    return Scorer(f"check_{at}", read, **{"version": "1", **options})


def readers(count: int) -> list[Scorer]:
    """Scorers check_0, check_1, ..."""
    return [reader(at) for at in range(count)]


def labelled(good: Iterable[Any], bad: Iterable[Any] = ()) -> list[tuple[ToolCallContext, bool]]:
    """Calibration data from scores, one number or one row a call."""
    return [(_of(row), True) for row in good] + [(_of(row), False) for row in bad]


def quietly(good: Sequence[Any], bad: Sequence[Any] = (), alpha: Any = "0.1", **options: Any) -> Calibrator:
    """A calibrator of such calls, made without warnings, with as many checks as a row has scores."""
    scorers = options.pop("scorers", None) or readers(len(_row(good[0])))
    with quiet():
        return calibrate(scorers, labelled(good, bad), alpha, **options)


def _of(row: Any) -> ToolCallContext:
    return call(*_row(row))


def _row(row: Any) -> Sequence[float]:
    return row if isinstance(row, Sequence) else (row,)
