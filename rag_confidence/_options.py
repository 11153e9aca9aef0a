"""Options of the public functions, checked once."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rag_confidence._inputs import numbers
from rag_confidence._types import FloatArray, IntArray

_ROUNDING = 1e-3
_AGREEMENT = 1e-2


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Refuse a `value` that is not one of `choices`."""
    if value not in choices:
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
    return number


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
    entries = () if isinstance(texts, str) else tuple(texts)
    if isinstance(texts, str) or not all(isinstance(text, str) for text in entries):
        raise TypeError(f"`{name}` must be a list of strings; got something else. Pass one string a passage.")
    if len(entries) != count:
        raise ValueError(
            f"`{name}` must have one entry for each of the {count} passages; got {len(entries)}. "
            "Pass texts in the order of the embeddings."
        )
    return entries


def check_parents(name: str, parents: Sequence[int | None], count: int) -> IntArray:
    """Parent indices (n,) of a tree in which parents come first; -1 marks the root."""
    entries = list(parents)
    if len(entries) != count:
        raise ValueError(
            f"`{name}` must have one entry for each of the {count} passages; got {len(entries)}. "
            "Give the root None."
        )
    roots = [node for node, parent in enumerate(entries) if parent is None]
    if len(roots) != 1:
        raise ValueError(
            f"`{name}` must have exactly one root (None); got {len(roots)} at {roots[:8]}. "
            "Join several trees under one node."
        )
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


def check_candidates(
    name: str, candidates: ArrayLike, cosines: FloatArray, kept: IntArray | None
) -> FloatArray:
    """Cosines (m,) of the whole retrieved list, descending, the served ones first in `candidates`.

    Rounding beyond 1 is clipped. What cannot be a cosine, and what disagrees with the `cosines` (k,)
    of the served passages (those at `kept`, if some were dropped), is refused.
    """
    try:
        values = numbers(name, candidates).astype(np.float64)
    except TypeError:
        raise TypeError(
            f"`{name}` must hold cosines; got other values. Leave out passages without a score."
        ) from None
    places = np.arange(len(cosines)) if kept is None else kept
    if values.ndim != 1 or len(values) <= places.max(initial=-1):
        raise ValueError(
            f"`{name}` must have shape (m,) with m at least the number served; got {values.shape}. "
            "Pass the cosines of the whole list, the served passages first."
        )
    if not (np.abs(values) <= 1.0 + _ROUNDING).all():
        odd = float(values[~(np.abs(values) <= 1.0 + _ROUNDING)][0])
        raise ValueError(
            f"`{name}` must be cosines in [-1, 1]; got {odd!r}. Distances and rank scores are not cosines."
        )
    apart = np.abs(values[places] - cosines).max(initial=0.0)
    if apart > _AGREEMENT:
        raise ValueError(
            f"`{name}` must start with the cosines of the served passages; got a difference of {apart:.3g}. "
            "Pass raw cosines of the same embeddings, in served order."
        )
    return -np.sort(-np.clip(values, -1.0, 1.0))


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
    array = np.asarray(value)
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
