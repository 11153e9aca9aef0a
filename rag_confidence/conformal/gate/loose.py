"""Loose thresholds: q0 and q1 without the calibration set that they came from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from rag_confidence._artefact import digest, encode_float
from rag_confidence._history import GroupName
from rag_confidence._predictions import GatePrediction, GatePredictions, decide, reason_of, set_of
from rag_confidence._types import FloatArray, Guarantee, Mask, Provenance
from rag_confidence.conformal.new_scores import Scale, check_new_score, check_new_scores, rounded
from rag_confidence.conformal.quantile import Level, as_level

_SCALE = Scale("fraction", 0.0, 1.0, "float64")
_LIKE_PERCENTAGES = 1.5


@dataclass(frozen=True)
class Thresholds:
    """Thresholds as numbers, for callers that keep no gate.

    Without the calibration rows nothing can be claimed, there are no p-values and no other levels: where
    you can, keep the `ConformalGate`.

    Attributes
    ----------
    q0, q1 : float
        "insufficient" is kept for s <= q0, "sufficient" for 1 - s <= q1; ``inf`` keeps a label always.
        In [0, 1] unless infinite.
    alpha : float, str, Fraction or Decimal
        The level that they were fitted at, as the caller says.

    Raises
    ------
    TypeError, ValueError
        For thresholds that are not numbers, or neither in [0, 1] nor infinite.

    Examples
    --------
    >>> Thresholds(q0=0.4, q1=0.5).predict_one(0.9).prediction_set
    (1,)
    """

    q0: float
    q1: float
    alpha: Level = 0.10

    def __post_init__(self) -> None:
        for name in ("q0", "q1"):
            object.__setattr__(self, name, _threshold(name, getattr(self, name)))
        as_level(self.alpha)

    @property
    def provenance(self) -> Provenance | None:
        """None: nobody recorded how the scores were made."""
        return None

    @property
    def score_range(self) -> tuple[float, float]:
        """0 and 1, for fractions."""
        return _SCALE.low, _SCALE.high

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the three numbers."""
        numbers = [encode_float(self.q0), encode_float(self.q1), str(as_level(self.alpha))]
        return digest(numbers)[:16]

    @cached_property
    def guarantee(self) -> Guarantee:
        """Nothing is claimed."""
        return Guarantee(
            kind="none",
            holds=False,
            event="ACCEPT although the evidence is insufficient",
            bound=None,
            conditioning="nothing is claimed",
            assumption="none can be checked",
            alpha=float(as_level(self.alpha)),
            alpha_reject=None,
            delta=None,
            n0=0,
            n1=0,
            group=None,
            collected=None,
            labeling_source=None,
            negatives=(),
            not_claimed=("Any bound: the calibration set behind these thresholds is not known.",),
            sentence=(
                "Nothing is claimed: the thresholds came as numbers, without the calibration set behind them."
            ),
        )

    def predict_one(self, score: float, group: GroupName | None = None) -> GatePrediction:
        """The decision on one score in [0, 1]."""
        return self.decide_one(check_new_score(score, _SCALE), group)

    def decide_one(self, value: float, group: GroupName | None) -> GatePrediction:
        """The decision on one score that was checked before."""
        _refuse_groups(group)
        kept_0, kept_1 = self._kept(np.array([value]))
        keeps_0, keeps_1 = bool(kept_0[0]), bool(kept_1[0])
        bar = max(self.q0, 1.0 - self.q1)
        return GatePrediction(
            score=float(value),
            decision=decide(keeps_0, keeps_1, "abstain"),
            prediction_set=set_of(keeps_0, keeps_1),
            p_value_0=None,
            p_value_1=None,
            margin_to_threshold=_margin(float(value), bar, accepted=keeps_1 and not keeps_0),
            reason_code=reason_of(keeps_0, keeps_1, unfit=False, infinite=self._is_infinite),
            group=None,
            guarantee=self.guarantee,
        )

    def predict(self, scores: ArrayLike, groups: Sequence[GroupName] | None = None) -> GatePredictions:
        """The decisions on many scores in [0, 1]."""
        _refuse_groups(groups)
        values = check_new_scores(scores, _SCALE)
        q0, kept_1 = rounded(self.q0, values.dtype), self._kept(values)[1]
        # A threshold that each score passes or not says what either form of the comparison said.
        t1 = np.where(kept_1, -np.inf, np.inf)
        return GatePredictions(values, None, values, q0, t1, False, self._is_infinite, "abstain", self)

    @property
    def _is_infinite(self) -> bool:
        return math.isinf(self.q0) or math.isinf(self.q1)

    def _kept(self, values: FloatArray) -> tuple[Mask, Mask]:
        """Which of the two forms of the second threshold was rounded is not known: either keeps the label."""
        q0, q1, t1 = (rounded(bar, values.dtype) for bar in (self.q0, self.q1, 1.0 - self.q1))
        return values <= q0, (1 - values <= q1) | (values >= t1)


def _threshold(name: str, value: Any) -> float:
    """A threshold on fractions; only infinities may lie outside [0, 1]."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.floating, np.integer)):
        raise TypeError(f"`{name}` must be a number; got {value!r}. Use inf for no threshold.")
    # Beside a narrow float NumPy would round what it is compared with, and warn.
    value = float(value) if isinstance(value, np.floating) else value
    if value != value:
        raise ValueError(f"`{name}` must be a number; got nan. Use inf for no threshold.")
    if 0.0 <= value <= 1.0 or value in (math.inf, -math.inf):
        return float(value)
    # Python refuses to write out integers of some thousand digits.
    shown = f"{value}" if -1e300 < value < 1e300 else "a number beyond 1e300"
    cure = "Divide percentages by 100." if _LIKE_PERCENTAGES < value <= 100 else "Use inf for no threshold."
    raise ValueError(f"`{name}` must be a number in [0, 1], or inf; got {shown}. {cure}")


def _margin(value: float, bar: float, *, accepted: bool) -> float | None:
    """Score minus the bar, with the sign that the decision has whatever rounding made of it."""
    if math.isinf(bar):
        return None
    return max(value - bar, 0.0) if accepted else min(value - bar, 0.0)


Decider = TypeVar("Decider")


def check_decider(gate: Decider) -> Decider:
    """Refuse what decides nothing."""
    # A joint gate decides on calls, not on one score, and a class on nothing.
    if isinstance(gate, type) or not (hasattr(gate, "predict_one") and hasattr(gate, "score_range")):
        got = f"the class {gate.__name__}" if isinstance(gate, type) else type(gate).__name__
        raise TypeError(
            f"`gate` must be a fitted gate or Thresholds; got {got}. Pass what fit_conformal_gate returned."
        )
    return gate


def _refuse_groups(groups: object) -> None:
    if groups is not None:
        raise ValueError("`group` must be left out for loose thresholds; got one. Fit a gate with groups=.")
