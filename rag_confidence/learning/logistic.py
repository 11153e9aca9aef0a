"""Logistic regression whose coefficients are pulled towards a Gaussian prior."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rag_confidence._types import FloatArray

# Standard deviation 10 on the log-odds of an average row: no base rate is excluded, and no fit diverges.
INTERCEPT_PRECISION = 0.01

_MOST_STEPS = 100
_ARMIJO = 1e-4
# What rounding can add to a loss, relative to it.
_ROUNDING = 1e-13
# Squared Newton step a row, in standard errors, below which the next step is only rounding.
_CONVERGED = 1e-24


@dataclass(frozen=True, eq=False)
class Gaussian:
    """A normal distribution of p coefficients: its `mean` (p,) and its `precision` (p, p)."""

    mean: FloatArray
    precision: FloatArray


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """The most likely coefficients, and the curvature there.

    Attributes
    ----------
    intercept : float
    coefficients : ndarray, shape (p,)
    hessian : ndarray, shape (p + 1, p + 1)
        Second derivatives of the negative log-posterior, the intercept first; its inverse is the
        covariance of the Laplace approximation.
    """

    intercept: float
    coefficients: FloatArray
    hessian: FloatArray


def fit_logistic(
    design: FloatArray, labels: FloatArray, prior: Gaussian, *, weights: FloatArray | None = None
) -> LogisticFit:
    """Maximum a posteriori logistic regression under a Gaussian prior.

    Parameters
    ----------
    design : ndarray, shape (n, p)
        Finite, in the units of the prior.
    labels : ndarray, shape (n,)
        1.0 for a sufficient row, 0.0 for an insufficient one.
    prior : Gaussian
        Of the p coefficients, with a positive definite precision. The intercept has mean 0 and precision
        `INTERCEPT_PRECISION`.
    weights : ndarray, shape (n,), optional
        How many times each row counts; 1 by default.

    Returns
    -------
    LogisticFit
        Without rows the mean of the prior.

    Notes
    -----
    Minimises :math:`\\sum_i v_i \\log(1 + e^{-t_i (b + w'x_i)}) + (w - m)'P(w - m)/2 + \\lambda b^2/2` with
    t = 1 or -1. It is strictly convex, so the minimum is unique and finite even where the classes are
    separable. Newton steps with the exact Hessian and backtracking, from the prior on.
    Cost O(n p^2 + p^3) a step, some eight steps.

    References
    ----------
    C. M. Bishop (2006), Pattern Recognition and Machine Learning, sections 4.3.3 and 4.5.1.
    """
    n, p = design.shape
    rows = np.column_stack([np.ones(n), design])
    counts = np.ones(n) if weights is None else weights
    mean = np.concatenate([[0.0], prior.mean])
    precision = np.zeros((p + 1, p + 1))
    precision[0, 0] = INTERCEPT_PRECISION
    precision[1:, 1:] = prior.precision
    line = _minimise(_Posterior(rows, labels, counts, mean, precision))
    hessian = _curvature(rows, counts, rows @ line) + precision
    return LogisticFit(float(line[0]), line[1:], hessian)


@dataclass(frozen=True, eq=False)
class _Posterior:
    rows: FloatArray
    labels: FloatArray
    counts: FloatArray
    mean: FloatArray
    precision: FloatArray

    def loss(self, line: FloatArray) -> float:
        """Negative log-posterior up to a constant: a sum of terms that are not negative."""
        logit, away = self.rows @ line, line - self.mean
        wrong = np.logaddexp(0.0, np.where(self.labels > 0.5, -logit, logit))
        return float(self.counts @ wrong + 0.5 * away @ self.precision @ away)

    def newton(self, line: FloatArray) -> tuple[FloatArray, float]:
        """The Newton step, and how much the loss falls along it to first order."""
        logit = self.rows @ line
        excess = self.counts * (sigmoid(logit) - self.labels)
        slope = self.rows.T @ excess + self.precision @ (line - self.mean)
        step = -np.linalg.solve(_curvature(self.rows, self.counts, logit) + self.precision, slope)
        return step, -float(slope @ step)


def _minimise(posterior: _Posterior) -> FloatArray:
    line, n = posterior.mean, max(1.0, float(posterior.counts.sum()))
    for _ in range(_MOST_STEPS):
        step, decrement = posterior.newton(line)
        start, size = posterior.loss(line), 1.0
        allowed = start * (1.0 + _ROUNDING)
        while posterior.loss(line + size * step) > allowed - _ARMIJO * size * decrement:
            size /= 2.0
        line = line + size * step
        if decrement <= _CONVERGED * n:
            return line
    raise ValueError(
        f"`metrics` must admit a logistic fit; got none after {_MOST_STEPS} Newton steps. "
        "Look for signals of wildly different sizes."
    )


def _curvature(rows: FloatArray, counts: FloatArray, logit: FloatArray) -> FloatArray:
    """Second derivatives of the loss without the prior."""
    spread = counts * sigmoid(logit) * sigmoid(-logit)
    return np.asarray((rows * spread[:, None]).T @ rows)


def sigmoid(logit: FloatArray) -> FloatArray:
    """1 / (1 + exp(-logit)) without overflow."""
    return np.asarray(np.exp(-np.logaddexp(0.0, -logit)))
