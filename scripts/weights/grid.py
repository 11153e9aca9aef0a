"""The points of the grid, and the KPI at each of them, by the package's own functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from _data import FloatArray

from rag_confidence import MetricPolicy
from rag_confidence.engine.profile.reference import contrast_cap, contrast_units, saturated
from rag_confidence.product.constants import DriverValues
from rag_confidence.product.profiled import profiled_drivers
from weights.pairs import Pair

FACTORS: tuple[float | None, ...] = (0.15, 0.175, 0.2, 0.25, None)
COHESION = (0.0, 0.02, 0.04, 0.06, 0.10)
EXPLAINING = (0.0, 0.05, 0.10)
# A companionship at which the cap lies within its limits, so that the factor can be read off it.
_INSIDE = 0.25
# The profile scales its queries to length one in double precision, which moves its units a little.
_SAME = 1e-6


@dataclass(frozen=True)
class Setting:
    """Constants that are chosen.

    Attributes
    ----------
    factor : float or None
        Cap of the contrast times the typical companionship; None for no cap.
    cohesion, consistency, robustness : float
        Weights of these drivers; localization has the rest.
    """

    factor: float | None
    cohesion: float
    consistency: float
    robustness: float

    @property
    def policy(self) -> MetricPolicy:
        """The default policy with these weights."""
        rest = round(1.0 - self.cohesion - self.consistency - self.robustness, 6)
        return replace(
            MetricPolicy(),
            profile_weights=DriverValues(rest, self.cohesion, self.consistency, self.robustness),
        )

    def __str__(self) -> str:
        cap = "no cap" if self.factor is None else f"cap {self.factor:g} / companionship"
        weights = self.policy.profile_weights.as_tuple()
        return f"{cap}, weights {' / '.join(f'{weight:.2f}' for weight in weights)}"


def grid() -> list[Setting]:
    """All points."""
    return [Setting(*point) for point in product(FACTORS, COHESION, EXPLAINING, EXPLAINING)]


def shipped() -> Setting:
    """The constants that the package has now."""
    weights = MetricPolicy().profile_weights
    return Setting(
        round(_shipped_factor(), 6),
        weights.support_cohesion,
        weights.evidence_consistency,
        weights.query_robustness,
    )


def kpi_at(pair: Pair, setting: Setting) -> FloatArray:
    """The KPI (n,) of the rows of a pair."""
    cap = _cap(setting.factor, pair.typical_companionship)
    capped = pair.signals.with_values({"saturated_contrast": saturated(pair.signals["contrast"], cap)})
    units = contrast_units(saturated(pair.sampled_contrast, cap))
    return profiled_drivers(capped, setting.policy, units=units, grounded=True).kpi


def areas_of(pairs: Sequence[Pair], settings: Sequence[Setting]) -> FloatArray:
    """AUROC at each setting on each pair, shape (settings, pairs)."""
    return np.array([[pair.auroc(kpi_at(pair, setting)) for pair in pairs] for setting in settings])


def check_formula(pairs: Sequence[Pair]) -> None:
    """Refuse to go on if the KPI at the shipped constants is not the one that `score_many` gave.

    Raises
    ------
    RuntimeError
        Naming the pair.
    """
    for pair in pairs:
        apart = float(np.abs(kpi_at(pair, shipped()) - pair.kpi).max())
        if not apart <= _SAME:
            raise RuntimeError(f"{pair.label}: the KPI of the grid differs from score_many by {apart:.2g}")


def _shipped_factor() -> float:
    return contrast_cap(_INSIDE) * _INSIDE


def _cap(factor: float | None, typical: float) -> float:
    """The cap that the package would set if its factor were this one."""
    return float("inf") if factor is None else contrast_cap(typical * _shipped_factor() / factor)
