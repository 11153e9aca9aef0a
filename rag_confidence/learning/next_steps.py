"""Findings on what to do next: labels to collect, fits to make, options to pass."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rag_confidence._types import FloatArray, Mask
from rag_confidence.conformal.gate.planning import CalibrationPlan, ClassPlan, plan
from rag_confidence.conformal.quantile import Level
from rag_confidence.learning.evidence import LEAST_PER_CLASS
from rag_confidence.learning.findings import Finding, finding
from rag_confidence.learning.log import Log
from rag_confidence.learning.log_report import LEXICAL
from rag_confidence.learning.wording import CLASSES, listed, of_all, percent, rows
from rag_confidence.product.policy import DEFAULT_POLICY, MetricPolicy

# The embedder that the default grounding gate was made for.
HOME_EMBEDDER = "qwen3-embedding"
# An insufficient retrieval looks on topic where its best cosine exceeds that of one sufficient in ten.
ON_TOPIC = 0.10
# With less than this share of on-topic insufficient rows the labels are mostly topic gaps.
FEW_NEAR_MISSES = 0.20
DEEP = 20


def about_labels(labels: Mask | None, alpha: Level) -> Iterator[Finding]:
    """How many labels of which class to collect for a gate at `alpha`."""
    need = plan(alpha)
    if labels is None:
        yield _no_labels(need)
        return
    counts = int(np.count_nonzero(~labels)), int(np.count_nonzero(labels))
    if not all(counts):
        yield _one_class(counts, need)
        return
    for one in (need.insufficient, need.sufficient):
        yield from _shortage(one, counts[one.label], need)


def about_negatives(cosines: FloatArray | None, labels: Mask | None) -> Iterator[Finding]:
    """Which kind of insufficient row the labels lack, judged by the best cosine alone."""
    if cosines is None or labels is None:
        return
    zeros, ones = cosines[~labels], cosines[labels]
    zeros, ones = zeros[~np.isnan(zeros)], ones[~np.isnan(ones)]
    if min(len(zeros), len(ones)) < LEAST_PER_CLASS:
        return
    near = int(np.count_nonzero(zeros >= np.quantile(ones, ON_TOPIC)))
    strange = int(np.count_nonzero(zeros < ones.min()))
    numbers = {"n0": len(zeros), "n1": len(ones), "on_topic": near, "strange": strange}
    if near < FEW_NEAR_MISSES * len(zeros):
        yield finding(
            "near_misses_missing",
            "problem",
            f"Only {of_all(near, len(zeros))} insufficient retrievals have a best cosine like the sufficient "
            "ones: the labels hold topic gaps, hardly a near miss (on topic, answer absent). Every number "
            "here is flattered by that, and a gate fitted on it accepts most near misses.",
            "Label insufficient retrievals with a high best cosine: questions on the subject that the corpus "
            "does not answer, or whose passages were taken out.",
            **numbers,
        )
    elif not strange:
        yield finding(
            "topic_gaps_missing",
            "note",
            f"None of {rows(len(zeros), 'insufficient retrieval')} has a best cosine below all {len(ones)} "
            "sufficient ones: the labels hold no clear topic gap.",
            "If users also ask beside the subject, label some such questions, and report them apart.",
            **numbers,
        )


def about_fits(log: Log, policy: MetricPolicy | None) -> Iterator[Finding]:
    """What was not fitted to this corpus and embedder: the grounding gate, a profile."""
    profiled = np.array([word is not None for word in log.words["profile_fingerprint"]])
    yield from _grounding(log, policy, ~profiled)
    without = int(np.count_nonzero(~profiled))
    if without:
        yield finding(
            "no_profile",
            "advice",
            f"{of_all(without, log.n)} retrievals were scored without a corpus profile: nothing says what "
            "cosines look like in this corpus when a question is about nothing in it.",
            "Fit CorpusProfile on a few hundred corpus vectors (no labels needed) and pass profile=.",
            count=without,
            n=log.n,
        )


def about_candidates(log: Log) -> Iterator[Finding]:
    """Whether more of the retrieved list than was served could be looked at, and was so throughout."""
    gap = log.signals.get("head_tail_gap")
    if gap is None:
        return
    mixed = _mixed_lengths(log, ~np.isnan(gap))
    if mixed.any():
        yield _mixed_candidates(int(np.count_nonzero(~np.isnan(gap[mixed]))), int(np.count_nonzero(mixed)))
        return
    short = int(np.count_nonzero(np.isnan(gap) & log.scored))
    n = int(np.count_nonzero(log.scored))
    if short:
        yield finding(
            "short_candidate_lists",
            "advice",
            f"On {of_all(short, n)} scored retrievals fewer than {DEEP} cosines were seen, so head_tail_gap "
            "is null and the spread of cosines covers the served passages alone.",
            f"Pass candidates= with the cosines of at least {DEEP} retrieved passages; serving fewer is "
            "fine.",
            count=short,
            n=n,
        )


def _mixed_lengths(log: Log, deep: Mask) -> Mask:
    """Scored retrievals whose served list is as long as others', which were deep where these were not.

    A served list of `DEEP` passages needs no candidates to be deep.
    """
    length = log.counts["k_returned"]
    known = log.scored & (length < DEEP)
    both = np.intersect1d(length[known & deep], length[known & ~deep])
    return np.asarray(known & np.isin(length, both))


def _mixed_candidates(count: int, n: int) -> Finding:
    return finding(
        "mixed_candidates",
        "warning",
        f"Of {rows(n, 'scored retrieval')} with equally long served lists, {count} had at least {DEEP} "
        f"cosines to look at and {n - count} had not: candidates= was passed for a part of the log, or was "
        "short. With a corpus profile the KPI changes with candidates, and a ConfidenceModel always does: "
        "these numbers are not on one scale.",
        "Pass candidates= of the same depth always, or never, and do not calibrate on a mixture.",
        count=count,
        n=n,
    )


def _no_labels(need: CalibrationPlan) -> Finding:
    zero, one = need.insufficient, need.sufficient
    return finding(
        "no_labels",
        "advice",
        "Without labels nothing here says which signals carry evidence, whether the classes separate, or how "
        "often a verdict is wrong.",
        f"Label insufficient and sufficient retrievals: at level {zero.alpha:g} a gate needs {zero.n_finite} "
        f"and {one.n_finite} to decide at all, {zero.n_close} and {one.n_close} for a stable rate "
        f"({zero.n_pac} and {one.n_pac} for guarantee='pac').",
        alpha=zero.alpha,
        n_finite=[zero.n_finite, one.n_finite],
        n_pac=[zero.n_pac, one.n_pac],
        n_close=[zero.n_close, one.n_close],
    )


def _one_class(counts: tuple[int, int], need: CalibrationPlan) -> Finding:
    missing = 1 if counts[0] else 0
    wanted = (need.insufficient, need.sufficient)[missing]
    return finding(
        "one_class",
        "problem",
        f"All {sum(counts)} labels are {CLASSES[1 - missing]}: nothing can be said about separation.",
        f"Label {wanted.n_close} {CLASSES[missing]} retrievals ({wanted.n_finite} are the least with which a "
        "gate decides).",
        n0=counts[0],
        n1=counts[1],
        missing=missing,
        n_finite=wanted.n_finite,
        n_close=wanted.n_close,
    )


def _shortage(one: ClassPlan, have: int, need: CalibrationPlan) -> Iterator[Finding]:
    if have >= one.n_close:
        return
    name, numbers = CLASSES[one.label], {"label": one.label, "n": have, "n_finite": one.n_finite}
    numbers |= {"n_close": one.n_close, "missing": one.n_close - have}
    more = f"Collect {one.n_close - have} more {name} labels"
    stable = (
        f"{one.n_close} in all keep the rate of one calibration set below {one.alpha + need.tolerance:g} in "
    )
    stable += f"{percent(round(1000 * (1 - need.delta)), 1000)} of cases"
    if have < one.n_finite:
        yield finding(
            "too_few_labels",
            "problem",
            f"{rows(have, f'{name} label')}: at level {one.alpha:g} a gate needs {one.n_finite} before it "
            "can ever exclude this class.",
            f"{more}: {one.n_finite - have} more for any decision; {stable}.",
            **numbers,
        )
    else:
        yield finding(
            "more_labels",
            "advice",
            f"{rows(have, f'{name} label')}: a gate at level {one.alpha:g} decides, but the error rate of "
            "one calibration set of this size may lie well above its level.",
            f"{more}: {stable}.",
            **numbers,
        )


def _grounding(log: Log, policy: MetricPolicy | None, without_profile: Mask) -> Iterator[Finding]:
    default = log.words["policy_fingerprint"] == DEFAULT_POLICY.fingerprint
    if policy is not None and _default_gate(policy):
        default = default | (log.words["policy_fingerprint"] == policy.fingerprint)
    lexical = log.words["evidence.embedding_backend"] == LEXICAL
    home = np.array([HOME_EMBEDDER in str(name).lower() for name in log.words["embedder"]])
    at = default & ~lexical & ~home & without_profile
    count = int(np.count_nonzero(at))
    if count:
        names = [word or "no name" for word, _ in log.tally("embedder", at)]
        yield finding(
            "grounding_not_fitted",
            "warning",
            f"{of_all(count, log.n)} retrievals use the default grounding gate, which was made for another "
            f"embedder ({HOME_EMBEDDER}); theirs: {listed(names)}. Grounding, KPI and verdicts are on a "
            "scale that need not fit.",
            "MetricPolicy.fit_grounding(on_topic, off_topic) needs ten questions of each kind and no labels.",
            count=count,
            n=log.n,
            embedders=names,
        )


def _default_gate(policy: MetricPolicy) -> bool:
    ours = DEFAULT_POLICY.grounding_center, DEFAULT_POLICY.grounding_scale
    return (policy.grounding_center, policy.grounding_scale) == ours and policy.definitions == "default"
