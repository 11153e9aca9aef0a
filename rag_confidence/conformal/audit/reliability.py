"""How far scores are from being probabilities: reliability bins, calibration errors, Brier decomposition.

Everything here reads the collapsed table, so tied rows share a bin and the order of rows cannot matter.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from rag_confidence._types import FloatArray, IntArray
from rag_confidence.conformal.binomial import clopper_pearson
from rag_confidence.conformal.distinct import Distinct


@dataclass(frozen=True)
class ReliabilityBin:
    """Scores of one interval beside what was observed there.

    Attributes
    ----------
    low, high : float
        The bin is [low, high), the last one [low, high].
    count : int
        Rows in it.
    mean_score : float or None
        What the scores say; None for an empty bin.
    observed_rate : float or None
        Share of sufficient rows; None for an empty bin. Equal to mean_score for scores that are
        probabilities, up to chance.
    observed_low, observed_high : float or None
        Exact 95 % binomial interval of the observed rate; None for an empty bin.
    """

    low: float
    high: float
    count: int
    mean_score: float | None
    observed_rate: float | None
    observed_low: float | None
    observed_high: float | None

    def to_dict(self) -> dict[str, float | int | None]:
        """Plain values, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class BrierScore:
    """The Brier score and its three parts: score = miscalibration - discrimination + uncertainty.

    Attributes
    ----------
    score : float
        Mean squared difference between score and label, in [0, 1]; low is good.
    miscalibration : float
        What a monotone recalibration would save; at least 0 up to rounding; low is good.
    discrimination : float
        What the recalibrated score saves against always saying the prevalence; high is good.
    uncertainty : float
        Brier score of always saying the prevalence p: p (1 - p).
    """

    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float


@dataclass(frozen=True, eq=False)
class BinSums:
    """Rows, sums of scores and sufficient rows of each of M bins, shape (M,)."""

    counts: IntArray
    score_sums: FloatArray
    ones: IntArray

    def filled(self) -> BinSums:
        """Without the empty bins."""
        kept = self.counts > 0
        return BinSums(self.counts[kept], self.score_sums[kept], self.ones[kept])


def bin_edges(num_bins: int) -> FloatArray:
    """Edges i/M of M equal bins of [0, 1], each the float nearest to the fraction.

    Multiples of 1/M, as linspace makes them, are not: 3 * 0.1 exceeds 0.3, and a score of 0.3 would fall
    below the bin that starts at 0.3.
    """
    return np.arange(num_bins + 1) / num_bins


def equal_width(table: Distinct, num_bins: int) -> BinSums:
    """Bins [i/M, (i+1)/M), the last one closed. Edges are rounded to the precision of the scores."""
    edges = bin_edges(num_bins).astype(table.scores.dtype)
    place = np.searchsorted(edges, table.scores, side="right") - 1
    return _sums(table, np.minimum(place, num_bins - 1), num_bins)


def equal_mass(table: Distinct, num_bins: int) -> BinSums:
    """Bins of about n/M rows each, in the order of scores.

    Rows of one score stay together: they go into the bin in which the middle of their ranks falls. Without
    ties the sizes differ by at most one; with ties bins may be larger, smaller or empty.
    """
    twice_middle = 2 * np.cumsum(table.counts) - table.counts
    return _sums(table, twice_middle * num_bins // (2 * table.n), num_bins)


def calibration_error(sums: BinSums) -> float:
    """ECE: mean over rows of |mean score - observed rate| of their bin, in [0, 1]; low is good.

    Biased upwards: with few rows in a bin chance alone makes a difference.

    References
    ----------
    Naeini, Cooper, Hauskrecht (2015), Obtaining well calibrated probabilities using Bayesian binning, AAAI.
    """
    return float(np.abs(sums.score_sums - sums.ones).sum() / sums.counts.sum())


def debiased_squared_error(sums: BinSums) -> float | None:
    """Squared calibration error with the part that chance adds taken off; None if no bin has two rows.

    Notes
    -----
    sum_b (n_b / n) [(s_b - y_b)^2 - y_b (1 - y_b)/(n_b - 1)], with s_b the mean score and y_b the observed
    rate of bin b. The subtracted term is the unbiased variance of y_b, so the expectation is the squared
    error of the binned scores where scores are constant within a bin, and slightly less elsewhere. It may
    be negative where the error is nearly 0. A bin of one row has no variance: such rows are left out, and n
    counts the others.

    References
    ----------
    Kumar, Liang, Ma (2019), Verified uncertainty calibration, NeurIPS, section 5.
    """
    kept = sums.counts > 1
    if not kept.any():
        return None
    counts = sums.counts[kept]
    rate = sums.ones[kept] / counts
    chance = rate * (1 - rate) / (counts - 1)
    apart = (sums.score_sums[kept] / counts - rate) ** 2
    return float((counts * (apart - chance)).sum() / counts.sum())


def brier_score(table: Distinct) -> BrierScore:
    """Brier score with its CORP decomposition.

    Notes
    -----
    The recalibrated score is the isotonic regression of labels on scores (tied scores pooled first). With S,
    S_c and S_r the Brier scores of the score, of the recalibrated score and of the constant prevalence:
    miscalibration S - S_c, discrimination S_r - S_c, uncertainty S_r. No bins, nothing to tune. On few rows
    isotonic regression overfits, and both the first two come out too high. O(c) after sorting.

    References
    ----------
    Dimitriadis, Gneiting, Jordan (2021), Stable reliability diagrams for probabilistic classifiers, PNAS 118.
    """
    # Imported here: it costs several times as much as numpy to load.
    from scipy.optimize import isotonic_regression

    rates = table.ones / table.counts
    recalibrated = isotonic_regression(rates, weights=table.counts.astype(np.float64)).x
    prevalence = np.full(len(rates), table.ones.sum() / table.n)
    score, best, constant = (_mean_square(table, p) for p in (table.values, recalibrated, prevalence))
    return BrierScore(score, score - best, constant - best, constant)


def width_bins(sums: BinSums) -> tuple[ReliabilityBin, ...]:
    """Records of the M equal-width bins, empty ones included."""
    edges = bin_edges(len(sums.counts)).tolist()
    columns = zip(sums.counts.tolist(), sums.score_sums.tolist(), sums.ones.tolist(), strict=True)
    return tuple(
        _record((low, high), *row) for low, high, row in zip(edges[:-1], edges[1:], columns, strict=True)
    )


def _record(ends: tuple[float, float], count: int, score_sum: float, ones: int) -> ReliabilityBin:
    if not count:
        return ReliabilityBin(*ends, 0, None, None, None, None)
    return ReliabilityBin(*ends, count, score_sum / count, ones / count, *clopper_pearson(ones, count))


def _sums(table: Distinct, place: IntArray, num_bins: int) -> BinSums:
    # Sums of integers below 2**53 are exact in double precision.
    count = np.bincount(place, weights=table.counts, minlength=num_bins)
    ones = np.bincount(place, weights=table.ones, minlength=num_bins)
    score_sums = np.bincount(place, weights=table.values * table.counts, minlength=num_bins)
    return BinSums(count.astype(np.int64), score_sums.astype(np.float64), ones.astype(np.int64))


def _mean_square(table: Distinct, forecast: FloatArray) -> float:
    """Brier score of one forecast per distinct score."""
    misses = table.counts - table.ones
    return float((table.ones * (1 - forecast) ** 2 + misses * forecast**2).sum() / table.n)
