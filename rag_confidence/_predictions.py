"""What a gate says of a score, alone or in columns, and what anything must offer to be a gate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike

from rag_confidence._history import GroupName
from rag_confidence._types import Decision, FloatArray, Guarantee, Mask, Provenance, ReasonCode

OnConflict: TypeAlias = Literal["abstain", "accept", "reject"]
PredictionSet: TypeAlias = tuple[int, ...]

_SETS: dict[tuple[bool, bool], PredictionSet] = {
    (False, False): (),
    (True, False): (0,),
    (False, True): (1,),
    (True, True): (0, 1),
}


@dataclass(frozen=True)
class GatePrediction:
    """The decision on one score, with all that led to it.

    Attributes
    ----------
    score : float
    decision : Decision
        ACCEPT, REJECT or ABSTAIN.
    prediction_set : tuple of int, or None
        Labels that could not be excluded: (1,), (0,), (0, 1) or (). None for a gate without sets.
    p_value_0, p_value_1 : float or None
        Conformal p-values of "insufficient" and "sufficient"; small means strange for that label.
    margin_to_threshold : float or None
        Score minus the score from which this gate accepts; None where it never accepts.
    reason_code : ReasonCode
        Which outcome of the gate it is.
    group : str or int or None
    guarantee : Guarantee
        What is bounded, for whom, and what is not claimed.
    """

    score: float
    decision: Decision
    prediction_set: PredictionSet | None
    p_value_0: float | None
    p_value_1: float | None
    margin_to_threshold: float | None
    reason_code: ReasonCode
    group: GroupName | None
    guarantee: Guarantee

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; the decision in capitals."""
        kept = self.prediction_set
        return {
            "score": self.score,
            "decision": self.decision.name,
            "prediction_set": None if kept is None else [*kept],
            "p_value_0": self.p_value_0,
            "p_value_1": self.p_value_1,
            "margin_to_threshold": self.margin_to_threshold,
            "reason_code": self.reason_code.value,
            "group": self.group,
            "guarantee": self.guarantee.to_dict(),
        }


class Gate(Protocol):
    """What `score(gate=...)` needs of a gate."""

    @property
    def provenance(self) -> Provenance | None:
        """How the scores were made that it was fitted on."""

    @property
    def score_range(self) -> tuple[float, float]:
        """The smallest and the largest score that it was fitted on."""

    @property
    def fingerprint(self) -> str:
        """Hash of all that it is."""

    def predict_one(self, score: float, group: GroupName | None = None) -> GatePrediction:
        """The decision on one score."""

    def decide_one(self, score: float, group: GroupName | None) -> GatePrediction:
        """The decision on one score that was checked before: no error and no warning of its own."""

    def predict(self, scores: ArrayLike, groups: Sequence[GroupName] | None = None) -> GatePredictions:
        """The decisions on many scores."""


@dataclass(frozen=True)
class ModelPrediction:
    """What a learned model makes of one retrieval, and why.

    Attributes
    ----------
    p_sufficient : float
        In [0, 1], to twelve decimals.
    contributions : mapping of str to float
        What each signal adds to the log-odds; with the entry "intercept" they sum to it.
    out_of_range : tuple of str
        Signals outside the range that the model was trained on.
    """

    p_sufficient: float
    contributions: Mapping[str, float]
    out_of_range: tuple[str, ...]


class Model(Protocol):
    """What `score(model=...)` needs of a learned model."""

    @property
    def fingerprint(self) -> str:
        """Hash of all that it is."""

    @property
    def names(self) -> tuple[str, ...]:
        """Keys of the signals that it reads."""

    @property
    def provenance(self) -> Provenance | None:
        """How the signals were made that it was trained on; `model` is its own fingerprint."""

    def predict_columns(self, columns: Mapping[str, FloatArray]) -> FloatArray:
        """P(sufficient), shape (Q,), from columns named as in the record; nan where not assessed."""

    def predict_one(self, signals: Mapping[str, float | None]) -> ModelPrediction:
        """The prediction for one retrieval, equal to that of `predict_columns`."""


def decide(keeps_0: bool, keeps_1: bool, on_conflict: OnConflict) -> Decision:
    """The decision that follows from the labels that could not be excluded."""
    if not keeps_0 and (keeps_1 or on_conflict == "accept"):
        return Decision.ACCEPT
    if not keeps_1 and (keeps_0 or on_conflict == "reject"):
        return Decision.REJECT
    return Decision.ABSTAIN


def reason_of(keeps_0: bool, keeps_1: bool, *, unfit: bool, infinite: bool) -> ReasonCode:
    """The outcome that a set of labels is: why both were kept, where both were."""
    if keeps_0 != keeps_1:
        return ReasonCode.GATE_ACCEPT if keeps_1 else ReasonCode.GATE_REJECT
    if not keeps_0:
        return ReasonCode.GATE_EMPTY_SET
    if unfit:
        return ReasonCode.GATE_UNFIT_GROUP
    return ReasonCode.GATE_INFINITE if infinite else ReasonCode.GATE_AMBIGUOUS


def set_of(keeps_0: bool, keeps_1: bool) -> PredictionSet:
    """The labels kept, as a tuple."""
    return _SETS[keeps_0, keeps_1]


