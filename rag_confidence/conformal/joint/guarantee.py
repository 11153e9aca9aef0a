"""What a gate over several checks guarantees about good calls, in data and in one sentence."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction

from rag_confidence._types import Guarantee
from rag_confidence.conformal.history import History, origin, percent
from rag_confidence.conformal.quantile import least_rank
from rag_confidence.errors import CalibrationRefused

NOT_CLAIMED = (
    "That few bad calls are accepted: that depends on how good the checks are.",
    "That good calls are rarely abstained on where checks often fail to run: with too many failures in the "
    "calibration set every call abstains.",
    "That several calls, such as a session, stay within the bound together.",
    "That this one calibration set keeps the bound: its own rate may lie above, and stays within the bound "
    "only on average over calibration sets.",
    "Anything once calls, checks or tools have changed.",
)
_EVENT = "ABSTAIN although the call is good"
_CONDITIONING = (
    "given that the call is good, for one call, on average over calibration sets, one whose threshold is "
    "infinite counting as no error"
)
_NOTHING = "Any bound on how often a good call is abstained on."


def joint_guarantee(level: Fraction, n: int, checks: int, history: History, *, ranked: bool) -> Guarantee:
    """P(finite threshold and ABSTAIN | good call) <= alpha for K checks together, by one threshold."""
    assumption = f"new good calls are exchangeable with the {n} good calls of the calibration set"
    if ranked:
        assumption = (
            f"given the traffic that fixed the ranks, {assumption} (the traffic holds neither these calls "
            "nor retries or relatives of them)"
        )
    together = f", by all {checks} checks together" if checks > 1 else ""
    sentence = (
        f"If new good calls are like the {n} that the threshold rests on (exchangeable; judged good "
        f"{origin(history)}), at most {percent(level)} of them are abstained on{together}, "
        "on average over calibration sets, one whose threshold is infinite counting as no error. "
        "How many bad calls are accepted is not bounded."
    )
    return _guarantee(level, n, history, assumption=assumption, sentence=sentence)


def bonferroni_guarantee(level: Fraction, n: int, checks: int, history: History) -> Guarantee:
    """The same bound from K thresholds with alpha / K each, by the union of K events."""
    sentence = (
        f"If new good calls are like the {n} that the thresholds rest on (exchangeable; judged good "
        f"{origin(history)}), at most {percent(level / checks)} of them fail each of the {checks} checks and "
        f"so at most {percent(level)} are abstained on, on average over calibration sets, one with an "
        "infinite threshold counting as no error. How many bad calls are accepted is not bounded."
    )
    assumption = f"new good calls are exchangeable with the {n} good calls of the calibration set"
    return _guarantee(level, n, history, assumption=assumption, sentence=sentence)


def naive_guarantee(level: Fraction, n: int, checks: int, history: History) -> Guarantee:
    """No bound of alpha on the decision: each of K checks has one of its own."""
    together = percent(min(checks * level, Fraction(1)))
    sentence = (
        f"No bound of {percent(level)} is claimed for the decision: each of the {checks} checks alone fails "
        f"at most {percent(level)} of good calls, so together they may abstain on up to {together} of them, "
        "on average over calibration sets, one with an infinite threshold counting as no error. "
        f"The thresholds rest on {n} good calls (judged good {origin(history)})."
    )
    return no_guarantee(level, n, history, sentence)


def no_guarantee(level: Fraction, n: int, history: History, sentence: str) -> Guarantee:
    """A guarantee that claims nothing; the sentence says why."""
    return _guarantee(level, n, history, assumption=None, sentence=sentence)


def calls_needed(level: Fraction) -> int:
    """Smallest n with a finite rank: ceil(1 / alpha) - 1."""
    return math.ceil(1 / level) - 1


def why_infinite(level: Fraction, n: int, n_failed: int) -> str:
    """What is missing where a threshold is infinite: calls, or checks that run.

    `n_failed` of the `n` good calls have a check that failed to run.
    """
    needed = calls_needed(level)
    start = f"Nothing is claimed and every call abstains: at the level {percent(level)}"
    if n < needed:
        return f"{start} at least {needed} good calls are needed, and there are {n}."
    least = percent(Fraction(n_failed + 1, n + 1))
    return (
        f"{start} at most {n - least_rank(n, level)} of {n} good calls may have a check that failed to run, "
        f"and {n_failed} have. Mend that check, or use a level of at least {least}."
    )


def refuse_or_warn(text: str, category: type[Warning], *, strict: bool) -> None:
    """Raise with strict=True, else warn where the public fit was called, two calls up."""
    if strict:
        raise CalibrationRefused(text)
    warnings.warn(text, category, stacklevel=3)


def _guarantee(
    level: Fraction, n: int, history: History, *, assumption: str | None, sentence: str
) -> Guarantee:
    holds = assumption is not None
    return Guarantee(
        kind="joint" if holds else "none",
        holds=holds,
        event=_EVENT if holds else "none",
        bound=float(level) if holds else None,
        conditioning=_CONDITIONING if holds else "nothing is claimed",
        assumption=assumption or "none",
        alpha=float(level),
        alpha_reject=None,
        delta=None,
        n0=0,
        n1=n,
        group=None,
        collected=history.collected,
        labeling_source=history.labeling_source,
        negatives=(),
        not_claimed=NOT_CLAIMED if holds else (_NOTHING, *NOT_CLAIMED),
        sentence=sentence,
    )
