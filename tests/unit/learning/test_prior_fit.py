"""A prior learned from several deployments finds the spread that made them, and refuses too little."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from refusals import refuse

from rag_confidence.learning.logistic import sigmoid
from rag_confidence.learning.prior_fit import History, learn_prior

Array = NDArray[Any]
NAMES = ("signals.a", "signals.b", "signals.c")
DIRECTION = {"signals.a": 1.0, "signals.b": 0.5}


def coefficients(count: int, spread: Array) -> Array:
    """Coefficients (count, 3) of deployments that vary about the direction."""
    return np.random.default_rng([13]).multivariate_normal([0.8, 0.4, 0.0], spread, size=count)


def deployments(count: int, spread: Array, n: int = 600) -> list[History]:
    """Labelled signals of deployments with these coefficients."""
    rng = np.random.default_rng([11])
    found = []
    for w in coefficients(count, spread):
        values = rng.standard_normal((n, 3))
        found.append((values, (rng.random(n) < sigmoid(values @ w)).astype(float)))
    return found


def test_it_finds_the_direction_and_the_spread() -> None:
    """From labels alone: the mean, and how the coefficients of twenty deployments vary about it."""
    spread = np.array([[0.30, -0.25, 0.0], [-0.25, 0.30, 0.0], [0.0, 0.0, 0.05]])
    prior = learn_prior(NAMES, deployments(20, spread), DIRECTION)
    assert prior.mean == pytest.approx([0.8, 0.4, 0.0], abs=0.15)
    away = coefficients(20, spread) - prior.mean
    assert prior.covariance == pytest.approx(away.T @ away / 20, abs=0.05)
    assert prior.covariance[0, 1] < -0.1


def test_units_and_offsets_of_signals_do_not_matter() -> None:
    """Every deployment is put on its own scale first."""
    histories = deployments(3, 0.1 * np.eye(3), n=100)
    moved = [(values * [3.0, 0.01, 1.0] + [5.0, -1.0, 0.0], labels) for values, labels in histories]
    one, other = (learn_prior(NAMES, found, DIRECTION, steps=3) for found in (histories, moved))
    assert other.mean == pytest.approx(one.mean, abs=1e-9)
    assert other.covariance == pytest.approx(one.covariance, abs=1e-9)


def test_a_large_deployment_counts_no_more_than_a_small_one() -> None:
    """Rows written down twice change nothing."""
    histories = deployments(2, 0.1 * np.eye(3), n=60)
    doubled = [(np.tile(values, (2, 1)), np.tile(labels, 2)) for values, labels in histories]
    one, other = (learn_prior(NAMES, found, DIRECTION, steps=3) for found in (histories, doubled))
    assert other.covariance == pytest.approx(one.covariance, abs=1e-9)


def test_too_little_is_refused() -> None:
    """One deployment has no spread, and a direction needs a signal."""
    histories = deployments(2, np.eye(3), n=20)
    refuse(ValueError, "two deployments", lambda: learn_prior(NAMES, histories[:1], DIRECTION))
    refuse(ValueError, "0 such signals", lambda: learn_prior(NAMES, histories, {"signals.z": 1.0}))


def test_signals_apart_change_nothing_in_the_others() -> None:
    """A signal that models may do without is independent of the rest, which is learned as if it were not."""
    histories = deployments(4, 0.1 * np.eye(3), n=100)
    both = learn_prior(NAMES, histories, DIRECTION, apart=["signals.b"], steps=3)
    without = [(values[:, [0, 2]], labels) for values, labels in histories]
    alone = learn_prior(["signals.a", "signals.c"], without, DIRECTION, steps=3)
    assert both.names == NAMES
    assert both.only(alone.names).covariance == pytest.approx(alone.covariance, abs=1e-12)
    assert both.covariance[1].nonzero()[0].tolist() == [1]
    assert both.covariance[1, 1] == learn_prior(NAMES, histories, DIRECTION, steps=3).covariance[1, 1]