@dataclass(frozen=True, eq=False, repr=False)
class GatePredictions:
    """Decisions on n scores, as columns; ``predictions[i]`` is a `GatePrediction`.

    Everything is decided once, when this is built. The array of scores is not copied: single predictions are
    made from it anew, and are refused if it was changed so that they would differ.

    Attributes
    ----------
    scores : ndarray, shape (n,)
    groups : sequence or None
        The group of each row.
    seen : ndarray, shape (n,)
        The scores in the precision in which they meet the thresholds.
    q0, t1 : float or ndarray, shape (n,)
        Thresholds that each score meets: "insufficient" is kept up to `q0`, "sufficient" from `t1` on.
    label0_kept, label1_kept : ndarray of bool, shape (n,)
        Whether "insufficient" and "sufficient" could not be excluded; from the three above.
    unfit, infinite : ndarray of bool, shape (n,) or bool
        Rows of a group that the gate is not fitted for, and rows that meet an infinite threshold.
    on_conflict : {"abstain", "accept", "reject"}
        What an empty set means.
    gate : Gate
        The gate that decided.
    has_sets : bool
        Whether this gate makes prediction sets.
    """

    scores: FloatArray
    groups: Sequence[GroupName] | None
    seen: InitVar[FloatArray]
    q0: InitVar[Any]
    t1: InitVar[Any]
    unfit: Mask | bool
    infinite: Mask | bool
    on_conflict: OnConflict
    gate: Gate
    has_sets: bool = True
    label0_kept: Mask = field(init=False)
    label1_kept: Mask = field(init=False)

    def __post_init__(self, seen: FloatArray, q0: Any, t1: Any) -> None:
        object.__setattr__(self, "label0_kept", seen <= q0)
        object.__setattr__(self, "label1_kept", seen >= t1)

    def __len__(self) -> int:
        return len(self.scores)

    def __repr__(self) -> str:
        return (
            f"GatePredictions({len(self)} scores: {np.count_nonzero(self.accepted)} accept, "
            f"{np.count_nonzero(self.rejected)} reject, {np.count_nonzero(self.abstained)} abstain)"
        )

    @overload
    def __getitem__(self, index: int) -> GatePrediction: ...

    @overload
    def __getitem__(self, index: slice) -> list[GatePrediction]: ...

    def __getitem__(self, index: int | slice) -> GatePrediction | list[GatePrediction]:
        if isinstance(index, slice):
            return [self[i] for i in range(len(self))[index]]
        position = range(len(self))[index]
        group = None if self.groups is None else self.groups[position]
        found = self.gate.decide_one(self.scores[position], group)
        kept = bool(self.label0_kept[position]), bool(self.label1_kept[position])
        if found.decision is not decide(*kept, self.on_conflict):
            raise ValueError(
                f"`scores` must stay as they were for predict; got another score at row {position}. "
                "Hand in a copy of an array that you write to."
            )
        return found

    def __iter__(self) -> Iterator[GatePrediction]:
        return (self[i] for i in range(len(self)))

    @cached_property
    def accepted(self) -> Mask:
        """Rows with the decision ACCEPT, shape (n,)."""
        if self.on_conflict == "accept":
            return ~self.label0_kept
        # Of two booleans the greater one is true where the other is not.
        return np.greater(self.label1_kept, self.label0_kept)

    @cached_property
    def rejected(self) -> Mask:
        """Rows with the decision REJECT, shape (n,)."""
        if self.on_conflict == "reject":
            return ~self.label1_kept
        return np.greater(self.label0_kept, self.label1_kept)

    @cached_property
    def abstained(self) -> Mask:
        """Rows with the decision ABSTAIN, shape (n,)."""
        return ~(self.accepted | self.rejected)

    @cached_property
    def conflicting(self) -> Mask:
        """Rows with an empty set: strange for both labels, shape (n,)."""
        return ~(self.label0_kept | self.label1_kept)

    @cached_property
    def decision(self) -> np.ndarray[Any, np.dtype[np.str_]]:
        """ "accept", "reject" or "abstain", shape (n,)."""
        words = np.array([Decision.ABSTAIN.value, Decision.ACCEPT.value, Decision.REJECT.value])
        return words[self.accepted + 2 * self.rejected]

    @cached_property
    def reason_code(self) -> np.ndarray[Any, np.dtype[np.str_]]:
        """Which outcome of the gate each row is, shape (n,)."""
        both = np.where(self.infinite, ReasonCode.GATE_INFINITE.value, ReasonCode.GATE_AMBIGUOUS.value)
        both = np.where(self.unfit, ReasonCode.GATE_UNFIT_GROUP.value, both)
        one = np.where(self.label1_kept, ReasonCode.GATE_ACCEPT.value, ReasonCode.GATE_REJECT.value)
        same = np.where(self.label0_kept, both, ReasonCode.GATE_EMPTY_SET.value)
        return np.where(self.label0_kept == self.label1_kept, same, one)

    @cached_property
    def prediction_sets(self) -> list[PredictionSet | None]:
        """The labels kept for each row; None for a gate without sets."""
        if not self.has_sets:
            return [None] * len(self)
        kept = zip(self.label0_kept.tolist(), self.label1_kept.tolist(), strict=True)
        return [set_of(keeps_0, keeps_1) for keeps_0, keeps_1 in kept]
