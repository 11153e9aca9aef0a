"""What a gate may claim, in words and numbers that are true."""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import numpy as np

from rag_confidence._history import GroupName
from rag_confidence._options import check_integer
from rag_confidence._types import Guarantee, Mask
from rag_confidence.conformal.gate.cells import Cell, Levels

NEGATIVE_KINDS = ("topic_gap", "ranking_failure", "near_miss", "unknown")


@dataclass(frozen=True)
class History:
    """What is known about a calibration set beside its numbers.

    `negatives` counts the insufficient rows of each kind; `clustered` says that a query gave one score a
    class, its strangest.
    """

    collected: tuple[str, str] | None = None
    labeling_source: str | None = None
    negatives: tuple[tuple[str, int], ...] = ()
    clustered: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "collected": None if self.collected is None else [*self.collected],
            "labeling_source": self.labeling_source,
            "negatives": [[kind, count] for kind, count in self.negatives],
            "clustered": self.clustered,
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> History:
        """The history that `to_dict` wrote."""
        first_last = plain["collected"]
        return cls(
            collected=None if first_last is None else (first_last[0], first_last[1]),
            labeling_source=plain["labeling_source"],
            negatives=tuple((kind, count) for kind, count in plain["negatives"]),
            clustered=plain["clustered"],
        )


def check_collected(collected: Any) -> tuple[str, str] | None:
    """First and last day of a calibration set as ISO dates."""
    if collected is None:
        return None
    ends = collected if isinstance(collected, (tuple, list)) else (collected, collected)
    if len(ends) != 2:
        raise ValueError(
            f"`collected` must be a day or the first and the last day; got {len(ends)} entries. "
            "Pass (first, last)."
        )
    first, last = _day(ends[0]), _day(ends[1])
    if first > last:
        raise ValueError(
            f"`collected` must run from the first to the last day; got {first} to {last}. Swap them."
        )
    return first.isoformat(), last.isoformat()


def _day(value: Any) -> date:
    # The NaT of pandas is a datetime that equals nothing and has no day.
    if isinstance(value, date) and value == value:
        return value.date() if isinstance(value, datetime) else value
    try:
        return datetime.fromisoformat(value).date()
    except (TypeError, ValueError):
        raise ValueError(f"`collected` must hold dates; got {value!r}. Write them as '2026-11-30'.") from None


def check_negatives(negatives: Any, labels: Mask) -> tuple[tuple[str, int], ...]:
    """How many insufficient rows there are of each kind, from one kind a row or from counts."""
    total = int(np.count_nonzero(~labels))
    if negatives is None:
        return (("unknown", total),)
    counts = _counted(negatives, labels)
    for kind in counts:
        _check_kind(kind)
    if sum(counts.values()) != total:
        raise ValueError(
            f"`negatives` must count the {total} insufficient rows; got {sum(counts.values())}. "
            "Count each insufficient row once."
        )
    return tuple((kind, counts[kind]) for kind in NEGATIVE_KINDS if counts.get(kind))


def _counted(negatives: Any, labels: Mask) -> dict[Any, int]:
    if isinstance(negatives, Mapping):
        return {kind: check_integer("negatives", count, 0) for kind, count in negatives.items()}
    if not _is_column(negatives):
        raise TypeError(
            f"`negatives` must be one kind a row, or counts; got {type(negatives).__name__}. "
            "Pass a list with an entry for every row, or {'near_miss': 120}."
        )
    if len(negatives) != len(labels):
        raise ValueError(
            f"`negatives` must have one entry for each of the {len(labels)} rows; got {len(negatives)}. "
            "Use None for sufficient rows."
        )
    counts: dict[Any, int] = {}
    for kind, sufficient in zip(negatives, labels.tolist(), strict=True):
        if not sufficient:
            _check_kind(kind)
            counts[kind] = counts.get(kind, 0) + 1
    return counts


def _check_kind(kind: Any) -> None:
    if not isinstance(kind, str) or kind not in NEGATIVE_KINDS:
        raise ValueError(
            f"`negatives` must name kinds among {', '.join(NEGATIVE_KINDS)}; got {kind!r}. "
            "Use 'unknown' where the kind is not known."
        )


def _is_column(value: Any) -> bool:
    """Whether it has a length and an order: lists, arrays and the columns of data frames, but no text."""
    sized = hasattr(value, "__len__") and hasattr(value, "__iter__") and getattr(value, "ndim", 1) > 0
    return sized and not isinstance(value, (str, bytes, Set))


