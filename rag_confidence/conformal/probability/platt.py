"""Platt's probability map: a logistic curve of the score, fitted to targets that shrink with few labels."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from rag_confidence import _artefact
from rag_confidence._types import FloatArray, Provenance
from rag_confidence.conformal.probability.pooled import (
    Made,
    Pooled,
    RowIds,
    Scores,
    check_points,
    plain,
    pool,
    pool_again,
    position,
)
from rag_confidence.conformal.rows import Rows

KIND = "platt_map"
_NUMBERS = ("low", "high", "logit_low", "logit_high")

# Widths beyond which a logit is as good as infinite; keeps 0 * inf from becoming nan.
_FAR = 1e150
_MOST_STEPS = 100
# Two fits of the same rows agree to this.
_REFITTED = 1e-6
_ARMIJO = 1e-4
# What rounding can add to a loss, relative to it.
_ROUNDING = 1e-13
# Squared Newton step, in standard errors a row, below which the next step is only rounding.
_CONVERGED = 1e-24
# Keeps 0 out of a denominator where all weights but one have underflowed.
_RIDGE = 1e-100


@dataclass(frozen=True, eq=False)
class PlattMap:
    """A logistic map from scores to probabilities of a sufficient retrieval, made by `fit_platt`.

    It stands beside the gate and never before it on the same rows: its slope may turn negative, and hand
    `rows` to the fit of a gate, which refuses rows that trained the map. A probability is only as good
    as its rows.

    Attributes
    ----------
    low, high : float
        Smallest and largest fitted score.
    logit_low, logit_high : float
        Logit of the probability at these two; they carry the line at full precision whatever the scale
        of the scores.
    n0, n1 : int
        Insufficient and sufficient rows it was fitted on.
    rows : Rows
        Those rows.
    """

    low: float
    high: float
    logit_low: float
    logit_high: float
    n0: int
    n1: int
    rows: Rows

    @property
    def slope(self) -> float:
        """Change of the logit a unit of score; 0 when all fitted scores are equal."""
        half = self.high / 2 - self.low / 2
        if half > 1.0:
            return (self.logit_high - self.logit_low) / 2 / half
        width = self.high - self.low
        return (self.logit_high - self.logit_low) / width if width > 0.0 else 0.0

    @property
    def intercept(self) -> float:
        """Logit at score 0."""
        return float(self._logit(np.zeros(())))

    @property
    def provenance(self) -> Provenance | None:
        """How the scores were made that it was fitted on."""
        return self.rows.provenance

    @overload
    def __call__(self, score: float) -> float: ...
    @overload
    def __call__(self, score: Scores) -> FloatArray: ...
    def __call__(self, score: Any) -> Any:
        """Probability of a sufficient retrieval: a float for a number, else an array of the same shape.

        Raises TypeError for what is not a number and ValueError for nan and infinities.
        """
        return plain(np.exp(-_softplus(-self._logit(check_points(score)))))

    def _logit(self, points: FloatArray) -> FloatArray:
        share = np.clip(position(points, self.low, self.high), -_FAR, _FAR)
        return self.logit_low + share * (self.logit_high - self.logit_low)

    def to_dict(self) -> dict[str, Any]:
        """The map as plain values for JSON, with versions and a digest."""
        return _artefact.wrap(KIND, self._payload())

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> PlattMap:
        """The map that `to_dict` wrote, to the last bit; ArtefactError for anything else."""
        return cls._restored("document", _artefact.unwrap("document", KIND, document))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the map to a JSON file."""
        _artefact.write(path, KIND, self._payload())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> PlattMap:
        """The map that `save` wrote, to the last bit; ArtefactError for anything else."""
        return cls._restored("path", _artefact.read(path, KIND))

    def _payload(self) -> dict[str, Any]:
        numbers = {name: getattr(self, name) for name in _NUMBERS}
        return {**numbers, "n0": self.n0, "n1": self.n1, "rows": self.rows.to_dict()}

    @classmethod
    def _restored(cls, name: str, payload: Mapping[str, Any]) -> PlattMap:
        return _artefact.restored(name, KIND, payload=payload, build=_built, written=cls._payload)


def _built(payload: Mapping[str, Any]) -> PlattMap:
    """The map as written, if a new fit agrees: its last bits may differ on another platform."""
    fitted = _fitted(pool_again(payload))
    numbers = {name: float(payload[name]) for name in _NUMBERS}
    if (numbers["low"], numbers["high"]) != (fitted.low, fitted.high):
        raise ValueError("a range that is not that of the rows")
    for name in ("logit_low", "logit_high"):
        if not math.isclose(numbers[name], getattr(fitted, name), rel_tol=_REFITTED, abs_tol=_REFITTED):
            raise ValueError("a curve that does not follow from the rows")
    return replace(fitted, logit_low=numbers["logit_low"], logit_high=numbers["logit_high"])


