"""An audit of scores against labels: their worth as probabilities, as a ranking, and at a threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from rag_confidence._history import check_fractions, check_history
from rag_confidence._options import check_integer, check_number
from rag_confidence._types import FloatArray, Mask
from rag_confidence.conformal.audit import notes as say
from rag_confidence.conformal.audit.reliability import (
    ReliabilityBin,
    brier_score,
    calibration_error,
    debiased_squared_error,
    equal_mass,
    equal_width,
    width_bins,
)
from rag_confidence.conformal.audit.risk_coverage import RiskCoverage, curve_of
from rag_confidence.conformal.distinct import Distinct, distinct
from rag_confidence.conformal.proportion import Proportion, proportion_of
from rag_confidence.conformal.separation import auroc_interval, auroc_of_sorted

Separation: TypeAlias = tuple[float | None, float | None, float | None]

MOST_BINS = 1000


@dataclass(frozen=True)
class Confusion:
    """What accepting every score at or above a threshold does, with exact 95 % intervals.

    Attributes
    ----------
    threshold : float
        Scores of at least this are accepted.
    true_accepts, false_accepts : int
        Accepted rows that are sufficient, and that are not.
    false_rejects, true_rejects : int
        Rows below the threshold that are sufficient, and that are not.
    acceptance : Proportion
        Accepted rows among all.
    false_sufficiency : Proportion
        Accepted rows among the insufficient ones: P(accept | label 0). Low is good.
    selective_risk : Proportion
        Insufficient rows among the accepted ones: P(label 0 | accept). Low is good, and not the same.
    sufficient_accepted : Proportion
        Accepted rows among the sufficient ones. High is good.
    """

    threshold: float
    true_accepts: int
    false_accepts: int
    false_rejects: int
    true_rejects: int
    acceptance: Proportion
    false_sufficiency: Proportion
    selective_risk: Proportion
    sufficient_accepted: Proportion

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            name: entry.to_dict() if isinstance(entry, Proportion) else entry
            for name, entry in vars(self).items()
        }


@dataclass(frozen=True, eq=False, repr=False)
class ScoreAudit:
    """What `audit_scores` found.

    Attributes
    ----------
    n0, n1 : int
        Insufficient and sufficient rows.
    brier : float
        Mean squared difference between score and label, in [0, 1]; low is good. It equals miscalibration -
        discrimination + uncertainty.
    miscalibration, discrimination, uncertainty : float
        What a monotone recalibration would save (low is good); what the recalibrated score saves against
        always saying the prevalence (high is good); the Brier score of the prevalence.
    ece : float
        Expected calibration error over equal-width bins, in [0, 1]; low is good, biased upwards.
    ece_equal_mass : float
        The same over bins of about equally many rows.
    ece_debiased : float or None
        Root mean squared calibration error over the equal-mass bins, with the part that chance adds taken
        off first; 0 where nothing is left, None where no bin holds two rows.
    auroc, auroc_low, auroc_high : float or None
        AUROC and its 95 % interval; None where one label is missing.
    bins : tuple of ReliabilityBin
        The equal-width bins, empty ones included.
    confusion : Confusion
        Counts and rates at the threshold.
    risk_coverage : RiskCoverage
        Selective risk at every cut, with AURC and E-AURC.
    target_risk : float
        The risk that was asked for.
    acceptance_at_target : float
        Largest share of rows accepted by a cut whose selective risk on these rows is at most target_risk.
    warnings : tuple of str
        What speaks against the numbers, one sentence each; empty if nothing does.
    """

    n0: int
    n1: int
    brier: float
    miscalibration: float
    discrimination: float
    uncertainty: float
    ece: float
    ece_equal_mass: float
    ece_debiased: float | None
    auroc: float | None
    auroc_low: float | None
    auroc_high: float | None
    bins: tuple[ReliabilityBin, ...]
    confusion: Confusion
    risk_coverage: RiskCoverage
    target_risk: float
    acceptance_at_target: float
    warnings: tuple[str, ...]

    def __repr__(self) -> str:
        auroc = "none" if self.auroc is None else f"{self.auroc:.3f}"
        return (
            f"ScoreAudit({self.n} rows, prevalence {self.prevalence:.3f}, AUROC {auroc}, "
            f"Brier {self.brier:.4f}, ECE {self.ece:.4f}, {len(self.warnings)} warnings)"
        )

    @property
    def n(self) -> int:
        """Rows in all."""
        return self.n0 + self.n1

    @property
    def prevalence(self) -> float:
        """Share of sufficient rows."""
        return self.n1 / self.n

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; the curve is thinned to about a hundred cuts."""
        plain: dict[str, Any] = {"n": self.n, "prevalence": self.prevalence, **vars(self)}
        plain["bins"] = [one.to_dict() for one in self.bins]
        plain["confusion"] = self.confusion.to_dict()
        plain["risk_coverage"] = self.risk_coverage.to_dict()
        plain["warnings"] = [*self.warnings]
        return plain


