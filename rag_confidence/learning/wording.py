"""Numbers and lists as readers want them: rounded sensibly, and never rounded onto 0 or 100 %."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

CLASSES = ("insufficient", "sufficient")
"""The classes by label."""

_DIGITS = 4
_TINY_P = 1e-4


def rounded(value: Any) -> Any:
    """`value` with every float in it to four significant digits; whole numbers keep all of theirs."""
    if isinstance(value, float):
        return _significant(value)
    if isinstance(value, Mapping):
        return {name: rounded(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(entry) for entry in value]
    return value


def percent(count: int, total: int) -> str:
    """A share in whole per cent; "<1 %" and ">99 %" where rounding would say none or all."""
    share = 100 * count / total
    if 0 < count < total and not 1 <= share <= 99:
        return "<1 %" if share < 1 else ">99 %"
    return f"{share:.0f} %"


def of_all(count: int, total: int) -> str:
    """ "34 of 200 (17 %)", or "all 200"."""
    return f"all {total}" if count == total else f"{count} of {total} ({percent(count, total)})"


def fraction(value: float) -> str:
    """Three decimals without the zero in front, as AUROCs are printed: .632, -.021, 1.000."""
    return _bare(f"{value:.3f}")


def level(value: float) -> str:
    """A level or a limit, as few decimals as it has, without the zero in front: .05."""
    return _bare(f"{value:g}")


def p_value(value: float) -> str:
    """ "p = .03", or "p < .0001" for smaller ones."""
    return f"p < {_bare(f'{_TINY_P:.4f}')}" if value < _TINY_P else f"p = {_bare(f'{value:.2g}')}"


def plain(value: float) -> str:
    """A number of 0..100 or a raw signal, to three or four digits."""
    return f"{value:.4g}"


def listed(names: Sequence[str], most: int = 8) -> str:
    """ "a, b and c"; what lies beyond `most` names is counted."""
    shown = [*names[:most], *([f"{len(names) - most} more"] if len(names) > most else [])]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def rows(count: int, noun: str = "row") -> str:
    """ "1 row", "2 rows"."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _significant(value: float) -> float | None:
    return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None


def _bare(text: str) -> str:
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text
