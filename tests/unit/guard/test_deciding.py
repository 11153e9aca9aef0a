"""The short way to a decision: the same result as the general way, and no scorer asked twice."""

from __future__ import annotations

import math
from typing import Any

from guard_calls import INF, call, quietly, readers
from hypothesis import given
from hypothesis import strategies as st

from rag_confidence._calls import ToolCallContext
from rag_confidence.guard.scorers import Scorer

VALUES = st.one_of(
    st.floats(-2, 2),
    st.sampled_from([INF, -INF, math.nan, "odd", None, True, 1, 10**400, ValueError("returned")]),
)
GOOD = st.lists(st.floats(-1, 1), min_size=1, max_size=12)


@given(GOOD, st.lists(VALUES, min_size=1, max_size=3), st.sampled_from(["0.1", "0.5"]), st.booleans())
def test_the_short_way_is_the_general_one(
    good: list[float], values: list[Any], alpha: str, two: bool
) -> None:
    """Whatever the scorers return, the result has the fields that `Rule.judge` gives it."""
    scorers = readers(len(values))
    rows = [[score] * len(values) for score in good]
    options: dict[str, Any] = {"bad": rows[::2], "beta": "0.5"} if two else {}
    calibrator = quietly(rows, alpha=alpha, scorers=scorers, **options)
    context = call(*values)
    general = calibrator._rule.judge(context, [scorer.score(context) for scorer in scorers])
    for _ in range(2):
        short = calibrator.decide(context)
        assert vars(short) == vars(general)
        assert list(vars(short)) == list(vars(general))


@given(st.lists(st.one_of(st.just(0.5), st.just(INF), st.just("odd")), min_size=1, max_size=4))
def test_no_scorer_is_asked_twice(values: list[Any]) -> None:
    """One call of each scorer a decision, also where one before it fails."""
    asked: list[str] = []

    def counting(at: int) -> Scorer:
        def score(context: ToolCallContext) -> float:
            asked.append(f"check_{at}")
            if context.args[f"s{at}"] == INF:
                raise ConnectionError
            return context.args[f"s{at}"]  # type: ignore[no-any-return]

        return Scorer(f"check_{at}", score, version="1")

    scorers = [counting(at) for at in range(len(values))]
    calibrator = quietly([[0.5] * len(values)] * 20, scorers=scorers)
    asked.clear()
    calibrator.decide(call(*values))
    assert asked == [scorer.name for scorer in scorers]
