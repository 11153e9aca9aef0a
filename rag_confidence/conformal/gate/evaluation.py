"""How a gate did on labelled rows that it has not seen, against what its guarantee allows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rag_confidence._history import GroupName, check_aligned, check_labels, check_scores
from rag_confidence._predictions import Gate, GatePredictions
from rag_confidence._types import Mask
from rag_confidence.conformal.bands import covered_pmf
from rag_confidence.conformal.gate.cells import Cell, Levels
from rag_confidence.conformal.gate.fitted import ConformalGate
from rag_confidence.conformal.gate.loose import check_decider
from rag_confidence.conformal.proportion import Proportion, proportion_of
from rag_confidence.conformal.rows import Rows, rows_of, shared_rows
from rag_confidence.errors import RowsReused

_TAIL = 0.025


@dataclass(frozen=True)
class GateEvaluation:
    """Rates of a gate on labelled rows, each with a 95 % interval that is exact for independent rows.

    Attributes
    ----------
    n, n0, n1 : int
        Rows, insufficient rows, sufficient rows.
    coverage_0, coverage_1 : Proportion
        Rows of a class whose label was kept; high is good.
    false_sufficiency_rate : Proportion
        Insufficient rows that were accepted: what alpha bounds.
    false_rejection_rate : Proportion
        Sufficient rows that were rejected: what alpha_reject bounds.
    selective_risk : Proportion
        Accepted rows that were insufficient: what alpha does not bound.
    sufficient_accepted : Proportion
        Sufficient rows that were accepted.
    acceptance_rate, rejection_rate, abstention_rate, conflict_rate : Proportion
        Of all rows; conflicts are the empty sets, whatever was decided on them.
    band_0, band_1 : float or None
        Rate of excluded labels that exchangeable rows exceed with probability at most 2.5 %, for this
        many calibration and evaluation rows; None without a calibration set, with groups, without rows of
        the class, and for a gate fitted with clusters, whose bound counts queries.
    beyond_band : bool or None
        Whether a class exceeds its band, which speaks against exchangeability: a sound gate has a class
        beyond it in at most 5 % of evaluations. None without bands.
    by_group : dict
        The same for the rows of each group.
    """

    n: int
    n0: int
    n1: int
    coverage_0: Proportion
    coverage_1: Proportion
    false_sufficiency_rate: Proportion
    false_rejection_rate: Proportion
    selective_risk: Proportion
    sufficient_accepted: Proportion
    acceptance_rate: Proportion
    rejection_rate: Proportion
    abstention_rate: Proportion
    conflict_rate: Proportion
    band_0: float | None
    band_1: float | None
    beyond_band: bool | None
    by_group: dict[GroupName, GateEvaluation]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; groups become a list of [group, evaluation]."""
        plain = asdict(self)
        plain["by_group"] = [[group, found.to_dict()] for group, found in self.by_group.items()]
        return plain


def evaluate_conformal_gate(
    scores: ArrayLike,
    labels: ArrayLike,
    gate: Gate,
    groups: Sequence[GroupName] | None = None,
) -> GateEvaluation:
    """Rates of a gate on labelled rows that took no part in its calibration.

    Parameters
    ----------
    scores : array_like, shape (m,)
    labels : array_like, shape (m,)
        1 where the evidence was sufficient, 0 where not.
    gate : ConformalGate, RiskGate or Thresholds
    groups : sequence of str or int, shape (m,), optional
        For a gate with groups.

    Returns
    -------
    GateEvaluation

    Raises
    ------
    TypeError, ValueError
        For input that is not as described, naming the argument.
    RowsReused
        If half of the rows or more are those of the gate, by scores of more than six decimals.

    Notes
    -----
    A rate above alpha is no proof of a broken gate: for one calibration set and m_y evaluation rows the
    number of excluded labels is beta-binomial, and `band_0` and `band_1` are its upper 97.5 % points. Ties
    make rates smaller, never larger. Several rows of one query are not independent: rates then count rows
    as they are, and their intervals are too narrow.

    Examples
    --------
    >>> from rag_confidence.conformal.gate.loose import Thresholds
    >>> found = evaluate_conformal_gate([0.2, 0.9, 0.7], [0, 1, 0], Thresholds(q0=0.5, q1=0.5))
    >>> found.false_sufficiency_rate.rate, found.selective_risk.rate
    (0.5, 0.5)
    """
    check_aligned(scores=scores, labels=labels, groups=groups)
    values = check_scores("scores", scores)
    sufficient = check_labels("labels", labels)
    _refuse_own_rows(rows_of(values, sufficient, None), gate)
    decided = check_decider(gate).predict(scores, groups)
    if not isinstance(gate, ConformalGate):
        return _evaluated(decided, sufficient, None, None, {})
    if not gate.table.groups:
        return _evaluated(decided, sufficient, _judged_by(gate, gate.table.whole), gate.levels, {})
    return _evaluated(
        decided, sufficient, None, None, _by_group(scores, sufficient, gate, decided.groups or ())
    )


