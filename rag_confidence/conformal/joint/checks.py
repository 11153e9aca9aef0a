"""A threshold for each check, to compare the joint gate with: naive (no joint bound) and Bonferroni."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from rag_confidence._artefact import decode_floats
from rag_confidence._options import check_flag, check_text
from rag_confidence._types import FloatArray, Guarantee
from rag_confidence.conformal.history import History, check_collected
from rag_confidence.conformal.joint.check_rows import (
    JointPrediction,
    JointPredictions,
    at_single,
    check_calls,
    check_names,
    check_row,
    check_rows,
)
from rag_confidence.conformal.joint.guarantee import (
    bonferroni_guarantee,
    calls_needed,
    naive_guarantee,
    no_guarantee,
    refuse_or_warn,
    why_infinite,
)
from rag_confidence.conformal.quantile import Level, as_level, kth_smallest, least_rank
from rag_confidence.errors import SmallCalibrationWarning

Correction: TypeAlias = Literal["naive", "bonferroni"]


@dataclass(frozen=True, eq=False)
class PerCheckGate:
    """Abstains where any of K checks is above a threshold of its own.

    Attributes
    ----------
    names : tuple of str
        The checks, in the order of the columns.
    correction : {"naive", "bonferroni"}
        Whether each check has the level alpha, or alpha / K.
    level, level_each : Fraction
        The exact alpha, and what each check has.
    n : int
        Good calls that it was calibrated on.
    n_failed : int
        The most of them on which one check failed to run.
    thresholds : ndarray, shape (K,)
        If one is infinite, nothing is certified and every call abstains.
    single : bool
        Whether the calibration scores were float32, so that all rows are compared in that precision.
    history : History
        When the calls were collected, and who judged them.
    """

    names: tuple[str, ...]
    correction: Correction
    level: Fraction
    level_each: Fraction
    n: int
    n_failed: int
    thresholds: FloatArray
    single: bool
    history: History

    @property
    def alpha(self) -> float:
        """The level as a float."""
        return float(self.level)

    @property
    def n_needed(self) -> int:
        """Good calls without a failed check from which all thresholds are finite."""
        return calls_needed(self.level_each)

    @property
    def certified(self) -> bool:
        """Whether all thresholds are finite; if not, every call abstains."""
        return bool(np.isfinite(self.thresholds).all())

    @cached_property
    def guarantee(self) -> Guarantee:
        """Bonferroni: P(all thresholds finite, and a good call abstained on) <= alpha; naive: nothing."""
        if not self.certified:
            sentence = why_infinite(self.level_each, self.n, self.n_failed)
            return no_guarantee(self.level, self.n, self.history, sentence)
        words = bonferroni_guarantee if self.correction == "bonferroni" else naive_guarantee
        return words(self.level, self.n, len(self.names), self.history)

    def predict_one(self, row: ArrayLike) -> JointPrediction:
        """The decision on one call (K,), as `JointGate.predict_one`."""
        return self._decide(check_row("row", row, self.names))[0]

    def predict(self, rows: ArrayLike) -> JointPredictions:
        """The decisions on m calls (m, K), as `JointGate.predict`."""
        return self._decide(check_rows("rows", rows, self.names))

    def _decide(self, rows: FloatArray) -> JointPredictions:
        single = self.single or rows.dtype == np.float32
        scores, thresholds = (at_single(a) if single else a for a in (rows, self.thresholds))
        if not self.certified:
            failed = np.zeros(scores.shape, dtype=bool)
            statistics, threshold = scores.max(axis=1), math.inf
        else:
            failed = np.asarray(scores > thresholds)
            statistics, threshold = _excess(scores, thresholds).max(axis=1), 0.0
        return JointPredictions(
            accepted=np.logical_not(failed.any(axis=1)) & self.certified,
            failed=failed,
            statistics=statistics,
            threshold=threshold,
            names=self.names,
            guarantee=self.guarantee,
        )


def fit_naive_checks(
    scores: ArrayLike,
    alpha: Level = 0.10,
    *,
    names: Sequence[str] | None = None,
    collected: Any = None,
    labeling_source: str | None = None,
    strict: bool = False,
) -> PerCheckGate:
    """K thresholds at alpha each: what one must not do, to compare with.

    Each check alone fails at most alpha of good calls, but together they abstain on up to K alpha (sets with
    an infinite threshold counting as no error), and the guarantee claims nothing about the decision.

    Parameters
    ----------
    scores : array_like, shape (n, K)
        Nonconformity of good calls, as for `fit_joint_gate`.
    alpha : float, str, Fraction or Decimal
        Level of each check, in (0, 1).
    names, collected, labeling_source, strict
        As for `fit_joint_gate`.

    Returns
    -------
    PerCheckGate

    Warns
    -----
    SmallCalibrationWarning
        If a threshold is infinite, so that every call abstains.

    Raises
    ------
    TypeError, ValueError, CalibrationRefused
        As for `fit_joint_gate`.

    Examples
    --------
    >>> gate = fit_naive_checks([[i / 20, 1 - i / 20] for i in range(20)], 0.1)
    >>> gate.guarantee.holds, gate.predict_one([0.92, 0.5]).failed_checks
    (False, ('check_0',))
    """
    flag, history = check_flag("strict", strict), _history(collected, labeling_source)
    gate = _fit(scores, alpha, "naive", names=names, history=history)
    if not gate.certified:
        refuse_or_warn(gate.guarantee.sentence, SmallCalibrationWarning, strict=flag)
    return gate


def fit_bonferroni_checks(
    scores: ArrayLike,
    alpha: Level = 0.10,
    *,
    names: Sequence[str] | None = None,
    collected: Any = None,
    labeling_source: str | None = None,
    strict: bool = False,
) -> PerCheckGate:
    """K thresholds at alpha / K each: the same bound as the joint gate, and wasteful where checks agree.

    Parameters
    ----------
    scores : array_like, shape (n, K)
        Nonconformity of good calls, as for `fit_joint_gate`.
    alpha : float, str, Fraction or Decimal
        Level of the decision, in (0, 1); divided by K exactly.
    names, collected, labeling_source, strict
        As for `fit_joint_gate`.

    Returns
    -------
    PerCheckGate

    Warns
    -----
    SmallCalibrationWarning
        If a threshold is infinite, so that every call abstains: K times as many calls are needed as for
        the joint gate.

    Raises
    ------
    TypeError, ValueError, CalibrationRefused
        As for `fit_joint_gate`.

    Notes
    -----
    The bound is on P(all thresholds are finite, and a good call is abstained on), as for `fit_joint_gate`.
    Where checks can fail to run, a threshold at alpha / K is infinite sooner than one at alpha.

    Examples
    --------
    >>> gate = fit_bonferroni_checks([[i / 20, 1 - i / 20] for i in range(20)], 0.1)
    >>> gate.level_each, gate.guarantee.bound, gate.n_needed
    (Fraction(1, 20), 0.1, 19)
    """
    flag, history = check_flag("strict", strict), _history(collected, labeling_source)
    gate = _fit(scores, alpha, "bonferroni", names=names, history=history)
    if not gate.certified:
        refuse_or_warn(gate.guarantee.sentence, SmallCalibrationWarning, strict=flag)
    return gate


def _history(collected: Any, labeling_source: str | None) -> History:
    check_text("labeling_source", labeling_source)
    return History(check_collected(collected), labeling_source)


def _fit(
    scores: ArrayLike,
    alpha: Level,
    correction: Correction,
    *,
    names: Sequence[str] | None,
    history: History,
) -> PerCheckGate:
    level, rows = as_level(alpha), check_calls("scores", scores)
    checks = check_names(names, scores)
    each = level / len(checks) if correction == "bonferroni" else level
    rank = least_rank(len(rows), each)
    thresholds = [kth_smallest(column, rank if rank <= len(rows) else math.inf) for column in rows.T]
    return PerCheckGate(
        names=checks,
        correction=correction,
        level=level,
        level_each=each,
        n=len(rows),
        n_failed=int(np.isposinf(rows).sum(axis=0).max()),
        thresholds=decode_floats(thresholds),
        single=rows.dtype == np.float32,
        history=history,
    )


def _excess(scores: FloatArray, thresholds: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):
        return np.asarray(scores.astype(np.float64) - thresholds)
