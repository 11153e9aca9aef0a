"""Fitting a risk gate: a certified bound on the share of insufficient retrievals among the accepted."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, get_args

from numpy.typing import ArrayLike

from rag_confidence._options import check_choice, check_flag, check_text
from rag_confidence._types import Provenance
from rag_confidence.conformal.gate.refusal import tell
from rag_confidence.conformal.history import History, check_collected, check_negatives
from rag_confidence.conformal.new_scores import Scale, ScoreKind, check_calibration
from rag_confidence.conformal.provenance import check_provenance
from rag_confidence.conformal.quantile import Level, as_level
from rag_confidence.conformal.risk.certificate import certify
from rag_confidence.conformal.risk.fitted import RiskGate, auroc_of_rows
from rag_confidence.conformal.risk.guarantee import errors_note, small_note
from rag_confidence.conformal.risk.rank_grid import RiskMethod
from rag_confidence.conformal.rows import Fitted, refuse_overlap, rows_of


def fit_risk_gate(
    scores: ArrayLike,
    labels: ArrayLike,
    target_risk: Level,
    delta: Level = 0.10,
    *,
    method: RiskMethod = "sequence",
    score_kind: ScoreKind = "fraction",
    provenance: Provenance | Mapping[str, str | None] | None = None,
    row_ids: Sequence[Hashable] | ArrayLike | None = None,
    negatives: Sequence[str | None] | Mapping[str, int] | None = None,
    collected: Any = None,
    labeling_source: str | None = None,
    strict: bool = False,
    disjoint_from: Iterable[Fitted] = (),
) -> RiskGate:
    """A gate whose accepted retrievals are insufficient with probability at most `target_risk`.

    The bound is on P(insufficient | ACCEPT), the selective risk, and holds for all but a share `delta` of
    calibration sets. The gate accepts scores above the lowest threshold that exact binomial tests certify,
    and abstains on all others; where nothing can be certified it abstains on everything and says so.

    Parameters
    ----------
    scores : array_like, shape (n,)
        Unrounded KPIs (`RagConfidenceMetrics.kpi`) or probabilities of labelled retrievals; high is good.
    labels : array_like, shape (n,)
        1 where the evidence was sufficient, 0 where not. One class alone is allowed.
    target_risk : float, str, Fraction or Decimal
        Bound on the share of insufficient retrievals among the accepted, in (0, 1).
    delta : float, str, Fraction or Decimal
        Probability over the calibration set, in (0, 1), that the bound is exceeded.
    method : {"sequence", "bonferroni"}
        "sequence" tests from strict to lenient and stops at the first failure: it accepts more, and where
        scores tie it assumes that a lower threshold never lowers the risk. "bonferroni" divides delta among
        fewer thresholds: it assumes nothing about ties, and finds good rows below bad ones, such as lexical
        traps at the top. Choose before looking: the better of both is not certified.
    score_kind : {"fraction", "raw"}
        Fractions lie in [0, 1]; raw scores are any real numbers.
    provenance : Provenance or mapping, optional
        How the scores were made (`MetricsBatch.provenance`); `score(gate=...)` refuses any other.
    row_ids : sequence, shape (n,), optional
        A name for each row, none twice; only hashes are kept.
    negatives : sequence of str, shape (n,), or mapping, optional
        Kinds of insufficient rows: "topic_gap", "ranking_failure", "near_miss", "unknown"; or their counts.
    collected : str, date or pair of them, optional
        Day on which the rows were collected, or the first and the last.
    labeling_source : str, optional
        Who or what decided on the labels, for example "human".
    strict : bool
        Whether what is otherwise warned of is an error.
    disjoint_from : iterable, optional
        Models and probability maps behind the scores: their rows may not be among these.

    Returns
    -------
    RiskGate

    Raises
    ------
    TypeError, ValueError
        For input that is not as described, naming the argument.
    RowsReused
        If a row also trained an object of `disjoint_from`.
    CalibrationRefused
        With ``strict=True``, where nothing can be certified.

    Warns
    -----
    SmallCalibrationWarning
        If so few rows certify nothing even without an error.
    WeakSeparationWarning
        If errors leave nothing to certify.

    Notes
    -----
    Learn then test, with candidates fixed from (n, target_risk, delta) as ranks r: the threshold t is the
    (r + 1)-th highest score. Of the a rows strictly above t (a = r without ties) k are insufficient; the
    p-value is P(Binomial(a, target_risk) <= k). With R(t) = P(insufficient | S > t) three things are true.

    *Each p-value is exact.* Whether t is tried, and a, follow from the scores up to t and from which rows
    lie above it. Given those, the rows above t are a independent draws given S > t, so k is
    Binomial(a, R(t)), and the p-value is super-uniform if R(t) > target_risk. Ties at t are outside the set.

    *Bonferroni* adds up those statements, at levels that sum to delta. Nothing else is needed.

    *The sequence* needs more, because thresholds are scores: which of them are too lenient is random, and the
    usual argument, for hypotheses fixed in advance, does not apply. Without ties it still holds, for any
    shape of R. Cut the scores where R crosses the target: between two cuts, and above the first, exactly
    the target share is insufficient. The numbers of rows between cuts fix the first tried threshold T with
    R(T) above the target, up to its place between two cuts. Given those numbers and T, rows above the last
    cut are errors with probability target_risk, and those from there down to T with more. So its p-value is
    super-uniform, it passes with probability at most delta, and nothing more lenient is tried unless it
    does. With ties R may jump across the target, and we prove this only if R never falls as t does: then
    all thresholds below some score are too lenient, each row below it is an error with probability
    target_risk or more, and which are tried there follows from the scores below it and the number of rows
    above.

    Rows must be independent draws of the distribution that new retrievals come from: several rows of one
    query are not. The bound moves with the mix of questions, unlike that of `fit_conformal_gate`. Cost
    O(n log n).

    References
    ----------
    Angelopoulos, Bates, Candes, Jordan and Lei (2021), Learn then Test, Theorem 1 (arXiv 2110.01052);
    Geifman and El-Yaniv (2017), Selective classification for deep neural networks, algorithm SGR.

    Examples
    --------
    >>> scores, labels = [i / 200 for i in range(200)], [int(i >= 100) for i in range(200)]
    >>> gate = fit_risk_gate(scores, labels, target_risk=0.10)
    >>> gate.accepted, gate.errors, [p.decision.value for p in gate.predict([0.9, 0.2])]
    (104, 4, ['accept', 'abstain'])
    """
    target, chance = as_level(target_risk, "target_risk"), as_level(delta, "delta")
    check_choice("method", method, get_args(RiskMethod))
    check_choice("score_kind", score_kind, get_args(ScoreKind))
    check_text("labeling_source", labeling_source)
    strict = check_flag("strict", strict)
    values, sufficient = check_calibration(scores, labels, score_kind, negatives=negatives, row_ids=row_ids)
    rows = rows_of(values, sufficient, row_ids)
    refuse_overlap(rows, disjoint_from)
    origin = check_provenance(provenance)
    history = History(
        collected=check_collected(collected),
        labeling_source=labeling_source,
        negatives=check_negatives(negatives, sufficient),
    )
    certificate = certify(rows, target, chance, method)
    small = small_note(target, chance, len(values))
    many = errors_note(certificate.missed, target, chance, auroc_of_rows(rows))
    tell(small, many, strict=strict)
    return RiskGate(
        target=target,
        chance=chance,
        method=method,
        rows=rows,
        certificate=certificate,
        scale=Scale.of(score_kind, values),
        history=history,
        provenance=origin,
        notes=tuple(note for note in (small, many) if note),
    )
