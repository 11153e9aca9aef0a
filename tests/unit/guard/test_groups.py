"""Risk groups: a level and a calibration each."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest
from guard_calls import call, quietly, reader
from refusals import quiet, refuse

from rag_confidence._calls import CallRecord, ToolCallContext
from rag_confidence._types import Decision
from rag_confidence.errors import SmallCalibrationWarning
from rag_confidence.guard.calibration import calibrate
from rag_confidence.guard.groups import GroupedCalibrator, calibrate_groups
from rag_confidence.guard.result import GuardReason
from rag_confidence.guard.wrapping import wrap

SCORER = reader(0)
READS = [call(float(score), tool="read") for score in range(1, 100)]
WRITES = [call(1000.0 + score, tool="write") for score in range(1, 100)]
DATA = [(one, True) for one in (*READS, *WRITES)]
LEVELS = {"read": "0.2", "write": "0.05"}


def by_tool(context: ToolCallContext) -> str:
    """The tool is the group."""
    if context.tool_name == "broken":
        raise KeyError("risk")
    return context.tool_name


def grouped(**options: Any) -> GroupedCalibrator:
    """Reads at .2 and writes at .05."""
    return calibrate_groups(SCORER, DATA, by_tool, levels=LEVELS, **options)


def test_each_group_has_the_calibration_of_its_own_calls() -> None:
    """A group is what calibrate() makes of its calls alone, at its level."""
    found = grouped(labeling_source="human")
    for name, calls in (("read", READS), ("write", WRITES)):
        alone = calibrate(
            SCORER, [(one, True) for one in calls], LEVELS[name], group=name, labeling_source="human"
        )
        assert found.calibrators[name].fingerprint == alone.fingerprint
        assert found.calibrators[name].threshold == alone.threshold


def test_a_call_meets_the_threshold_of_its_group() -> None:
    """What is ordinary for a write is strange for a read."""
    found = grouped()
    assert found.decide(call(1050.0, tool="write")).accepted
    assert found.decide(call(1050.0, tool="read")).decision is Decision.ABSTAIN
    assert found.group_of(call(1.0, tool="read")) == "read"


def test_the_guarantee_is_for_the_group_and_says_so() -> None:
    """Group and level of a decision's guarantee are those of the group."""
    found = grouped().decide(call(1.0, tool="read")).guarantee
    assert found is not None
    assert (found.group, found.bound) == ("read", 0.2)
    assert "of the group 'read'" in found.sentence
    assert "of the group 'read'" in found.assumption


@pytest.mark.parametrize(("tool", "says"), [("pay", "named 'pay'"), ("broken", "raised KeyError: 'risk'")])
def test_a_call_without_a_declared_group_abstains(tool: str, says: str) -> None:
    """No call falls back on the threshold of another group, in either way to decide."""
    found = grouped()
    for result in (found.decide(call(1.0, tool=tool)), asyncio.run(found.adecide(call(1.0, tool=tool)))):
        assert result.decision is Decision.ABSTAIN
        assert result.reason_code is GuardReason.UNKNOWN_GROUP
        assert says in result.reason
        assert result.guarantee is None
    assert found.group_of(call(1.0, tool=tool)) is None


@pytest.mark.parametrize("odd", [None, True, 1.0, [], {}, math.nan])
def test_what_is_no_group_name_abstains(odd: Any) -> None:
    """A rule that returns something else than a declared name never decides by it."""
    found = GroupedCalibrator(lambda _: odd, grouped().calibrators)
    assert found.decide(call(1.0)).reason_code is GuardReason.UNKNOWN_GROUP


class Unshown:
    """What raises when it is shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


class Silent(Exception):
    """An error without words."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


async def awaited(_: ToolCallContext) -> str:
    """A rule that is awaited."""
    return "read"


