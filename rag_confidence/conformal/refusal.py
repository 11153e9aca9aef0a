"""When a fit warns, in numbers, or refuses."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from rag_confidence._history import GroupName
from rag_confidence.conformal.cells import Levels
from rag_confidence.errors import CalibrationRefused, SmallCalibrationWarning, WeakSeparationWarning

AUROC_FLOOR = 0.60

_SHOWN = 8
_CLASS = ("insufficient", "sufficient")


@dataclass(frozen=True)
class Shortage:
    """A class (of a group) that has fewer rows than its level needs."""

    group: GroupName | None
    label: int
    have: int
    need: int


def shortage_note(shortages: Sequence[Shortage], levels: Levels) -> str | None:
    """One sentence on all classes that have too few rows; None where there are none."""
    if not shortages:
        return None
    named = [
        f"{short.have} {_CLASS[short.label]} rows (label {short.label})"
        + ("" if short.group is None else f" in group {short.group!r}")
        + f" where {short.need} are needed"
        for short in shortages[:_SHOWN]
    ]
    more = "" if len(shortages) <= _SHOWN else f", and {len(shortages) - _SHOWN} more"
    at = f"alpha {float(levels.accept):g}"
    if levels.reject != levels.accept:
        at += f", alpha_reject {float(levels.reject):g}"
    if levels.delta is not None:
        at += f", delta {float(levels.delta):g}"
    return (
        f"too few labels at {at}: {', '.join(named)}{more}. "
        "A class with too few rows is never excluded, so what would need that abstains."
    )


def separation_note(auroc: float, low: float, high: float, floor: float) -> str | None:
    """One sentence on a score that hardly tells the classes apart; None where it does."""
    if low >= floor:
        return None
    turned = " Higher scores go with insufficient rows: check the sign of the score." if high < 0.5 else ""
    return (
        f"the score hardly separates the classes: AUROC {auroc:.3f}, 95 % interval {low:.3f} to {high:.3f}, "
        f"lower end below {floor:g}. The bound holds, but most retrievals will abstain.{turned}"
    )


def tell(small: str | None, weak: str | None, *, strict: bool) -> None:
    """Warn of what was found, or refuse to go on."""
    if strict and (small or weak):
        found = " ".join(note for note in (small, weak) if note)
        raise CalibrationRefused(
            f"`labels` must support the levels asked for; got {found} Collect more labels (see plan), or "
            "drop strict=True."
        )
    if small:
        warnings.warn(small, SmallCalibrationWarning, stacklevel=3)
    if weak:
        warnings.warn(weak, WeakSeparationWarning, stacklevel=3)
