"""Scores of what the model or a judge thinks of a call: token log-probabilities and a judge's word."""

from __future__ import annotations

import inspect
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from rag_confidence._calls import ToolCallContext
from rag_confidence._options import check_callable, check_fraction_result, check_number
from rag_confidence.guard.scorers import Later, Scorer, ScoreUnavailable

Aggregate: TypeAlias = Callable[[Sequence[float]], float]
Judge: TypeAlias = Callable[[ToolCallContext], "float | Awaitable[float]"]

# Some servers round the logarithm of 1 to a little above 0.
_ROUNDING = 1e-3


def logprob_score(aggregate: Aggregate, *, name: str = "logprob") -> Scorer:
    """How unsure the model was of the tokens that made the call.

    Parameters
    ----------
    aggregate : callable
        From the log-probabilities of the tokens to one number, high where the model was sure: `mean_logprob`,
        `min_logprob`, `tail_mean_logprob(share)`, `length_normalised_logprob(exponent)`, or one of your own.
        There is no default, because the best one differs between models and tools.
    name : str
        Name of the scorer.

    Returns
    -------
    Scorer
        The negative aggregate, 0 for a model without doubt. It fails where the context has no
        log-probabilities: what is not there is not judged, and the call abstains.

    Raises
    ------
    TypeError
        For an aggregate that cannot be called.

    Examples
    --------
    >>> scorer = logprob_score(mean_logprob)
    >>> scorer.score(ToolCallContext("search", token_logprobs=(-0.5, -1.5))).value
    1.0
    """
    given: Any = aggregate
    if not callable(given):
        raise TypeError(
            f"`aggregate` must be callable; got {type(given).__name__}. "
            "Pass mean_logprob, min_logprob, tail_mean_logprob(0.1) or length_normalised_logprob(0.5)."
        )

    def score(context: ToolCallContext) -> float:
        return -aggregate(_checked(context.token_logprobs))

    return Scorer(name, score)


def mean_logprob(logprobs: Sequence[float]) -> float:
    """Mean log-probability of a token: the logarithm of the geometric mean of the probabilities."""
    return math.fsum(logprobs) / len(logprobs)


def min_logprob(logprobs: Sequence[float]) -> float:
    """Log-probability of the least sure token; it falls with the length of the call."""
    return min(logprobs)


def tail_mean_logprob(share: float) -> Aggregate:
    """Mean over the least sure tokens, a share of all in (0, 1] and at least one.

    Between the minimum (a small share) and the mean (share 1): one odd token counts, and not alone.
    """
    part = check_number("share", share, 0.0, 1.0, "Pass the share of tokens, such as 0.1.")
    if part == 0.0:
        raise ValueError("`share` must be above 0; got 0.0. Pass the share of tokens, such as 0.1.")

    def tail_mean(logprobs: Sequence[float]) -> float:
        return mean_logprob(sorted(logprobs)[: max(1, math.ceil(part * len(logprobs)))])

    return tail_mean


def length_normalised_logprob(exponent: float) -> Aggregate:
    """Sum of the log-probabilities divided by their number to a power in [0, 1].

    Power 0 is the logarithm of the probability of the whole call, 1 the mean; between the two a long call is
    less suspicious than its sum says, and more than its mean says.
    """
    power = check_number("exponent", exponent, 0.0, 1.0, "Pass 0 for the sum, 1 for the mean.")

    def normalised(logprobs: Sequence[float]) -> float:
        return math.fsum(logprobs) / float(len(logprobs) ** power)

    return normalised


def judge_score(judge: Judge | None = None, *, name: str = "judge") -> Scorer:
    """How bad a judge finds the call.

    Parameters
    ----------
    judge : callable, optional
        From the context to a number in [0, 1], high for good calls; or to an awaitable of one, for
        `acalibrate` and `adecide`. By default what the context carries as `judge_score`.
    name : str
        Name of the scorer.

    Returns
    -------
    Scorer
        One minus what the judge says, in [0, 1]. It fails where there is no judgement, or none in [0, 1].

    Raises
    ------
    TypeError
        For a judge that cannot be called.
    """
    check_callable("judge", judge)

    def score(context: ToolCallContext) -> float | Awaitable[float]:
        said = _carried(context) if judge is None else judge(context)
        return Later(said, _doubt) if inspect.isawaitable(said) else _doubt(said)

    return Scorer(name, score, low=0.0, high=1.0)


def _carried(context: ToolCallContext) -> float:
    if context.judge_score is None:
        raise ScoreUnavailable("the call carries no judge_score")
    return context.judge_score


def _doubt(said: Any) -> float:
    return 1.0 - check_fraction_result("judge", said)


def _checked(logprobs: Sequence[float] | None) -> Sequence[float]:
    if not logprobs:
        raise ScoreUnavailable("the call carries no token log-probabilities")
    for number in logprobs:
        if isinstance(number, bool) or not isinstance(number, int | float | np.integer | np.floating):
            raise TypeError(
                f"`token_logprobs` must hold numbers; got {type(number).__name__}. Pass the logprob of each."
            )
        if not -math.inf < number <= _ROUNDING:
            raise ValueError(
                f"`token_logprobs` must hold finite numbers of at most 0; got {number!r}. "
                "Pass logarithms of probabilities."
            )
    return logprobs
