"""Real function calls, scored by two deterministic checks through the package's own scorers."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_confidence.guard import Calibrator, Scorer, ToolCallContext, calibrate

_WORD = re.compile(r"[a-z0-9]+")
_TYPICAL_LENGTH = 60


@dataclass(frozen=True)
class Pool:
    """Right calls, and the same queries with the arguments of another query's call."""

    good: list[ToolCallContext]
    bad: list[ToolCallContext]

    def scores(self, calls: list[ToolCallContext]) -> NDArray[np.float64]:
        """Scores (n, 2) of the two checks."""
        return np.array([[scorer.score(call).value for scorer in SCORERS] for call in calls])

    def calibrated(self, scorers: Any, alpha: str) -> Calibrator:
        """A calibrator on all right calls."""
        return calibrate(scorers, [(call, True) for call in self.good], alpha, labeling_source="human")


def complexity(call: ToolCallContext) -> float:
    """How long and how nested the arguments are, in [0, 1)."""
    length = len(json.dumps(dict(call.args), ensure_ascii=False)) + 10 * _depth(dict(call.args))
    return length / (length + _TYPICAL_LENGTH)


def unsupported(call: ToolCallContext) -> float:
    """Share of the words in the arguments that the query does not hold, in [0, 1]; 0 without any."""
    said = set(_WORD.findall(call.metadata["query"].lower()))
    words = [word for text in _texts(dict(call.args)) for word in _WORD.findall(text.lower())]
    return sum(word not in said for word in words) / len(words) if words else 0.0


SCORERS = (
    Scorer("complexity", complexity, low=0.0, high=1.0, version="1"),
    Scorer("unsupported", unsupported, low=0.0, high=1.0, version="1"),
)


def read_pool(file: Path) -> Pool:
    """The calls of a `live_simple.jsonl`; of the values allowed for an argument the first is taken."""
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    calls = [(line["query"], *_right_call(line)) for line in lines]
    good = [_context(query, name, args) for query, name, args in calls]
    # Half the file away lies another subject and another function.
    shift = len(calls) // 2
    bad = [
        _context(query, name, calls[(at + shift) % len(calls)][2])
        for at, (query, name, _) in enumerate(calls)
    ]
    return Pool(good, bad)


def _right_call(line: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    ((name, allowed),) = line["ground_truth"][0].items()
    chosen = {key: next((value for value in values if value != ""), "") for key, values in allowed.items()}
    return name, chosen


def _context(query: str, name: str, args: dict[str, Any]) -> ToolCallContext:
    return ToolCallContext(name, args, metadata={"query": query})


def _depth(value: Any) -> int:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(_depth, inside), default=0) if isinstance(value, dict | list) else 0


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict | list):
        for entry in value.values() if isinstance(value, dict) else value:
            yield from _texts(entry)
    elif isinstance(value, float) and math.isfinite(value) and value == int(value):
        yield str(int(value))
    else:
        yield str(value)
