"""What a gate may claim, in words and numbers that are true."""

from __future__ import annotations

import math

from rag_confidence._history import GroupName
from rag_confidence._types import Guarantee
from rag_confidence.conformal.gate.cells import Cell, Levels
from rag_confidence.conformal.history import History, missing_near_misses, origin, percent


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
    for made, level, article, kind, done in (
        (accepts, levels.accept, "an", "insufficient", "accepted"),
        (rejects, levels.reject, "a", "sufficient", "rejected"),
    ):
        if made and history.clustered:
            found.append(
                f"in at most {percent(level)} of those with {article} {kind} row any such row is {done}"
            )
        elif made:
            found.append(f"at most {percent(level)} of those with {kind} evidence are {done}")
    return found


def _alike(levels: Levels) -> str:
    return "exchangeable" if levels.delta is None else "independent and of one distribution"
