"""Labelled history becomes checked arrays here: scores, labels, groups, and columns that belong together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from rag_confidence._inputs import refuse_masked
from rag_confidence._options import entries_of
from rag_confidence._types import FloatArray, Mask

GroupName: TypeAlias = str | int

_SHOWN = 8
_CURE = "Pass one number a row."
_LEAST_WHOLE, _LARGEST_WHOLE = -(2**63), 2**64 - 1
_LIKE_PERCENTAGES = 1.5


def check_scores(name: str, scores: ArrayLike) -> FloatArray:
    """`scores` as a finite array (n,), n >= 1, of the precision they came in."""
    array = real_vector(name, scores)
    if array.size == 0:
        raise ValueError(f"`{name}` must hold at least one score; got none. Collect some first.")
    if not np.isfinite(array).all():
        bad = np.flatnonzero(~np.isfinite(array))
        places = ", ".join(map(str, bad[:_SHOWN].tolist()))
        raise ValueError(
            f"`{name}` must be finite; got {array[bad[0]]} and {bad.size} bad in all, at rows {places}. "
            "Leave out rows without a score."
        )
    return array


def real_vector(name: str, values: ArrayLike) -> FloatArray:
    """`values` as a float array (n,), of the precision they came in; nothing else is checked."""
    if type(values) is np.ndarray and values.ndim == 1 and values.dtype == np.float64:
        return values
    refuse_masked(name, values)
    kinds = set(map(type, values)) if isinstance(values, (list, tuple)) else set()
    try:
        array = np.asarray(values)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"`{name}` must have shape (n,); got {type(values).__name__} of unequal rows. {_CURE}"
        ) from error
    if array.ndim != 1:
        raise ValueError(f"`{name}` must have shape (n,); got {array.shape}. {_CURE}")
    if array.size == 0:
        return np.zeros(0)
    if array.dtype.kind not in "fiu" or not kinds.isdisjoint((bool, np.bool_)):
        raise TypeError(
            f"`{name}` must hold real numbers; got {_odd_number(array, values)}. Convert them to float first."
        )
    # A number beyond the narrower float becomes infinite, which is refused as such.
    with np.errstate(over="ignore"):
        return array.astype(_precision(array.dtype, kinds), copy=False)


def _precision(dtype: np.dtype[Any], kinds: set[type]) -> np.dtype[Any]:
    """The float, in the byte order of this machine, that is no finer than the numbers were.

    NumPy widens a list in which narrow floats stand beside plain ones.
    """
    narrow: tuple[type[np.floating[Any]], ...] = (np.float16, np.float32)
    for kind in narrow:
        if kind in kinds:
            return np.dtype(kind)
    if dtype.kind == "f" and dtype.itemsize in (2, 4, 8):
        return np.dtype(f"f{dtype.itemsize}")
    return np.dtype(np.float64)


def _odd_number(array: np.ndarray[Any, Any], values: Any) -> str:
    """The first entry that is no number, as it came: NumPy makes texts of all entries if one is."""
    if array.dtype.kind in "fiu":
        return f"bool such as {next(entry for entry in values if isinstance(entry, (bool, np.bool_)))!r}"
    entries = array if isinstance(values, np.ndarray) else values
    if array.dtype.kind in "USO":
        odd = next((entry for entry in entries if not isinstance(entry, (int, float))), array[0])
        return f"{type(odd).__name__} such as {odd!r}"
    return f"{array.dtype.name} such as {array[0].item()!r}"


def check_labels(name: str, labels: ArrayLike) -> Mask:
    """`labels` as a bool array (n,); only booleans, and 0 and 1 as numbers, are labels."""
    refuse_masked(name, labels)
    if isinstance(labels, (str, bytes)):
        raise TypeError(f"`{name}` must be 0 or 1 (or booleans); got {labels!r}. {_CURE}")
    entries = labels if isinstance(labels, np.ndarray) else _label_entries(name, labels)
    if entries.ndim != 1:
        raise ValueError(f"`{name}` must have shape (n,); got {entries.shape}. Pass one label a row.")
    if entries.dtype.kind == "b":
        return entries
    if entries.dtype.kind in "fiu":
        positive = entries == 1
        if not (positive | (entries == 0)).all():
            raise ValueError(_not_a_label(name, entries[~(positive | (entries == 0))][0]))
        return np.asarray(positive)
    if entries.dtype.kind == "O":
        return np.array([_label(name, entry) for entry in entries], dtype=bool)
    raise ValueError(_not_a_label(name, entries[0] if entries.size else entries.dtype))


def _label_entries(name: str, labels: Any) -> np.ndarray[Any, Any]:
    try:
        array = np.asarray(labels)
    except (ValueError, TypeError) as error:
        raise ValueError(f"`{name}` must have shape (n,); got unequal rows. Pass one label a row.") from error
    # NumPy turns [True, "no"] into strings; the entry that is no label should be named as it came.
    if array.dtype.kind in "US" and not hasattr(labels, "dtype"):
        return np.array(list(labels), dtype=object)
    return array


def _label(name: str, entry: Any) -> bool:
    plain = isinstance(entry, (bool, np.bool_, int, float, np.integer, np.floating))
    if not plain or entry not in (0, 1):
        raise ValueError(_not_a_label(name, entry))
    return bool(entry)


def _not_a_label(name: str, entry: Any) -> str:
    shown = entry.item() if isinstance(entry, np.generic) else entry
    return f"`{name}` must be 0 or 1 (or booleans); got {shown!r}. Leave out rows without a label."


def check_groups(name: str, groups: Sequence[GroupName] | ArrayLike) -> np.ndarray[Any, Any]:
    """`groups` as an object array (n,) of strings and integers."""
    entries = entries_of(name, groups, "one string or integer a row", "Name the group of every row.")
    return _objects(
        [e if type(e) is str else check_group(f"{name}[{at}]", e) for at, e in enumerate(entries)]
    )


def check_group(name: str, group: Any) -> GroupName:
    """One group: a string or an integer."""
    if isinstance(group, str):
        return str(group)
    if isinstance(group, (int, np.integer)) and not isinstance(group, (bool, np.bool_)):
        return check_whole(name, int(group))
    raise TypeError(f"`{name}` must be a string or an integer; got {group!r}. Name the group.")


def check_whole(name: str, value: int) -> int:
    """A whole number that serves as a name: of at most 64 bits, as databases have them."""
    if not _LEAST_WHOLE <= value <= _LARGEST_WHOLE:
        # Python refuses to write out integers of some thousand digits.
        raise ValueError(
            f"`{name}` must be of at most 64 bits if an integer; got one of {value.bit_length()} bits. "
            "Pass it as a string."
        )
    return value


def _objects(entries: list[Any]) -> np.ndarray[Any, Any]:
    array = np.empty(len(entries), dtype=object)
    array[:] = entries
    return array


def check_aligned(**columns: Any) -> None:
    """Columns that are given have one length, and those with an index share it."""
    given = {name: column for name, column in columns.items() if column is not None}
    for name, column in given.items():
        sized = hasattr(column, "__len__") and getattr(column, "ndim", 1) > 0
        if isinstance(column, (str, bytes)) or not sized:
            raise TypeError(f"`{name}` must be an array or a list; got {type(column).__name__}. {_CURE}")
    _refuse_other_index(given)
    first, *others = given
    for name in others:
        if len(given[name]) != len(given[first]):
            raise ValueError(
                f"`{name}` must have one entry for each of the {len(given[first])} rows of `{first}`; "
                f"got {len(given[name])}. Pass columns of one table."
            )


def _refuse_other_index(columns: dict[str, Any]) -> None:
    """pandas aligns by index and NumPy by position: where the two differ, neither is right in silence."""
    indexed = {name: column.index for name, column in columns.items() if hasattr(column, "iloc")}
    if len(indexed) < 2:
        return
    first, *others = indexed
    for name in others:
        if not indexed[first].equals(indexed[name]):
            raise ValueError(
                f"`{name}` must have the index of `{first}`; got {_shown(indexed[name])} beside "
                f"{_shown(indexed[first])}. Align the two, or pass arrays."
            )


def _shown(index: Any) -> str:
    entries = [entry.item() if isinstance(entry, np.generic) else entry for entry in index[:_SHOWN]]
    return f"{entries}{'...' if len(index) > _SHOWN else ''}"


def check_history(scores: ArrayLike, labels: ArrayLike) -> tuple[FloatArray, Mask]:
    """`scores` and `labels` of one table, checked and of one length."""
    check_aligned(scores=scores, labels=labels)
    return check_scores("scores", scores), check_labels("labels", labels)


def check_two_classes(labels: Mask) -> None:
    """Refuse labels that are all alike."""
    count = int(np.count_nonzero(labels))
    if 0 < count < len(labels):
        return
    held, missing = ("1", "0") if count else ("0", "1")
    raise ValueError(
        f"`labels` must hold both classes; got {len(labels)} rows, all {held}. "
        f"Label some {'insufficient' if missing == '0' else 'sufficient'} rows ({missing})."
    )


def check_fractions(name: str, scores: FloatArray, cure: str) -> None:
    """Refuse finite `scores` outside [0, 1], and say so when they look like percentages."""
    low, high = float(scores.min()), float(scores.max())
    if low >= 0.0 and high <= 1.0:
        return
    odd = low if low < 0.0 else high
    if low >= 0.0 and _LIKE_PERCENTAGES < high <= 100.0:
        cure = f"They look like percentages: divide by 100, or {cure[0].lower()}{cure[1:]}"
    raise ValueError(f"`{name}` must be fractions in [0, 1]; got {odd!r}. {cure}")
