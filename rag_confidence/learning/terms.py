"""A logistic line on named signals: what each adds to the log-odds, and where it leaves what was seen."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rag_confidence._predictions import ModelPrediction
from rag_confidence._types import FloatArray, Mask
from rag_confidence.learning.logistic import fit_logistic
from rag_confidence.learning.prior import Prior
from rag_confidence.learning.scaling import standardised

INTERCEPT = "intercept"
DECIMALS = 12
# A new row is often a little outside the range of a few dozen, and hardly ever by half of its width.
_MARGIN = 0.5


@dataclass(frozen=True)
class Term:
    """One signal of a model.

    Attributes
    ----------
    name : str
        Key of the record.
    coefficient : float
        Log-odds a unit of the signal; positive where more of it speaks for sufficiency.
    centre, scale : float
        Mean and standard deviation over the training rows. A signal at its centre adds nothing.
    low, high : float
        Range over the training rows.
    n : int
        Training rows on which it was assessed.
    """

    name: str
    coefficient: float
    centre: float
    scale: float
    low: float
    high: float
    n: int

    @property
    def standardised(self) -> float:
        """Log-odds a standard deviation of the signal: what coefficients are compared by."""
        return self.coefficient * self.scale

    @property
    def usual(self) -> tuple[float, float]:
        """The training range, widened on either side by half of its width."""
        margin = _MARGIN * (self.high - self.low)
        return self.low - margin, self.high + margin


def fit_terms(
    names: Sequence[str], values: FloatArray, labels: Mask, prior: Prior
) -> tuple[float, tuple[Term, ...]]:
    """Intercept and terms of the signals that vary over the rows.

    Parameters
    ----------
    names : sequence of str, length p
    values : ndarray, shape (n, p)
        nan where not assessed, which counts as an average value.
    labels : ndarray of bool, shape (n,)
    prior : Prior
        Of all `names`. Signals that do not vary are left out of it.

    Returns
    -------
    float, tuple of Term
        The log-odds of a row whose signals are all at their centres, and the terms in the order of `names`.
    """
    scaled = standardised(values)
    at = np.flatnonzero(scaled.usable)
    kept = [names[place] for place in at.tolist()]
    fit = fit_logistic(scaled.design[:, at], labels.astype(np.float64), prior.on(kept))
    columns = (
        fit.coefficients / scaled.scale[at],
        scaled.centre[at],
        scaled.scale[at],
        scaled.low[at],
        scaled.high[at],
        scaled.counts[at],
    )
    numbers = zip(*(column.tolist() for column in columns), strict=True)
    return fit.intercept, tuple(Term(name, *row) for name, row in zip(kept, numbers, strict=True))


def contributions(intercept: float, terms: Sequence[Term], values: FloatArray) -> FloatArray:
    """What is added to the log-odds of rows (n, p), shape (n, 1 + p), the intercept first; unknown adds 0."""
    parts = np.zeros((len(values), 1 + len(terms)))
    parts[:, 0] = intercept
    for place, term in enumerate(terms):
        part = term.coefficient * (values[:, place] - term.centre)
        parts[:, 1 + place] = np.where(np.isnan(part), 0.0, part)
    return parts


def probabilities(parts: FloatArray) -> FloatArray:
    """P(sufficient) (n,) of rows of contributions."""
    logit = np.zeros(len(parts))
    for part in parts.T:
        logit += part
    # The exponential of NumPy may differ from that of Python in its last bit.
    return np.array([_probability(value) for value in logit.tolist()], dtype=np.float64)


def predict_terms(
    intercept: float, terms: Sequence[Term], signals: Mapping[str, float | None]
) -> ModelPrediction:
    """The prediction for one retrieval in plain Python: the same operations in the same order as columns."""
    parts = {INTERCEPT: intercept}
    beyond, known = [], False
    for term in terms:
        value = signals.get(term.name)
        # nan, which marks what was not assessed, is the only number that differs from itself.
        if value is None or value != value:
            parts[term.name] = 0.0
            continue
        known = True
        parts[term.name] = term.coefficient * (value - term.centre)
        low, high = term.usual
        if not low <= value <= high:
            beyond.append(term.name)
    probability = _probability(_total(parts.values())) if known else math.nan
    return ModelPrediction(probability, parts, tuple(beyond))


def beyond_usual(terms: Sequence[Term], values: FloatArray) -> Mask:
    """Which signals (n, p) lie outside the usual range; unknown ones do not."""
    ends = np.array([term.usual for term in terms]).reshape(len(terms), 2)
    return np.asarray((values < ends[:, 0]) | (values > ends[:, 1]))


def _total(parts: Iterable[float]) -> float:
    """The sum from left to right, the same for a row of an array and for one retrieval."""
    total = 0.0
    for part in parts:
        total += part
    return total


def _probability(logit: float) -> float:
    if logit >= 0.0:
        return round(1.0 / (1.0 + math.exp(-logit)), DECIMALS)
    odds = math.exp(logit)
    return round(odds / (1.0 + odds), DECIMALS)
