"""Cross-fitting: no row, and no cluster, is predicted by a fit that saw it, and folds keep both classes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_confidence._types import FloatArray, IntArray
from rag_confidence.conformal.separation import auroc, auroc_interval
from rag_confidence.learning.crossfit import MOST_FOLDS, cross_fitted, fold_of, report_of

rows = st.lists(st.tuples(st.booleans(), st.integers(0, 12)), min_size=4, max_size=40)


@given(rows=rows, seed=st.integers(0, 5))
def test_folds_keep_clusters_together_and_classes_apart(rows: list[tuple[bool, int]], seed: int) -> None:
    """A cluster lies in one fold; the rows outside of each fold hold both labels; or there are no folds."""
    labels = np.array([label for label, _ in rows])
    clusters = np.unique([cluster for _, cluster in rows], return_inverse=True)[1]
    fold, folds = fold_of(labels, clusters, seed)
    assert folds == 0 or 2 <= folds <= MOST_FOLDS
    for cluster in np.unique(clusters):
        assert len(np.unique(fold[clusters == cluster])) == 1
    for held_out in range(folds):
        assert len(np.unique(labels[fold != held_out])) == 2


@pytest.mark.parametrize(("n0", "n1"), [(25, 25), (3, 22), (40, 11), (2, 2)])
def test_folds_are_stratified(n0: int, n1: int) -> None:
    """Without clusters each class is spread as evenly as it goes."""
    labels = np.arange(n0 + n1) < n1
    fold, folds = fold_of(labels, np.arange(n0 + n1), 0)
    assert folds == min(MOST_FOLDS, n0, n1)
    for label in (False, True):
        counts = np.bincount(fold[labels == label], minlength=folds)
        assert np.ptp(counts) <= 1


def test_the_seed_decides_on_the_folds() -> None:
    """The same seed gives the same folds, another one others."""
    labels = np.arange(60) % 2 == 0
    first, again, other = (fold_of(labels, np.arange(60), seed)[0] for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()


@pytest.mark.parametrize(("labels", "clusters"), [([1, 0, 0], [0, 1, 2]), ([1, 1, 0, 0], [0, 0, 1, 2])])
def test_one_row_or_cluster_of_a_class_has_no_folds(labels: list[int], clusters: list[int]) -> None:
    """What cannot be held out and trained on at once is not cross-fitted."""
    assert fold_of(np.array(labels, dtype=bool), np.array(clusters), 0)[1] == 0


def test_no_row_is_predicted_by_a_fit_that_saw_it() -> None:
    """A fit that remembers its rows never meets them again."""
    fold = np.arange(20) % 4

    def fit(training: IntArray) -> object:
        def predict(held_out: IntArray) -> FloatArray:
            assert not set(training.tolist()) & set(held_out.tolist())
            assert len(training) + len(held_out) == 20
            return held_out.astype(float)

        return predict

    assert cross_fitted(fit, fold, 4).tolist() == list(range(20))  # type: ignore[arg-type]


def test_the_report_holds_the_figures_of_its_predictions() -> None:
    """AUROC of both scores, Brier score and that of the base rate, written out."""
    labels = np.array([True, False, True, False, True])
    predicted, kpi = np.array([0.9, 0.4, 0.3, 0.2, 0.8]), np.array([0.5, 0.6, 0.7, 0.1, 0.2])
    report = report_of(predicted, labels, kpi, folds=2, n_unscored=1)
    assert (report.n0, report.n1, report.n_unscored, report.folds) == (2, 3, 1, 2)
    assert (report.auroc, report.auroc_kpi) == (auroc(predicted, labels), auroc(kpi, labels))
    assert report.brier == pytest.approx((0.01 + 0.16 + 0.49 + 0.04 + 0.04) / 5)
    assert report.brier_base == pytest.approx(0.6 * 0.4)
    assert (report.auroc_low, report.auroc_high) == auroc_interval(report.auroc or 0.0, 2, 3)


def test_without_folds_the_report_says_so() -> None:
    """Counts, and null for what could not be measured."""
    plain = report_of(None, np.array([True, False]), np.zeros(2), folds=0, n_unscored=0).to_dict()
    assert plain["n0"] == plain["n1"] == 1
    assert {plain[name] for name in ("auroc", "auroc_low", "auroc_high", "auroc_kpi", "brier")} == {None}
