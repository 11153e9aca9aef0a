"""Logistic regression with a ridge chosen inside the training rows, for the baseline on sorted scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from _data import FloatArray, Mask

from evaluation.metrics import stratified_folds

USUAL_RIDGE = 1.0
RIDGES = tuple(10.0 ** np.arange(-2.0, 4.0))
_FOLDS = 5
_STEPS = 25
_SALT = 0x106


@dataclass(frozen=True)
class Logistic:
    """P(sufficient) = 1 / (1 + exp(-(intercept + z w))), z the features standardised on the training rows."""

    mean: FloatArray
    scale: FloatArray
    weights: FloatArray
    intercept: float
    ridge: float

    def __call__(self, features: FloatArray) -> FloatArray:
        """Probabilities of rows (n, p), shape (n,)."""
        return _sigmoid(self.intercept + (features - self.mean) / self.scale @ self.weights)


def fit(features: FloatArray, sufficient: Mask, ridge: float) -> Logistic:
    """The minimum of sum log-loss + ridge/2 |w|^2, by Newton's method; the intercept is not shrunk.

    `features` (n, p) are standardised first; a constant one keeps weight 0. Steps are halved until the loss
    falls, so the fit converges from anywhere. O(n p^2) a step.
    """
    mean, spread = features.mean(axis=0), features.std(axis=0)
    scale = np.where(spread > 0.0, spread, 1.0)
    design = np.column_stack([(features - mean) / scale, np.ones(len(features))])
    penalty = np.append(np.full(features.shape[1], ridge), 1e-6)
    found = np.zeros(design.shape[1])
    for _ in range(_STEPS):
        step = _newton_step(design, sufficient, penalty, found)
        found = _descend(design, sufficient, penalty, (found, step))
        if np.abs(step).max() < 1e-8:
            break
    return Logistic(mean, scale, found[:-1], float(found[-1]), ridge)


def fit_chosen(
    features: FloatArray, sufficient: Mask, seed: int, *, ridges: Sequence[float] = RIDGES
) -> Logistic:
    """The fit whose ridge has the least log-loss on held-out fifths of these very rows."""
    rng = np.random.default_rng([_SALT, seed])
    folds = max(2, min(_FOLDS, np.count_nonzero(sufficient), np.count_nonzero(~sufficient)))
    fold = stratified_folds(sufficient, folds, rng)
    losses = [_held_out_loss(features, sufficient, fold, ridge) for ridge in ridges]
    return fit(features, sufficient, ridges[int(np.argmin(losses))])


def _held_out_loss(features: FloatArray, sufficient: Mask, fold: FloatArray, ridge: float) -> float:
    total = 0.0
    for held in np.unique(fold):
        out = fold == held
        told = np.clip(fit(features[~out], sufficient[~out], ridge)(features[out]), 1e-9, 1 - 1e-9)
        total -= float(np.log(np.where(sufficient[out], told, 1.0 - told)).sum())
    return total


def _newton_step(design: FloatArray, sufficient: Mask, penalty: FloatArray, at: FloatArray) -> FloatArray:
    told = _sigmoid(design @ at)
    gradient = design.T @ (told - sufficient) + penalty * at
    curvature = (design.T * (told * (1.0 - told))) @ design + np.diag(penalty)
    return np.linalg.solve(curvature, gradient)


def _descend(
    design: FloatArray, sufficient: Mask, penalty: FloatArray, move: tuple[FloatArray, FloatArray]
) -> FloatArray:
    """Where the step, halved as often as needed, lowers the loss."""
    at, step = move
    before = _loss(design, sufficient, penalty, at)
    for halvings in range(30):
        there = at - step / 2.0**halvings
        if _loss(design, sufficient, penalty, there) <= before:
            return there
    return at


def _loss(design: FloatArray, sufficient: Mask, penalty: FloatArray, at: FloatArray) -> float:
    logit = design @ at
    return float(
        np.logaddexp(0.0, np.where(sufficient, -logit, logit)).sum() + 0.5 * (penalty * at * at).sum()
    )


def _sigmoid(logit: FloatArray) -> FloatArray:
    return np.exp(-np.logaddexp(0.0, -logit))
