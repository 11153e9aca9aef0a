"""Drivers and KPI of retrievals that were measured against a corpus profile."""

from __future__ import annotations

from collections.abc import Mapping

from rag_confidence.engine.signals import Signals
from rag_confidence.product.drivers import Drivers, DriversOfOne, combine, combine_of_one
from rag_confidence.product.grounding import grounding, grounding_of_one
from rag_confidence.product.policy import MetricPolicy

Units = tuple[float, float]
"""Centre and scale of a logistic function."""


def profiled_drivers(
    signals: Signals, policy: MetricPolicy, *, units: Units | None, grounded: bool
) -> Drivers:
    """Drivers in units of the background of the corpus.

    Parameters
    ----------
    signals : Signals
        Q entries a column, those of `engine.contrast` included.
    policy : MetricPolicy
        Supplies the constants that are named for the profile.
    units : (float, float), optional
        Centre and scale of the saturated contrast in this deployment, instead of the policy's.
    grounded : bool
        Whether absolute cosines mean anything (not so for lexical vectors).

    Returns
    -------
    Drivers

    Notes
    -----
    With S the logistic function, h the saturated contrast, v the level excess and r the companionship:
    grounding S((v - level_center) / level_scale), localization S((h - contrast_center) / contrast_scale) and
    cohesion r / (r + companionship_half). Consistency and robustness are those without a profile; they were
    not found to add to what localization tells of sufficiency, so they have no weight. A best passage that
    moves towards the query and away from its companions may lower the KPI by its cohesion.
    """
    turn, together = signals["flip_angle"], signals["companionship"]
    shape = (
        grounding(signals["saturated_contrast"], *(units or policy.contrast_units)),
        together / (together + policy.companionship_half),
        1.0 - signals["dirichlet_energy"],
        turn / (turn + policy.robustness_angle),
    )
    gate = grounding(signals["level_excess"], policy.level_center, policy.level_scale)
    return combine(gate, shape, policy.profiled, grounded=grounded)


def profiled_drivers_of_one(
    measured: Mapping[str, float], policy: MetricPolicy, *, units: Units | None, grounded: bool
) -> DriversOfOne:
    """`profiled_drivers` in plain Python, from the `measured` signals of one retrieval with passages."""
    turn, together = measured["flip_angle"], measured["companionship"]
    shape = [
        grounding_of_one(measured["saturated_contrast"], *(units or policy.contrast_units)),
        together / (together + policy.companionship_half),
        1.0 - measured["dirichlet_energy"],
        turn / (turn + policy.robustness_angle),
    ]
    gate = grounding_of_one(measured["level_excess"], policy.level_center, policy.level_scale)
    return combine_of_one(gate, shape, policy.profiled, grounded=grounded)
