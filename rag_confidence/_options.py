"""Options of the public functions, checked once."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rag_confidence._inputs import numbers
from rag_confidence._types import FloatArray, IntArray

_ROUNDING = 1e-3
_AGREEMENT = 1e-2


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Refuse a `value` that is not one of `choices`."""
    if not isinstance(value, str) or value not in choices:
        wanted = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"`{name}` must be one of {wanted}; got {value!r}. Check the spelling.")


def check_integer(name: str, value: Any, least: int) -> int:
    """`value` as an int of at least `least`; booleans and fractions are refused."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"`{name}` must be an integer; got {value!r}. Pass an int.") from None
    if isinstance(value, (bool, np.bool_)) or number < least:
        raise ValueError(f"`{name}` must be an integer of at least {least}; got {value!r}. Pass another.")
    return number


def check_number(name: str, value: Any, low: float, high: float, cure: str) -> float:
    """`value` as a float in [low, high]."""
    if isinstance(value, (str, bytes, bool, np.bool_)) or value is None:
        raise TypeError(f"`{name}` must be a number in [{low:g}, {high:g}]; got {value!r}. {cure}")
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(
            f"`{name}` must be a number in [{low:g}, {high:g}]; got {type(value).__name__}. {cure}"
        ) from None
    if not low <= number <= high:
        raise ValueError(f"`{name}` must be a number in [{low:g}, {high:g}]; got {number!r}. {cure}")
    # Adding 0.0 makes -0.0 the 0.0 that it equals.
    return number + 0.0


def check_callable(name: str, value: Any) -> None:
    """Refuse a `value` that is neither None nor callable."""
    if value is not None and not callable(value):
        raise TypeError(f"`{name}` must be callable; got {type(value).__name__}. Pass a function.")


def check_text(name: str, value: Any) -> None:
    """Refuse a `value` that is neither None nor a string."""
    if value is not None and not isinstance(value, str):
        raise TypeError(f"`{name}` must be a string; got {type(value).__name__}. Pass str or None.")


def check_texts(name: str, texts: Sequence[str] | None, count: int) -> tuple[str, ...] | None:
    """Passage texts, one for each of `count` passages."""
    if texts is None:
        return None
    entries = entries_of(name, texts, "a list of strings", "Pass one string a passage.")
    if not all(isinstance(text, str) for text in entries):
        raise TypeError(f"`{name}` must be a list of strings; got other entries. Pass one string a passage.")
    if len(entries) != count:
        raise ValueError(
            f"`{name}` must have one entry for each of the {count} passages; got {len(entries)}. "
            "Pass texts in the order of the embeddings."
        )
    return entries


def entries_of(name: str, value: Any, wanted: str, cure: str) -> tuple[Any, ...]:
    """The entries of a list or another iterable that is no string."""
    if isinstance(value, (str, bytes, Set, Mapping)) or not isinstance(value, Iterable):
        raise TypeError(f"`{name}` must be {wanted}; got {type(value).__name__}. {cure}")
    return tuple(value)


def check_flag(name: str, value: Any) -> bool:
    """`value` as a bool; only booleans, 0 and 1 are meant as one."""
    if isinstance(value, (bool, np.bool_)) or (isinstance(value, (int, np.integer)) and value in (0, 1)):
        return bool(value)
    raise TypeError(f"`{name}` must be True or False; got {value!r}. Pass a bool.")


def check_parents(name: str, parents: Sequence[int | None], count: int) -> IntArray:
    """Parent indices (n,) of a tree in which parents come first; -1 marks the root."""
    entries = entries_of(name, parents, "a list of parent indices", "Give the root None.")
    if len(entries) != count:
        raise ValueError(
            f"`{name}` must have one entry for each of the {count} passages; got {len(entries)}. "
            "Give the root None."
        )
    roots = [node for node, parent in enumerate(entries) if parent is None]
    if len(roots) != 1:
        cure = "Join several trees under one node." if roots else "Mark the root with None."
        got = f"{len(roots)} at {roots[:8]}"
        raise ValueError(f"`{name}` must have exactly one root (None); got {got}. {cure}")
    tree = [
        -1 if parent is None else check_integer(f"{name}[{node}]", parent, 0)
        for node, parent in enumerate(entries)
    ]
    late = [node for node, parent in enumerate(tree) if parent >= node]
    if late:
        raise ValueError(_disorder(name, tree, late[0]))
    return np.array(tree, dtype=np.intp)


def _disorder(name: str, tree: list[int], node: int) -> str:
    """What is wrong with a tree in which `node` names a parent that does not come before it."""
    if tree[node] >= len(tree):
        return (
            f"`{name}` must index the {len(tree)} passages; got {name}[{node}] = {tree[node]}. Count from 0."
        )
    import networkx as nx

    graph = nx.DiGraph((child, parent) for child, parent in enumerate(tree) if 0 <= parent < len(tree))
    if not nx.is_directed_acyclic_graph(graph):
        loop = [int(edge[0]) for edge in nx.find_cycle(graph)]
        return f"`{name}` must be a tree; got the cycle {loop}. Every chain of parents must end at the root."
    return (
        f"`{name}` must list parents before their children; got {name}[{node}] = {tree[node]}. "
        "Sort the passages from the root down."
    )


def check_candidates(name: str, candidates: ArrayLike, dropped: IntArray) -> FloatArray:
    """Cosines (m,) of the whole retrieved list; what cannot be a cosine is refused.

    Entries at the places `dropped`, of passages that were no vectors, are left out unseen.
    """
    try:
        values = numbers(name, candidates).astype(np.float64)
    except TypeError:
        raise TypeError(
            f"`{name}` must hold cosines; got other values. Leave out passages without a score."
        ) from None
    if values.ndim != 1:
        raise ValueError(
            f"`{name}` must have shape (m,); got {values.shape}. "
            "Pass the cosines of the whole list, the served passages first."
        )
    values = np.delete(values, dropped[dropped < len(values)])
    if not (np.abs(values) <= 1.0 + _ROUNDING).all():
        odd = float(values[~(np.abs(values) <= 1.0 + _ROUNDING)][0])
        raise ValueError(
            f"`{name}` must be cosines in [-1, 1]; got {odd!r}. Distances and rank scores are not cosines."
        )
    return values


def ranked_candidates(name: str, candidates: FloatArray, cosines: FloatArray) -> FloatArray:
    """Checked `candidates` (m,), which must start with the served `cosines` (k,), in descending order.

    Rounding beyond 1 is clipped.
    """
    if len(candidates) < len(cosines):
        raise ValueError(
            f"`{name}` must have shape (m,) with m at least {len(cosines)}; got {candidates.shape}. "
            "Pass the cosines of the whole list, the served passages first."
        )
    apart = np.abs(candidates[: len(cosines)] - cosines).max()
    if apart > _AGREEMENT:
        raise ValueError(
            f"`{name}` must start with the cosines of the served passages; got a difference of {apart:.3g}. "
            "Pass raw cosines of the same embeddings, in served order."
        )
    return -np.sort(-np.clip(candidates, -1.0, 1.0))


def check_fraction_result(name: str, value: Any) -> float:
    """What a user's callable returned, as a float in [0, 1]."""
    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind not in "fiu":
        raise TypeError(f"`{name}` must return one number in [0, 1]; got {value!r}. Return a float.")
    number = float(array.reshape(()))
    if not (math.isfinite(number) and 0.0 <= number <= 1.0):
        raise ValueError(f"`{name}` must return a number in [0, 1]; got {number!r}. Return a probability.")
    return number


def check_contradiction(name: str, value: Any, count: int) -> float:
    """Largest contradiction score that a user's callable returned: a number, or one for each pair.

    The diagonal of an (n, n) array is left out: no text contradicts itself, whatever a model says.
    """
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(
            f"`{name}` must return a number or shape ({count}, {count}); got rows of different lengths. "
            "Score the passages pair by pair."
        ) from error
    if array.ndim < 2:
        return check_fraction_result(name, value)
    if array.shape != (count, count) or array.dtype.kind not in "fiu":
        raise ValueError(
            f"`{name}` must return a number or shape ({count}, {count}); got {array.shape}. "
            "Score the passages pair by pair."
        )
    pairs = array[~np.eye(count, dtype=bool)].astype(np.float64)
    if not ((pairs >= 0.0) & (pairs <= 1.0)).all():
        raise ValueError(f"`{name}` must return values in [0, 1]; got others. Return probabilities.")
    return float(pairs.max(initial=0.0))
