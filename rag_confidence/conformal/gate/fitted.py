"""ConformalGate: two thresholds with a guarantee, and the decision that follows from them."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rag_confidence import _artefact
from rag_confidence._history import GroupName
from rag_confidence._predictions import (
    GatePrediction,
    GatePredictions,
    OnConflict,
    decide,
    reason_of,
    set_of,
)
from rag_confidence._types import FloatArray, Guarantee, Provenance
from rag_confidence.conformal.gate import payload
from rag_confidence.conformal.gate.attempts import alpha_for_attempt
from rag_confidence.conformal.gate.cells import Cell, GuaranteeKind, Levels
from rag_confidence.conformal.gate.guarantee import gate_guarantee
from rag_confidence.conformal.gate.refusal import separation_note, shortage_note
from rag_confidence.conformal.gate.table import CellTable, rows_by_place
from rag_confidence.conformal.history import History
from rag_confidence.conformal.new_scores import Scale, check_new_score, check_new_scores, coarser, rounded
from rag_confidence.conformal.quantile import Level, as_level
from rag_confidence.conformal.rows import Rows

KIND = "conformal_gate"


@dataclass(frozen=True, eq=False, repr=False)
class ConformalGate:
    """A class-conditional split-conformal gate; made by `fit_conformal_gate`.

    Attributes
    ----------
    levels : Levels
        Exact levels of a false ACCEPT and a false REJECT, and delta of a pac gate.
    on_conflict : {"abstain", "accept", "reject"}
        What a score means that is strange for both labels.
    table : CellTable
        Class scores and thresholds, of all rows together and by group.
    scale : Scale
        Kind, range and precision of the calibration scores.
    history : History
        Dates, labelling source and kinds of negatives.
    auroc, auroc_low, auroc_high : float
        How well the score separates the classes, with a 95 % interval.
    provenance : Provenance or None
        How the calibration scores were made.
    rows : Rows
        The rows it was fitted on.
    auroc_floor : float
        Lower end of the interval of the AUROC below which the fit warns.
    """

    levels: Levels
    on_conflict: OnConflict
    table: CellTable
    scale: Scale
    history: History
    auroc: float
    auroc_low: float
    auroc_high: float
    provenance: Provenance | None
    rows: Rows
    auroc_floor: float

    def __repr__(self) -> str:
        groups, whole = len(self.table.groups), self.table.whole
        bounds = f"{groups} groups" if groups else f"q0={whole.q0:g}, t1={whole.t1:g}"
        return (
            f"ConformalGate({self.kind} at alpha={float(self.levels.accept):g}: {self.n0} insufficient, "
            f"{self.n1} sufficient, {bounds}, AUROC {self.auroc:.3f})"
        )

    @property
    def kind(self) -> GuaranteeKind:
        """ "marginal" or "pac"."""
        return "marginal" if self.levels.delta is None else "pac"

    @property
    def alpha(self) -> float:
        """Level of a false ACCEPT."""
        return float(self.levels.accept)

    @property
    def alpha_reject(self) -> float:
        """Level of a false REJECT."""
        return float(self.levels.reject)

    @property
    def delta(self) -> float | None:
        """Share of calibration sets that may break the levels of a pac gate; None for a marginal one."""
        return None if self.levels.delta is None else float(self.levels.delta)

    @property
    def n0(self) -> int:
        """Insufficient rows (with clusters: queries that have one)."""
        return self.table.whole.n0

    @property
    def n1(self) -> int:
        """Sufficient rows (with clusters: queries that have one)."""
        return self.table.whole.n1

    @property
    def data_hash(self) -> str:
        """SHA-256 of the calibration scores and labels, in whatever order they came."""
        return self.rows.data_hash

    @property
    def notes(self) -> tuple[str, ...]:
        """What the fit warned of, at the levels of this gate."""
        return tuple(note for note in (self.shortage_note, self.separation_note) if note)

    @property
    def shortage_note(self) -> str | None:
        """One sentence on classes with too few rows; None where there are none."""
        return shortage_note(self.table.groups or (self.table.whole,), self.levels)

    @property
    def separation_note(self) -> str | None:
        """One sentence on a score that hardly tells the classes apart; None where it does."""
        return separation_note(self.auroc, self.auroc_low, self.auroc_high, self.auroc_floor)

    @property
    def labels_needed(self) -> dict[int, int]:
        """Fewest rows of each class (of each group) that support the levels."""
        return {0: self.levels.least_n(self.levels.accept), 1: self.levels.least_n(self.levels.reject)}

    @property
    def q0(self) -> float:
        """Highest score at which "insufficient" is kept; ``inf`` keeps it always."""
        return self.table.only.q0

    @property
    def t1(self) -> float:
        """Lowest score at which "sufficient" is kept; ``-inf`` keeps it always."""
        return self.table.only.t1

    @property
    def q1(self) -> float:
        """1 - t1, the threshold on the nonconformity 1 - s, for display; decisions use `t1`."""
        return 1.0 - self.t1

    @property
    def guarantee(self) -> Guarantee:
        """What this gate guarantees; with groups, ask `guarantee_of`."""
        return self._guarantees(self.table.only.group)

    @property
    def score_range(self) -> tuple[float, float]:
        """The smallest and the largest calibration score."""
        return self.scale.low, self.scale.high

    @cached_property
    def fingerprint(self) -> str:
        """Hash of everything that is saved."""
        return _artefact.digest(payload.written(self))[:16]

    def thresholds(self, group: GroupName | None = None) -> tuple[float, float]:
        """(q0, t1) that a score of `group` meets."""
        cell = self.table.find(group).cell
        return cell.q0, cell.t1

    def guarantee_of(self, group: GroupName | None = None) -> Guarantee:
        """What is guaranteed for a score of `group`."""
        self.table.check_asked(group)
        return self._guarantees(group)

    def predict_one(self, score: float, group: GroupName | None = None) -> GatePrediction:
        """The decision on one score.

        Parameters
        ----------
        score : float
            Of the kind and scale that the gate was fitted on.
        group : str or int, optional
            For a gate with groups.

        Returns
        -------
        GatePrediction

        Raises
        ------
        TypeError, ValueError
            For what is no finite score, percentages where fractions were fitted, and a missing group.
        """
        return self.decide_one(check_new_score(score, self.scale), group)

    def decide_one(self, value: float, group: GroupName | None) -> GatePrediction:
        """The decision on one score that was checked before."""
        found = self.table.find(group)
        cell = found.cell
        seen, q0, t1 = self._comparable(np.asarray(value), cell.q0, cell.t1)
        p0, p1 = _p_values(cell, seen)
        # Widening is exact, and plain floats compare faster than arrays without axes.
        seen, q0, t1 = float(seen), float(q0), float(t1)
        bar = q0 if self.on_conflict == "accept" else max(q0, t1)
        keeps_0, keeps_1, margin = seen <= q0, seen >= t1, seen - bar
        return GatePrediction(
            score=float(value),
            decision=decide(keeps_0, keeps_1, self.on_conflict),
            prediction_set=set_of(keeps_0, keeps_1),
            p_value_0=float(p0),
            p_value_1=float(p1),
            margin_to_threshold=margin if math.isfinite(margin) else None,
            reason_code=reason_of(keeps_0, keeps_1, unfit=found.unfit, infinite=cell.is_infinite),
            group=group,
            guarantee=self._guarantees(group),
        )

    def predict(self, scores: ArrayLike, groups: Sequence[GroupName] | None = None) -> GatePredictions:
        """The decisions on many scores.

        Parameters
        ----------
        scores : array_like, shape (n,)
        groups : sequence of str or int, shape (n,), optional
            For a gate with groups.

        Returns
        -------
        GatePredictions
            Columns; ``predictions[i]`` equals ``predict_one(scores[i], groups[i])``.

        Raises
        ------
        TypeError, ValueError
            As `predict_one`; nothing is decided when one row is refused.

        Notes
        -----
        Two comparisons a score. Scores and thresholds are compared in the coarser of their precisions.
        """
        if groups is not None or self.table.groups:
            return self._predict_groups(scores, groups)
        values = check_new_scores(scores, self.scale)
        cell = self.table.whole
        seen, q0, t1 = self._comparable(values, cell.q0, cell.t1)
        return GatePredictions(values, None, seen, q0, t1, False, cell.is_infinite, self.on_conflict, self)

    def p_values(
        self, scores: ArrayLike, groups: Sequence[GroupName] | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Conformal p-values of both labels.

        Parameters
        ----------
        scores : array_like, shape (n,)
        groups : sequence of str or int, shape (n,), optional

        Returns
        -------
        tuple of ndarray, shape (n,)
            Of "insufficient" and "sufficient": (1 + number of calibration scores of that label at least as
            strange) / (n_y + 1). A marginal gate excludes a label exactly where its p-value is at most the
            level.

        Notes
        -----
        Super-uniform for scores exchangeable with the class, on average over calibration sets. O(log n) a
        score.
        """
        values = check_new_scores(scores, self.scale)
        precision = coarser(values.dtype, self.scale)
        seen = rounded(values, precision)
        if groups is None and not self.table.groups:
            return _p_values(self.table.whole, seen)
        p0, p1 = np.empty(len(values)), np.empty(len(values))
        _, places, found = self.table.find_many(scores, groups)
        for at, rows in rows_by_place(places):
            p0[rows], p1[rows] = _p_values(found[at].cell, seen[rows])
        return p0, p1

    def alpha_for_attempt(self, attempt: int, attempts: int | None = None) -> Fraction:
        """The level of one of several tries at a question; see the function of that name."""
        return alpha_for_attempt(self.levels.accept, attempt, attempts)

    def for_attempt(self, attempt: int, attempts: int | None = None) -> ConformalGate:
        """This gate at the levels of one of several tries, so that all tries together keep its bounds.

        Both levels, and delta of a pac gate, are divided as `alpha_for_attempt` divides alpha. A level
        that the calibration set cannot support gives an infinite threshold: the try abstains.
        """
        share = alpha_for_attempt(self.levels.accept, attempt, attempts) / self.levels.accept
        delta = None if self.levels.delta is None else self.levels.delta * share
        return self._at(Levels(self.levels.accept * share, self.levels.reject * share, delta))

    def at_alpha(self, alpha: Level, alpha_reject: Level | None = None) -> ConformalGate:
        """This gate at other levels, from the same rows; a level may be chosen in advance, not by result."""
        accept = as_level(alpha)
        reject = accept if alpha_reject is None else as_level(alpha_reject, "alpha_reject")
        return self._at(Levels(accept, reject, self.levels.delta))

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, ready for JSON, with versions and a digest."""
        return _artefact.wrap(KIND, payload.written(self))

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> ConformalGate:
        """The gate that `to_dict` wrote; anything else is refused with an `ArtefactError`."""
        return cls(**payload.read(_artefact.unwrap("document", KIND, document)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `to_dict` to a file."""
        _artefact.write(path, KIND, payload.written(self))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ConformalGate:
        """The gate in a file that `save` wrote, equal to the last bit.

        Raises
        ------
        ArtefactError
            For a damaged or changed file, and for another kind or version.
        """
        return cls(**payload.read(_artefact.read(path, KIND)))

    def _at(self, levels: Levels) -> ConformalGate:
        return replace(self, levels=levels, table=self.table.at(levels))

    def _predict_groups(self, scores: ArrayLike, groups: Sequence[GroupName] | None) -> GatePredictions:
        if not self.table.groups:
            self.table.check_asked("given")
        values = check_new_scores(scores, self.scale)
        names, places, _ = self.table.find_many(scores, groups)
        bars = self.table.bars
        seen, q0, t1 = self._comparable(values, bars.q0, bars.t1)
        return GatePredictions(
            scores=values,
            groups=names,
            seen=seen,
            q0=q0[places],
            t1=t1[places],
            unfit=bars.unfit[places],
            infinite=bars.infinite[places],
            on_conflict=self.on_conflict,
            gate=self,
        )

    def _comparable(self, values: Any, q0: Any, t1: Any) -> tuple[Any, Any, Any]:
        """Scores and thresholds in the coarser of their precisions."""
        if isinstance(q0, float) and values.dtype == np.float64 and self.scale.precision == "float64":
            return values, q0, t1
        precision = coarser(values.dtype, self.scale)
        return rounded(values, precision), rounded(q0, precision), rounded(t1, precision)

    def _guarantees(self, group: GroupName | None) -> Guarantee:
        if group in self._stated:
            return self._stated[group]
        found = self.table.find(group)
        stated = gate_guarantee(found.cell, self.levels, self.history, group=group, pooled=found.pooled)
        # Unseen groups are not remembered: there is no end of them.
        if self.table.knows(group):
            self._stated[group] = stated
        return stated

    @cached_property
    def _stated(self) -> dict[GroupName | None, Guarantee]:
        return {}


def _p_values(cell: Cell, seen: Any) -> tuple[Any, Any]:
    """Both conformal p-values of scores in the precision in which they are compared."""
    stranger0 = cell.n0 - rounded(cell.scores0, seen.dtype).searchsorted(seen, side="left")
    stranger1 = rounded(cell.scores1, seen.dtype).searchsorted(seen, side="right")
    return (stranger0 + 1) / (cell.n0 + 1), (stranger1 + 1) / (cell.n1 + 1)
