"""JointGate: one threshold for the strangest of several checks, and the decision that follows from it."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rag_confidence import _artefact
from rag_confidence._options import check_flag, check_integer, check_text
from rag_confidence._types import FloatArray, Guarantee
from rag_confidence.conformal.history import History
from rag_confidence.conformal.joint.check_rows import (
    JointPrediction,
    JointPredictions,
    at_single,
    check_row,
    check_rows,
)
from rag_confidence.conformal.joint.guarantee import (
    calls_needed,
    joint_guarantee,
    no_guarantee,
    why_infinite,
)
from rag_confidence.conformal.joint.traffic import TrafficRanks
from rag_confidence.conformal.quantile import least_rank
from rag_confidence.conformal.reading import read_history, read_level

KIND = "joint_gate"


@dataclass(frozen=True, eq=False)
class JointGate:
    """Abstains where the strangest of K checks is stranger than alpha of good calls allow.

    Attributes
    ----------
    names : tuple of str
        The checks, in the order of the columns.
    level : Fraction
        The exact alpha.
    n : int
        Good calls that it was calibrated on.
    n_failed : int
        How many of them had a check that failed to run.
    threshold : float
        ACCEPT up to here, on the scale of the largest rank, or of the largest raw score without traffic;
        infinite where nothing is certified.
    threshold_single : float
        The same for scores in float32: that of the calibration scores after the same rounding.
    single : bool
        Whether the calibration scores were float32, so that all rows are compared in that precision.
    max_share : mapping of str to float
        Share of the calibration calls in which each check was the largest (ties are split). A check near 1
        decides alone.
    scale_note : str or None
        A sentence where checks hardly count: raw scores of very different scales, or scores whose strangest
        values are common in the traffic.
    ranks : TrafficRanks or None
        The map from scores to ranks; None for raw scores.
    history : History
        When the calls were collected, and who judged them.
    """

    names: tuple[str, ...]
    level: Fraction
    n: int
    n_failed: int
    threshold: float
    threshold_single: float
    single: bool
    max_share: Mapping[str, float]
    scale_note: str | None
    ranks: TrafficRanks | None
    history: History

    def __post_init__(self) -> None:
        # A copy that nobody can change: the caller may go on using the mapping.
        object.__setattr__(self, "max_share", MappingProxyType(dict(self.max_share)))

    @property
    def alpha(self) -> float:
        """The level as a float."""
        return float(self.level)

    @property
    def n_needed(self) -> int:
        """Good calls without a failed check from which a threshold at this level is finite."""
        return calls_needed(self.level)

    @property
    def certified(self) -> bool:
        """Whether anything is certified; if not, every call abstains."""
        return math.isfinite(self.threshold)

    @cached_property
    def guarantee(self) -> Guarantee:
        """P(the threshold is finite, and a good call is abstained on) <= alpha, or nothing."""
        if self.certified:
            ranked = self.ranks is not None
            return joint_guarantee(self.level, self.n, len(self.names), self.history, ranked=ranked)
        return no_guarantee(self.level, self.n, self.history, why_infinite(self.level, self.n, self.n_failed))

    @cached_property
    def fingerprint(self) -> str:
        """Hash of all that decides, the same after saving and loading."""
        return _artefact.digest(self._payload())

    def predict_one(self, row: ArrayLike) -> JointPrediction:
        """The decision on one call.

        Parameters
        ----------
        row : array_like, shape (K,)
            Its nonconformity scores, higher is stranger; +inf for a check that failed to run.

        Returns
        -------
        JointPrediction

        Raises
        ------
        TypeError, ValueError
            For nan, -inf, another number of checks, or a series whose index names other checks.
        """
        return self._decide(check_row("row", row, self.names))[0]

    def predict(self, rows: ArrayLike) -> JointPredictions:
        """The decisions on m calls, as columns.

        Parameters
        ----------
        rows : array_like, shape (m, K)
            One row a call, as for `predict_one`; m may be 0.

        Returns
        -------
        JointPredictions

        Raises
        ------
        TypeError, ValueError
            As for `predict_one`, and for a data frame whose columns are other checks or in another order.
        """
        return self._decide(check_rows("rows", rows, self.names))

    def _decide(self, rows: FloatArray) -> JointPredictions:
        single = self.single or rows.dtype == np.float32
        threshold = self.threshold_single if single else self.threshold
        ranks = ranked(at_single(rows) if single else rows, self.ranks)
        statistics = ranks.max(axis=1)
        return JointPredictions(
            accepted=(statistics <= threshold) & math.isfinite(threshold),
            failed=np.asarray(ranks > threshold),
            statistics=statistics,
            threshold=threshold,
            names=self.names,
            guarantee=self.guarantee,
        )

    def to_dict(self) -> dict[str, Any]:
        """The gate as plain values with versions and a digest, ready for JSON."""
        return _artefact.wrap(KIND, self._payload())

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> JointGate:
        """The gate that `to_dict` wrote; ArtefactError for anything else."""
        return cls._restored("document", _artefact.unwrap("document", KIND, document))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the gate to a JSON file, all of it or nothing."""
        _artefact.write(path, KIND, self._payload())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> JointGate:
        """The gate that `save` wrote, equal to the last bit; ArtefactError for anything else."""
        return cls._restored("path", _artefact.read(path, KIND))

    def _payload(self) -> dict[str, Any]:
        return {
            "names": [*self.names],
            "level": str(self.level),
            "n": self.n,
            "n_failed": self.n_failed,
            "threshold": _artefact.encode_float(self.threshold),
            "threshold_single": _artefact.encode_float(self.threshold_single),
            "single": self.single,
            "max_share": dict(self.max_share),
            "scale_note": self.scale_note,
            "ranks": None if self.ranks is None else self.ranks.to_dict(),
            "history": self.history.to_dict(),
        }

    @classmethod
    def _restored(cls, name: str, payload: Mapping[str, Any]) -> JointGate:
        return _artefact.restored(name, KIND, payload=payload, build=_rebuilt, written=cls._payload)


