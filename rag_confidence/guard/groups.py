"""Risk groups: a rule of the user's gives each call a group, with a level and a calibration of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, TypeAlias, Unpack

from rag_confidence import _artefact
from rag_confidence._calls import CallRecord, ToolCallContext
from rag_confidence._history import GroupName, check_group
from rag_confidence._types import Decision
from rag_confidence.conformal.quantile import Level
from rag_confidence.guard.calibration import calibrate
from rag_confidence.guard.calibrator import Calibrator
from rag_confidence.guard.reading import CalibrationData, Calls, read_calls
from rag_confidence.guard.request import Options, Scorers
from rag_confidence.guard.result import GuardReason, GuardResult
from rag_confidence.guard.scorers import Scorer, said_by
from rag_confidence.guard.tools import refuse_awaitable

GroupRule: TypeAlias = Callable[[ToolCallContext], GroupName]
"""From a call to the name of its group."""

GroupLevel: TypeAlias = Level | tuple[Level, Level]
"""The alpha of a group, or its alpha and beta."""


@dataclass(frozen=True, eq=False)
class GroupedCalibrator:
    """One calibrator for each of a few declared risk groups.

    Attributes
    ----------
    rule : callable or None
        From a `ToolCallContext` to the name of its group, fixed before outcomes were looked at. Without one
        every call abstains: give each tool the entry of `calibrators` that is for its calls.
    calibrators : mapping of str or int to Calibrator
        One a group. A call of any other group, and one on which the rule raises, abstains: no group falls
        back on the threshold of others.

    Raises
    ------
    TypeError, ValueError
        For a rule that cannot be called, for no groups, and for a calibrator that is for another group.
    """

    rule: GroupRule | None
    calibrators: Mapping[GroupName, Calibrator]
    tool_names: frozenset[str] | None = field(init=False)

    def __post_init__(self) -> None:
        _check_rule(self.rule)
        _check_calibrators(self.calibrators)
        keep = object.__setattr__
        keep(self, "calibrators", MappingProxyType(dict(self.calibrators)))
        known = [one.tool_names for one in self.calibrators.values()]
        every = None if None in known else frozenset().union(*(names for names in known if names is not None))
        keep(self, "tool_names", every)

    @cached_property
    def fingerprint(self) -> str:
        """Hash of all calibrators."""
        return _artefact.digest([[repr(name), one.fingerprint] for name, one in self.calibrators.items()])

    @property
    def scorers(self) -> tuple[Scorer, ...]:
        """The checks, which all groups share."""
        return next(iter(self.calibrators.values())).scorers

    def group_of(self, context: ToolCallContext) -> GroupName | None:
        """The declared group of a call; None where the rule raises or names another."""
        found = self._found(context)
        return found if not isinstance(found, _NoGroup) else None

    def decide(self, context: ToolCallContext) -> GuardResult:
        """The decision of the calibrator of its group; its guarantee is for that group."""
        found = self._found(context)
        if isinstance(found, _NoGroup):
            return self._abstained(context, found)
        return self.calibrators[found].decide(context)

    async def adecide(self, context: ToolCallContext) -> GuardResult:
        """`decide` for scorers that are awaited."""
        found = self._found(context)
        if isinstance(found, _NoGroup):
            return self._abstained(context, found)
        return await self.calibrators[found].adecide(context)

    def _found(self, context: ToolCallContext) -> GroupName | _NoGroup:
        if self.rule is None:
            return _NoGroup("there is no group rule. Let one of `calibrators` judge it")
        try:
            name = _asked(self.rule, context)
            named = isinstance(name, str | int) and not isinstance(name, bool)
            if named and name in self.calibrators:
                return name  # type: ignore[no-any-return]
            # What is no name may be unable to show itself.
            shown = repr(name) if named else f"no string or integer but {type(name).__name__}"
        except Exception as error:  # noqa: BLE001
            return _NoGroup(f"its group rule raised {type(error).__name__}: {said_by(error)}")
        declared = ", ".join(map(repr, self.calibrators))
        return _NoGroup(f"its group rule named {shown}, and the calibrated groups are {declared}")

    def _abstained(self, context: ToolCallContext, found: _NoGroup) -> GuardResult:
        return GuardResult(
            Decision.ABSTAIN,
            f"This call was not judged: {found.happened}.",
            GuardReason.UNKNOWN_GROUP,
            context=context,
            calibrator=self.fingerprint,
        )


@dataclass(frozen=True)
class _NoGroup:
    happened: str


def calibrate_groups(
    scorers: Scorers,
    calibration_data: CalibrationData,
    rule: GroupRule | None = None,
    *,
    levels: Mapping[GroupName, GroupLevel],
    **options: Unpack[Options],
) -> GroupedCalibrator:
    """A calibrator for each risk group, at a level of its own.

    Parameters
    ----------
    scorers, calibration_data
        As for `calibrate`. Labelled calls of groups that `levels` lacks are refused.
    rule : callable
        From a `ToolCallContext` to the name of its group. Fix it before you look at outcomes: a rule that was
        chosen to make a group look good has no guarantee. None takes the `group` that each `CallRecord` was
        stored with, such as by ``wrap(..., store=store, group="write")``; use ``.calibrators["write"]`` then.
    levels : mapping of str or int to level, or to a pair of levels
        Alpha of each declared group, for example ``{"read": 0.05, "write": 0.2}``, or its alpha and beta. A
        smaller alpha does not make a group safer: it stops fewer good calls, and with them fewer bad ones.
        Where bad calls are what matters, give a risky group a small beta, ``{"write": (0.2, 0.01)}``.
    **options
        As for `calibrate`, the same for every group; `group` is filled in, and `beta` is for the groups that
        name none.

    Returns
    -------
    GroupedCalibrator
        A group with too few calls abstains on everything, and its guarantee says how many are missing.

    Warns
    -----
    UserWarning
        As `calibrate`, once a group.

    Raises
    ------
    TypeError, ValueError
        As `calibrate`, for a rule that raises or names an undeclared group, for calls without a recorded
        group where there is no rule, and for a group without good calls.

    Notes
    -----
    The bound of each group is over new calls of that group (Mondrian conformal prediction): it is not
    weakened by other groups, and the groups need not be alike. It rests on the calls of the group alone, so a
    strict level needs many of them: at least 1 / alpha - 1.

    References
    ----------
    Vovk, Gammerman and Shafer (2005), Algorithmic Learning in a Random World, section 4.5.

    Examples
    --------
    >>> calls = [(ToolCallContext("pay", {"sum": n}), True) for n in range(1, 100)]
    >>> by_size = lambda call: "large" if call.args["sum"] > 50 else "small"
    >>> guard = calibrate_groups(lambda c: c.args["sum"], calls, by_size, levels={"small": 0.1, "large": 0.5})
    >>> guard.calibrators["small"].threshold, guard.calibrators["large"].threshold
    (46.0, 75.0)
    """
    _check_rule(rule)
    declared = _check_levels(levels)
    parts = _split(read_calls(calibration_data), rule, declared)
    made = {}
    for name, level in declared.items():
        own: Options = {**options, "group": name}
        if isinstance(level, tuple):
            alpha, own["beta"] = level
        else:
            alpha = level
        made[name] = calibrate(scorers, parts[name], alpha, **own)
    return GroupedCalibrator(rule, made)


def _split(
    calls: Calls, rule: GroupRule | None, declared: Mapping[GroupName, GroupLevel]
) -> dict[GroupName, list[Any]]:
    """The entries of each group, of which each has a good one."""
    parts: dict[GroupName, list[Any]] = {name: [] for name in declared}
    lacking = set(declared)
    for at, (context, good) in enumerate(zip(calls.contexts, calls.good, strict=True)):
        record = calls.records.get(at)
        name = _recorded(at, record) if rule is None else _named(at, context, rule)
        if name not in parts:
            raise ValueError(
                f"`{'group' if rule is None else 'rule'}` must name a group of `levels` "
                f"({', '.join(map(repr, declared))}); got {name!r} for labelled call {at}. "
                "Declare its level, or leave such calls out."
            )
        parts[name].append(record or (context, good))
        lacking -= {name} if good else set()
    if lacking:
        raise ValueError(
            "`calibration_data` must hold good calls of every group; got none of "
            f"{', '.join(sorted(map(repr, lacking)))}. Label some, or leave the group out of `levels`: its "
            "calls then abstain."
        )
    return parts


def _named(at: int, context: ToolCallContext, rule: GroupRule) -> GroupName:
    try:
        name = _asked(rule, context)
    except Exception as error:
        raise ValueError(
            f"`rule` must name the group of every calibration call; got {type(error).__name__}: "
            f"{said_by(error)} for labelled call {at}. Let it name a group for calls like that."
        ) from error
    return check_group("rule(context)", name)


def _asked(rule: GroupRule, context: ToolCallContext) -> Any:
    name: Any = rule(context)
    refuse_awaitable("rule", name, "Pass a function that is not awaited.")
    return name


def _recorded(at: int, record: CallRecord | None) -> GroupName:
    if record is None or record.group is None:
        raise ValueError(
            f"`rule` must be a function where a call has no recorded group; got None for labelled call {at}. "
            "Pass a function from a context to a group."
        )
    return record.group


def _check_rule(rule: Any) -> None:
    if rule is not None and not callable(rule):
        raise TypeError(
            f"`rule` must be callable; got {type(rule).__name__}. Pass a function from a context to a group."
        )


def _check_levels(levels: Any) -> dict[GroupName, GroupLevel]:
    if not isinstance(levels, Mapping) or not levels:
        raise TypeError(
            f"`levels` must be a mapping from groups to levels; got {levels!r}. "
            "Pass {'read': 0.2, 'write': 0.01}, for example."
        )
    odd = [level for level in levels.values() if isinstance(level, tuple | list) and len(level) != 2]
    if odd:
        raise ValueError(
            f"`levels` must hold a level, or a pair of alpha and beta, for each group; got {odd[0]!r}. "
            "Pass {'write': (0.2, 0.01)}, for example."
        )
    return {
        check_group("levels", name): tuple(level) if isinstance(level, list) else level
        for name, level in levels.items()
    }


def _check_calibrators(calibrators: Any) -> None:
    if not isinstance(calibrators, Mapping) or not calibrators:
        raise TypeError(
            f"`calibrators` must be a mapping from groups to calibrators; got {calibrators!r}. "
            "Make it with calibrate_groups()."
        )
    for name, one in calibrators.items():
        if not isinstance(one, Calibrator):
            raise TypeError(
                f"`calibrators[{name!r}]` must be a Calibrator; got {type(one).__name__}. "
                "Make it with calibrate_groups()."
            )
        if one.group != name:
            raise ValueError(
                f"`calibrators[{name!r}]` must be calibrated for that group; got one for {one.group!r}. "
                "Pass group= to calibrate()."
            )
