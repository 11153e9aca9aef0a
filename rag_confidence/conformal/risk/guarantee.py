"""What a risk gate may claim, and what its fit warns of, in words and numbers that are true."""

from __future__ import annotations

from fractions import Fraction

from rag_confidence._types import Guarantee
from rag_confidence.conformal.history import History, missing_near_misses, origin, percent
from rag_confidence.conformal.risk.certificate import Certificate, Trial
from rag_confidence.conformal.risk.rank_grid import RiskMethod, least_rank, tolerated

_EVENT = "the evidence is insufficient although the gate said ACCEPT"
_MONOTONE = "a lower threshold never lowers the share of insufficient retrievals among the accepted"
_NOT_CLAIMED = (
    "That few of the insufficient retrievals are accepted: that is the false-sufficiency rate, which "
    "fit_conformal_gate bounds.",
    "Anything for another mix of questions: with more unanswerable ones among them, more of the accepted are "
    "insufficient although the scores of either kind stay the same.",
    "That sufficient retrievals are accepted.",
    "That an accepted answer is true: the labels say whether the evidence suffices, not what is generated "
    "from it.",
    "Anything once questions, corpus, embedder or the way of labelling have changed.",
    "That single topics, users or kinds of question each stay within the bound.",
    "That several tries at one question stay within the bound together.",
    "That a gate which was certified is right: the share delta counts all calibration sets, and where the "
    "target is out of reach the few that are certified are mostly wrong.",
    "The same share among answers, where ESCALATE or a person takes some of the accepted ones out.",
)


def risk_guarantee(
    certificate: Certificate,
    target: Fraction,
    delta: Fraction,
    *,
    method: RiskMethod,
    counts: tuple[int, int],
    history: History,
) -> Guarantee:
    """What a certificate guarantees.

    Parameters
    ----------
    certificate : Certificate
    target, delta : Fraction
        Selective risk, and the chance that it is exceeded all the same.
    method : {"sequence", "bonferroni"}
        Of the sequence it is stated what it assumes where scores tie.
    counts : tuple of int
        Insufficient and sufficient calibration rows.
    history : History

    Returns
    -------
    Guarantee
        Of kind "selective_risk"; claims nothing where nothing is certified.
    """
    passed = certificate.passed
    holds = passed is not None
    return Guarantee(
        kind="selective_risk" if holds else "none",
        holds=holds,
        event=_EVENT if holds else "none: every retrieval abstains",
        bound=float(target) if holds else None,
        conditioning=_conditioning(delta) if holds else "nothing is claimed",
        assumption=_assumption(sum(counts), method),
        alpha=None,
        alpha_reject=None,
        delta=float(delta) if holds else None,
        n0=counts[0],
        n1=counts[1],
        group=None,
        collected=history.collected,
        labeling_source=history.labeling_source,
        negatives=history.negatives,
        not_claimed=_not_claimed(history) if holds else ("Anything: no decision but ABSTAIN is made here.",),
        sentence=(
            _nothing(target, delta, sum(counts))
            if passed is None
            else _claim(passed, target, delta, method, sum(counts), history)
        ),
    )


def small_note(target: Fraction, delta: Fraction, n: int) -> str | None:
    """One sentence on a calibration set that could not certify the target without any error."""
    needed = least_rank(0, target, delta)
    if n >= needed:
        return None
    return (
        f"too few labels at target_risk {float(target):g}, delta {float(delta):g}: {n} rows where {needed} "
        "without an error among them are needed. Nothing is certified and every retrieval abstains."
    )


def errors_note(missed: Trial | None, target: Fraction, delta: Fraction, auroc: float | None) -> str | None:
    """One sentence on errors that leave nothing to certify."""
    if missed is None:
        return None
    allowed = tolerated(missed.accepted, target, missed.level)
    separation = "" if auroc is None else f" (AUROC of all rows {auroc:.3f})"
    return (
        f"too many errors at target_risk {float(target):g}, delta {float(delta):g}: of the {missed.accepted} "
        f"rows of highest score {missed.errors} are insufficient where {allowed} are allowed{separation}. "
        "Nothing is certified and every retrieval abstains."
    )


def _conditioning(delta: Fraction) -> str:
    return (
        "given that the retrieval was accepted, over the mix of questions of the calibration set, for all "
        f"but a share {float(delta):g} of calibration sets, those that certify nothing counting as kept"
    )


def _assumption(n: int, method: RiskMethod) -> str:
    drawn = f"new retrievals and the {n} of the calibration set are independent draws of one distribution"
    return f"{drawn}, in which scores do not tie, or {_MONOTONE}" if method == "sequence" else drawn


def _not_claimed(history: History) -> tuple[str, ...]:
    missing = missing_near_misses(history.negatives)
    return (*_NOT_CLAIMED, missing) if missing else _NOT_CLAIMED


def _nothing(target: Fraction, delta: Fraction, n: int) -> str:
    needed = least_rank(0, target, delta)
    return (
        f"Nothing is certified and every retrieval abstains: for a risk of {percent(target)} with "
        f"probability {percent(1 - delta)} at least {needed} labelled retrievals of high score would have to "
        f"be free of errors, or more of them nearly so, and the {n} that were labelled do not show that."
    )


def _claim(
    passed: Trial, target: Fraction, delta: Fraction, method: RiskMethod, n: int, history: History
) -> str:
    parts = [
        f"If new retrievals are like the {n} that were labelled (independent and of one distribution, with "
        f"the same mix of questions; labelled {origin(history)}), at most {percent(target)} of those "
        f"accepted have insufficient evidence, with probability {percent(1 - delta)} over the calibration "
        "set, sets that certify nothing counting as kept.",
        f"In the calibration set {passed.errors} of the {passed.accepted} accepted ones had.",
    ]
    if method == "sequence":
        parts.append(f"Where scores tie, this assumes that {_MONOTONE}.")
    if not dict(history.negatives).get("near_miss"):
        parts.append("Near misses are not known to be among the insufficient ones.")
    return " ".join(parts)
