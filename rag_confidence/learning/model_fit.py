"""From labelled retrievals to the parts of a `ConfidenceModel`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rag_confidence._history import check_aligned, check_labels, check_two_classes
from rag_confidence._options import check_choice, check_integer
from rag_confidence._types import FloatArray, IntArray, Mask
from rag_confidence.conformal.rows import Rows, plain_names, rows_of
from rag_confidence.conformal.separation import auroc_interval, auroc_of_sorted
from rag_confidence.errors import SmallCalibrationWarning, WeakSeparationWarning, warn_caller
from rag_confidence.learning.crossfit import ModelReport, cross_fitted, fold_of, report_of
from rag_confidence.learning.prior import TEXT_SIGNALS, Prior
from rag_confidence.learning.reading import Metrics
from rag_confidence.learning.shipped_prior import DEFAULT_PRIOR
from rag_confidence.learning.table import SignalTable, listed, table_of
from rag_confidence.learning.terms import Term, contributions, fit_terms, probabilities

LEAST_PER_CLASS = 10


@dataclass(frozen=True, eq=False)
class Fitted:
    """The parts of a `ConfidenceModel`; see there."""

    intercept: float
    terms: tuple[Term, ...]
    unused: tuple[str, ...]
    prior_fingerprint: str
    report: ModelReport
    rows: Rows


@dataclass(frozen=True, eq=False)
class _Training:
    """Checked rows on which something was measured."""

    table: SignalTable
    labels: Mask
    row_ids: Any
    clusters: IntArray
    n_unscored: int


def fit_model(
    metrics: Metrics,
    labels: ArrayLike,
    *,
    row_ids: Any,
    clusters: Any,
    text_signal: str,
    prior: Prior | None,
    seed: int,
) -> Fitted:
    """The parts of `ConfidenceModel.fit`, whose arguments these are."""
    check_choice("text_signal", text_signal, ("off", "on"))
    known = _checked_prior(prior)
    names = known.names if text_signal == "on" else tuple(n for n in known.names if n not in TEXT_SIGNALS)
    training = _training(listed(metrics), labels, names, row_ids=row_ids, clusters=clusters)
    if text_signal == "on":
        _check_text(training.table)
    values, sufficient = training.table.values, training.labels
    intercept, terms = fit_terms(names, values, sufficient, known)
    if not terms:
        raise ValueError(
            "`metrics` must hold a signal that varies; got equal values in all rows. Score other questions."
        )
    _warn_if_few(sufficient)
    _warn_if_inverted(training.table.kpi, sufficient)
    used = [names.index(term.name) for term in terms]
    own = probabilities(contributions(intercept, terms, values[:, used]))
    return Fitted(
        intercept=intercept,
        terms=terms,
        unused=tuple(name for at, name in enumerate(names) if at not in used),
        prior_fingerprint=known.fingerprint,
        report=_report(training, known, check_integer("seed", seed, 0)),
        rows=rows_of(own, sufficient, training.row_ids, training.table.provenance),
    )


def _checked_prior(prior: Any) -> Prior:
    if prior is None:
        return DEFAULT_PRIOR
    if not isinstance(prior, Prior):
        raise TypeError(f"`prior` must be a Prior; got {type(prior).__name__}. Use learn_prior or Prior.of.")
    return prior


def _training(
    metrics: Metrics, labels: ArrayLike, names: tuple[str, ...], *, row_ids: Any, clusters: Any
) -> _Training:
    table = table_of(metrics, names)
    check_aligned(metrics=metrics, labels=labels, row_ids=row_ids, clusters=clusters)
    sufficient = check_labels("labels", labels)
    ids = None if row_ids is None else plain_names("row_ids", row_ids)
    together = np.arange(len(sufficient)) if clusters is None else _numbered(clusters)
    scored = ~np.isnan(table.values).all(axis=1)
    kept = replace(table, values=table.values[scored], kpi=table.kpi[scored])
    check_two_classes(sufficient[scored])
    return _Training(
        kept,
        sufficient[scored],
        None if ids is None else ids[scored],
        np.unique(together[scored], return_inverse=True)[1],
        int(np.count_nonzero(~scored)),
    )


def _numbered(clusters: Any) -> IntArray:
    """A number for each distinct name, in order of appearance."""
    places: dict[Any, int] = {}
    return np.array([places.setdefault(name, len(places)) for name in plain_names("clusters", clusters)])


def _check_text(table: SignalTable) -> None:
    at = [table.names.index(name) for name in TEXT_SIGNALS if name in table.names]
    if np.isnan(table.values[:, at]).all():
        raise ValueError(
            "`text_signal` must be 'off' where no row has text signals; got 'on'. Score with query_text, "
            "texts and a profile fitted with texts."
        )


def _warn_if_few(sufficient: Mask) -> None:
    n1 = int(np.count_nonzero(sufficient))
    n0 = len(sufficient) - n1
    if min(n0, n1) < LEAST_PER_CLASS:
        warn_caller(
            f"a model on {n0} insufficient and {n1} sufficient rows hardly differs from its prior, and its "
            f"probabilities are rough: label at least {LEAST_PER_CLASS} of each.",
            SmallCalibrationWarning,
        )


def _warn_if_inverted(kpi: FloatArray, sufficient: Mask) -> None:
    zeros, ones = np.sort(kpi[~sufficient]), np.sort(kpi[sufficient])
    # With fewer rows the interval is rough, and another warning says that there are few.
    if min(len(zeros), len(ones)) < LEAST_PER_CLASS:
        return
    area = auroc_of_sorted(zeros, ones)
    low, high = auroc_interval(area, len(zeros), len(ones))
    if high < 0.5:
        warn_caller(
            f"the KPI ranks the training rows the wrong way round: AUROC {area:.3f}, 95 % interval {low:.3f} "
            f"to {high:.3f}, on {len(zeros)} insufficient and {len(ones)} sufficient rows. Check the sign of "
            "the labels (1 means sufficient), and that they are in the order of the records.",
            WeakSeparationWarning,
        )


def _report(training: _Training, prior: Prior, seed: int) -> ModelReport:
    table, labels = training.table, training.labels
    fold, folds = fold_of(labels, training.clusters, seed)
    predicted = None
    if folds:
        predicted = cross_fitted(_fitter(table, labels, prior), fold, folds)
    return report_of(predicted, labels, table.kpi, folds=folds, n_unscored=training.n_unscored)


def _fitter(
    table: SignalTable, labels: Mask, prior: Prior
) -> Callable[[IntArray], Callable[[IntArray], FloatArray]]:
    def fit(rows: IntArray) -> Callable[[IntArray], FloatArray]:
        intercept, terms = fit_terms(table.names, table.values[rows], labels[rows], prior)
        at = [table.names.index(term.name) for term in terms]

        def predict(held_out: IntArray) -> FloatArray:
            return probabilities(contributions(intercept, terms, table.values[held_out][:, at]))

        return predict

    return fit