def silent(_: ToolCallContext) -> str:
    """A rule whose error cannot be printed."""
    raise Silent


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        (lambda _: Unshown(), "named no string or integer but Unshown"),
        (silent, "raised Silent"),
        (awaited, "raised TypeError: `rule` must return its result; got coroutine"),
    ],
)
def test_odd_rules_abstain_and_are_refused_in_calibration(rule: Any, says: str) -> None:
    """Whatever a rule does, a call abstains with a reason, and a calibration is refused."""
    found = GroupedCalibrator(rule, grouped().calibrators)
    for result in (found.decide(READS[0]), asyncio.run(found.adecide(READS[0]))):
        assert result.reason_code is GuardReason.UNKNOWN_GROUP
        assert says in result.reason
    if rule in (silent, awaited):
        refuse(
            ValueError,
            "^`rule` must name the group of every",
            lambda: calibrate_groups(SCORER, DATA, rule, levels=LEVELS),
        )


def test_a_group_with_too_few_calls_abstains_and_says_what_is_missing() -> None:
    """Its threshold is infinite, the other groups are as they were."""
    few = [*((one, True) for one in READS), *((one, True) for one in WRITES[:5])]
    with pytest.warns(SmallCalibrationWarning, match="group 'write'"):
        found = calibrate_groups(SCORER, few, by_tool, levels=LEVELS)
    result = found.decide(call(1001.0, tool="write"))
    assert result.reason_code is GuardReason.INFINITE_THRESHOLD
    assert found.calibrators["write"].n_missing == 14
    assert found.decide(call(1.0, tool="read")).accepted


def test_records_go_to_groups_with_all_that_is_known_of_them() -> None:
    """Stored scores and sources of records are used; records without an outcome are left out."""
    records = [
        CallRecord(
            one,
            True,
            scores={SCORER.name: 5.0},
            fingerprints={SCORER.name: SCORER.fingerprint},
            labeling_source="human",
        )
        for one in READS
    ]
    with quiet():
        found = calibrate_groups(SCORER, [*records, CallRecord(WRITES[0])], by_tool, levels={"read": 0.1})
    assert found.calibrators["read"].threshold == 5.0
    assert found.calibrators["read"].labeling_source == "human"


def test_a_group_may_have_a_level_for_bad_calls_of_its_own() -> None:
    """A pair is alpha and beta; groups with a single level take beta from the options."""
    bad = [(call(50.0 + score, tool="read"), False) for score in range(99)]
    bad += [(call(1050.0 + score, tool="write"), False) for score in range(99)]
    found = calibrate_groups(
        SCORER, [*DATA, *bad], by_tool, levels={"read": "0.2", "write": ("0.2", "0.01")}, beta="0.1"
    )
    assert (found.calibrators["read"].beta, found.calibrators["write"].beta) == (0.1, 0.01)
    guarantee = found.decide(call(1001.0, tool="write")).guarantee
    assert guarantee is not None
    assert "at most 1 % of bad calls are accepted" in guarantee.sentence


def test_without_a_rule_records_say_their_group() -> None:
    """rule=None takes the groups that records were stored with; a new call goes to its group's calibrator."""
    records = [CallRecord(one, True, group="small") for one in READS]
    records += [CallRecord(one, True, group="large") for one in WRITES]
    found = calibrate_groups(SCORER, records, levels={"small": "0.2", "large": "0.05"})
    assert found.calibrators["large"].threshold == grouped().calibrators["write"].threshold
    assert found.calibrators["small"].decide(READS[0]).accepted
    result = found.decide(READS[0])
    assert result.reason_code is GuardReason.UNKNOWN_GROUP
    assert "there is no group rule" in result.reason
    assert found.group_of(READS[0]) is None


def test_without_a_rule_each_call_needs_a_recorded_group() -> None:
    """Pairs and records without a group are refused, and so is a group that nobody declared."""
    record = CallRecord(READS[0], True, group="small")
    for odd in ((READS[1], True), CallRecord(READS[1], True)):
        said = refuse(
            ValueError,
            "^`rule` must be a function where",
            lambda odd=odd: calibrate_groups(SCORER, [record, odd], levels={"small": 0.1}),
        )
        assert "for labelled call 1" in said
    refuse(
        ValueError,
        "^`group` must name a group of `levels`",
        lambda: calibrate_groups(SCORER, [record], levels={"large": 0.1}),
    )


