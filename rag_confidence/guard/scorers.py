"""Scorers: how strange one check finds a tool call, and what becomes of one that fails."""

from __future__ import annotations

import functools
import inspect
import math
import sys
from collections.abc import Awaitable, Callable, Generator, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from rag_confidence import _artefact
from rag_confidence._calls import ToolCallContext
from rag_confidence._options import check_text
from rag_confidence.guard.fingerprints import fingerprint_of

ScoreFunction: TypeAlias = Callable[[ToolCallContext], "float | Awaitable[float]"]

_LARGEST = sys.float_info.max
_LONGEST_TEXT = 300
_FUNCTION_CURE = "Pass a function from ToolCallContext to a number, higher for stranger calls."


class ScoreUnavailable(RuntimeError):
    """Raised by a scorer that lacks what it needs, such as log-probabilities that no API gave."""


class Scored(NamedTuple):
    """What a scorer said of one call.

    Attributes
    ----------
    value : float
        The score, higher is stranger; +inf where the scorer failed.
    error : str or None
        What happened, where it failed.
    """

    value: float
    error: str | None = None


class Column(NamedTuple):
    """Scores of one scorer on many calls, on how many it failed, and what happened at the first of these."""

    values: list[float]
    n_failed: int
    error: str | None


@dataclass(frozen=True, eq=False)
class Scorer:
    """One check on tool calls, under a name.

    Attributes
    ----------
    name : str
        What results, records and messages call it.
    function : callable
        From `ToolCallContext` to a number, higher for stranger calls, or to an awaitable of one.
    version : str or None
        Your name for what it computes. Without one the fingerprint is a hash of the code, which differs
        between versions of Python and does not see what the function calls by a global name.
    low, high : float
        Range of the score; a score outside counts as failed.
    fingerprint : str
        Hash of name, range, and version or code.
    least, most : float
        The range in finite numbers: infinities are no scores.

    Raises
    ------
    TypeError, ValueError
        For a name that is empty, a function that cannot be called, and an empty range.

    Notes
    -----
    A scorer fails when it raises, or returns nan, an infinity, a number outside its range or what is no
    number. Its score is then +inf, in calibration as in use, and the call is never accepted.

    Examples
    --------
    >>> longest = Scorer("longest", lambda context: len(context.args["query"]), low=0)
    >>> longest.score(ToolCallContext("search", {"query": "weather"}))
    Scored(value=7.0, error=None)
    >>> longest.score(ToolCallContext("search"))
    Scored(value=inf, error="longest raised KeyError: 'query'")
    """

    name: str
    function: ScoreFunction
    version: str | None = field(default=None, kw_only=True)
    low: float = field(default=-math.inf, kw_only=True)
    high: float = field(default=math.inf, kw_only=True)
    fingerprint: str = field(init=False, repr=False)
    least: float = field(init=False, repr=False)
    most: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _check(self)
        keep = object.__setattr__
        low, high = _bound("low", self.low), _bound("high", self.high)
        if not low < high:
            raise ValueError(f"`low` must be below `high`; got {low!r} and {high!r}. Swap them.")
        keep(self, "low", low)
        keep(self, "high", high)
        # One comparison then finds all that can be wrong with a float.
        keep(self, "least", max(low, -_LARGEST))
        keep(self, "most", min(high, _LARGEST))
        code = fingerprint_of(self.function) if self.version is None else self.version
        keep(self, "fingerprint", _artefact.digest([self.name, repr(low), repr(high), code]))

    def score(self, context: ToolCallContext) -> Scored:
        """The score of a call, or +inf and what happened; raises no Exception."""
        try:
            value = self.function(context)
            if type(value) is float and self.least <= value <= self.most:
                return Scored(value)
            return self.read(value)
        except Exception as error:  # noqa: BLE001
            return self.failed(error)

    def score_many(self, contexts: Iterable[ToolCallContext]) -> Column:
        """The scores of several calls, with the same results as one after the other."""
        values: list[float] = []
        errors: list[str | None] = []
        function, least, most = self.function, self.least, self.most
        for context in contexts:
            try:
                value = function(context)
                if type(value) is float and least <= value <= most:
                    values.append(value)
                    continue
                scored = self.read(value)
            except Exception as error:  # noqa: BLE001
                scored = self.failed(error)
            values.append(scored.value)
            errors.append(scored.error)
        failures = [error for error in errors if error is not None]
        return Column(values, len(failures), failures[0] if failures else None)

    async def ascore(self, context: ToolCallContext) -> Scored:
        """`score` of a function that may have to be awaited; a cancellation passes."""
        return await self.finish(self.start(context))

    def start(self, context: ToolCallContext) -> Scored | Awaitable[Any]:
        """The score, or what to await for it."""
        try:
            value = self.function(context)
            return value if inspect.isawaitable(value) else self.read(value)
        except Exception as error:  # noqa: BLE001
            return self.failed(error)

    async def finish(self, started: Scored | Awaitable[Any]) -> Scored:
        """The score that `start` began."""
        if isinstance(started, Scored):
            return started
        try:
            return self.read(await started)
        except Exception as error:  # noqa: BLE001
            return self.failed(error)

    def read(self, value: Any) -> Scored:
        """What the function returned, as a score; raises no Exception."""
        try:
            return self._read(value)
        except Exception as error:  # noqa: BLE001
            return self.failed(error)

    def _read(self, value: Any) -> Scored:
        if inspect.isawaitable(value):
            discard(value)
            text = f"{self.name} returned {type(value).__name__}, which must be awaited: use adecide"
            return Scored(math.inf, text)
        if not isinstance(value, float | np.floating) and not _is_integer(value):
            return Scored(math.inf, f"{self.name} returned {type(value).__name__} instead of a number")
        number = float(value)
        if self.least <= number <= self.most:
            return Scored(number)
        if math.isfinite(number):
            return Scored(math.inf, f"{self.name} returned {number!r}, outside [{self.low!r}, {self.high!r}]")
        return Scored(math.inf, f"{self.name} returned {number!r}, which is no score")

    def failed(self, error: Exception) -> Scored:
        """What an exception means: +inf, and what happened."""
        said = said_by(error)
        if isinstance(error, ScoreUnavailable):
            return Scored(math.inf, f"{self.name} is unavailable: {said}")
        return Scored(math.inf, f"{self.name} raised {type(error).__name__}: {said}")


