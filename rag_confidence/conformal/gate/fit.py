"""Fitting a conformal gate, and applying one."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike

from rag_confidence._history import (
    GroupName,
    check_groups,
    check_two_classes,
)
from rag_confidence._options import check_choice, check_flag, check_number, check_text
from rag_confidence._predictions import Gate, GatePrediction, GatePredictions, OnConflict
from rag_confidence._types import FloatArray, Mask, Provenance
from rag_confidence.conformal.gate.cells import Cell, GuaranteeKind, Levels, by_group, class_scores
from rag_confidence.conformal.gate.fitted import ConformalGate
from rag_confidence.conformal.gate.loose import check_decider
from rag_confidence.conformal.gate.refusal import AUROC_FLOOR, tell
from rag_confidence.conformal.gate.table import CellTable, SmallGroups
from rag_confidence.conformal.history import History, check_collected, check_negatives
from rag_confidence.conformal.new_scores import Scale, ScoreKind, check_calibration
from rag_confidence.conformal.provenance import check_provenance
from rag_confidence.conformal.quantile import Level, as_level
from rag_confidence.conformal.rows import Fitted, Rows, plain_names, refuse_overlap, rows_of
from rag_confidence.conformal.separation import auroc_interval, auroc_of_sorted


def fit_conformal_gate(
    scores: ArrayLike,
    labels: ArrayLike,
    alpha: Level = 0.10,
    *,
    alpha_reject: Level | None = None,
    groups: Sequence[GroupName] | ArrayLike | None = None,
    guarantee: GuaranteeKind = "marginal",
    delta: Level = 0.05,
    on_conflict: OnConflict = "abstain",
    score_kind: ScoreKind = "fraction",
    provenance: Provenance | Mapping[str, str | None] | None = None,
    row_ids: Sequence[Hashable] | ArrayLike | None = None,
    clusters: Sequence[Hashable] | ArrayLike | None = None,
    negatives: Sequence[str | None] | Mapping[str, int] | None = None,
    collected: Any = None,
    labeling_source: str | None = None,
    strict: bool = False,
    small_groups: SmallGroups = "abstain",
    auroc_floor: float = AUROC_FLOOR,
    disjoint_from: Fitted | Iterable[Fitted] = (),
) -> ConformalGate:
    """A gate that accepts insufficient evidence with probability at most alpha.

    Class-conditional split conformal prediction: each label is excluded only for scores that are strange
    among the calibration rows of that label. ACCEPT where "insufficient" is excluded, REJECT where
    "sufficient" is, ABSTAIN where neither or both are.

    Parameters
    ----------
    scores : array_like, shape (n,)
        Unrounded KPIs (`RagConfidenceMetrics.kpi`) or probabilities of labelled retrievals; high is good.
    labels : array_like, shape (n,)
        1 where the evidence was sufficient, 0 where not.
    alpha : float, str, Fraction or Decimal
        Bound on P(ACCEPT | insufficient), the false-sufficiency rate.
    alpha_reject : float, str, Fraction or Decimal, optional
        Bound on P(REJECT | sufficient); by default `alpha`.
    groups : sequence of str or int, shape (n,), optional
        Group of each row (Mondrian): every group gets thresholds and a bound of its own.
    guarantee : {"marginal", "pac"}
        Whether the bound holds on average over calibration sets, or for all but a share `delta` of them.
    delta : float, str, Fraction or Decimal
        For "pac", each class by itself.
    on_conflict : {"abstain", "accept", "reject"}
        What a score means that is strange for both labels. The bounds hold for all three.
    score_kind : {"fraction", "raw"}
        Fractions lie in [0, 1]; raw scores are any real numbers.
    provenance : Provenance or mapping, optional
        How the scores were made (`MetricsBatch.provenance`); `score(gate=...)` refuses any other.
    row_ids : sequence, shape (n,), optional
        A name for each row, none twice; only hashes are kept.
    clusters : sequence, shape (n,), optional
        Rows of one cluster (the tries at one query) depend on each other. Only the strangest row of each
        class in a cluster is used, and the bound then holds for all rows of a new cluster at once. With
        groups, a cluster must lie within one.
    negatives : sequence of str, shape (n,), or mapping, optional
        Kinds of insufficient rows: "topic_gap", "ranking_failure", "near_miss", "unknown"; or their counts.
    collected : str, date or pair of them, optional
        Day on which the rows were collected, or the first and the last.
    labeling_source : str, optional
        Who or what decided on the labels, for example "human".
    strict : bool
        Whether what is otherwise warned of is an error.
    small_groups : {"abstain", "pool"}
        Whether a group that is unseen or has too few rows abstains, or meets the thresholds of all rows
        together: then nothing is claimed for that group by itself.
    auroc_floor : float
        Lower end of the interval of the AUROC below which the fit warns.
    disjoint_from : fitted object or iterable of them, optional
        Models and probability maps behind the scores: their rows may not be among these.

    Returns
    -------
    ConformalGate

    Raises
    ------
    TypeError, ValueError
        For input that is not as described, naming the argument.
    RowsReused
        If a row also trained an object of `disjoint_from`.
    CalibrationRefused
        With ``strict=True``, for too few labels or classes that do not separate.

    Warns
    -----
    SmallCalibrationWarning
        If a class has too few rows for its level; it is then never excluded.
    WeakSeparationWarning
        If the score hardly tells the classes apart.

    Notes
    -----
    With k_y = ceil((n_y + 1)(1 - alpha_y)), "insufficient" is kept for s <= q0, the k_0-th smallest score of
    its class, and "sufficient" for s >= t1, the k_1-th largest of its class. The bounds need that a new
    row is exchangeable with the rows of its class; they need nothing of the score. They are no bounds on the
    share of insufficient rows among the accepted: see `fit_risk_gate`. Cost O(n log n).

    References
    ----------
    Vovk, Gammerman and Shafer (2005), Algorithmic Learning in a Random World, section 4.5; Vovk (2012),
    Conditional validity of inductive conformal predictors, section 4.

    Examples
    --------
    >>> gate = fit_conformal_gate([i / 40 for i in range(40)], [0] * 20 + [1] * 20, alpha=0.1)
    >>> gate.q0, gate.t1, [p.decision.value for p in gate.predict([0.1, 0.9])]
    (0.45, 0.525, ['reject', 'accept'])
    """
    levels = _levels(alpha, alpha_reject, guarantee, delta)
    check_choice("on_conflict", on_conflict, get_args(OnConflict))
    check_choice("score_kind", score_kind, get_args(ScoreKind))
    check_choice("small_groups", small_groups, get_args(SmallGroups))
    check_text("labeling_source", labeling_source)
    strict = check_flag("strict", strict)
    floor = check_number("auroc_floor", auroc_floor, 0.0, 1.0, f"{AUROC_FLOOR:g} is the default.")
    columns = {"groups": groups, "row_ids": row_ids, "clusters": clusters}
    values, sufficient = check_calibration(scores, labels, score_kind, negatives=negatives, **columns)
    check_two_classes(sufficient)
    history = History(
        collected=check_collected(collected),
        labeling_source=labeling_source,
        negatives=check_negatives(negatives, sufficient),
        clustered=clusters is not None,
    )
    made = check_provenance(provenance)
    rows = rows_of(values, sufficient, row_ids)
    refuse_overlap(rows, disjoint_from)
    table = _table(values, sufficient, levels, groups, clusters, small_groups, rows)
    auroc = auroc_of_sorted(rows.scores0, rows.scores1)
    low, high = auroc_interval(auroc, table.whole.n0, table.whole.n1)
    gate = ConformalGate(
        levels=levels,
        on_conflict=on_conflict,
        table=table,
        scale=Scale.of(score_kind, values),
        history=history,
        auroc=auroc,
        auroc_low=low,
        auroc_high=high,
        provenance=made,
        rows=rows,
        auroc_floor=floor,
    )
    tell(gate.shortage_note, gate.separation_note, strict=strict)
    return gate


def _levels(alpha: Level, alpha_reject: Level | None, guarantee: GuaranteeKind, delta: Level) -> Levels:
    check_choice("guarantee", guarantee, get_args(GuaranteeKind))
    accept, chance = as_level(alpha), as_level(delta, "delta")
    reject = accept if alpha_reject is None else as_level(alpha_reject, "alpha_reject")
    return Levels(accept, reject, chance if guarantee == "pac" else None)


def _table(
    values: FloatArray,
    sufficient: Mask,
    levels: Levels,
    groups: Any,
    clusters: Any,
    small_groups: SmallGroups,
    rows: Rows,
) -> CellTable:
    if groups is None and clusters is None:
        return CellTable(Cell.of(None, rows.scores0, rows.scores1, levels), (), small_groups)
    names = None if groups is None else check_groups("groups", groups)
    units = None if clusters is None else plain_names("clusters", clusters)
    if names is not None and units is not None:
        _refuse_spanning(names, units)
    cells = []
    for group, at in by_group(names, len(values)):
        own = None if units is None else units[at]
        cells.append(Cell.of(group, *class_scores(values[at], sufficient[at], own), levels))
    if names is None:
        return CellTable(cells[0], (), small_groups)
    whole = Cell.of(None, *class_scores(values, sufficient, units), levels)
    return CellTable(whole, tuple(cells), small_groups)


def _refuse_spanning(groups: np.ndarray[Any, Any], clusters: np.ndarray[Any, Any]) -> None:
    """A cluster in two groups would have two chances of an error, where one is bounded."""
    home: dict[Any, GroupName] = {}
    for group, cluster in zip(groups.tolist(), clusters.tolist(), strict=True):
        if home.setdefault(cluster, group) != group:
            raise ValueError(
                f"`clusters` must lie within one group each; got {cluster!r} in {home[cluster]!r} and "
                f"{group!r}. Take the group from the query, or leave out one of the two."
            )


def predict_one(score: float, gate: Gate, group: GroupName | None = None) -> GatePrediction:
    """The decision of `gate` on one score; see `ConformalGate.predict_one`.

    Examples
    --------
    >>> gate = fit_conformal_gate([i / 40 for i in range(40)], [0] * 20 + [1] * 20)
    >>> predict_one(0.9, gate).decision.value
    'accept'
    """
    return check_decider(gate).predict_one(score, group)


def apply_conformal_gate(
    scores: ArrayLike, gate: Gate, groups: Sequence[GroupName] | None = None
) -> GatePredictions:
    """The decisions of `gate` on many scores; see `ConformalGate.predict`.

    Parameters
    ----------
    scores : array_like, shape (n,)
    gate : ConformalGate, RiskGate or Thresholds
        A fitted gate, or loose numbers q0 and q1.
    groups : sequence of str or int, shape (n,), optional

    Returns
    -------
    GatePredictions

    Examples
    --------
    >>> from rag_confidence.conformal.gate.loose import Thresholds
    >>> apply_conformal_gate([0.2, 0.9], Thresholds(q0=0.4, q1=0.5)).decision.tolist()
    ['reject', 'accept']
    """
    return check_decider(gate).predict(scores, groups)
