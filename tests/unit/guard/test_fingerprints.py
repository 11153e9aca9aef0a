"""Fingerprints of scorers: the same for the same computation, another one for any other."""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from rag_confidence.guard.fingerprints import fingerprint_of
from rag_confidence.guard.logprobs import mean_logprob, tail_mean_logprob


def times(factor: Any) -> Callable[[Any], Any]:
    """A function that holds a value."""
    return lambda context: context * factor


class Called:
    """An object that can be called and holds values."""

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)

    def __call__(self, context: Any) -> Any:
        return vars(self)

    def method(self, context: Any) -> Any:
        return vars(self)


class Holder:
    """An object that cannot be called."""


def nested(inner: float) -> Callable[[Any], Any]:
    """A function with a function inside."""
    if inner == 1.0:
        return lambda context: [x + 1.0 for x in context]
    return lambda context: [x + 2.0 for x in context]


def test_the_same_code_has_the_same_fingerprint() -> None:
    """Two functions made alike cannot be told apart."""
    assert fingerprint_of(times(2.0)) == fingerprint_of(times(2.0))
    assert fingerprint_of(Called(a=1)) == fingerprint_of(Called(a=1))


def test_constants_in_nested_code_count() -> None:
    """A constant inside a comprehension makes another scorer."""
    assert fingerprint_of(nested(1.0)) != fingerprint_of(nested(2.0))


def test_every_plain_value_that_a_scorer_holds_counts() -> None:
    """Closures, defaults, partials, attributes and methods differ with their numbers, texts and arrays."""

    def default(context: Any, limit: float = 1.0) -> float:
        return limit

    def other(context: Any, limit: float = 2.0) -> float:
        return limit

    def keyword(context: Any, *, limit: float = 1.0) -> float:
        return limit

    makers: list[Callable[[Any], Callable[..., Any]]] = [
        times,
        lambda value: functools.partial(operator.mul, value),
        lambda value: Called(value=value),
        lambda value: Called(value=value).method,
    ]
    values = [1, 1.0, True, "1", b"1", None, (1,), [1], {1}, {"a": 1}, {"a": 2}, np.ones(2), np.zeros(2)]
    for make in makers:
        assert len({fingerprint_of(make(value)) for value in values}) == len(values)
    assert len({fingerprint_of(f) for f in (default, other, keyword)}) == 3


def test_the_order_of_sets_and_mappings_does_not_count() -> None:
    """What has no order has none in its fingerprint."""
    assert fingerprint_of(times({"a": 1, "b": 2})) == fingerprint_of(times({"b": 2, "a": 1}))
    assert fingerprint_of(times({"x", "y", "z"})) == fingerprint_of(times({"z", "y", "x"}))


def test_of_other_objects_only_the_type_counts() -> None:
    """Handles and clients differ from run to run and are not looked into."""
    assert fingerprint_of(times(Holder())) == fingerprint_of(times(Holder()))
    assert fingerprint_of(times(Holder())) != fingerprint_of(times(object()))


def test_functions_that_hold_themselves_have_one() -> None:
    """Recursion in what a scorer holds ends."""

    def recursive(depth: int) -> int:
        return depth and recursive(depth - 1)

    loop: list[Any] = []
    loop.append(loop)
    assert fingerprint_of(recursive) == fingerprint_of(recursive)
    assert fingerprint_of(times(loop)) == fingerprint_of(times(loop))


def test_what_is_held_in_many_places_is_looked_at_once() -> None:
    """Objects that share their parts take no longer than those parts, and equal parts need not be shared."""
    chain: Any = Called(value=1)
    for _ in range(200):
        chain = Called(left=chain, right=chain)
    assert fingerprint_of(chain) == fingerprint_of(chain)
    shared = Called(value=1)
    apart = Called(left=Called(value=1), right=Called(value=1))
    assert fingerprint_of(Called(left=shared, right=shared)) == fingerprint_of(apart)


def test_code_without_a_module_has_one() -> None:
    """Functions that were made from text are scorers too."""
    space: dict[str, Any] = {}
    exec("def score(context): return 0.5", space)
    space["score"].__module__ = None
    assert fingerprint_of(space["score"])


def test_builtins_and_empty_cells_have_one() -> None:
    """A builtin is known by its name, and a variable that is not set yet is no error."""

    def early() -> Callable[[Any], Any]:
        def use(context: Any) -> Any:
            return late

        found = use if fingerprint_of(use) else None
        late = 1.0
        assert found is not None
        return found

    assert fingerprint_of(early()) == fingerprint_of(early())
    assert fingerprint_of(len) != fingerprint_of(sum)


def test_functions_of_the_package_are_known_by_name() -> None:
    """Byte code differs between versions of Python, so that of this package does not count."""
    assert fingerprint_of(mean_logprob) == fingerprint_of(mean_logprob)
    assert fingerprint_of(tail_mean_logprob(0.1)) != fingerprint_of(tail_mean_logprob(0.2))


class Slotted:
    """An object that can be called and has no dictionary."""

    __slots__ = ("__weight", "unset")

    def __init__(self, weight: float) -> None:
        self.__weight = weight

    def __call__(self, context: Any) -> float:
        return self.__weight


@dataclass
class Settings:
    """Values that belong together."""

    limit: float


def cached(limit: float) -> Callable[..., Any]:
    """A function behind a cache of Python's own."""
    return functools.lru_cache(times(limit))


DIFFERENT: dict[str, tuple[Any, Any]] = {
    "cache": (cached(1.0), cached(2.0)),
    "staticmethod": (staticmethod(times(1.0)), staticmethod(times(2.0))),
    "slots": (Slotted(1.0), Slotted(2.0)),
    "attribute": (operator.attrgetter("judge_score"), operator.attrgetter("result")),
    "method of a table": ({"a": 1.0}.get, {"a": 2.0}.get),
    "method of a pattern": (re.compile("a").match, re.compile("b").match),
    "ufunc": (np.add, np.multiply),
    "dataclass": (times(Settings(1.0)), times(Settings(2.0))),
    "pattern": (times(re.compile("a")), times(re.compile("b"))),
    "decimal": (times(Decimal(1)), times(Decimal(2))),
    "time": (times(timedelta(1)), times(timedelta(2))),
}


@pytest.mark.parametrize("kind", DIFFERENT)
def test_what_is_no_python_function_differs_with_what_it_holds(kind: str) -> None:
    """Otherwise scores of one such scorer would be taken for those of another."""
    one, other = DIFFERENT[kind]
    assert fingerprint_of(one) == fingerprint_of(one) != fingerprint_of(other)


def test_arrays_of_objects_are_known_by_their_entries() -> None:
    """Their bytes are addresses, which differ from run to run."""
    first, second = (times(np.array([1.5, text], dtype=object)) for text in ("ab", "".join(["a", "b"])))
    assert fingerprint_of(first) == fingerprint_of(second)
    assert fingerprint_of(first) != fingerprint_of(times(np.array([1.5, "c"], dtype=object)))


def test_what_cannot_be_taken_apart_is_known_by_its_type() -> None:
    """An object that no pickle holds is no reason to refuse a scorer."""
    one = times(np.random.default_rng(0).random)
    assert fingerprint_of(one) == fingerprint_of(times(np.random.default_rng(1).random))
    assert fingerprint_of(one) != fingerprint_of(times(Holder()))
