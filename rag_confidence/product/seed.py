"""The source scorer's drivers, from the measurements of `engine.seed`."""

from __future__ import annotations

import numpy as np

from rag_confidence.engine.signals import Signals
from rag_confidence.product.drivers import Drivers, combine
from rag_confidence.product.grounding import grounding
from rag_confidence.product.policy import MetricPolicy


def seed_drivers(signals: Signals, policy: MetricPolicy, *, grounded: bool) -> Drivers:
    """Drivers as the source defines them.

    Notes
    -----
    Localization clip(0.6 margin + 0.4 dominance), cohesion 1 / (1 + fragmentation), consistency
    sheaf / (1 + loops) and robustness 1 - movement. Robustness that was not probed is reported as
    not assessed, but counts as 1 in the KPI, as it does in the source.
    """
    localization = np.clip(0.6 * signals["persistence_margin"] + 0.4 * signals["dominance"], 0.0, 1.0)
    cohesion = 1.0 / (1.0 + signals["fragmentation"])
    loops = np.where(np.isnan(signals["n_loops"]), 0.0, signals["n_loops"])
    consistency = (1.0 - signals["dirichlet_energy"]) / (1.0 + loops)
    robustness = np.clip(1.0 - signals["stability_move"], 0.0, 1.0)
    counted = np.where(np.isnan(robustness), 1.0, robustness)
    gate = grounding(signals[policy.match_signal], policy.grounding_center, policy.grounding_scale)
    return combine(
        gate,
        (localization, cohesion, consistency, robustness),
        policy,
        grounded=grounded,
        counted=(localization, cohesion, consistency, counted),
    )
