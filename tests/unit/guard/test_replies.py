"""What the model is told of its calls."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, StrEnum
from typing import Any

import pytest
from refusals import refuse

from rag_confidence._types import Decision
from rag_confidence.errors import SessionExhausted
from rag_confidence.guard.replies import guard_failed, not_accepted, said, sendable, text_of_output
from rag_confidence.guard.result import GuardReason, GuardResult


class Unit(StrEnum):
    """An enumeration of strings."""

    KELVIN = "K"


class Older(str, Enum):  # noqa: UP042
    """The same, as it was written before."""

    KELVIN = "K"


class Mute(Exception):
    """An exception that cannot say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ("plain", "plain"),
        ("", ""),
        (None, "null"),
        (True, "true"),
        ({"größe": [1, 2.5]}, '{"größe": [1, 2.5]}'),
        ((1, "a"), '[1, "a"]'),
        (Unit.KELVIN, "K"),
        (Older.KELVIN, "K"),
    ],
)
def test_outputs_become_text(output: Any, text: str) -> None:
    """Strings as they are, all else as JSON."""
    found = text_of_output(output)
    assert (found, type(found)) == (text, str)


def circle() -> list[Any]:
    """A list that holds itself."""
    found: list[Any] = []
    found.append(found)
    return found


class Odd(dict[str, Any]):
    """A mapping that cannot be read."""

    def items(self) -> Any:
        """No items."""
        raise KeyError("gone")


@pytest.mark.parametrize(
    "output",
    [object(), b"bytes", {1, 2}, {(1, 2): 3}, float("nan"), float("inf"), "\ud800", circle(), Odd(a=1)],
    ids=["object", "bytes", "set", "tuple_key", "nan", "inf", "half_character", "circle", "raises"],
)
def test_what_json_cannot_hold_is_refused(output: Any) -> None:
    """How to write it is not guessed."""
    refuse(TypeError, "`output` must be text, or values that JSON can hold", lambda: text_of_output(output))


def test_streams_are_refused_and_closed() -> None:
    """Nothing is taken from them."""
    taken = []

    def words() -> Iterator[str]:
        taken.append(1)
        yield "a"

    async def awaited_words() -> Any:
        taken.append(1)
        yield "a"

    stream = words()
    refuse(TypeError, "got a stream", lambda: text_of_output(stream))
    refuse(TypeError, "got a stream", lambda: text_of_output(awaited_words()))
    assert next(stream, None) is None
    assert taken == []


@pytest.mark.parametrize("code", list(GuardReason))
def test_every_reason_has_one_sentence(code: GuardReason) -> None:
    """It names the tool, and says whether it ran; it has no scores, arguments or texts of exceptions."""
    result = GuardResult(
        Decision.ABSTAIN,
        "secret",
        code,
        failed_checks=("length",),
        failed_scorers={"judge": "secret"},
        scores={"length": 0.75},
    )
    told = not_accepted("search", result)
    assert told.startswith("search was not run: ")
    assert (told.count("."), told[-1], told.count("secret"), told.count("0.75")) == (1, ".", 0, 0)
    after = not_accepted("search", result.changed(executed=True))
    assert after.startswith("search ran, but its output is withheld: ")


def test_checks_are_named_to_the_model() -> None:
    """Those above the threshold, and those that failed."""
    above = GuardResult(Decision.ABSTAIN, "", GuardReason.ABOVE_THRESHOLD, failed_checks=("length", "judge"))
    assert "length, judge found the call stranger" in not_accepted("search", above)
    failed = GuardResult(Decision.ABSTAIN, "", GuardReason.SCORER_FAILED, failed_scorers={"judge": "no"})
    assert "because judge gave no score" in not_accepted("search", failed)


def test_exceptions_are_quoted_and_cut_short() -> None:
    """Some cannot even say what they are."""
    assert said(KeyError("x")) == "KeyError: 'x'"
    assert said(ValueError("a" * 1000)).endswith("aaa...")
    assert len(said(ValueError("a" * 1000))) == 303
    assert said(Mute()) == "Mute"


def test_a_failure_of_the_guard_is_told_without_its_text() -> None:
    """Of a store or a callback the model needs no more than that."""
    told = guard_failed("search", OSError("disk of the user"), started=False)
    assert told == "search was not run: its guard failed with OSError."
    over = guard_failed("search", SessionExhausted("two calls"), started=False)
    assert over == "search was not run: no further calls are allowed in this session."


def test_half_a_character_can_be_sent() -> None:
    """A client could not encode it."""
    assert sendable("a\ud800b") == "a?b"
