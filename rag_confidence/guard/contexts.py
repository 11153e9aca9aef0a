"""What scorers see of a call: its arguments by name, and what the response of the model said of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class ResponseFacts:
    """What is known of a call beside its arguments, from the response that asked for it.

    Attributes
    ----------
    call_id : str or None
        Name of the call in that response.
    token_logprobs : tuple of float, or None
        Log-probabilities of its tokens; None where the API gave none.
    judge_score : float or None
        What a judge said, in [0, 1], high is good.
    metadata : mapping of str to anything
        Whatever else scorers need.

    Notes
    -----
    They fill in what a context builder left empty; an entry of its metadata comes before one of the same name
    here.
    """

    call_id: str | None = None
    token_logprobs: tuple[float, ...] | None = None
    judge_score: float | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