def gate_guarantee(
    cell: Cell, levels: Levels, history: History, *, group: GroupName | None, pooled: bool
) -> Guarantee:
    """What the thresholds of one cell guarantee.

    Parameters
    ----------
    cell : Cell
    levels : Levels
    history : History
    group : str or int, optional
        The group that was asked for.
    pooled : bool
        Whether the thresholds are those of all groups together, because this group has too few rows.

    Returns
    -------
    Guarantee
        Claims nothing where both thresholds are infinite.

    Notes
    -----
    For the class y and its n_y calibration scores, P(label y is excluded | label y) <= alpha if the new
    score is exchangeable with them. Nothing here depends on how good the score is.

    References
    ----------
    Vovk (2012), Conditional validity of inductive conformal predictors, sections 3 (training-conditional
    validity) and 4 (label-conditional validity).
    """
    accepts, rejects = not math.isinf(cell.q0), not math.isinf(cell.t1)
    holds = accepts or rejects
    kind = ("marginal" if levels.delta is None else "pac") if holds else "none"
    return Guarantee(
        kind=kind,
        holds=holds,
        event=_event(accepts, rejects, clustered=history.clustered, pooled=pooled),
        bound=float(levels.accept if accepts else levels.reject) if holds else None,
        conditioning=_conditioning(accepts, levels, history, group=group, pooled=pooled)
        if holds
        else "nothing is claimed",
        assumption=_assumption(cell, levels, history, group=group, pooled=pooled),
        alpha=float(levels.accept) if accepts else None,
        alpha_reject=float(levels.reject) if rejects else None,
        delta=None if levels.delta is None or not holds else float(levels.delta),
        n0=cell.n0,
        n1=cell.n1,
        group=group,
        collected=history.collected,
        labeling_source=history.labeling_source,
        negatives=history.negatives,
        not_claimed=_not_claimed(levels, history, group=group, pooled=pooled) if holds else (_NOTHING,),
        sentence=_sentence(cell, levels, history, group=group, pooled=pooled),
    )


_NOTHING = "Anything: no decision but ABSTAIN is made here."
_FALSE_ACCEPT = "ACCEPT although the evidence is insufficient"
_FALSE_REJECT = "REJECT although the evidence is sufficient"
_OF_ANY_ROW = ", of any row of a query"


def _event(accepts: bool, rejects: bool, *, clustered: bool, pooled: bool) -> str:
    if not (accepts or rejects):
        return "none: every retrieval abstains"
    event = _FALSE_ACCEPT if accepts else _FALSE_REJECT
    event += _OF_ANY_ROW if clustered else ""
    return f"{event}, by the thresholds of all groups pooled" if pooled else event


def _conditioning(
    accepts: bool, levels: Levels, history: History, *, group: GroupName | None, pooled: bool
) -> str:
    word = "insufficient" if accepts else "sufficient"
    given, unit = f"the evidence is {word}", "retrievals"
    if history.clustered:
        given, unit = f"the query has a row with {word} evidence", "queries"
    among = "" if group is None else f" of the group {group!r}"
    if pooled:
        among = " of all groups, also those that meet thresholds of their own"
    over = (
        "on average over calibration sets"
        if levels.delta is None
        else f"for all but a share {float(levels.delta):g} of calibration sets"
    )
    return f"given that {given}, among {unit}{among}, {over}"


def _assumption(
    cell: Cell, levels: Levels, history: History, *, group: GroupName | None, pooled: bool
) -> str:
    unit = "queries" if history.clustered else "retrievals"
    kinds = f"{cell.n0} insufficient and {cell.n1} sufficient {unit}"
    if history.clustered:
        kinds = f"{cell.n0} queries with insufficient and {cell.n1} with sufficient rows"
    where = "" if group is None else (" of all groups" if pooled else f" of the group {group!r}")
    rows = f"the {kinds} of the calibration set"
    if levels.delta is None:
        return f"new {unit}{where} are exchangeable with {rows}, each class by itself"
    return f"new {unit}{where} and {rows} are independent draws of one distribution, each class by itself"