def _rebuilt(payload: Mapping[str, Any]) -> JointGate:
    ranks, note = payload["ranks"], payload["scale_note"]
    check_text("scale_note", note)
    gate = JointGate(
        names=_read_names(payload["names"]),
        level=read_level("level", payload["level"]),
        n=check_integer("n", payload["n"], 1),
        n_failed=check_integer("n_failed", payload["n_failed"], 0),
        threshold=_artefact.decode_float(payload["threshold"]),
        threshold_single=_artefact.decode_float(payload["threshold_single"]),
        single=check_flag("single", payload["single"]),
        max_share={name: float(share) for name, share in payload["max_share"].items()},
        scale_note=note,
        ranks=None if ranks is None else TrafficRanks.from_dict(ranks),
        history=read_history(payload["history"], None),
    )
    _refuse_contradictions(gate)
    return gate


def _read_names(names: Any) -> tuple[str, ...]:
    if not all(isinstance(name, str) for name in names) or not 0 < len(names) == len(set(names)):
        raise ValueError("checks that are not named once each")
    return tuple(names)


def _refuse_contradictions(gate: JointGate) -> None:
    """The calibration scores are not kept; what is must at least fit together."""
    if gate.n_failed > gate.n or set(gate.max_share) != set(gate.names):
        raise ValueError("counts or shares of other checks")
    shares = gate.max_share.values()
    if not all(0.0 <= share <= 1.0 for share in shares) or not math.isclose(sum(shares), 1.0, rel_tol=1e-9):
        raise ValueError("shares that are no parts of one")
    if gate.ranks is not None and len(gate.ranks.columns) != len(gate.names):
        raise ValueError("traffic of other checks")
    # Only a failed check makes a statistic infinite, and the failed calls are the largest ones.
    finite = least_rank(gate.n, gate.level) <= gate.n - gate.n_failed
    for threshold in (gate.threshold, gate.threshold_single):
        if math.isfinite(threshold) is not finite or not threshold > -math.inf:
            raise ValueError("a threshold that does not follow from the counts")
    rounds = gate.single or gate.ranks is None
    expected = gate.threshold if gate.single else float(at_single(np.array(gate.threshold)))
    if rounds and gate.threshold_single != expected:
        raise ValueError("thresholds that are not of the same scores")


def ranked(rows: FloatArray, ranks: TrafficRanks | None) -> FloatArray:
    """What is compared: raw scores, or their ranks in the traffic."""
    return rows if ranks is None else ranks.of(rows)
