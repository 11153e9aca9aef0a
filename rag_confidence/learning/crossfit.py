"""Predictions for rows that did not train them, and what they say of a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rag_confidence._types import FloatArray, IntArray, Mask
from rag_confidence.conformal.separation import auroc_interval, auroc_of_sorted

_SALT = 0xC7055F
MOST_FOLDS = 5


@dataclass(frozen=True)
class ModelReport:
    """What cross-fitting says of a model: every row predicted by a fit on the other folds.

    Attributes
    ----------
    n0, n1 : int
        Insufficient and sufficient training rows.
    n_unscored : int
        Rows left out because nothing was measured on them: no passages, or a zero query.
    folds : int
        0 where a class has too few rows (or clusters) for any; the rest is then None.
    auroc, auroc_low, auroc_high : float or None
        Of the cross-fitted predictions, with a 95 % interval; high is good.
    auroc_kpi : float or None
        Of the label-free KPI on the same rows: what the labels have to beat.
    brier, brier_base : float or None
        Mean squared error of the cross-fitted predictions, and of always predicting the share of sufficient
        rows; low is good.
    """

    n0: int
    n1: int
    n_unscored: int
    folds: int
    auroc: float | None = None
    auroc_low: float | None = None
    auroc_high: float | None = None
    auroc_kpi: float | None = None
    brier: float | None = None
    brier_base: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


def fold_of(labels: Mask, clusters: IntArray, seed: int) -> tuple[IntArray, int]:
    """A fold for each row, and how many there are; clusters stay together.

    Parameters
    ----------
    labels : ndarray of bool, shape (n,)
    clusters : ndarray of int, shape (n,)
        Rows with the same number belong together.
    seed : int

    Returns
    -------
    ndarray of int, shape (n,), and int
        At most `MOST_FOLDS`, and no more than each class has clusters; 0 folds where that is fewer than two
        or where some fold would leave a class without training rows.

    Notes
    -----
    Clusters are dealt out in random order, the largest first, each to the fold that has the fewest rows of
    the label that is more frequent in it: the shares of the classes stay near those of all rows.
    """
    folds = min(MOST_FOLDS, *(len(np.unique(clusters[labels == label])) for label in (False, True)))
    if folds < 2:
        return np.zeros(len(labels), dtype=np.int64), 0
    count = int(clusters.max()) + 1
    held = np.stack(
        [np.bincount(clusters[~labels], minlength=count), np.bincount(clusters[labels], minlength=count)]
    )
    shuffled = np.random.default_rng([_SALT, seed]).permutation(count)
    order = shuffled[np.argsort(-held.sum(axis=0)[shuffled], kind="stable")]
    fold, dealt = np.zeros(count, dtype=np.int64), np.zeros((2, folds), dtype=np.int64)
    for cluster in order.tolist():
        main = int(held[1, cluster] > held[0, cluster])
        chosen = int(np.lexsort((dealt.sum(axis=0), dealt[main]))[0])
        fold[cluster] = chosen
        dealt[:, chosen] += held[:, cluster]
    left = dealt.sum(axis=1, keepdims=True) - dealt
    return fold[clusters], folds if left.all() else 0


def cross_fitted(
    fit: Callable[[IntArray], Callable[[IntArray], FloatArray]], fold: IntArray, folds: int
) -> FloatArray:
    """Predictions (n,), each by a fit on the rows of the other folds.

    `fit` takes rows and gives a function from rows to their predictions.
    """
    found = np.full(len(fold), np.nan)
    for held_out in range(folds):
        inside = np.flatnonzero(fold == held_out)
        found[inside] = fit(np.flatnonzero(fold != held_out))(inside)
    return found


def report_of(
    predicted: FloatArray | None, labels: Mask, kpi: FloatArray, *, folds: int, n_unscored: int
) -> ModelReport:
    """The report on cross-fitted predictions (n,), or on none."""
    n1 = int(labels.sum())
    n0 = len(labels) - n1
    if predicted is None:
        return ModelReport(n0, n1, n_unscored, 0)
    area = _auroc(predicted, labels)
    low, high = auroc_interval(area, n0, n1)
    truth = labels.astype(np.float64)
    share = n1 / len(labels)
    return ModelReport(
        n0=n0,
        n1=n1,
        n_unscored=n_unscored,
        folds=folds,
        auroc=area,
        auroc_low=low,
        auroc_high=high,
        auroc_kpi=_auroc(kpi, labels),
        brier=float(np.mean((predicted - truth) ** 2)),
        brier_base=share * (1.0 - share),
    )


def _auroc(scores: FloatArray, labels: Mask) -> float:
    return auroc_of_sorted(np.sort(scores[~labels]), np.sort(scores[labels]))
