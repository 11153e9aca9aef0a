"""The penalised logistic fit against a slow minimiser of its objective, and what it may not depend on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from rag_confidence.learning.logistic import INTERCEPT_PRECISION, Gaussian, LogisticFit, fit_logistic, sigmoid

Array = NDArray[Any]
seeds = st.integers(0, 10_000)


def problem(seed: int, n: int = 30, p: int = 3) -> tuple[Array, Array, Gaussian]:
    """A design, labels and a prior with correlated coefficients."""
    rng = np.random.default_rng([3, seed])
    root = rng.standard_normal((p, p)) + np.eye(p)
    prior = Gaussian(rng.standard_normal(p), root @ root.T + 0.1 * np.eye(p))
    return rng.standard_normal((n, p)), (rng.random(n) < 0.4).astype(float), prior


def objective(line: Array, design: Array, labels: Array, prior: Gaussian) -> float:
    """The negative log-posterior, row by row as it is written down."""
    total = 0.5 * INTERCEPT_PRECISION * float(line[0]) ** 2
    away = line[1:] - prior.mean
    total += 0.5 * float(away @ prior.precision @ away)
    for row, label in zip(design, labels, strict=True):
        logit = float(line[0] + row @ line[1:])
        total += float(np.log1p(np.exp(-logit if label else logit)))
    return total


def line_of(fit: LogisticFit) -> Array:
    """Intercept and coefficients as one array."""
    return np.concatenate([[fit.intercept], fit.coefficients])


@pytest.mark.parametrize("seed", range(4))
def test_it_finds_the_minimum_that_a_slow_search_finds(seed: int) -> None:
    """Nelder and Mead, who know no derivative, end where the Newton steps do."""
    from scipy.optimize import minimize

    data = problem(seed, n=25, p=2)
    options = {"xatol": 1e-7, "fatol": 1e-11, "maxiter": 4_000, "maxfev": 4_000}
    slow = minimize(objective, np.zeros(3), args=data, method="Nelder-Mead", options=options)
    assert line_of(fit_logistic(*data)) == pytest.approx(slow.x, abs=1e-5)


@given(seed=seeds)
def test_the_slope_is_zero_and_the_curvature_is_that_of_the_objective(seed: int) -> None:
    """Central differences of the objective: no slope at the fit, and its Hessian there."""
    data = problem(seed)
    fit = fit_logistic(*data)
    line, step = line_of(fit), 1e-4
    moves = step * np.eye(len(line))
    slope = [(objective(line + m, *data) - objective(line - m, *data)) / (2 * step) for m in moves]
    assert slope == pytest.approx(np.zeros(len(line)), abs=1e-6)
    for at, m in enumerate(moves):
        bend = objective(line + m, *data) + objective(line - m, *data) - 2 * objective(line, *data)
        assert fit.hessian[at, at] == pytest.approx(bend / step**2, rel=1e-4, abs=1e-5)


@given(seed=seeds, times=st.lists(st.integers(0, 3), min_size=30, max_size=30))
def test_a_weight_is_a_number_of_copies(seed: int, times: list[int]) -> None:
    """Weighted rows and rows written out as often give one fit."""
    design, labels, prior = problem(seed)
    copies = np.array(times)
    written = fit_logistic(np.repeat(design, copies, axis=0), np.repeat(labels, copies), prior)
    weighted = fit_logistic(design, labels, prior, weights=copies.astype(float))
    assert line_of(weighted) == pytest.approx(line_of(written), abs=1e-9)


@given(seed=seeds, order=st.permutations(range(30)))
def test_the_order_of_rows_does_not_matter(seed: int, order: list[int]) -> None:
    """Shuffled rows give the same line, to rounding."""
    design, labels, prior = problem(seed)
    shuffled = fit_logistic(design[order], labels[order], prior)
    assert line_of(shuffled) == pytest.approx(line_of(fit_logistic(design, labels, prior)), abs=1e-9)


@given(seed=seeds, exponent=st.integers(-20, 20))
def test_a_signal_in_other_units_predicts_the_same(seed: int, exponent: int) -> None:
    """A column and its prior in other units give the same probabilities."""
    design, labels, prior = problem(seed)
    unit = np.array([2.0**exponent, 1.0, 1.0])
    moved = Gaussian(prior.mean / unit, prior.precision * np.outer(unit, unit))
    one, other = fit_logistic(design, labels, prior), fit_logistic(design * unit, labels, moved)
    assert (design * unit) @ other.coefficients == pytest.approx(design @ one.coefficients, abs=1e-8)


@pytest.mark.parametrize("gap", [1e-3, 1.0, 1e3])
def test_separable_classes_have_a_finite_fit(gap: float) -> None:
    """Where plain logistic regression runs off to infinity, the prior holds the coefficient."""
    design = np.array([[-gap], [-gap], [gap], [gap]])
    fit = fit_logistic(design, np.array([0.0, 0.0, 1.0, 1.0]), Gaussian(np.zeros(1), np.eye(1)))
    assert 0.0 < fit.coefficients[0] < 10.0
    assert fit.intercept == pytest.approx(0.0, abs=1e-12)


def test_without_rows_the_prior_is_the_answer() -> None:
    """No label moves nothing."""
    _, _, prior = problem(0)
    fit = fit_logistic(np.zeros((0, 3)), np.zeros(0), prior)
    assert fit.coefficients == pytest.approx(prior.mean, abs=1e-12)
    assert fit.intercept == 0.0


def test_a_strong_prior_holds_and_a_weak_one_lets_go() -> None:
    """Precision 1e9 keeps the mean; precision 1e-9 gives the plain maximum of the likelihood."""
    design, labels, prior = problem(1, n=200, p=2)
    held = fit_logistic(design, labels, Gaussian(prior.mean, 1e9 * np.eye(2)))
    assert held.coefficients == pytest.approx(prior.mean, abs=1e-6)
    free = fit_logistic(design, labels, Gaussian(prior.mean, 1e-9 * np.eye(2)))
    excess = sigmoid(free.intercept + design @ free.coefficients) - labels
    assert design.T @ excess == pytest.approx(np.zeros(2), abs=1e-6)


def test_the_sigmoid_does_not_overflow() -> None:
    """Logits of a thousand give 0 and 1, without a warning."""
    assert sigmoid(np.array([-1e3, 0.0, 1e3])) == pytest.approx([0.0, 0.5, 1.0])
