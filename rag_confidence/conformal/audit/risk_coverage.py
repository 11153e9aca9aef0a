"""The risk-coverage curve: how wrong the accepted rows are when the best-scored share of them is accepted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rag_confidence._history import check_aligned, check_labels, check_scores
from rag_confidence._options import check_integer, check_number
from rag_confidence._types import FloatArray
from rag_confidence.conformal.distinct import Distinct, distinct

# Cuts that a record keeps: enough for a plot, and small enough for a message.
POINTS = 101


@dataclass(frozen=True, eq=False)
class RiskCoverage:
    """Selective risk at every cut between distinct scores, strictest first.

    Attributes
    ----------
    thresholds : ndarray, shape (c,)
        Distinct scores, descending: row i accepts every row that scores at least thresholds[i].
    coverage : ndarray, shape (c,)
        Share of all rows accepted there, rising to 1.
    risk : ndarray, shape (c,)
        Selective risk there: the share of the accepted rows that are not correct. Low is good.
    aurc : float
        Area under the curve in [0, 1]; low is good.
    optimum : float
        Area that the best order of the same rows would have.
    e_aurc : float
        aurc - optimum: what the order of the scores loses. 0 is best.
    """

    thresholds: FloatArray
    coverage: FloatArray
    risk: FloatArray
    aurc: float
    optimum: float
    e_aurc: float

    def acceptance_at(self, risk: float) -> float:
        """Largest share of rows accepted by a cut whose selective risk is at most `risk`; 0.0 if none is.

        Measured on the rows at hand, and the cut is chosen on them too: on new rows the risk at this cut is
        higher on average. `fit_risk_gate` gives a cut with a guarantee.
        """
        allowed = self._allowed(risk)
        return float(self.coverage[allowed[-1]]) if allowed.size else 0.0

    def threshold_at(self, risk: float) -> float | None:
        """The cut of `acceptance_at`: accept scores of at least this; None if no cut has so low a risk."""
        allowed = self._allowed(risk)
        return float(self.thresholds[allowed[-1]]) if allowed.size else None

    def to_dict(self, points: int = POINTS) -> dict[str, Any]:
        """Plain values, ready for JSON; at most `points` cuts, evenly spread, first and last included."""
        wanted = min(check_integer("points", points, 2), len(self.risk))
        kept = np.unique(np.linspace(0, len(self.risk) - 1, wanted).round().astype(np.intp))
        return {
            "thresholds": self.thresholds[kept].tolist(),
            "coverage": self.coverage[kept].tolist(),
            "risk": self.risk[kept].tolist(),
            "aurc": self.aurc,
            "optimum": self.optimum,
            "e_aurc": self.e_aurc,
        }

    def _allowed(self, risk: float) -> np.ndarray[Any, Any]:
        limit = check_number("risk", risk, 0.0, 1.0, "Pass a share of the accepted rows, 0.10 for 10 %.")
        return np.flatnonzero(self.risk <= limit)


def risk_coverage(scores: ArrayLike, correct: ArrayLike) -> RiskCoverage:
    """Risk-coverage curve of a score: accept the highest scores first, and count the wrong ones among them.

    Parameters
    ----------
    scores : array_like, shape (n,)
        Finite scores on any scale; higher means accepted earlier.
    correct : array_like, shape (n,)
        1 where accepting the row is right, 0 where it is wrong. For retrievals these are the labels.

    Returns
    -------
    RiskCoverage
        The curve with its area, the best possible area, and the excess.

    Raises
    ------
    ValueError, TypeError
        When scores or outcomes are not what is described above, or their lengths differ.

    Notes
    -----
    AURC is the mean over the n rows of the selective risk of a cut at that row's own score: (1/n) sum_i
    r(s_i), with r(t) the share of wrong rows among those that score at least t. Without ties this is the
    mean of the risks at 1, 2, ..., n accepted rows. Rows that are tied are accepted together, because no
    threshold can part them, so the order of rows never matters: if all scores are equal, AURC is the
    overall error rate. It is also the area of the returned steps: sum of risk x rise in coverage.

    The optimum has every correct row first and no ties: (1/n) sum_k max(0, k - c)/k for c correct rows. It
    is summed exactly; the logarithm in the paper is its limit. e_aurc is at least 0, up to rounding.
    O(n log n).

    References
    ----------
    El-Yaniv and Wiener (2010), On the foundations of noise-free selective classification, JMLR 11.
    Geifman, Uziel, El-Yaniv (2019), Bias-reduced uncertainty estimation for deep neural classifiers, ICLR:
    AURC and E-AURC.

    Examples
    --------
    >>> curve = risk_coverage([0.9, 0.8, 0.7, 0.6], [1, 0, 1, 0])
    >>> round(curve.aurc, 4), round(curve.e_aurc, 4)
    (0.3333, 0.125)
    >>> curve.acceptance_at(0.4)
    0.75
    """
    check_aligned(scores=scores, correct=correct)
    return curve_of(distinct(check_scores("scores", scores), check_labels("correct", correct)))


def curve_of(table: Distinct) -> RiskCoverage:
    """The curve of collapsed rows, where label 1 means correct."""
    counts = table.counts[::-1]
    accepted = np.cumsum(counts)
    risk = np.cumsum(counts - table.ones[::-1]) / accepted
    aurc = float((counts * risk).sum() / table.n)
    optimum = _best_area(table.n, int(table.ones.sum()))
    return RiskCoverage(
        thresholds=table.scores[::-1],
        coverage=accepted / table.n,
        risk=risk,
        aurc=aurc,
        optimum=optimum,
        e_aurc=aurc - optimum,
    )


def _best_area(n: int, correct: int) -> float:
    """Area when every correct row comes before every wrong one."""
    accepted = np.arange(correct + 1, n + 1)
    return float(((accepted - correct) / accepted).sum() / n)
