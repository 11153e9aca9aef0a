"""RiskGate: one threshold above which a certified share of the accepted is sufficient."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike

from rag_confidence import _artefact
from rag_confidence._history import GroupName
from rag_confidence._options import check_choice
from rag_confidence._predictions import GatePrediction, GatePredictions, decide, reason_of
from rag_confidence._types import Guarantee, Provenance
from rag_confidence.conformal.binomial import binomial_upper
from rag_confidence.conformal.history import History
from rag_confidence.conformal.new_scores import Scale, check_new_score, check_new_scores, coarser, rounded
from rag_confidence.conformal.provenance import check_provenance
from rag_confidence.conformal.reading import read_history, read_level, read_rows, read_scale
from rag_confidence.conformal.risk.certificate import Certificate, certify
from rag_confidence.conformal.risk.guarantee import risk_guarantee
from rag_confidence.conformal.risk.rank_grid import RiskMethod, least_rank
from rag_confidence.conformal.rows import Rows
from rag_confidence.conformal.separation import auroc_interval, auroc_of_sorted

KIND = "risk_gate"


@dataclass(frozen=True, eq=False, repr=False)
class RiskGate:
    """Accepts scores above a threshold with a certified selective risk; made by `fit_risk_gate`.

    Attributes
    ----------
    target, chance : Fraction
        The exact target risk and delta.
    method : {"sequence", "bonferroni"}
        How the thresholds were tested.
    rows : Rows
        The calibration rows.
    certificate : Certificate
        The trial that was certified, or the one that came nearest.
    scale : Scale
        Kind, range and precision of the calibration scores.
    history : History
        Dates, labelling source and kinds of negatives.
    provenance : Provenance or None
        How the calibration scores were made.
    notes : tuple of str
        What the fit warned of.
    """

    target: Fraction
    chance: Fraction
    method: RiskMethod
    rows: Rows
    certificate: Certificate
    scale: Scale
    history: History
    provenance: Provenance | None
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        found = "nothing certified"
        if self.certified:
            found = f"accepts above {self.threshold:g}, {self.errors} errors in {self.accepted} of {self.n}"
        return f"RiskGate({self.method} at target_risk={self.target_risk:g}, delta={self.delta:g}: {found})"

    @property
    def data_hash(self) -> str:
        """SHA-256 of the calibration scores and labels, in whatever order they came."""
        return self.rows.data_hash

    @property
    def certified(self) -> bool:
        """Whether any threshold was certified; otherwise everything abstains."""
        return self.certificate.passed is not None

    @property
    def threshold(self) -> float:
        """ACCEPT above this; ``inf`` for nothing certified, ``-inf`` where everything may be accepted."""
        return self.certificate.threshold

    @property
    def certified_rank(self) -> int | None:
        """Rank of the grid that was certified; None for nothing."""
        return None if self.certificate.passed is None else self.certificate.passed.rank

    @property
    def target_risk(self) -> float:
        """Bound on the share of insufficient retrievals among the accepted."""
        return float(self.target)

    @property
    def delta(self) -> float:
        """Share of calibration sets that may break the bound."""
        return float(self.chance)

    @property
    def n(self) -> int:
        """Calibration rows."""
        return self.n0 + self.n1

    @property
    def n0(self) -> int:
        """Insufficient rows."""
        return len(self.rows.scores0)

    @property
    def n1(self) -> int:
        """Sufficient rows."""
        return len(self.rows.scores1)

    @property
    def accepted(self) -> int:
        """Calibration rows above the threshold."""
        return 0 if self.certificate.passed is None else self.certificate.passed.accepted

    @property
    def errors(self) -> int:
        """Insufficient rows above the threshold."""
        return 0 if self.certificate.passed is None else self.certificate.passed.errors

    @property
    def empirical_risk(self) -> float | None:
        """errors / accepted, which is no bound; None for nothing certified."""
        return self.errors / self.accepted if self.accepted else None

    @property
    def risk_upper(self) -> float | None:
        """One-sided exact limit of the risk from the rows above the threshold; None for nothing certified.

        At the level of its test, so it never exceeds `target_risk`. With "bonferroni" it is itself a bound
        with probability 1 - delta. With "sequence" the threshold was chosen by the labels and only
        `target_risk` is certified: read it as a description.
        """
        passed = self.certificate.passed
        if passed is None:
            return None
        return min(binomial_upper(passed.errors, passed.accepted, float(passed.level)), self.target_risk)

    @property
    def acceptance(self) -> float:
        """Share of the calibration rows above the threshold.

        A description without an interval: the threshold was chosen by the labels of these rows. For new
        rows, see `evaluate_conformal_gate`.
        """
        return self.accepted / self.n

    @property
    def labels_needed(self) -> int:
        """Fewest accepted rows that can certify the target at all, none of them insufficient.

        It takes at least that many: "sequence" begins with 2 sqrt(n) rows, and "bonferroni" has only a
        share of delta for each threshold that it tries.
        """
        return least_rank(0, self.target, self.chance)

    @cached_property
    def auroc(self) -> float | None:
        """How well the score separates the classes; None where one is missing."""
        return auroc_of_rows(self.rows)

    @property
    def auroc_interval(self) -> tuple[float, float] | None:
        """Its 95 % interval."""
        return None if self.auroc is None else auroc_interval(self.auroc, self.n0, self.n1)

    @cached_property
    def guarantee(self) -> Guarantee:
        """What this gate guarantees."""
        return risk_guarantee(
            self.certificate,
            self.target,
            self.chance,
            method=self.method,
            counts=(self.n0, self.n1),
            history=self.history,
        )

    @property
    def score_range(self) -> tuple[float, float]:
        """The smallest and the largest calibration score."""
        return self.scale.low, self.scale.high

    @cached_property
    def fingerprint(self) -> str:
        """Hash of everything that is saved."""
        return _artefact.digest(self._written())[:16]

    def predict_one(self, score: float, group: GroupName | None = None) -> GatePrediction:
        """The decision on one score: ACCEPT above the threshold, else ABSTAIN.

        Parameters
        ----------
        score : float
            Of the kind, scale and precision (or a finer one) that the gate was fitted on.
        group : None
            There are no groups; fit one gate for the rows of each.

        Returns
        -------
        GatePrediction
            Without a prediction set and without p-values: this gate has neither.

        Raises
        ------
        TypeError, ValueError
            For what is no finite score, percentages where fractions were fitted, a group, and a float of
            less precision than the calibration scores: rounding moves scores across the threshold, and on
            what lies above it afterwards nothing is certified.
        """
        return self.decide_one(check_new_score(score, self.scale), group)

    def decide_one(self, value: float, group: GroupName | None) -> GatePrediction:
        """The decision on one score that was checked before."""
        _refuse_groups("group", group)
        seen, threshold = self._comparable("score", np.asarray(value))
        keeps_0, bar = bool(seen <= threshold), self.threshold
        return GatePrediction(
            score=float(value),
            decision=decide(keeps_0, True, "abstain"),
            prediction_set=None,
            p_value_0=None,
            p_value_1=None,
            margin_to_threshold=None if math.isinf(bar) else float(seen) - bar,
            reason_code=reason_of(keeps_0, True, unfit=False, infinite=not self.certified),
            group=None,
            guarantee=self.guarantee,
        )

    def predict(self, scores: ArrayLike, groups: Sequence[GroupName] | None = None) -> GatePredictions:
        """The decisions on many scores.

        Parameters
        ----------
        scores : array_like, shape (n,)
            Of the precision that the gate was fitted on, or a finer one.
        groups : None
            There are no groups.

        Returns
        -------
        GatePredictions
            Columns; ``predictions[i]`` equals ``predict_one(scores[i])``. "Sufficient" is never excluded.

        Raises
        ------
        TypeError, ValueError
            As `predict_one`; nothing is decided when one row is refused.
        """
        _refuse_groups("groups", groups)
        values = check_new_scores(scores, self.scale)
        seen, threshold = self._comparable("scores", values)
        return GatePredictions(
            scores=values,
            groups=None,
            seen=seen,
            q0=threshold,
            t1=-math.inf,
            unfit=False,
            infinite=not self.certified,
            # "Sufficient" is always kept, so no set is empty; this way it need not be looked up.
            on_conflict="accept",
            gate=self,
            has_sets=False,
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, ready for JSON, with versions and a digest."""
        return _artefact.wrap(KIND, self._written())

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> RiskGate:
        """The gate that `to_dict` wrote; anything else is refused with an `ArtefactError`."""
        return _read("document", _artefact.unwrap("document", KIND, document))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `to_dict` to a file."""
        _artefact.write(path, KIND, self._written())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> RiskGate:
        """The gate in a file that `save` wrote, equal to the last bit.

        Raises
        ------
        ArtefactError
            For a damaged or changed file, and for another kind or version.
        """
        return _read("path", _artefact.read(path, KIND))

    def _comparable(self, name: str, values: Any) -> tuple[Any, Any]:
        """Scores and the threshold in the precision of the calibration scores.

        A coarser one would do for a rate among the insufficient. Here rounding may move many sufficient
        rows onto the threshold and leave the insufficient ones above it.
        """
        precision = np.dtype(self.scale.precision)
        if coarser(values.dtype, self.scale) != precision:
            raise TypeError(
                f"`{name}` must be as precise as the {precision.name} that the risk gate was fitted on; got "
                f"{values.dtype.name}. Keep scores as they were made, or fit the gate on {values.dtype.name}."
            )
        return rounded(values, precision), rounded(self.threshold, precision)

    def _written(self) -> dict[str, Any]:
        return {
            "target_risk": str(self.target),
            "delta": str(self.chance),
            "method": self.method,
            "threshold": _artefact.encode_float(self.threshold),
            "rows": self.rows.to_dict(),
            "scale": asdict(self.scale),
            "history": self.history.to_dict(),
            "provenance": None if self.provenance is None else self.provenance.to_dict(),
            "notes": [*self.notes],
        }


def auroc_of_rows(rows: Rows) -> float | None:
    """AUROC of labelled rows; None where a class is missing."""
    if not len(rows.scores0) or not len(rows.scores1):
        return None
    return auroc_of_sorted(rows.scores0, rows.scores1)


def _refuse_groups(name: str, group: object) -> None:
    if group is not None:
        raise ValueError(
            f"`{name}` must be left out for a risk gate; got {group!r}. "
            "Fit one gate for the rows of each group."
        )


def _read(name: str, payload: Mapping[str, Any]) -> RiskGate:
    return _artefact.restored(name, KIND, payload=payload, build=_rebuilt, written=RiskGate._written)


def _rebuilt(payload: Mapping[str, Any]) -> RiskGate:
    """The threshold is written for people; the one in use follows from the rows again."""
    check_choice("method", payload["method"], get_args(RiskMethod))
    target, chance = (read_level(name, payload[name]) for name in ("target_risk", "delta"))
    rows, notes = read_rows(payload["rows"]), payload["notes"]
    if not all(isinstance(note, str) for note in notes):
        raise ValueError("notes that are no text")
    return RiskGate(
        target=target,
        chance=chance,
        method=payload["method"],
        rows=rows,
        certificate=certify(rows, target, chance, payload["method"]),
        scale=read_scale(payload["scale"], rows),
        history=read_history(payload["history"], rows),
        provenance=check_provenance(payload["provenance"]),
        notes=tuple(notes),
    )
