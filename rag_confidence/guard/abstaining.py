"""What happens to a call that is not accepted: hand it on, raise, or ask a function of the user's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NoReturn

from rag_confidence._types import Decision
from rag_confidence.errors import AbstainedError
from rag_confidence.guard.result import Decider, GuardReason, GuardResult
from rag_confidence.guard.tools import is_awaited

OnAbstain = Literal["escalate", "raise"] | Callable[[GuardResult], Any]
Reaction = Callable[[GuardResult], Any]
"""From the result to the output that it gets instead of the tool's."""


def reaction_to(on_abstain: Any, *, asynchronous: bool) -> Reaction:
    """The function behind an `on_abstain`, which is checked here and not at the first call that needs it.

    Raises
    ------
    ValueError
        For a word that is not known.
    TypeError
        For what is neither a word nor callable, and for an async function where nobody would await it.
    """
    if not callable(on_abstain):
        return _named(on_abstain)
    if not asynchronous and is_awaited(on_abstain):
        raise TypeError(
            "`on_abstain` must be a plain function where the tool is one; got an async function. "
            "Pass asynchronous=True, and await the guarded tool."
        )
    return on_abstain  # type: ignore[no-any-return]


def _named(on_abstain: Any) -> Reaction:
    reaction = _REACTIONS.get(on_abstain) if isinstance(on_abstain, str) else None
    if reaction is None:
        kind = ValueError if isinstance(on_abstain, str) else TypeError
        raise kind(
            f"`on_abstain` must be 'escalate', 'raise' or a function; got {on_abstain!r}. Check the spelling."
        )
    return reaction


def escalate(result: GuardResult) -> None:
    """No output: whoever called the tool sees the decision and hands the call on."""


def raise_abstained(result: GuardResult) -> NoReturn:
    """Raise what a caller cannot overlook."""
    happened = "its output is withheld" if result.executed else "the tool was not run"
    raise AbstainedError(f"{result.decision.name}, and {happened}: {result.reason}", result)


_REACTIONS: dict[str, Reaction] = {"escalate": escalate, "raise": raise_abstained}


def without_context(tool_name: str, happened: str, calibrator: Decider) -> GuardResult:
    """The result of a call that could not be described to the scorers, and so is never accepted."""
    return GuardResult(
        Decision.ABSTAIN,
        f"The call of {tool_name} could not be described to the scorers: {happened}",
        GuardReason.CONTEXT_FAILED,
        threshold=getattr(calibrator, "threshold", float("inf")),
        calibrator=getattr(calibrator, "fingerprint", None),
    )