class Later:
    """What a function makes of an awaitable once it is there; closing it closes the awaitable."""

    def __init__(self, awaitable: Awaitable[Any], then: Callable[[Any], float]) -> None:
        self._awaitable, self._then = awaitable, then

    def __await__(self) -> Generator[Any, Any, float]:
        found = yield from self._awaitable.__await__()
        return self._then(found)

    def close(self) -> None:
        """Drop it without awaiting."""
        discard(self._awaitable)


def discard(awaitable: Any) -> None:
    """Close a coroutine that nobody will await, which Python would warn of."""
    close = getattr(awaitable, "close", None)
    if callable(close):
        close()


def as_scorer(scorer: Scorer | ScoreFunction) -> Scorer:
    """A `Scorer`, from one or from a function that is then known by its own name."""
    if isinstance(scorer, Scorer):
        return scorer
    function: Any = scorer
    if not callable(function) or isinstance(function, type):
        raise TypeError(f"`scorer` must be callable; got {_kind(function)}. {_FUNCTION_CURE}")
    return Scorer(_name_of(function), function)


def as_scorers(scorers: Scorer | ScoreFunction | Iterable[Scorer | ScoreFunction]) -> tuple[Scorer, ...]:
    """One scorer or several, in order, each under a name of its own."""
    given: Any = scorers
    if isinstance(given, Scorer) or callable(given):
        given = (given,)
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise TypeError(f"`scorer` must be callable; got {_kind(given)}. {_FUNCTION_CURE}")
    found = tuple(as_scorer(entry) for entry in given)
    names = [scorer.name for scorer in found]
    if not found:
        raise ValueError(
            "`scorer` must hold at least one scorer; got none. Pass a function or a list of some."
        )
    if len(set(names)) < len(names):
        raise ValueError(
            f"`scorer` must hold scorers of different names; got {', '.join(names)}. "
            "Name them: Scorer('short_name', function)."
        )
    return found


def _check(scorer: Scorer) -> None:
    name: Any = scorer.name
    if not isinstance(name, str) or not name:
        raise TypeError(f"`name` must be a string that is not empty; got {name!r}. Name the scorer.")
    check_text("version", scorer.version)
    function: Any = scorer.function
    if not callable(function) or isinstance(function, type):
        raise TypeError(f"`function` must be callable; got {_kind(function)}. {_FUNCTION_CURE}")


def _bound(name: str, value: Any) -> float:
    if not isinstance(value, float | np.floating) and not _is_integer(value):
        raise TypeError(f"`{name}` must be a number; got {value!r:.80}. Pass a float, infinite for no bound.")
    try:
        # Adding 0.0 makes -0.0 the 0.0 that it equals.
        return float(value) + 0.0
    except OverflowError:
        raise ValueError(
            f"`{name}` must be within the range of floats; got an integer of {value.bit_length()} bits. "
            "Pass infinity for no bound."
        ) from None


def _is_integer(value: Any) -> bool:
    # A length of time is an integer to NumPy.
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)


def _kind(value: Any) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__


def _name_of(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", type(function).__name__)
    return "scorer" if name == "<lambda>" else str(name)


def said_by(error: Exception) -> str:
    """What an exception says, cut short; some cannot even say that."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001
        return "an exception that has no text"
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}..."