def test_awaited_scorers_work_in_groups() -> None:
    """adecide asks the calibrator of the group."""
    assert asyncio.run(grouped().adecide(call(1.0, tool="read"))).accepted


def test_groups_guard_a_tool() -> None:
    """wrap() takes groups in place of a calibrator."""
    tool = wrap(lambda s0: s0, grouped(), tool_name="read")
    assert tool(3.0).output == 3.0
    assert not tool(300.0).executed


def test_a_rule_that_fails_on_calibration_calls_is_an_error() -> None:
    """Raising and undeclared names are refused with the place of the call."""
    broken = [*DATA, (call(1.0, tool="broken"), True)]
    refuse(ValueError, "^`rule` must name the group of every", lambda: _fit(broken))
    undeclared = [*DATA, (call(1.0, tool="pay"), True)]
    said = refuse(ValueError, "^`rule` must name a group of `levels`", lambda: _fit(undeclared))
    assert "got 'pay' for labelled call 198" in said


def test_a_declared_group_needs_good_calls() -> None:
    """A group that only has bad calls, or none, is refused by name."""
    refuse(
        ValueError, "got none of 'write'", lambda: _fit([*((one, True) for one in READS), (WRITES[0], False)])
    )


def test_a_pair_of_levels_has_two() -> None:
    """Three levels, or one in brackets, are refused."""
    for odd in ((0.1,), (0.1, 0.2, 0.3), []):
        refuse(
            ValueError,
            "^`levels` must hold a level, or a pair",
            lambda odd=odd: calibrate_groups(SCORER, DATA, by_tool, levels={"read": odd, "write": 0.1}),
        )


@pytest.mark.parametrize("levels", [{}, None, [("read", 0.1)], "read"])
def test_levels_are_a_mapping(levels: Any) -> None:
    """At least one group is declared."""
    refuse(
        TypeError,
        "^`levels` must be a mapping",
        lambda: calibrate_groups(SCORER, DATA, by_tool, levels=levels),
    )


def test_bad_parts_are_named() -> None:
    """Rules that cannot be called, foreign calibrators and those of another group are refused."""
    refuse(
        TypeError, "^`rule` must be callable", lambda: calibrate_groups(SCORER, DATA, "tool", levels=LEVELS)
    )  # type: ignore[arg-type]
    refuse(TypeError, "^`rule` must be callable", lambda: GroupedCalibrator("tool", grouped().calibrators))  # type: ignore[arg-type]
    refuse(TypeError, "^`calibrators` must be a mapping", lambda: GroupedCalibrator(by_tool, {}))
    refuse(TypeError, "must be a Calibrator", lambda: GroupedCalibrator(by_tool, {"read": SCORER}))  # type: ignore[dict-item]
    plain = quietly([float(at) for at in range(30)])
    refuse(ValueError, "got one for None", lambda: GroupedCalibrator(by_tool, {"read": plain}))
    refuse(
        ValueError,
        "^`alpha` must be",
        lambda: calibrate_groups(SCORER, DATA, by_tool, levels={"read": 0, "write": 1}),
    )


def test_what_wrappers_and_records_read_is_there() -> None:
    """Scorers, tools and fingerprint stand for all groups."""
    found = grouped()
    assert [scorer.name for scorer in found.scorers] == [SCORER.name]
    assert found.tool_names == {"read", "write"}
    assert grouped().tool_names == {"read", "write"}
    assert grouped(tool_names="any").tool_names is None
    assert found.fingerprint == grouped().fingerprint
    assert found.fingerprint != grouped(tool_names="any").fingerprint


def _fit(data: Any) -> GroupedCalibrator:
    return calibrate_groups(SCORER, data, by_tool, levels=LEVELS)
