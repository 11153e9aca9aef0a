"""What an audit has to say against its own numbers: one sentence each, with the numbers in it.

Every function returns no sentence where there is nothing to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from rag_confidence.conformal.audit.reliability import ReliabilityBin
from rag_confidence.conformal.binomial import binomial_upper, clopper_pearson
from rag_confidence.conformal.distinct import Distinct
from rag_confidence.conformal.gate.refusal import AUROC_FLOOR
from rag_confidence.conformal.proportion import Proportion

Sentences: TypeAlias = tuple[str, ...]

# With fewer rows of a class, none of them in error, the true rate may still be nearly 6 %, or more.
FEW_ROWS = 50
RARE = 0.05
NARROW = 0.2
CENTRAL = 0.98
JOINT_LEVEL = 0.05

NAMES = ("insufficient", "sufficient")


def about_labels(n0: int, n1: int) -> Sentences:
    """One class missing, few rows of a class, or a class that is rare."""
    if not (n0 and n1):
        held, missing = ("sufficient", "insufficient") if n1 else ("insufficient", "sufficient")
        alone = (
            f"All {n0 + n1} rows are {held}: without {missing} rows AUROC is undefined and nothing here says "
            "whether the score tells the two apart.",
        )
        return alone + _few(held, n0 + n1)
    return _few("insufficient", n0) + _few("sufficient", n1) + _rare(n0, n1)


def about_spread(table: Distinct) -> Sentences:
    """Scores that are all equal, or crowded into a narrow part of [0, 1]."""
    low, high = _central_range(table)
    if len(table.scores) == 1:
        return (f"All {table.n} scores equal {low:.4g}: they cannot rank or separate anything.",)
    if high - low >= NARROW:
        return ()
    return (
        f"The middle {100 * CENTRAL:g} % of the scores lie between {low:.3g} and {high:.3g}, a width of "
        f"{high - low:.2g} in [0, 1]: read them as ranks, not as probabilities.",
    )


def about_separation(auroc: float | None, low: float | None, high: float | None) -> Sentences:
    """An AUROC whose interval reaches below the floor, or lies below one half."""
    if auroc is None or low is None or high is None or low >= AUROC_FLOOR:
        return ()
    measured = f"AUROC is {auroc:.3f} with a 95 % interval from {low:.3f} to {high:.3f}"
    if high < 0.5:
        return (f"{measured}: higher scores go with insufficient rows. Check the sign of the score.",)
    return (
        f"{measured}, and its lower end is below {AUROC_FLOOR:.2f}: the score may hardly separate the "
        "labels, and a gate on it would abstain on most retrievals.",
    )


def about_bins(bins: Sequence[ReliabilityBin]) -> Sentences:
    """Bins whose mean score lies outside what the labels in it allow.

    Intervals are widened to hold for all bins together, so that calibrated scores give a sentence in at most
    5 % of audits.
    """
    filled = [one for one in bins if one.count]
    limits = [_joint_interval(one, len(filled)) for one in filled]
    pairs = list(zip(filled, limits, strict=True))
    over = [one for one, (_, high) in pairs if one.mean_score is not None and one.mean_score > high]
    under = [one for one, (low, _) in pairs if one.mean_score is not None and one.mean_score < low]
    return _miscalibrated(over, len(filled), "overconfident") + _miscalibrated(
        under, len(filled), "underconfident"
    )


def about_threshold(threshold: float, accepted: Proportion, risk: Proportion, target: float) -> Sentences:
    """A threshold that accepts nothing or everything, or whose selective risk exceeds the target."""
    if risk.rate is None:
        return (
            f"No score reaches the threshold {threshold:g}: nothing is accepted, and the risk is unknown.",
        )
    return _inert(threshold, accepted) + _risky(threshold, risk, target)


def about_acceptance(acceptance: float, target: float) -> Sentences:
    """A target that no cut meets."""
    if acceptance:
        return ()
    return (f"No cut keeps the selective risk at or below {target:g} on these rows.",)


def about_debiased(error: float | None, num_bins: int) -> Sentences:
    """A debiased calibration error that could not be estimated."""
    if error is not None:
        return ()
    return (
        f"None of the {num_bins} equal-mass bins holds two rows: the debiased calibration error is "
        "undefined. Use fewer bins.",
    )


def _few(name: str, count: int) -> Sentences:
    if count >= FEW_ROWS:
        return ()
    most = binomial_upper(0, count, JOINT_LEVEL)
    return (
        f"Only {count} {name} {'row' if count == 1 else 'rows'}: even an error that none of them shows may "
        f"have a true rate of {most:.2f} (95 % limit).",
    )


def _rare(n0: int, n1: int) -> Sentences:
    rarer = int(n1 < n0)
    share = min(n0, n1) / (n0 + n1)
    if share >= RARE:
        return ()
    return (
        f"Only {100 * share:.1f} % of the {n0 + n1} rows are {NAMES[rarer]}: Brier score and calibration "
        "errors mostly describe the other class.",
    )


def _inert(threshold: float, accepted: Proportion) -> Sentences:
    if accepted.count < accepted.total:
        return ()
    return (f"All {accepted.total} scores reach the threshold {threshold:g}: it rejects nothing.",)


def _risky(threshold: float, risk: Proportion, target: float) -> Sentences:
    if risk.rate is None or risk.rate <= target:
        return ()
    return (
        f"At the threshold {threshold:g}, {risk.count} of the {risk.total} accepted rows are insufficient: "
        f"selective risk {risk.rate:.3f} (95 % interval {risk.low:.3f} to {risk.high:.3f}), above the target "
        f"{target:g}.",
    )


def _central_range(table: Distinct) -> tuple[float, float]:
    """Scores between which the middle share of the rows lies."""
    tail = (1 - CENTRAL) / 2
    below = np.cumsum(table.counts)
    low, high = np.searchsorted(below, [tail * table.n, (1 - tail) * table.n])
    last = len(table.scores) - 1
    return float(table.scores[min(low, last)]), float(table.scores[min(high, last)])


def _joint_interval(one: ReliabilityBin, bins: int) -> tuple[float, float]:
    ones = round((one.observed_rate or 0.0) * one.count)
    return clopper_pearson(ones, one.count, confidence=1 - JOINT_LEVEL / bins)


def _miscalibrated(odd: Sequence[ReliabilityBin], bins: int, word: str) -> Sentences:
    if not odd:
        return ()
    worst = max(odd, key=lambda one: abs((one.mean_score or 0.0) - (one.observed_rate or 0.0)))
    return (
        f"{len(odd)} of {bins} filled bins {'is' if len(odd) == 1 else 'are'} {word} beyond chance, most of "
        f"all scores from {worst.low:.3g} to {worst.high:.3g}: mean score {worst.mean_score:.3f}, but "
        f"{worst.observed_rate:.3f} of {worst.count} rows are sufficient.",
    )