def _not_claimed(
    levels: Levels, history: History, *, group: GroupName | None, pooled: bool
) -> tuple[str, ...]:
    found = [
        "That few of the accepted retrievals are insufficient: that share also depends on how many "
        "insufficient ones come in (see fit_risk_gate).",
        "That an accepted answer is true: the labels say whether the evidence suffices, not what is "
        "generated from it.",
        "Anything once questions, corpus, embedder or the way of labelling have changed.",
        "That single topics, users or kinds of question each stay within the bound (see groups).",
    ]
    if not history.clustered:
        found.append(
            "That several tries at one question stay within the bound together (see alpha_for_attempt)."
        )
    else:
        found.append("A share of single rows: queries count, each once, however many rows they have.")
    if levels.delta is None:
        found.append(
            "That this one calibration set keeps the bound: its own rate may lie above, and stays within the "
            'bound only on average (see guarantee="pac").'
        )
    elif group is not None:
        found.append(
            "That all groups and classes are within their bounds at once: delta is for each of them."
        )
    if pooled:
        found += [
            "That this group keeps the bound: it has too few rows, and all groups were pooled.",
            "That all groups together keep the bound: groups with thresholds of their own add their share.",
        ]
    missing = missing_near_misses(history.negatives)
    return (*found, missing) if missing else tuple(found)


def missing_near_misses(negatives: tuple[tuple[str, int], ...]) -> str | None:
    """What to say of a calibration set without near misses; None where it has some."""
    counts = dict(negatives)
    if counts.get("near_miss"):
        return None
    if counts.get("unknown"):
        return (
            "That near misses (on topic, the answer absent) are bounded: whether any are among the "
            "insufficient rows is not recorded (see negatives)."
        )
    return (
        "That near misses (on topic, the answer absent) are bounded: there are none among the "
        "insufficient rows."
    )


def _sentence(cell: Cell, levels: Levels, history: History, *, group: GroupName | None, pooled: bool) -> str:
    unit = "queries" if history.clustered else "rows"
    needed = (
        f"{levels.least_n(levels.accept)} insufficient and {levels.least_n(levels.reject)} sufficient {unit}"
    )
    accepts, rejects = not math.isinf(cell.q0), not math.isinf(cell.t1)
    if not (accepts or rejects):
        whose = "" if group is None else f" for the group {group!r}"
        have = f"there are {cell.n0} and {cell.n1}"
        return f"Nothing is claimed{whose} and every retrieval abstains: {needed} are needed, and {have}."
    over = (
        "on average over calibration sets"
        if levels.delta is None
        else f"each with probability {percent(1 - levels.delta)} over the calibration set"
    )
    many = "of all groups together " if pooled else ("" if group is None else f"of the group {group!r} ")
    claims = " and ".join(_claims(levels, history, accepts=accepts, rejects=rejects))
    like = f"{_labelled(cell, many, history)} ({_alike(levels)}; {origin(history)})"
    parts = [f"If {like}, {claims}, {over}."]
    if not (accepts and rejects):
        parts.append(f"None is {'rejected' if accepts else 'accepted'}: {needed} are needed.")
    if pooled:
        parts.append(
            f"This counts only what the pooled thresholds decide; the group {group!r} has too few rows for a "
            "bound of its own."
        )
    if not dict(history.negatives).get("near_miss"):
        parts.append("Near misses are not known to be among the insufficient ones.")
    return " ".join(parts)


def _labelled(cell: Cell, many: str, history: History) -> str:
    if history.clustered:
        return (
            f"new queries {many}are like the {cell.n0} with insufficient and {cell.n1} with sufficient rows "
            "that were labelled"
        )
    return (
        f"new retrievals {many}are like the {cell.n0} insufficient and {cell.n1} sufficient ones that were "
        "labelled"
    )


def _claims(levels: Levels, history: History, *, accepts: bool, rejects: bool) -> list[str]:
    found = []
    for made, level, kind, done in (
        (accepts, levels.accept, "insufficient", "accepted"),
        (rejects, levels.reject, "sufficient", "rejected"),
    ):
        if made and history.clustered:
            found.append(f"in at most {percent(level)} of those with an {kind} row any such row is {done}")
        elif made:
            found.append(f"at most {percent(level)} of those with {kind} evidence are {done}")
    return [claim.replace("an sufficient", "a sufficient") for claim in found]


def _alike(levels: Levels) -> str:
    return "exchangeable" if levels.delta is None else "independent and of one distribution"


def percent(level: Any) -> str:
    """A level for people."""
    return f"{100.0 * float(level):.6g} %"


def origin(history: History) -> str:
    """By whom and when a calibration set was labelled."""
    by = "by a source that is not recorded"
    if history.labeling_source is not None:
        by = f"by {history.labeling_source}"
    if history.collected is None:
        return f"{by}, on days that are not recorded"
    first, last = history.collected
    return f"{by}, on {first}" if first == last else f"{by}, from {first} to {last}"