def fit_platt(
    scores: ArrayLike, labels: ArrayLike, *, row_ids: RowIds | None = None, provenance: Made = None
) -> PlattMap:
    """Logistic regression of smoothed labels on scores.

    A smooth curve with two parameters that few rows can support. It stands beside the gate as
    `score(..., calibrator=map)` and never before it on the same rows; a probability is only as good as
    the rows it was fitted on.

    Parameters
    ----------
    scores : array_like, shape (n,)
        Finite scores of any scale, higher is better; for `score(calibrator=...)` the unrounded `kpi`.
    labels : array_like, shape (n,)
        1 for a sufficient retrieval, 0 for an insufficient one; both must occur.
    row_ids : sequence, optional
        Identity of each row, for the check that no row is used twice.
    provenance : Provenance or mapping, optional
        How the scores were made (`MetricsBatch.provenance`); `score(calibrator=...)` refuses any other.

    Returns
    -------
    PlattMap
        Callable on a score or an array of scores. When all scores are equal it is constant, at the mean
        of the targets.

    Raises
    ------
    TypeError, ValueError
        For scores that are no finite numbers, labels outside {0, 1}, columns that do not belong
        together, and a class without rows.

    Notes
    -----
    Minimises the cross-entropy of 1 / (1 + exp(-slope * score - intercept)) against the targets
    (n1 + 1) / (n1 + 2) for label 1 and 1 / (n0 + 2) for label 0, which keep the minimum finite when the
    classes are separable. Newton steps with backtracking on scores that are first mapped to [0, 1]: an
    affine change of the scores changes no probability. Cost O(n log n). Nothing is promised where the
    logit is not linear in the score; the slope is negative when sufficient rows score lower.

    References
    ----------
    Platt (1999), Probabilistic outputs for support vector machines; Lin, Lin and Weng (2007), A note on
    Platt's probabilistic outputs for support vector machines, equation 2 and section 3.

    Examples
    --------
    >>> chance = fit_platt([0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1])
    >>> round(chance(0.0), 6), round(chance(1.0), 6), round(chance.slope, 6)
    (0.2, 0.8, 2.772589)
    """
    return _fitted(pool(scores, labels, row_ids, provenance))


def _fitted(pooled: Pooled) -> PlattMap:
    n0, n1 = pooled.n0, pooled.n1
    hits = pooled.ones * ((n1 + 1) / (n1 + 2)) + pooled.zeros / (n0 + 2)
    misses = pooled.ones / (n1 + 2) + pooled.zeros * ((n0 + 1) / (n0 + 2))
    low, high = float(pooled.scores[0]), float(pooled.scores[-1])
    intercept, slope = _minimise(position(pooled.scores, low, high), hits, misses)
    return PlattMap(low, high, intercept, intercept + slope, n0, n1, pooled.rows)


def _softplus(logit: FloatArray) -> FloatArray:
    """log(1 + exp(logit)) without overflow."""
    return np.asarray(np.logaddexp(0.0, logit))


def _loss(line: FloatArray, x: FloatArray, hits: FloatArray, misses: FloatArray) -> float:
    """Cross-entropy as a sum of positive terms, so that nothing cancels."""
    logit = line[0] + line[1] * x
    return float(hits @ _softplus(-logit) + misses @ _softplus(logit))


def _minimise(x: FloatArray, hits: FloatArray, misses: FloatArray) -> tuple[float, float]:
    """Intercept and slope of least cross-entropy, from the best constant on."""
    line = np.array([math.log(hits.sum() / misses.sum()), 0.0])
    for _ in range(_MOST_STEPS):
        step, decrement = _newton(line, x, hits, misses)
        line = _backtrack(line, step, decrement, (x, hits, misses))
        if decrement <= _CONVERGED * (hits.sum() + misses.sum()):
            return float(line[0]), float(line[1])
    raise ValueError(
        f"`scores` must admit a logistic fit; got none after {_MOST_STEPS} Newton steps. "
        "Look for scores of wildly different sizes."
    )


def _newton(
    line: FloatArray, x: FloatArray, hits: FloatArray, misses: FloatArray
) -> tuple[FloatArray, float]:
    """The Newton step, and how much the loss falls along it to first order."""
    logit = line[0] + line[1] * x
    p, q = np.exp(-_softplus(-logit)), np.exp(-_softplus(logit))
    excess, weight = misses * p - hits * q, (hits + misses) * p * q
    # About the weighted mean the Hessian is diagonal, so that no determinant cancels.
    centre = weight @ x / weight.sum()
    away = x - centre
    tilt = -(excess @ away) / (weight @ away**2 + _RIDGE)
    lift = -excess.sum() / weight.sum()
    decrement = -float(excess.sum() * lift + (excess @ away) * tilt)
    return np.array([lift - tilt * centre, tilt]), decrement


def _backtrack(
    line: FloatArray, step: FloatArray, decrement: float, data: tuple[FloatArray, FloatArray, FloatArray]
) -> FloatArray:
    """The longest of the steps 1, 1/2, 1/4, ... along which the loss falls as it should."""
    start, size = _loss(line, *data), 1.0
    allowed = start * (1.0 + _ROUNDING)
    while _loss(line + size * step, *data) > allowed - _ARMIJO * size * decrement:
        size /= 2.0
    return line + size * step
