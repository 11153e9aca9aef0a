"""What is known of a calibration set beside its numbers: when, by whom, and which kinds of rows."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import numpy as np

from rag_confidence._options import check_integer
from rag_confidence._types import Mask

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
