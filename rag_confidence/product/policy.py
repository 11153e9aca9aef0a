"""MetricPolicy: every constant between the engine's numbers and the verdict."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property, update_wrapper
from types import MethodType
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike

from rag_confidence._options import check_choice, check_integer, check_number
from rag_confidence._types import FloatArray, Signal
from rag_confidence.product.constants import (
    CUTS,
    FIX,
    FLOORS,
    PROFILE_FLOORS,
    PROFILE_WEIGHTS,
    RANGES,
    WEIGHTS,
    DriverValues,
    check_cuts,
    check_driver_values,
    check_level,
)
from rag_confidence.product.grounding import fit_gate

_LEAST_WEIGHT = 0.1


class _Fit(Protocol):
    """`MetricPolicy.fit_grounding` bound to a policy."""

    def __call__(
        self, on_topic: ArrayLike, off_topic: ArrayLike, *, off_topic_cost: float = 3.0
    ) -> MetricPolicy: ...


class _OnClassToo:
    """A method that can be called on the class, where the default policy stands in for `self`."""

    def __init__(self, method: Callable[..., MetricPolicy]) -> None:
        self._method = method
        update_wrapper(self, method)  # type: ignore[arg-type]

    def __get__(self, policy: MetricPolicy | None, owner: type[MetricPolicy]) -> _Fit:
        return MethodType(self._method, owner() if policy is None else policy)


@dataclass(frozen=True)
class MetricPolicy:
    """Thresholds, weights and scales that turn signals into drivers, a KPI and a verdict.

    All thresholds and bands are on the 0..100 scale of `RagConfidenceMetrics`. The defaults suit
    qwen3-embedding:0.6b; for any other embedder fit the grounding gate first (`fit_grounding`).

    Attributes
    ----------
    answer_at, review_at : float
        KPI from which a healthy retrieval is answered; below `review_at` it is withheld.
    grounding_center, grounding_scale : float
        Cosine at which grounding is one half, and the cosine distance over which it changes.
    grounding_top : {3, 1}
        How many of the best cosines are averaged before they meet the gate.
    grounding_min : float
        Grounding below this is off topic.
    contradiction_at : float
        Score in [0, 1] of the caller's `contradiction` function from which sources conflict.
    loop_life_flag : float
        Life from which `MetricPolicy.seed()` counts a loop.
    localization_tau : float
        Cosine length of the second bar at which answer localization is one half.
    robustness_angle : float
        Flip angle in degrees at which query robustness is one half.
    weights, floors : DriverValues
        Weight of each driver in the KPI (renormalised over those assessed), and the value below which
        a driver alone asks for review.
    profile_weights, profile_floors : DriverValues
        The same for a call with a corpus profile; the weights were chosen on data, and no floor was found to
        help.
    level_center, level_scale : float
        With a profile: level excess, in background deviations, at which grounding is one half, and the
        distance over which it changes.
    contrast_center, contrast_scale : float
        With a profile: saturated contrast at which answer localization is one half, and the distance over
        which it changes, unless the profile knows them from served lists (`CorpusProfile.contrast_units`).
    companionship_half : float
        With a profile: companionship at which support cohesion is one half.
    kpi_cuts, confidence_cuts, grounding_cuts, localization_cuts, cohesion_cuts, consistency_cuts, \
