"""What becomes of a call that is not accepted."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from deciders import ShortQueries
from refusals import refuse

from rag_confidence._types import Decision
from rag_confidence.errors import AbstainedError
from rag_confidence.guard.abstaining import escalate, raise_abstained, reaction_to, without_context
from rag_confidence.guard.result import GuardReason, GuardResult

ABSTAINED = GuardResult(Decision.ABSTAIN, "The query is long.", GuardReason.ABOVE_THRESHOLD)


async def ask(result: GuardResult) -> str:
    """A callback that is awaited."""
    return "asked"


def test_words_stand_for_functions() -> None:
    """Each word has its reaction, and a function is its own."""
    assert reaction_to("escalate", asynchronous=False) is escalate
    assert reaction_to("raise", asynchronous=True) is raise_abstained
    assert reaction_to(str, asynchronous=False) is str


@pytest.mark.parametrize("word", ["rise", "Escalate", "", "abstain"])
def test_a_typo_is_refused(word: str) -> None:
    """It is found at once, not at the first call that abstains."""
    said = refuse(
        ValueError, "'escalate', 'raise' or a function", lambda: reaction_to(word, asynchronous=False)
    )
    assert repr(word) in said


@pytest.mark.parametrize("value", [None, 3, ["raise"], b"raise"])
def test_what_is_neither_word_nor_function_is_refused(value: Any) -> None:
    """Also what cannot be a key."""
    refuse(TypeError, "`on_abstain` must be 'escalate'", lambda: reaction_to(value, asynchronous=False))


def test_an_async_function_needs_a_tool_that_is_awaited() -> None:
    """Where nobody awaits it is refused, in a partial object too; where somebody does it is taken."""
    for function in (ask, functools.partial(ask)):
        refuse(
            TypeError,
            "a plain function.*asynchronous=True",
            lambda f=function: reaction_to(f, asynchronous=False),
        )
        assert reaction_to(function, asynchronous=True) is function


@pytest.mark.parametrize(
    ("executed", "said"),
    [
        (False, "ABSTAIN, and the tool was not run: The query is long."),
        (True, "ABSTAIN, and its output is withheld: The query is long."),
    ],
)
def test_the_error_says_whether_the_tool_ran(executed: bool, said: str) -> None:
    """And it has the whole result."""
    result = ABSTAINED.changed(executed=executed)
    with pytest.raises(AbstainedError) as caught:
        raise_abstained(result)
    assert str(caught.value) == said
    assert caught.value.result is result


def test_a_call_without_context_abstains_and_claims_nothing() -> None:
    """The message, the code, and no guarantee."""
    result = without_context("search", "KeyError: 'user'", ShortQueries())
    assert (result.decision, result.reason_code) == (Decision.ABSTAIN, GuardReason.CONTEXT_FAILED)
    assert result.reason == "The call of search could not be described to the scorers: KeyError: 'user'"
    assert (result.guarantee, result.context, result.executed) == (None, None, False)
    assert (result.threshold, result.calibrator) == (10.0, "of-the-decider")
