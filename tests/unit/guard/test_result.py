"""GuardResult: what a decision holds, and what of it leaves the process."""

from __future__ import annotations

import json
import math
import pickle
from typing import Any

import pytest
from guard_calls import INF, call, quietly

from rag_confidence._types import Decision
from rag_confidence.guard.result import GuardReason, GuardResult


def result_of(**more: Any) -> GuardResult:
    """A result with little in it."""
    return GuardResult(Decision.ABSTAIN, "Not judged.", GuardReason.CONTEXT_FAILED, **more)


def test_only_accept_counts_as_accepted() -> None:
    """ABSTAIN and REJECT are both not accepted."""
    assert [result_of().changed(decision=d).accepted for d in Decision] == [
        d is Decision.ACCEPT for d in Decision
    ]


def test_a_changed_copy_leaves_the_original() -> None:
    """`changed` gives a copy of the same class in which only the named fields differ."""
    before = result_of()
    after = before.changed(output=[1], executed=True)
    assert (before.output, before.executed, after.output, after.executed) == (None, False, [1], True)
    assert type(after) is GuardResult
    assert after.reason == before.reason


def test_a_changed_copy_refuses_other_fields() -> None:
    """A misspelt field is an error and no new attribute."""
    with pytest.raises(TypeError, match=r"`changes` must name fields of GuardResult; got outptu"):
        result_of().changed(outptu=1)


def test_nobody_can_change_a_result() -> None:
    """A result is frozen, those that a calibrator makes too."""
    for result in (result_of(), quietly([0.1] * 20).decide(call(0.1))):
        with pytest.raises(AttributeError):
            result.decision = Decision.ACCEPT  # type: ignore[misc]


def test_plain_values_hold_neither_arguments_nor_output() -> None:
    """`to_dict` is JSON without infinities, and leaves out what the tool was given and gave back."""
    result = (
        quietly([0.1] * 20)
        .decide(call(INF, call_id="c1", metadata={"secret": 1}))
        .changed(output={1, 2}, withheld=object())
    )
    plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert plain["scores"] == {"check_0": None}
    assert (plain["statistic"], plain["call_id"], plain["decision"]) == (None, "c1", "ABSTAIN")
    assert "secret" not in json.dumps(plain)
    assert not {"output", "withheld", "context"} & set(plain)


def test_plain_values_hold_them_on_request() -> None:
    """With output and args the two are added as they are."""
    plain = result_of(output=[1], withheld=2, context=call(0.5)).to_dict(output=True, args=True)
    assert (plain["output"], plain["withheld"]) == ([1], 2)
    assert plain["context"]["args"] == {"s0": 0.5}
    assert result_of().to_dict(args=True)["context"] is None


def test_an_infinite_threshold_is_null_in_json() -> None:
    """JSON has no infinity."""
    assert result_of().threshold == math.inf
    assert result_of().to_dict()["threshold"] is None


def test_a_result_shows_no_output_and_survives_pickling() -> None:
    """Its text in a log holds no output, and other processes can have it."""
    result = quietly([0.1] * 20).decide(call(0.1)).changed(output="private")
    assert "private" not in repr(result)
    again = pickle.loads(pickle.dumps(result))
    assert again.to_dict(output=True, args=True) == result.to_dict(output=True, args=True)
