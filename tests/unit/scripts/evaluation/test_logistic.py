"""Rules of the ridge logistic regression behind the baseline on sorted scores."""

from __future__ import annotations

import numpy as np
import pytest
from evaluation.logistic import RIDGES, fit, fit_chosen
from scipy.optimize import minimize


def rows(seed: int, n: int = 80) -> tuple[np.ndarray, np.ndarray]:
    """Three features of different scales, and labels that follow two of them."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((n, 3)) * [1.0, 10.0, 0.1] + [0.0, 5.0, 1.0]
    logit = features[:, 0] + 0.1 * (features[:, 1] - 5.0)
    return features, rng.random(n) < 1.0 / (1.0 + np.exp(-logit))


@pytest.mark.parametrize("ridge", [0.1, 10.0])
def test_the_fit_minimises_the_penalised_loss(ridge: float) -> None:
    """A general optimiser on the same loss finds the same probabilities."""
    features, good = rows(0)
    z = (features - features.mean(axis=0)) / features.std(axis=0)
    sign = np.where(good, 1.0, -1.0)

    def loss(w: np.ndarray) -> float:
        return float(np.logaddexp(0.0, -sign * (z @ w[:3] + w[3])).sum() + 0.5 * ridge * (w[:3] @ w[:3]))

    best = minimize(loss, np.zeros(4), tol=1e-10).x
    told = 1.0 / (1.0 + np.exp(-(z @ best[:3] + best[3])))
    np.testing.assert_allclose(fit(features, good, ridge)(features), told, atol=1e-4)


def test_separable_rows_and_constant_features_are_no_problem() -> None:
    """The ridge keeps the weights finite, and a constant column has none."""
    features = np.column_stack([np.arange(20.0), np.ones(20)])
    found = fit(features, np.arange(20) >= 10, 0.01)
    assert np.isfinite(found.weights).all()
    assert found.weights[1] == 0.0
    assert found(features)[0] < 0.1


def test_units_do_not_matter() -> None:
    """Features are standardised, so scaling a column changes no probability."""
    features, good = rows(1)
    scaled = features * [7.0, 0.01, 100.0]
    np.testing.assert_allclose(fit(features, good, 1.0)(features), fit(scaled, good, 1.0)(scaled), atol=1e-6)


def test_the_ridge_is_one_of_the_grid_and_follows_the_noise() -> None:
    """Labels that no feature predicts get a heavier ridge than labels that they do."""
    features, good = rows(2, 200)
    noise = np.random.default_rng(3).random(200) < 0.5
    informed, blind = fit_chosen(features, good, 0), fit_chosen(features, noise, 0)
    assert informed.ridge in RIDGES
    assert blind.ridge > informed.ridge