robustness_cuts : tuple of float
        Lower ends of the bands, descending.
    definitions : {"default", "seed"}
        Which formulas the drivers use; see `MetricPolicy.seed`.
    version : int
        Version of the default constants.

    Raises
    ------
    TypeError, ValueError
        For a constant that cannot be meant: a scale of 0, a negative weight, weights that are all 0,
        review above answer, bands out of order, anything outside 0..100.

    Examples
    --------
    >>> MetricPolicy(answer_at=70).answer_at
    70.0
    """

    answer_at: float = 65.0
    review_at: float = 45.0
    grounding_center: float = 0.46
    grounding_scale: float = 0.08
    grounding_min: float = 50.0
    grounding_top: int = 3
    contradiction_at: float = 0.5
    loop_life_flag: float = 0.10
    localization_tau: float = 0.14
    robustness_angle: float = 0.25
    weights: DriverValues = WEIGHTS
    floors: DriverValues = FLOORS
    profile_weights: DriverValues = PROFILE_WEIGHTS
    profile_floors: DriverValues = PROFILE_FLOORS
    level_center: float = -0.25
    level_scale: float = 0.15
    contrast_center: float = 0.3
    contrast_scale: float = 0.15
    companionship_half: float = 0.25
    kpi_cuts: tuple[float, ...] = (80.0, 65.0, 45.0)
    confidence_cuts: tuple[float, ...] = (65.0, 45.0)
    grounding_cuts: tuple[float, ...] = (70.0, 40.0)
    localization_cuts: tuple[float, ...] = (85.0, 60.0)
    cohesion_cuts: tuple[float, ...] = (85.0, 55.0)
    consistency_cuts: tuple[float, ...] = (80.0, 55.0)
    robustness_cuts: tuple[float, ...] = (80.0, 55.0)
    definitions: Literal["default", "seed"] = "default"
    version: int = 2

    def __post_init__(self) -> None:
        checked: dict[str, Any] = {name: check_level(name, getattr(self, name)) for name in RANGES}
        for prefix in ("", "profile_"):
            weights, floors = f"{prefix}weights", f"{prefix}floors"
            checked[weights] = check_driver_values(weights, getattr(self, weights), 1e6)
            checked[floors] = check_driver_values(floors, getattr(self, floors), 100.0)
            if sum(checked[weights].as_tuple()) == 0.0:
                raise ValueError(f"`{weights}` must have a positive sum; got all zero. {FIX}")
        checked |= {name: check_cuts(name, getattr(self, name)) for name in CUTS}
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if self.review_at > self.answer_at:
            raise ValueError(
                f"`review_at` must be at most `answer_at`; got {self.review_at} > {self.answer_at}. {FIX}"
            )
        check_choice("definitions", self.definitions, ("default", "seed"))
        if check_integer("grounding_top", self.grounding_top, 1) not in (1, 3):
            raise ValueError(f"`grounding_top` must be 1 or 3; got {self.grounding_top}. {FIX}")
        object.__setattr__(self, "grounding_top", int(self.grounding_top))
        object.__setattr__(self, "version", check_integer("version", self.version, 1))

    @classmethod
    def seed(cls) -> MetricPolicy:
        """The source scorer's own formulas, for those who migrate from it.

        Relevance is min-max normalised, the flat barcode is a star at the centroid, robustness is a
        sampled bottleneck distance that counts as 100 when it was not probed, and loops (with ripser)
        divide consistency. On real retrievals these drivers carry almost no information.
        """
        return cls(definitions="seed")

    @_OnClassToo
    def fit_grounding(
        self, on_topic: ArrayLike, off_topic: ArrayLike, *, off_topic_cost: float = 3.0
    ) -> MetricPolicy:
        """This policy with its grounding gate fitted to one embedder and corpus, without labels.

        Called on the class, it starts from the default policy.

        Parameters
        ----------
        on_topic, off_topic : array_like, shape (m,) or (m, k)
            Cosines of retrievals for questions the corpus is about, and for questions it is not
            about; at least ten of each. With two axes, one row a retrieval, the gate reads either the
            mean of the three largest cosines or the largest alone, whichever tells the two kinds apart
            better; a single axis holds what the gate reads, `grounding_top` being kept.
        off_topic_cost : float
            How many on-topic questions turned away weigh as much as one off-topic question let through.

        Returns
        -------
        MetricPolicy
            `grounding_center` is the cut at which both kinds of error weigh the same, and the median
            on-topic retrieval has a grounding of 90, which sets `grounding_scale`.

        Raises
        ------
        ValueError
            With too few cosines, or when most on-topic retrievals would be turned away.

        Notes
        -----
        On-topic questions need not be answerable: grounding asks for the topic, not for the answer.

        Examples
        --------
        >>> import numpy as np
        >>> policy = MetricPolicy.fit_grounding(np.linspace(0.5, 0.9, 40), np.linspace(0.1, 0.3, 40))
        >>> round(policy.grounding_center, 3)
        0.4
        """
        cost = check_number("off_topic_cost", off_topic_cost, 1e-3, 1e3, "3 is the default.")
        center, scale, top = fit_gate(on_topic, off_topic, cost, self.grounding_top)
        return replace(self, grounding_center=center, grounding_scale=scale, grounding_top=top)

    def to_dict(self) -> dict[str, Any]:
        """Every constant as plain values, ready for JSON: fit once, and load where you serve."""
        plain = asdict(self)
        return {name: [*value] if isinstance(value, tuple) else value for name, value in plain.items()}

    @classmethod
    def from_dict(cls, constants: Mapping[str, Any]) -> MetricPolicy:
        """The policy that `to_dict` wrote.

        Raises
        ------
        TypeError, ValueError
            For unknown names, and for constants that cannot be meant.
        """
        odd = sorted(map(str, set(constants) - {field.name for field in fields(cls)}))
        if odd:
            raise ValueError(f"`constants` must be a policy's to_dict(); got the names {odd[:8]}. Drop them.")
        return cls(**constants)

    @cached_property
    def profiled(self) -> MetricPolicy:
        """This policy as a call with a corpus profile reads it; it is named by the same fingerprint."""
        read = replace(self, weights=self.profile_weights, floors=self.profile_floors, grounding_top=1)
        read.__dict__["fingerprint"] = self.fingerprint
        return read

    @cached_property
    def has_default_gate(self) -> bool:
        """Whether the grounding gate was left as it is: not fitted to an embedder."""
        gate = self.grounding_center, self.grounding_scale, self.grounding_top
        return gate == (type(self).grounding_center, type(self).grounding_scale, type(self).grounding_top)

    @cached_property
    def contrast_units(self) -> tuple[float, float]:
        """`contrast_center` and `contrast_scale`."""
        return self.contrast_center, self.contrast_scale

    @cached_property
    def match_signal(self) -> str:
        """Name of the signal that the grounding gate reads."""
        return "max_cosine" if self.grounding_top == 1 else "mean_top3_cosine"

    @cached_property
    def signal_cuts(self) -> dict[str, tuple[float, ...]]:
        """Lower ends of the bands of each signal."""
        cuts = (
            self.grounding_cuts,
            self.localization_cuts,
            self.cohesion_cuts,
            self.consistency_cuts,
            self.robustness_cuts,
        )
        return dict(zip(map(str, Signal), cuts, strict=True))

    @cached_property
    def signal_floors(self) -> dict[str, float]:
        """Value below which each signal alone changes the verdict."""
        return dict(zip(map(str, Signal), (self.grounding_min, *self.floors.as_tuple()), strict=True))

    @cached_property
    def display_cuts(self) -> dict[str, tuple[float, ...]]:
        """Every threshold that a displayed value must not seem to cross, by signal and for "kpi"."""
        kpi = (*self.kpi_cuts, *self.confidence_cuts, self.answer_at, self.review_at)
        floors = self.signal_floors
        return {"kpi": kpi} | {signal: (*cuts, floors[signal]) for signal, cuts in self.signal_cuts.items()}

    @cached_property
    def risk_floors(self) -> tuple[float, ...]:
        """What a signal is measured from when the primary risk is looked for.

        Its floor; where no driver has one, `grounding_min`, so that signals compare by their values; and
        minus infinity for drivers without a floor that hardly count: they are never the primary risk.
        """
        floors = self.floors.as_tuple()
        instead = 0.0 if any(floors) else self.grounding_min
        usual = [instead if weight >= _LEAST_WEIGHT else -math.inf for weight in self.unit_weights]
        return (self.grounding_min, *(floor or other for floor, other in zip(floors, usual, strict=True)))

    @cached_property
    def floor_column(self) -> FloatArray:
        """`risk_floors` as an array of shape (5, 1)."""
        return _column(self.risk_floors)

    @cached_property
    def unit_weights(self) -> tuple[float, ...]:
        """`weights` scaled to a sum of one."""
        weights = self.weights.as_tuple()
        return tuple(weight / sum(weights) for weight in weights)

    @cached_property
    def weight_column(self) -> FloatArray:
        """`unit_weights` as an array of shape (4, 1)."""
        return _column(self.unit_weights)

    @cached_property
    def fingerprint(self) -> str:
        """Hash of every constant: equal for equal policies."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def _column(values: Iterable[float]) -> FloatArray:
    """A read-only (n, 1) array: a policy may be shared by threads."""
    column = np.array([*values])[:, None]
    column.flags.writeable = False
    return column


DEFAULT_POLICY = MetricPolicy()
