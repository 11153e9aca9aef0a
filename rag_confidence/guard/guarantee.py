"""What a guard guarantees about good and about bad calls, in data and in one sentence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from rag_confidence._history import GroupName
from rag_confidence._types import Guarantee
from rag_confidence.conformal.history import History, origin, percent
from rag_confidence.conformal.quantile import least_rank
from rag_confidence.guard.thresholds import Thresholds, calls_needed

_AVERAGE = "on average over calibration sets"
_NO_ERROR = "one whose threshold is infinite counting as no error"
_LATER = (
    "That several calls, such as the steps of one task, stay within the bound together (see Session).",
    "That this one calibration set keeps the bound: its own rate may lie above, and stays within the bound "
    "only on average over calibration sets.",
    "Anything once calls, scorers or tools have changed.",
    "Anything if only calls that a guard accepted are collected for the next calibration: each round then "
    "shuts out more of the good ones.",
    "That the labels are right: a good call is one that would be judged good in the same way.",
)
_NOT_GOOD = (
    "That an accepted call is good with any probability: that also depends on how many bad ones come in."
)
_BAD_UNBOUND = "That few bad calls are accepted: that depends on how good the scorers are."
_OFTEN_FAILED = (
    "That good calls are rarely abstained on where scorers often fail: with too many failures in the "
    "calibration set every call abstains."
)
_ABSTAINED = (
    "That few good calls are abstained on: only REJECT is bounded for them, and a call that passes for both "
    "kinds or for neither is abstained on."
)
_NOTHING = "Any bound on what happens to a good or a bad call: every call abstains."


@dataclass(frozen=True)
class Basis:
    """What a guarantee rests on.

    Attributes
    ----------
    level : Fraction
        Of good calls that are not accepted, or with `beta` rejected.
    beta : Fraction or None
        Of bad calls that are accepted.
    n_good, n_bad, n_failed : int
        Calibration calls of each kind, and good ones on which a scorer failed.
    checks : int
        Scorers that decide together.
    ranked : bool
        Whether scores are compared as ranks among unlabelled traffic.
    group : str or int or None
    history : History
    """

    level: Fraction
    beta: Fraction | None
    n_good: int
    n_bad: int
    n_failed: int
    checks: int
    ranked: bool
    group: GroupName | None
    history: History

    @property
    def n_needed(self) -> int:
        """Good calls from which the threshold is finite, if no more of them fail."""
        return calls_needed(self.level, self.n_failed)

    @property
    def n_bad_needed(self) -> int:
        """Bad calls from which calls can be accepted; 0 where they are not asked for."""
        return 0 if self.beta is None else calls_needed(self.beta)

    @property
    def of_group(self) -> str:
        """The group for a sentence."""
        return "" if self.group is None else f" of the group {self.group!r}"


def guarantee_of(basis: Basis, thresholds: Thresholds) -> Guarantee:
    """P(ABSTAIN | good) <= alpha of one threshold, or P(ACCEPT | bad) <= beta and P(REJECT | good) <= alpha.

    Notes
    -----
    The k-th smallest of n exchangeable statistics is at least a new one with probability k / (n + 1) or
    more, whatever the scorers are worth. Nothing here says that a decision is right with some probability.

    References
    ----------
    Vovk, Gammerman and Shafer (2005), Algorithmic Learning in a Random World, section 2.2; Vovk (2012),
    Conditional validity of inductive conformal predictors, section 4, for the two kinds.
    """
    if not (thresholds.accepts or thresholds.rejects):
        return _guarantee(basis, "none", "none", bound=None, sentence=_nothing(basis))
    if basis.beta is None:
        return _of_good(basis)
    return _of_both(basis, thresholds, basis.beta)


def _of_good(basis: Basis) -> Guarantee:
    together = f", by all {basis.checks} checks together" if basis.checks > 1 else ""
    sentence = (
        f"If new good calls{basis.of_group} are like the {basis.n_good} that the threshold rests on "
        f"(exchangeable; judged good {origin(basis.history)}), at most {percent(basis.level)} of them are "
        f"abstained on{together}, {_AVERAGE}, {_NO_ERROR}. How many bad calls are accepted is not bounded, "
        "and nothing is said of several calls together."
    )
    kind = "joint" if basis.checks > 1 else "marginal"
    event = "ABSTAIN although the call is good"
    return _guarantee(basis, kind, event, bound=basis.level, sentence=sentence)


def _of_both(basis: Basis, thresholds: Thresholds, beta: Fraction) -> Guarantee:
    claims, missing = [], []
    if thresholds.accepts:
        claims.append(f"at most {percent(beta)} of bad calls are accepted")
    else:
        missing.append(f"None is accepted: {_too_few_bad(basis, beta)}.")
    if thresholds.rejects:
        claims.append(f"at most {percent(basis.level)} of good calls are rejected")
    else:
        missing.append(f"None is rejected: {_too_few_good(basis)}.")
    sentence = (
        f"If new calls{basis.of_group} are like the {basis.n_bad} bad and {basis.n_good} good ones that the "
        f"thresholds rest on (exchangeable, each kind by itself; judged {origin(basis.history)}), "
        f"{' and '.join(claims)}, {_AVERAGE}. How many calls of either kind are abstained on is not bounded, "
        "and nothing is said of several calls together."
    )
    event = "ACCEPT although the call is bad" if thresholds.accepts else "REJECT although the call is good"
    bound = beta if thresholds.accepts else basis.level
    whole = _guarantee(basis, "marginal", event, bound=bound, sentence=" ".join([sentence, *missing]))
    return replace(
        whole,
        alpha=whole.alpha if thresholds.accepts else None,
        alpha_reject=whole.alpha_reject if thresholds.rejects else None,
    )


def _nothing(basis: Basis) -> str:
    lacks = _too_few_good(basis)
    if basis.beta is not None:
        lacks += f", and {_too_few_bad(basis, basis.beta)}"
    return f"Nothing is claimed and every call{basis.of_group} abstains: {lacks}."


def _too_few_good(basis: Basis) -> str:
    """What is missing where good calls do not suffice: more of them, or scorers that run."""
    if basis.n_good < calls_needed(basis.level):
        return _short("good", basis.level, basis.n_needed, have=basis.n_good)
    most = basis.n_good - least_rank(basis.n_good, basis.level)
    more = basis.n_needed - basis.n_good
    least = Fraction(basis.n_failed + 1, basis.n_good + 1)
    or_else = "" if least >= 1 else f", or use a level of at least {percent(least)}"
    return (
        f"at the level {percent(basis.level)} at most {most} of {basis.n_good} good calls may have a "
        f"scorer that failed, and {basis.n_failed} have. Mend that scorer, add {more} good "
        f"calls on which it runs{or_else}"
    )


def _short(kind: str, level: Fraction, needed: int, *, have: int) -> str:
    return (
        f"at the level {percent(level)} at least {needed} {kind} calls are needed (known: {have}, missing: "
        f"{needed - have})"
    )


def _too_few_bad(basis: Basis, beta: Fraction) -> str:
    return _short("bad", beta, basis.n_bad_needed, have=basis.n_bad)


def _not_claimed(basis: Basis, *, holds: bool) -> tuple[str, ...]:
    own = (_BAD_UNBOUND, _OFTEN_FAILED) if basis.beta is None else (_ABSTAINED,)
    first = () if holds else (_NOTHING,)
    return (*first, _NOT_GOOD, *own, *_LATER)


def _assumption(basis: Basis) -> str:
    like = f"exchangeable with the {basis.n_good} good calls of the calibration set"
    whole = f"new good calls{basis.of_group} are {like}"
    if basis.beta is not None:
        whole += f", and new bad ones with its {basis.n_bad} bad calls"
    if not basis.ranked:
        return whole
    return (
        f"given the traffic that fixed the ranks, {whole} (the traffic holds neither these calls nor retries "
        "or relatives of them)"
    )


def _conditioning(basis: Basis, event: str) -> str:
    if basis.beta is None:
        return f"given that the call is good, for one call, {_AVERAGE}, {_NO_ERROR}"
    kind = "bad" if event.startswith("ACCEPT") else "good"
    return f"given that the call is {kind}, for one call, {_AVERAGE}"


def _guarantee(basis: Basis, kind: str, event: str, *, bound: Fraction | None, sentence: str) -> Guarantee:
    holds = bound is not None
    return Guarantee(
        kind=kind,
        holds=holds,
        event=event,
        bound=None if bound is None else float(bound),
        conditioning=_conditioning(basis, event) if holds else "nothing is claimed",
        assumption=_assumption(basis) if holds else "none",
        alpha=float(basis.level if basis.beta is None else basis.beta),
        alpha_reject=None if basis.beta is None else float(basis.level),
        delta=None,
        n0=basis.n_bad if basis.beta is not None else 0,
        n1=basis.n_good,
        group=basis.group,
        collected=basis.history.collected,
        labeling_source=basis.history.labeling_source,
        negatives=(),
        not_claimed=_not_claimed(basis, holds=holds),
        sentence=sentence,
    )