def _refuse_own_rows(rows: Rows, gate: Gate) -> None:
    """Rows that the gate was fitted on make it look better than it is, and no band shows it."""
    own = getattr(gate, "rows", None)
    count = shared_rows(rows, own) if isinstance(own, Rows) else 0
    if 2 * count >= len(rows.scores0) + len(rows.scores1):
        raise RowsReused(
            f"`scores` must be of rows that the gate was not fitted on; got {count} of them again. "
            "Keep rows for the evaluation: see split_history."
        )


def _by_group(
    scores: ArrayLike, sufficient: Mask, gate: ConformalGate, groups: Sequence[GroupName]
) -> dict[GroupName, GateEvaluation]:
    values, found = np.asarray(scores), {}
    places: dict[GroupName, list[int]] = {}
    for at, name in enumerate(groups):
        places.setdefault(name, []).append(at)
    for group, rows in places.items():
        met = gate.table.find(group)
        decided = gate.predict(values[rows], [group] * len(rows))
        cell = None if met.pooled else _judged_by(gate, met.cell)
        found[group] = _evaluated(decided, sufficient[rows], cell, gate.levels, {})
    return found


def _judged_by(gate: ConformalGate, cell: Cell) -> Cell | None:
    """The cell whose law a count of rows follows; with clusters its ranks count queries, so there is none."""
    return None if gate.history.clustered else cell


def _evaluated(
    decided: GatePredictions,
    sufficient: Mask,
    cell: Cell | None,
    levels: Levels | None,
    by_group: dict[GroupName, GateEvaluation],
) -> GateEvaluation:
    n, n1 = len(sufficient), int(np.count_nonzero(sufficient))
    n0 = n - n1
    accepted, rejected = decided.accepted, decided.rejected

    def share(event: Mask, among: int) -> Proportion:
        return proportion_of(int(np.count_nonzero(event)), among)

    kept_0 = share(decided.label0_kept & ~sufficient, n0)
    kept_1 = share(decided.label1_kept & sufficient, n1)
    bands: tuple[float | None, float | None] = (None, None)
    if cell is not None and levels is not None:
        bands = (
            _band(cell.n0, levels.rank(cell.n0, levels.accept), n0),
            _band(cell.n1, levels.rank(cell.n1, levels.reject), n1),
        )
    return GateEvaluation(
        n=n,
        n0=n0,
        n1=n1,
        coverage_0=kept_0,
        coverage_1=kept_1,
        false_sufficiency_rate=share(accepted & ~sufficient, n0),
        false_rejection_rate=share(rejected & sufficient, n1),
        selective_risk=share(accepted & ~sufficient, int(np.count_nonzero(accepted))),
        sufficient_accepted=share(accepted & sufficient, n1),
        acceptance_rate=share(accepted, n),
        rejection_rate=share(rejected, n),
        abstention_rate=share(decided.abstained, n),
        conflict_rate=share(decided.conflicting, n),
        band_0=bands[0],
        band_1=bands[1],
        beyond_band=_beyond((kept_0, bands[0]), (kept_1, bands[1])),
        by_group=by_group,
    )


def _band(n: int, rank: int | float, n_test: int) -> float | None:
    """Upper 97.5 % point of the rate of excluded labels."""
    if n_test == 0:
        return None
    if math.isinf(rank):
        return 0.0
    at_most = np.cumsum(covered_pmf(n, rank, n_test)[::-1])
    return min(int(np.searchsorted(at_most, 1.0 - _TAIL)), n_test) / n_test


def _beyond(*classes: tuple[Proportion, float | None]) -> bool | None:
    found = [
        (kept.total - kept.count) > round(band * kept.total) for kept, band in classes if band is not None
    ]
    return any(found) if found else None
