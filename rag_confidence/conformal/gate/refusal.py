"""When a fit warns, in numbers, or refuses."""

from __future__ import annotations

from collections.abc import Sequence

from rag_confidence.conformal.gate.cells import Cell, Levels
from rag_confidence.errors import (
    CalibrationRefused,
    SmallCalibrationWarning,
    WeakSeparationWarning,
    warn_caller,
)

AUROC_FLOOR = 0.60

_SHOWN = 8
_CLASS = ("insufficient", "sufficient")


def shortage_note(cells: Sequence[Cell], levels: Levels) -> str | None:
    """One sentence on all classes that have too few rows; None where there are none."""
    need = (levels.least_n(levels.accept), levels.least_n(levels.reject))
    short = [
        f"{have} {_CLASS[label]} rows (label {label})"
        + ("" if cell.group is None else f" in group {cell.group!r}")
        + f" where {need[label]} are needed"
        for cell in cells
        for label, have in enumerate((cell.n0, cell.n1))
        if have < need[label]
    ]
    if not short:
        return None
    more = "" if len(short) <= _SHOWN else f", and {len(short) - _SHOWN} more"
    return (
        f"too few labels at {_named(levels)}: {', '.join(short[:_SHOWN])}{more}. "
        "A class with too few rows is never excluded, so what would need that abstains."
    )


def _named(levels: Levels) -> str:
    at = f"alpha {float(levels.accept):g}"
    if levels.reject != levels.accept:
        at += f", alpha_reject {float(levels.reject):g}"
    return at if levels.delta is None else f"{at}, delta {float(levels.delta):g}"


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
        warn_caller(small, SmallCalibrationWarning)
    if weak:
        warn_caller(weak, WeakSeparationWarning)