def audit_scores(
    scores: ArrayLike,
    labels: ArrayLike,
    threshold: float = 0.5,
    num_bins: int = 10,
    *,
    target_risk: float = 0.10,
) -> ScoreAudit:
    """Audit scores against labels: as probabilities, as a ranking, and at a threshold.

    Parameters
    ----------
    scores : array_like, shape (n,)
        Scores in [0, 1] that claim to say how likely the evidence is sufficient; n >= 1.
    labels : array_like, shape (n,)
        1 (sufficient) or 0 (insufficient).
    threshold : float, default 0.5
        Scores of at least this are accepted, in [0, 1].
    num_bins : int, default 10
        Number of bins M of the calibration errors, 1 to 1000.
    target_risk : float, default 0.10
        Selective risk for the acceptance at a risk, in [0, 1].

    Returns
    -------
    ScoreAudit
        Numbers and warnings. What is undefined is None, never a neutral value: with one label only there is
        no AUROC, and the rates of the missing label have none either.

    Raises
    ------
    ValueError, TypeError
        When an argument is not what is described above. Percentages are refused with an error that says
        so; for scores on another scale use `auroc` and `risk_coverage`.

    Notes
    -----
    ECE = sum_b (n_b/n) |mean score - observed rate| over the bins [i/M, (i+1)/M), the last one closed, with
    edges that are the floats nearest to i/M. Equal-mass bins never part tied scores. The debiased error is
    the estimator of Kumar, Liang and Ma on the equal-mass bins: negative estimates of the squared error
    count as 0, then the root is taken, so it is an L2 error and not comparable to the ECE digit by digit.
    Brier parts come from isotonic regression (CORP), AUROC counts ties as one half, AURC is the mean over
    rows of the selective risk of a cut at the row's own score. Intervals are Clopper-Pearson for rates and
    Newcombe's for AUROC; all of them take the rows as independent, and several passages of one query are
    not. The result does not depend on the order of rows. O(n log n).

    Everything describes these rows: a threshold or a cut chosen on them looks better here than it will on
    new ones. For a cut with a guarantee see `fit_conformal_gate` and `fit_risk_gate`.

    References
    ----------
    Dimitriadis, Gneiting, Jordan (2021), PNAS 118 (CORP); Kumar, Liang, Ma (2019), NeurIPS, section 5;
    Newcombe (2006), Statistics in Medicine 25, method 5; Geifman, Uziel, El-Yaniv (2019), ICLR (AURC);
    Clopper and Pearson (1934), Biometrika 26.

    Examples
    --------
    >>> audit = audit_scores([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
    >>> audit.auroc, round(audit.brier, 4), round(audit.discrimination, 4)
    (0.75, 0.1581, 0.125)
    >>> audit.confusion.false_sufficiency.rate, audit.acceptance_at_target
    (0.0, 0.25)
    """
    values, sufficient = check_history(scores, labels)
    check_fractions("scores", values, "Pass other scales to `auroc` and `risk_coverage`.")
    cut = check_number("threshold", threshold, 0.0, 1.0, "Scores of at least this are accepted.")
    bins = _check_bins(num_bins)
    target = check_number("target_risk", target_risk, 0.0, 1.0, "Use 0.10 for one in ten.")
    table = distinct(values, sufficient)
    separation = _separation(values, sufficient)
    return _assembled(table, separation, bins=bins, confusion=_confusion(table, cut), target=target)


