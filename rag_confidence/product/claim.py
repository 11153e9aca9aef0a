"""The guarantee inside a record: what each of its fields must be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rag_confidence._types import GUARANTEE_KEYS

_KINDS = ("marginal", "pac", "selective_risk", "joint", "none")


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_text_or_none(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_level(value: Any) -> bool:
    if value is None:
        return True
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1


def _is_group(value: Any) -> bool:
    return value is None or (isinstance(value, (str, int)) and not isinstance(value, bool))


def _are_days(value: Any) -> bool:
    return value is None or (_are_texts(value) and len(value) == 2)


def _are_counts(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_text, value)) and all(map(_is_count, value.values()))


def _are_texts(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(map(_is_text, value))


_TEXT = ("a string", _is_text)
_LEVEL = ("a number in [0, 1] or None", _is_level)
_COUNT = ("a whole number of at least 0", _is_count)

_FIELDS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "kind": (f"one of {', '.join(_KINDS)}", lambda value: _is_text(value) and value in _KINDS),
    "holds": ("True or False", lambda value: isinstance(value, bool)),
    "event": _TEXT,
    "bound": _LEVEL,
    "conditioning": _TEXT,
    "assumption": _TEXT,
    "alpha": _LEVEL,
    "alpha_reject": _LEVEL,
    "delta": _LEVEL,
    "n0": _COUNT,
    "n1": _COUNT,
    "group": ("a string, an integer or None", _is_group),
    "collected": ("the first and the last day as strings, or None", _are_days),
    "labeling_source": ("a string or None", _is_text_or_none),
    "negatives": ("a dict of counts", _are_counts),
    "not_claimed": ("a list of strings", _are_texts),
    "sentence": _TEXT,
}


def check_claim(name: str, plain: Mapping[str, Any]) -> None:
    """Refuse what no `Guarantee.to_dict()` gives: other fields, or a field of another type."""
    odd = sorted(map(str, set(plain) ^ set(GUARANTEE_KEYS)))
    if odd:
        raise ValueError(
            f"`{name}` must be a guarantee with its own fields; got too many or too few, {', '.join(odd)}. "
            "Pass an unchanged to_dict()."
        )
    for field, (wanted, is_meant) in _FIELDS.items():
        if not is_meant(plain[field]):
            raise ValueError(
                f"`{name}[{field!r}]` must be {wanted}; got {plain[field]!r}. Pass an unchanged to_dict()."
            )
