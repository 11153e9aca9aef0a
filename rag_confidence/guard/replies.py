"""What a model is told of its calls: the output as text, or in one sentence what happened instead."""

from __future__ import annotations

import inspect
import json
from typing import Any

from rag_confidence.errors import SessionExhausted
from rag_confidence.guard.result import GuardReason, GuardResult

_LONGEST_ERROR = 300


def text_of_output(output: Any) -> str:
    """What a tool returned as text: strings as they are, all else as JSON.

    Raises
    ------
    TypeError
        For what JSON cannot hold, and for a stream, which is closed. How to write other objects is not
        guessed: their ``str`` may be an address in memory.
    """
    if inspect.isgenerator(output):
        output.close()
    if inspect.isgenerator(output) or inspect.isasyncgen(output):
        raise _unsendable("a stream", "Collect the whole output in the tool.")
    try:
        text = str.__str__(output) if isinstance(output, str) else _json(output)
        text.encode()
    except Exception as error:
        # Methods of a user's own class may run here, which raise what they like.
        raise _unsendable(
            f"{type(output).__name__} ({said(error)})", "Return text or plain values."
        ) from error
    return text


def not_accepted(name: str, result: GuardResult) -> str:
    """Why a call was not run, or its output is withheld.

    It names checks. Scores, thresholds and what a scorer raised are left out: they are not for the model.
    """
    return f"{name} {_happened(executed=result.executed)}: {_why(result)}."


def guard_failed(name: str, error: Exception, *, started: bool) -> str:
    """That something beside the tool raised."""
    if isinstance(error, SessionExhausted):
        return f"{name} {_happened(executed=started)}: no further calls are allowed in this session."
    return f"{name} {_happened(executed=started)}: its guard failed with {type(error).__name__}."


def said(error: BaseException) -> str:
    """Class and text of an exception, cut short; some cannot even say that."""
    try:
        text = f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001
        return type(error).__name__
    return text if len(text) <= _LONGEST_ERROR else f"{text[:_LONGEST_ERROR]}..."


def sendable(text: str) -> str:
    """Text that can be encoded; half a character becomes a question mark."""
    return text.encode(errors="replace").decode()


def _happened(*, executed: bool) -> str:
    return "ran, but its output is withheld" if executed else "was not run"


def _why(result: GuardResult) -> str:
    checks = ", ".join(result.failed_checks) or "its checks"
    failing = ", ".join(result.failed_scorers) or "a check"
    found = {
        GuardReason.ABOVE_THRESHOLD: f"{checks} found the call stranger than calls that were right",
        GuardReason.BETWEEN: "the call may be right or wrong",
        GuardReason.CONFLICT: "the call is like neither right nor wrong ones",
        GuardReason.SCORER_FAILED: f"the call could not be judged, because {failing} gave no score",
        GuardReason.INFINITE_THRESHOLD: "too few earlier calls are known to judge it by",
        GuardReason.OTHER_TOOL: "calls of this tool cannot be judged yet",
        GuardReason.CONTEXT_FAILED: "the call could not be described to its checks",
        GuardReason.UNKNOWN_GROUP: "no level of risk is declared for the call",
    }
    return found.get(result.reason_code, "the guard did not accept the call")


def _json(output: Any) -> str:
    return json.dumps(output, ensure_ascii=False, allow_nan=False)


def _unsendable(got: str, cure: str) -> TypeError:
    return TypeError(f"`output` must be text, or values that JSON can hold; got {got}. {cure}")
