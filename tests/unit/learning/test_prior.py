"""A prior over named signals: what it may be, parts of it, and its file form."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from refusals import refuse

from rag_confidence.learning.prior import TEXT_SIGNALS, Prior
from rag_confidence.learning.shipped_prior import DEFAULT_PRIOR, LABEL_FREE
from rag_confidence.product.record import KEY_NAMES

NAMES = ("signals.a", "signals.b", "signals.c")
COVARIANCE = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 3.0]])
PRIOR = Prior.of(NAMES, np.array([1.0, 2.0, 3.0]), COVARIANCE)


def test_a_part_is_the_marginal_distribution() -> None:
    """Entries of the mean and of the covariance, whose inverse is the precision, in the order asked for."""
    part = PRIOR.on(["signals.c", "signals.a"])
    assert part.mean.tolist() == [3.0, 1.0]
    assert np.linalg.inv(part.precision) == pytest.approx(np.array([[3.0, 0.0], [0.0, 2.0]]), abs=1e-12)
    assert PRIOR.on([]).precision.shape == (0, 0)


def test_two_priors_side_by_side_are_independent() -> None:
    """Blocks on the diagonal, nothing between them."""
    both = PRIOR.only(NAMES[:2]).beside(PRIOR.only(NAMES[2:]))
    assert both.names == NAMES
    assert both.mean.tolist() == [1.0, 2.0, 3.0]
    assert both.covariance[2].tolist() == [0.0, 0.0, 3.0]


def test_it_comes_back_from_json_to_the_last_bit() -> None:
    """Written and read, it has the same fingerprint; another number gives another one."""
    again = Prior.from_dict(json.loads(json.dumps(PRIOR.to_dict())))
    assert again.fingerprint == PRIOR.fingerprint
    assert Prior.of(NAMES, PRIOR.mean, 2 * COVARIANCE).fingerprint != PRIOR.fingerprint


def test_nobody_can_change_it() -> None:
    """Its arrays are copies and read-only."""
    mean = np.zeros(1)
    prior = Prior.of(NAMES[:1], mean, np.eye(1))
    mean[0] = 9.0
    assert prior.mean[0] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        prior.covariance[0, 0] = 2.0


@pytest.mark.parametrize(
    ("names", "mean", "covariance", "pattern"),
    [
        (("kpi",), [0.0], [[1.0]], "names"),
        (("signals.a", "signals.a"), [0.0, 0.0], np.eye(2), "distinct"),
        (NAMES[:2], [0.0], np.eye(2), r"shape \(2, 2\)"),
        (NAMES[:2], [0.0, 0.0], np.eye(3), r"got \(3, 3\)"),
        (NAMES[:2], [0.0, np.nan], np.eye(2), "finite"),
        (NAMES[:2], [0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]], "positive definite"),
        (NAMES[:2], [0.0, 0.0], [[1.0, 0.5], [0.0, 1.0]], "symmetric"),
        (NAMES[:1], [0.0], [[np.inf]], "positive definite"),
    ],
)
def test_what_is_no_prior_is_refused(names: Any, mean: Any, covariance: Any, pattern: str) -> None:
    """Names, shapes and covariances that cannot be are named."""
    refuse(ValueError, pattern, lambda: Prior.of(names, np.array(mean), np.array(covariance)))


def test_the_shipped_prior_points_along_the_label_free_score() -> None:
    """Its mean is one positive multiple of the label-free weights, and 0 for every other signal."""
    weights = np.array([LABEL_FREE.get(name, 0.0) for name in DEFAULT_PRIOR.names])
    factor = DEFAULT_PRIOR.mean @ weights / (weights @ weights)
    assert factor > 0.0
    assert DEFAULT_PRIOR.mean == pytest.approx(factor * weights, abs=1e-4)


def test_the_shipped_prior_knows_only_keys_of_the_record() -> None:
    """Every signal that a model may read is in the JSON contract."""
    assert set(DEFAULT_PRIOR.names) <= set(KEY_NAMES)
    assert set(TEXT_SIGNALS) <= set(DEFAULT_PRIOR.names)
