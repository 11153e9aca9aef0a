"""Five signals and the KPI from the engine's numbers, for a whole block at once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rag_confidence._types import FloatArray, Signal
from rag_confidence.engine.signals import Signals
from rag_confidence.product.grounding import grounding, grounding_of_one
from rag_confidence.product.policy import MetricPolicy

_TINY = float(np.finfo(np.float64).tiny)
_ROW = {signal: row for row, signal in enumerate(Signal)}


# The last bits of a KPI depend on how many retrievals are scored together. A gate whose threshold is a KPI
# from the log must meet the same number when it serves.
KPI_DECIMALS = 12


@dataclass(frozen=True, eq=False)
class Drivers:
    """Five signals a query in [0, 1], high is good; nan where one was not assessed.

    Attributes
    ----------
    values : ndarray, shape (5, Q)
        One row a `Signal`, in their order: the grounding gate, then the four shape drivers.
    weights : ndarray, shape (4, Q)
        Weights as used; those of drivers not assessed are 0.
    kpi : ndarray, shape (Q,)
        Grounding times weighted shape, in [0, 1].
    """

    values: FloatArray
    weights: FloatArray
    kpi: FloatArray

    def of(self, signal: Signal) -> FloatArray:
        """The row of one signal, shape (Q,)."""
        return np.asarray(self.values[_ROW[signal]])


def default_drivers(signals: Signals, policy: MetricPolicy, *, grounded: bool) -> Drivers:
    """Drivers as this package defines them.

    Parameters
    ----------
    signals : Signals
        Q entries a column.
    policy : MetricPolicy
        Supplies weights, the grounding gate, `localization_tau` and `robustness_angle`.
    grounded : bool
        Whether absolute cosines mean anything (not so for lexical vectors).

    Returns
    -------
    Drivers

    Notes
    -----
    With l the second bar, lambda the algebraic connectivity, E the Dirichlet energy and phi the flip
    angle in degrees: localization tau / (l + tau), cohesion min(lambda, 1), consistency 1 - E and
    robustness phi / (phi + phi0). None depends on the range of the served list.
    """
    turn = signals["flip_angle"]
    shape = (
        policy.localization_tau / (signals["second_bar"] + policy.localization_tau),
        np.minimum(signals["lambda_2"], 1.0),
        1.0 - signals["dirichlet_energy"],
        turn / (turn + policy.robustness_angle),
    )
    gate = grounding(signals[policy.match_signal], policy.grounding_center, policy.grounding_scale)
    return combine(gate, shape, policy, grounded=grounded)


def combine(
    gate: FloatArray,
    shape: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
    policy: MetricPolicy,
    *,
    grounded: bool,
    counted: tuple[FloatArray, FloatArray, FloatArray, FloatArray] | None = None,
) -> Drivers:
    """The KPI: grounding, which is `gate`, times the weighted mean of the drivers that were assessed.

    `counted` replaces `shape` in the KPI alone. When no driver with a weight was assessed there is
    nothing to rest an answer on, and the KPI is 0.
    """
    values = np.empty((5, len(gate)))
    values[0] = gate if grounded else np.nan
    # fmax passes over nan: a retrieval without passages has no grounding, and a KPI of 0.
    factor = np.fmax(gate, 0.0) if grounded else 1.0
    for row, driver in enumerate(shape, start=1):
        values[row] = driver
    drivers = values[1:] if counted is None else np.stack(counted)
    weighted, weights = _weighted(drivers, policy.weight_column)
    # The weights sum to one only up to rounding.
    return Drivers(values, weights, np.round(np.minimum(weighted, 1.0) * factor, KPI_DECIMALS))


def _weighted(drivers: FloatArray, column: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weighted mean (Q,) of the `drivers` (4, Q) that are not nan, and the weights (4, Q) as used."""
    products = column * drivers
    total = np.add.reduce(products, axis=0)
    assessed = drivers >= 0.0
    if assessed.all():
        return total, np.broadcast_to(column, drivers.shape)
    weights = assessed * column
    weights /= np.maximum(np.add.reduce(weights, axis=0), _TINY)
    return np.add.reduce(weights * drivers, axis=0, where=assessed), weights


@dataclass(frozen=True)
class DriversOfOne:
    """`Drivers` of one retrieval: five values (nan where not assessed), four weights as used, the KPI."""

    values: list[float]
    weights: list[float]
    kpi: float


def default_drivers_of_one(
    measured: Mapping[str, float], policy: MetricPolicy, *, grounded: bool
) -> DriversOfOne:
    """`default_drivers` in plain Python, from the `measured` signals of one retrieval with passages."""
    tau, turn = policy.localization_tau, measured["flip_angle"]
    gate = grounding_of_one(measured[policy.match_signal], policy.grounding_center, policy.grounding_scale)
    shape = [
        tau / (measured["second_bar"] + tau),
        # The order matters: min(1.0, nan) is 1.0.
        min(measured["lambda_2"], 1.0),
        1.0 - measured["dirichlet_energy"],
        turn / (turn + policy.robustness_angle),
    ]
    return combine_of_one(gate, shape, policy, grounded=grounded)


def combine_of_one(gate: float, shape: list[float], policy: MetricPolicy, *, grounded: bool) -> DriversOfOne:
    """`combine` in plain Python."""
    weights = [w if v >= 0.0 else 0.0 for w, v in zip(policy.unit_weights, shape, strict=True)]
    total = sum(weights) or 1.0
    weights = [weight / total for weight in weights]
    weighted = sum(w * v for w, v in zip(weights, shape, strict=True) if w)
    kpi = round(min(weighted, 1.0) * (gate if grounded else 1.0), KPI_DECIMALS)
    return DriversOfOne([gate if grounded else math.nan, *shape], weights, kpi)
