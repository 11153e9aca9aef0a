"""Scores of several checks on one call: the checked matrix, its names, and what a gate says of each row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from rag_confidence._inputs import numbers
from rag_confidence._options import entries_of
from rag_confidence._types import Decision, FloatArray, Guarantee, Mask

_SHOWN = 8
_LARGEST_SINGLE = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class JointPrediction:
    """The decision on one call, and the checks that led to it.

    Attributes
    ----------
    decision : Decision
        ACCEPT or ABSTAIN.
    failed_checks : tuple of str
        Checks above the threshold. Empty for ACCEPT, and where the gate certifies nothing, because then no
        check is to blame.
    statistic : float
        What was compared: for a joint gate the strangest check; for a gate with a threshold a check the
        largest excess over it. Infinite where a check failed to run.
    threshold : float
        ACCEPT up to here; infinite where nothing is certified.
    guarantee : Guarantee
        What is bounded and what is not claimed.
    """

    decision: Decision
    failed_checks: tuple[str, ...]
    statistic: float
    threshold: float
    guarantee: Guarantee

    @property
    def reason(self) -> str:
        """Why, in one sentence that a user can be shown."""
        if self.decision == Decision.ACCEPT:
            return "No check finds this call stranger than good calls usually are."
        if not self.failed_checks:
            return f"This call was not judged. {self.guarantee.sentence}"
        found = "This check finds" if len(self.failed_checks) == 1 else "These checks find"
        return f"{found} the call stranger than good calls usually are: {', '.join(self.failed_checks)}."


@dataclass(frozen=True, eq=False, repr=False)
class JointPredictions:
    """Decisions on m calls, held as columns; ``predictions[i]`` is a `JointPrediction`.

    Attributes
    ----------
    accepted : ndarray of bool, shape (m,)
        Rows with the decision ACCEPT; all others ABSTAIN.
    failed : ndarray of bool, shape (m, K)
        Checks above the threshold; all False where the gate certifies nothing.
    statistics : ndarray, shape (m,)
    threshold : float
    names : tuple of str
    guarantee : Guarantee
    """

    accepted: Mask
    failed: Mask
    statistics: FloatArray
    threshold: float
    names: tuple[str, ...]
    guarantee: Guarantee

    def __len__(self) -> int:
        return len(self.accepted)

    def __repr__(self) -> str:
        accepted = np.count_nonzero(self.accepted)
        return f"JointPredictions({len(self)} calls: {accepted} accept, {len(self) - accepted} abstain)"

    @overload
    def __getitem__(self, index: int) -> JointPrediction: ...

    @overload
    def __getitem__(self, index: slice) -> list[JointPrediction]: ...

    def __getitem__(self, index: int | slice) -> JointPrediction | list[JointPrediction]:
        if isinstance(index, slice):
            return [self[i] for i in range(len(self))[index]]
        at = range(len(self))[index]
        return JointPrediction(
            decision=Decision.ACCEPT if self.accepted[at] else Decision.ABSTAIN,
            failed_checks=tuple(self.names[check] for check in np.flatnonzero(self.failed[at])),
            statistic=float(self.statistics[at]),
            threshold=self.threshold,
            guarantee=self.guarantee,
        )

    def __iter__(self) -> Iterator[JointPrediction]:
        return (self[i] for i in range(len(self)))

    @property
    def abstained(self) -> Mask:
        """Rows with the decision ABSTAIN, shape (m,)."""
        return ~self.accepted

    @property
    def decision(self) -> np.ndarray[Any, np.dtype[np.str_]]:
        """ "accept" or "abstain", shape (m,)."""
        return np.where(self.accepted, Decision.ACCEPT.value, Decision.ABSTAIN.value)


def check_names(names: Sequence[str] | None, scores: Any) -> tuple[str, ...]:
    """Names of the K checks: those given, else the columns of a data frame, else check_0, check_1, ..."""
    count = np.shape(scores)[1]
    if names is None:
        return _labels(scores) or tuple(f"check_{at}" for at in range(count))
    entries = entries_of("names", names, "a list of strings", "Name each check once.")
    if not all(isinstance(name, str) for name in entries):
        raise TypeError(f"`names` must be a list of strings; got {[*entries]!r}. Name each check once.")
    if len(entries) != count or len(set(entries)) < count:
        raise ValueError(
            f"`names` must hold {count} different strings, one a check; got {[*entries]!r}. "
            "Name each check once."
        )
    _refuse_other_columns("scores", scores, entries)
    return entries


def check_calls(name: str, scores: ArrayLike, checks: Sequence[str] | None = None) -> FloatArray:
    """`scores` as an array (n, K) of at least one call, in the order of `checks` where those are known."""
    array = check_rows(name, scores, checks)
    if len(array) == 0:
        raise ValueError(f"`{name}` must hold at least one call; got none. Collect some first.")
    return array


def check_rows(name: str, scores: ArrayLike, checks: Sequence[str] | None = None) -> FloatArray:
    """`scores` as an array (m, K) of float32 or float64 without nan and -inf; m may be 0."""
    array = numbers(name, scores)
    width = "K" if checks is None else str(len(checks))
    if array.ndim != 2 or array.shape[1] == 0 or (checks is not None and array.shape[1] != len(checks)):
        cure = "Pass one row a call and one column a check, a single check as scores[:, None]."
        raise ValueError(f"`{name}` must have shape (n, {width}); got {array.shape}. {cure}")
    if checks is not None:
        _refuse_other_columns(name, scores, checks)
    _refuse_nan(name, array)
    return array


def check_row(name: str, row: ArrayLike, checks: Sequence[str]) -> FloatArray:
    """One call as an array (1, K)."""
    array = numbers(name, row)
    if array.shape != (len(checks),):
        raise ValueError(
            f"`{name}` must have shape ({len(checks)},); got {array.shape}. Pass one score a check, in the "
            f"order {', '.join(checks)}."
        )
    _refuse_other_columns(name, row, checks)
    _refuse_nan(name, array[None])
    return array[None]


def at_single(scores: FloatArray) -> FloatArray:
    """`scores` in float32. What is too large for it becomes the largest float: only failure is infinite."""
    if scores.dtype == np.float32:
        return scores
    finite = np.clip(scores, -_LARGEST_SINGLE, _LARGEST_SINGLE)
    return np.where(np.isposinf(scores), np.inf, finite).astype(np.float32)


def _refuse_nan(name: str, array: FloatArray) -> None:
    # Negated: nan compares false with everything.
    good = array > -np.inf
    if good.all():
        return
    places = np.argwhere(~good)
    shown = ", ".join(str(tuple(place)) for place in places[:_SHOWN].tolist())
    raise ValueError(
        f"`{name}` must not hold nan or -inf; got {array[tuple(places[0])]} and {len(places)} bad in all, at "
        f"(row, check) {shown}. A check that failed to run counts as +inf."
    )


def _refuse_other_columns(name: str, scores: Any, checks: Sequence[str]) -> None:
    """pandas names its columns: where those are other checks, or in another order, position is wrong."""
    found = _labels(scores)
    if found and found != tuple(checks):
        raise ValueError(
            f"`{name}` must have the columns {', '.join(checks)}; got {', '.join(found)}. "
            "Select them in that order, or pass an array."
        )


def _labels(scores: Any) -> tuple[str, ...]:
    """Column names of a data frame, or the index of a series, if those are strings; else nothing."""
    if not hasattr(scores, "iloc"):
        return ()
    labels = tuple(scores.columns if hasattr(scores, "columns") else scores.index)
    return labels if all(isinstance(label, str) for label in labels) else ()
