"""New scores that meet a gate: checked against the scale it was fitted on, and rounded to its precision."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from rag_confidence._history import check_aligned, check_fractions, check_labels, check_scores, real_vector
from rag_confidence._options import check_choice
from rag_confidence._types import FloatArray, Mask
from rag_confidence.errors import OutOfRangeWarning, warn_caller

ScoreKind: TypeAlias = Literal["fraction", "raw"]

RAW_CURE = "Pass the unrounded KPI or a probability, or fit the gate with score_kind='raw'."
_ONE = np.float64(1.0).view(np.uint64)
_PRECISIONS = ("float16", "float32", "float64")
_LARGEST_PERCENTAGE = 100.0
# Logits and sums of a few cosines stay below; percentages of a calibration set do not.
_LARGEST_SMALL = 20.0


@dataclass(frozen=True)
class Scale:
    """What scores look like that a gate was fitted on: their kind, range and precision."""

    kind: ScoreKind
    low: float
    high: float
    precision: str

    @classmethod
    def of(cls, kind: ScoreKind, scores: FloatArray) -> Scale:
        """Of checked calibration scores."""
        return cls(kind, float(scores.min()), float(scores.max()), scores.dtype.name)

    def checked(self) -> Scale:
        """Itself, if its words are known; for what was read from a file."""
        check_choice("kind", self.kind, get_args(ScoreKind))
        check_choice("precision", self.precision, _PRECISIONS)
        return self

    @property
    def looks_like_percentages(self) -> bool:
        """Whether raw scores lie in [0, 100] and far above 1."""
        return self.kind == "raw" and self.low >= 0.0 and _LARGEST_SMALL < self.high <= _LARGEST_PERCENTAGE


def check_calibration(
    scores: ArrayLike, labels: ArrayLike, kind: ScoreKind, *, negatives: Any, **columns: Any
) -> tuple[FloatArray, Mask]:
    """Labelled scores of a kind, and the other columns of their table, which must belong together."""
    # Negatives may be counts and then are no column; one with an index is.
    indexed = negatives if hasattr(negatives, "iloc") else None
    check_aligned(scores=scores, labels=labels, negatives=indexed, **columns)
    values, sufficient = check_scores("scores", scores), check_labels("labels", labels)
    if kind == "fraction":
        check_fractions("scores", values, RAW_CURE)
    return values, sufficient


def check_new_scores(scores: ArrayLike, scale: Scale) -> FloatArray:
    """`scores` (n,) of the calibrated kind; no scores are allowed, for a batch may be empty."""
    values = real_vector("scores", scores)
    if not values.size or (scale.kind == "fraction" and _are_fractions(values)):
        return values
    # Here and below: one pass each, as min and max, but on some thousand scores in half their time.
    low, high = float(values[values.argmin()]), float(values[values.argmax()])
    if not (math.isfinite(low) and math.isfinite(high)):
        return check_scores("scores", values)
    if scale.kind == "fraction":
        check_fractions("scores", values, RAW_CURE)
    else:
        _warn_if_far(low, high, scale)
    return values


def _are_fractions(values: FloatArray) -> bool:
    """Whether one or more doubles are surely finite and in [0, 1], in one pass.

    Read as unsigned integers, doubles from +0.0 to 1.0 are those up to the bits of 1.0: negative numbers,
    infinities and nan all lie above.
    """
    if values.dtype != np.float64 or not values.flags.c_contiguous:
        return False
    bits = values.view(np.uint64)
    return bool(bits[bits.argmax()] <= _ONE)


def check_new_score(score: Any, scale: Scale) -> Any:
    """One `score` of the calibrated kind, as the float it came as."""
    if type(score) is float and scale.kind == "fraction" and 0.0 <= score <= 1.0:
        return score
    value = _one_number(score)
    if not math.isfinite(value):
        raise ValueError(f"`score` must be finite; got {value}. Leave out rows without a score.")
    if scale.kind == "fraction":
        check_fractions("score", np.array([value]), RAW_CURE)
    else:
        _warn_if_far(float(value), float(value), scale)
    return value


def _one_number(score: Any) -> Any:
    if isinstance(score, np.ndarray) and score.ndim == 0:
        score = score[()]
    if isinstance(score, (np.floating, np.integer, float, int)) and not isinstance(score, bool):
        if isinstance(score, (np.float16, np.float32)):
            return score
        try:
            return float(score)
        except OverflowError:
            return math.inf
    raise TypeError(f"`score` must be a real number; got {score!r}. Pass one score, or use predict for many.")


def _warn_if_far(low: float, high: float, scale: Scale) -> None:
    """A raw score more than the whole calibrated range beyond it was probably made in another way."""
    if scale.looks_like_percentages and low >= 0.0 and high <= 1.0:
        cure = "They look like fractions where percentages were fitted: multiply by 100."
    elif low < scale.low - (scale.high - scale.low) or high > scale.high + (scale.high - scale.low):
        cure = "Check that they are made as the calibration scores were."
    else:
        return
    shown = f"{low:.6g}" if low == high else f"{low:.6g} to {high:.6g}"
    message = f"scores far outside the calibrated range {scale.low:.6g} to {scale.high:.6g}: {shown}. {cure}"
    warn_caller(message, OutOfRangeWarning)


def coarser(dtype: np.dtype[Any], scale: Scale) -> np.dtype[Any]:
    """The less precise of the dtype of new scores and that of the calibration scores.

    Rounding is monotone, so comparing there can only keep labels that an exact comparison would drop.
    """
    calibrated = np.dtype(scale.precision)
    return dtype if dtype.itemsize < calibrated.itemsize else calibrated


def rounded(values: Any, dtype: np.dtype[Any]) -> Any:
    """Numbers in the given precision; thresholds beyond its range become infinite."""
    array = np.asarray(values)
    if array.dtype == dtype:
        return array
    with np.errstate(over="ignore"):
        return array.astype(dtype)
