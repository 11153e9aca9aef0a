"""What a log of retrievals says about its own scores, in words, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import ArrayLike

from rag_confidence.conformal.quantile import Level, as_level
from rag_confidence.learning.diagnosis import Diagnosis
from rag_confidence.learning.evidence import Evidence, evidence_of
from rag_confidence.learning.findings import Finding, by_severity
from rag_confidence.learning.inert import ThresholdUse, bands_of, thresholds_of
from rag_confidence.learning.log import Log, read_log
from rag_confidence.learning.log_report import about_kpi, about_lists, about_mixture, about_verdicts
from rag_confidence.learning.next_steps import about_candidates, about_fits, about_labels, about_negatives
from rag_confidence.learning.readiness import about_readiness
from rag_confidence.learning.reading import Metrics
from rag_confidence.learning.separation_report import COSINE, about_cosine, about_separation
from rag_confidence.learning.signal_report import about_evidence
from rag_confidence.learning.spread_report import about_redundancy, about_spread
from rag_confidence.learning.threshold_report import about_bands, about_thresholds, unknown_policy
from rag_confidence.learning.wording import listed
from rag_confidence.product.batch import MetricsBatch
from rag_confidence.product.policy import DEFAULT_POLICY, MetricPolicy


def diagnose(
    metrics: Metrics,
    labels: ArrayLike | None = None,
    *,
    policy: MetricPolicy | None = None,
    alpha: Level = 0.10,
) -> Diagnosis:
    """What scored retrievals say about their own scores: inert thresholds, evidence, separation, next steps.

    Parameters
    ----------
    metrics : MetricsBatch, sequence of RagConfidenceMetrics, or sequence of dict
        At least one retrieval; dicts are `to_dict()` records, as read back from a JSONL log.
    labels : array_like, shape (n,), optional
        1 (sufficient) or 0 (insufficient) for each retrieval. Without them nothing is said about evidence.
    policy : MetricPolicy, optional
        The policy that scored the records, which hold only its hash. A batch knows its own; the default and
        the seed policy are recognised.
    alpha : float, str, Fraction or Decimal
        Level of the gate that labels are counted for.

    Returns
    -------
    Diagnosis
        Findings in words, the most severe first, and the tables behind them; ``print`` it. The order of the
        retrievals does not matter.

    Raises
    ------
    TypeError, ValueError
        For inputs that are not records or not labels, for no retrieval, and for a policy that scored none.

    Notes
    -----
    AUROCs count ties one half and have Newcombe's interval; a signal tells the classes apart where Holm's
    adjusted Mann-Whitney p-value, over all signals, is below .05; it adds to the KPI where the same holds
    within strata of ten neighbours by KPI. Two AUROCs on the same rows are compared by DeLong's test. All of
    them take retrievals as independent and, below ten rows of a class, are not made. A finding is a hint on
    these data, not a guarantee; what the labels chose must be confirmed on others. O(n log n) a signal.

    References
    ----------
    Newcombe (2006), Statistics in Medicine 25; van Elteren (1960); DeLong, DeLong and Clarke-Pearson (1988),
    Biometrics 44; Holm (1979), Scandinavian Journal of Statistics 6.

    Examples
    --------
    >>> from rag_confidence import score
    >>> found = diagnose([score([1.0, 0.0], [[0.9, 0.1], [0.5, 0.5]])])
    >>> [one.code for one in found.findings][:3]
    ['grounding_not_fitted', 'no_labels', 'no_profile']
    """
    level = as_level(alpha)
    log = read_log(metrics, labels)
    checked = _checked_policy(metrics, log, policy)
    kpi, signals, classes = log.evidence_rows()
    evidence = evidence_of(kpi, signals, classes)
    thresholds = () if checked is None else thresholds_of(log, checked)
    findings = [
        *about_mixture(log),
        *about_lists(log),
        *about_verdicts(log),
        *_evidence_findings(log, evidence),
        *about_kpi(log),
        *_threshold_findings(log, checked, thresholds),
        *about_labels(log.labels, level),
        *about_fits(log, checked),
        *about_candidates(log),
    ]
    findings += about_readiness(log, findings, level)
    return Diagnosis(
        n=log.n,
        n0=None if log.labels is None else int(np.count_nonzero(~log.labels)),
        n1=None if log.labels is None else int(np.count_nonzero(log.labels)),
        findings=by_severity(findings),
        kpi=evidence[0],
        signals=evidence[1],
        thresholds=thresholds,
    )


def _checked_policy(metrics: Metrics, log: Log, policy: MetricPolicy | None) -> MetricPolicy | None:
    """The policy whose thresholds are looked at: as given, of the batch, or the commonest known one.

    It is as the commonest kind of retrieval reads it: with a corpus profile, or without.
    """
    tally = dict(log.tally("policy_fingerprint"))
    found = _given(policy, tally) if policy is not None else _found(metrics, tally)
    return found.profiled if found is not None and log.profiled else found


def _found(metrics: Metrics, tally: Mapping[str | None, int]) -> MetricPolicy | None:
    if isinstance(metrics, MetricsBatch):
        return metrics.call.policy
    known = [one for one in (DEFAULT_POLICY, MetricPolicy.seed()) if one.fingerprint in tally]
    return max(known, key=lambda one: tally[one.fingerprint], default=None)


def _given(policy: MetricPolicy, tally: Mapping[str | None, int]) -> MetricPolicy:
    if not isinstance(policy, MetricPolicy):
        raise TypeError(
            f"`policy` must be a MetricPolicy; got {type(policy).__name__}. Load it with from_dict."
        )
    if policy.fingerprint not in tally:
        raise ValueError(
            f"`policy` must be one that scored these retrievals; got {policy.fingerprint!r}, and the records "
            f"name {listed([repr(name) for name in tally])}. Pass the policy that was given to score()."
        )
    return policy


def _threshold_findings(
    log: Log, policy: MetricPolicy | None, uses: tuple[ThresholdUse, ...]
) -> Iterator[Finding]:
    fingerprint = None if policy is None else policy.fingerprint
    made = np.asarray(log.words["policy_fingerprint"] == fingerprint)
    others = int(np.count_nonzero(~made)) if policy is not None else log.n
    if others:
        yield unknown_policy(others, log.n)
    if policy is not None:
        yield from about_thresholds(uses, int(np.count_nonzero(made & log.scored)), profiled=log.profiled)
        yield from about_bands(bands_of(log, policy))


def _evidence_findings(log: Log, evidence: Evidence) -> Iterator[Finding]:
    kpi, signals = evidence
    _, columns, labels = log.evidence_rows()
    yield from about_separation(kpi, profiled=log.profiled)
    yield from about_cosine(kpi, signals, profiled=log.profiled)
    yield from about_evidence(signals, _mean_weights(log))
    yield from about_negatives(columns.get(COSINE), labels)
    yield from about_spread(signals, int(np.count_nonzero(log.scored)), profiled=log.profiled)
    yield from about_redundancy(columns)


def _mean_weights(log: Log) -> dict[str, float]:
    """Mean weight of each driver in the KPIs that were scored; 0 where the records do not say."""
    at = log.scored
    weights = {key: np.nan_to_num(column[at]) for key, column in log.weights.items()}
    return {key.removeprefix("weights."): float(column.mean()) for key, column in weights.items() if at.any()}