def _check_bins(num_bins: int) -> int:
    bins = check_integer("num_bins", num_bins, 1)
    if bins > MOST_BINS:
        raise ValueError(f"`num_bins` must be at most {MOST_BINS}; got {bins}. Ten to twenty are usual.")
    return bins


def _separation(scores: FloatArray, sufficient: Mask) -> Separation:
    """AUROC with its interval, or three times None where one label is missing."""
    zeros, ones = np.sort(scores[~sufficient]), np.sort(scores[sufficient])
    if not (zeros.size and ones.size):
        return None, None, None
    auroc = auroc_of_sorted(zeros, ones)
    return auroc, *auroc_interval(auroc, zeros.size, ones.size)


def _confusion(table: Distinct, threshold: float) -> Confusion:
    """Counts and rates of accepting what scores at least `threshold`."""
    # A plain float is compared in the precision of the scores, so 0.7 means their 0.7.
    accepted = table.scores >= threshold
    n1 = int(table.ones.sum())
    count, good = int(table.counts[accepted].sum()), int(table.ones[accepted].sum())
    wrong = count - good
    return Confusion(
        threshold=threshold,
        true_accepts=good,
        false_accepts=wrong,
        false_rejects=n1 - good,
        true_rejects=table.n - n1 - wrong,
        acceptance=proportion_of(count, table.n),
        false_sufficiency=proportion_of(wrong, table.n - n1),
        selective_risk=proportion_of(wrong, count),
        sufficient_accepted=proportion_of(good, n1),
    )


def _assembled(
    table: Distinct, separation: Separation, *, bins: int, confusion: Confusion, target: float
) -> ScoreAudit:
    """All parts of the audit, then what they give to warn about."""
    width, mass = equal_width(table, bins), equal_mass(table, bins)
    squared = debiased_squared_error(mass)
    brier, curve, n1 = brier_score(table), curve_of(table), int(table.ones.sum())
    audit = ScoreAudit(
        n0=table.n - n1,
        n1=n1,
        brier=brier.score,
        miscalibration=brier.miscalibration,
        discrimination=brier.discrimination,
        uncertainty=brier.uncertainty,
        ece=calibration_error(width),
        ece_equal_mass=calibration_error(mass),
        ece_debiased=None if squared is None else math.sqrt(max(squared, 0.0)),
        auroc=separation[0],
        auroc_low=separation[1],
        auroc_high=separation[2],
        bins=width_bins(width),
        confusion=confusion,
        risk_coverage=curve,
        target_risk=target,
        acceptance_at_target=curve.acceptance_at(target),
        warnings=(),
    )
    return replace(audit, warnings=_warnings(audit, table))


def _warnings(audit: ScoreAudit, table: Distinct) -> tuple[str, ...]:
    at, target = audit.confusion, audit.target_risk
    return (
        *say.about_labels(audit.n0, audit.n1),
        *say.about_spread(table),
        *say.about_separation(audit.auroc, audit.auroc_low, audit.auroc_high),
        *say.about_bins(audit.bins),
        *say.about_debiased(audit.ece_debiased, len(audit.bins)),
        *say.about_threshold(at.threshold, at.acceptance, at.selective_risk, target),
        *say.about_acceptance(audit.acceptance_at_target, target),
    )
