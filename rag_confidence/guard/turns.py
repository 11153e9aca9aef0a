"""What a model asked for in one response, whatever API it came from: the calls, and what was said beside."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

Answer = Callable[[str, bool], dict[str, Any]]
"""From a text, and whether it tells of a failure, to the message that answers a call."""

CUT_OFF = "the response was cut off inside this call"


@dataclass(frozen=True, eq=False)
class RequestedCall:
    """One call that a model asked for.

    Attributes
    ----------
    call_id : str or None
        Name of the call in the response; None where the API has none.
    name : str
        Name of the tool, empty where the response has none.
    answer : callable
        Makes the message that answers the call.
    args, kwargs : tuple and dict
        Arguments by position and by name.
    problem : str or None
        Why it cannot be run with these arguments.
    family : str or None
        What groups tools of the same name apart: a namespace, or a set of tools.
    """

    call_id: str | None
    name: str
    answer: Answer
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    problem: str | None = None
    family: str | None = None


@dataclass(frozen=True, eq=False)
class Turn:
    """One response of a model.

    Attributes
    ----------
    shape : str
        Name of the response in messages.
    calls : tuple of RequestedCall
        In the order of the response.
    finish_reason : str or None
        Why the model stopped.
    content : str or None
        Its text and refusals; None where it said nothing.
    token_logprobs : tuple of float, or None
        Of the whole response; None where the API gave none.
    """

    shape: str
    calls: tuple[RequestedCall, ...]
    finish_reason: str | None = None
    content: str | None = None
    token_logprobs: tuple[float, ...] | None = None


def part(holder: Any, name: str) -> Any:
    """An entry of a dictionary or an attribute of an object; None where it is missing."""
    return holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)


def parts(holder: Any, name: str) -> tuple[Any, ...]:
    """The entries of a list in a dictionary or an object; none where it is missing."""
    found = part(holder, name)
    if isinstance(found, str | bytes | Mapping) or not isinstance(found, Sequence):
        return ()
    return tuple(found)


def text_of(holder: Any, name: str) -> str | None:
    """A string in a dictionary or an object; None where it is missing, empty or something else."""
    found = part(holder, name)
    return found if isinstance(found, str) and found else None


def joined(texts: Sequence[str | None]) -> str | None:
    """Texts on lines of their own; None where there are none."""
    return "\n".join(text for text in texts if text) or None


def named_arguments(given: Any) -> tuple[dict[str, Any], str | None]:
    """Arguments by name from JSON text or a mapping; no text is no arguments.

    Returns
    -------
    arguments : dict
        A copy: what a tool does to it does not change the response.
    problem : str or None
        What is wrong with them; then there are none.
    """
    if given is None or (isinstance(given, str) and not given.strip()):
        return {}, None
    try:
        found = _loaded(given) if isinstance(given, str) else deepcopy(given)
    except (ValueError, TypeError, RecursionError) as error:
        return {}, f"the arguments are not valid JSON ({error})"
    if not isinstance(found, Mapping):
        return {}, f"the arguments must be a JSON object, not {_KINDS.get(type(found), type(found).__name__)}"
    if not all(isinstance(name, str) for name in found):
        return {}, "the arguments must have strings as names"
    return dict(found), None


def call_id_of(holder: Any, name: str, shape: str) -> str:
    """The name of a call in its response, without which nothing can answer it."""
    found = part(holder, name)
    if isinstance(found, str):
        return found
    raise ValueError(
        f"`{shape}` must give each call an `{name}` that is a string; got {found!r}. "
        "Without it no result can be matched to its call."
    )


def check_ids(shape: str, calls: Sequence[RequestedCall]) -> tuple[RequestedCall, ...]:
    """The calls, where no two share an id: of such calls no answer would clearly be that of one."""
    ids = [call.call_id for call in calls if call.call_id]
    twice = next((name for at, name in enumerate(ids) if name in ids[:at]), None)
    if twice is None:
        return tuple(calls)
    raise ValueError(
        f"`{shape}` must have calls with ids of their own; got {twice!r} more than once. "
        "Nothing was run. Look at what the server sends."
    )


def _loaded(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_once, parse_constant=_finite, parse_float=_finite)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        # Which of the values is meant would be a guess.
        raise ValueError("a name comes twice")
    return found


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number} is no number of JSON, or too large")
    return value


_KINDS = {list: "an array", str: "a string", bool: "a boolean", int: "a number", float: "a number"} | {
    type(None): "null"
}
