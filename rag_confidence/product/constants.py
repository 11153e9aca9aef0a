"""What the constants of a policy may be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from itertools import pairwise
from typing import Any

from rag_confidence._options import check_number

FIX = "Correct the policy."
RANGES = {
    "answer_at": (0.0, 100.0),
    "review_at": (0.0, 100.0),
    "grounding_center": (-1.0, 1.0),
    "grounding_scale": (1e-6, 2.0),
    "grounding_min": (0.0, 100.0),
    "contradiction_at": (0.0, 1.0),
    "loop_life_flag": (0.0, 2.0),
    "localization_tau": (1e-6, 2.0),
    "robustness_angle": (1e-6, 90.0),
    "level_center": (-100.0, 100.0),
    "level_scale": (1e-6, 100.0),
    "contrast_center": (0.0, 10.0),
    "contrast_scale": (1e-6, 10.0),
    "companionship_half": (1e-6, 10.0),
}
CUTS = {
    "kpi_cuts": 3,
    "confidence_cuts": 2,
    "grounding_cuts": 2,
    "localization_cuts": 2,
    "cohesion_cuts": 2,
    "consistency_cuts": 2,
    "robustness_cuts": 2,
}


@dataclass(frozen=True)
class DriverValues:
    """One number for each of the four shape drivers: a weight or a floor."""

    answer_localization: float
    support_cohesion: float
    evidence_consistency: float
    query_robustness: float

    def as_tuple(self) -> tuple[float, float, float, float]:
        """The values in the order of the fields."""
        return (
            self.answer_localization,
            self.support_cohesion,
            self.evidence_consistency,
            self.query_robustness,
        )


WEIGHTS = DriverValues(0.35, 0.25, 0.25, 0.15)
FLOORS = DriverValues(55.0, 55.0, 60.0, 60.0)
PROFILE_WEIGHTS = DriverValues(0.96, 0.04, 0.0, 0.0)
PROFILE_FLOORS = DriverValues(0.0, 0.0, 0.0, 0.0)


def check_level(name: str, value: Any) -> float:
    """A threshold, scale or centre in its range."""
    return check_number(name, value, *RANGES[name], FIX)


def check_driver_values(name: str, value: DriverValues | Mapping[str, float], most: float) -> DriverValues:
    """Weights or floors in [0, `most`]; a mapping must name all four drivers."""
    if not isinstance(value, (DriverValues, Mapping)):
        raise TypeError(f"`{name}` must be DriverValues or a mapping; got {type(value).__name__}. {FIX}")
    given = asdict(value) if isinstance(value, DriverValues) else value
    expected = [field.name for field in fields(DriverValues)]
    if set(given) != set(expected):
        raise ValueError(
            f"`{name}` must name {', '.join(expected)}; got {sorted(map(str, given))}. Give all four."
        )
    return DriverValues(
        **{key: check_number(f"{name}.{key}", given[key], 0.0, most, FIX) for key in expected}
    )


def check_cuts(name: str, value: tuple[float, ...]) -> tuple[float, ...]:
    """Band cuts in 0..100, descending, as many as the bands need."""
    if not isinstance(value, (tuple, list)):
        raise TypeError(f"`{name}` must be a tuple of cuts; got {type(value).__name__}. {FIX}")
    cuts = tuple(check_number(f"{name}[{i}]", cut, 0.0, 100.0, FIX) for i, cut in enumerate(value))
    if len(cuts) != CUTS[name] or any(high <= low for high, low in pairwise(cuts)):
        raise ValueError(f"`{name}` must be {CUTS[name]} descending cuts; got {value}. {FIX}")
    return cuts
