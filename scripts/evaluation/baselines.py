"""What predicts sufficiency without labels: published predictors and the plain statistics that everyone has.

Each is one function from a `View` to scores (n,), high meaning more likely sufficient, and a line in
`BASELINES`. None was tuned here: where a predictor has parameters they are the plainest choice, and named.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from _data import FloatArray, IntArray

from evaluation.collection import search
from evaluation.strata import Rows

QUANTILE = 0.98
_POSITIVE = 0.01


@dataclass(frozen=True, eq=False)
class View:
    """The first k passages of labelled retrievals, and a frozen sample of their corpus.

    Attributes
    ----------
    rows : Rows
    k : int
    sample : ndarray of int, shape (m,)
        Rows of the corpus drawn once for all queries.
    query_sample : ndarray, shape (q, d)
        Unlabelled queries of the same deployment.
    kept : dict
        What several scores of these rows share, so that it is computed once.
    """

    rows: Rows
    k: int
    sample: IntArray
    query_sample: FloatArray
    kept: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    @property
    def cosines(self) -> FloatArray:
        """Of the served passages, shape (n, k)."""
        return np.asarray(self.rows.cosines[:, : self.k], dtype=np.float64)

    @cached_property
    def passages(self) -> FloatArray:
        """The served passages, shape (n, k, d)."""
        return self.rows.corpus[self.rows.found[:, : self.k]]

    @cached_property
    def query_passages(self) -> FloatArray:
        """The k nearest passages of each sampled query, shape (q, k, d)."""
        found, _ = search(self.query_sample, self.rows.corpus)
        return self.rows.corpus[found[:, : self.k]]

    @cached_property
    def candidates(self) -> FloatArray | None:
        """Cosines of the whole list from these very vectors, shape (n, D); None if it has k or fewer."""
        if self.rows.found.shape[1] <= self.k:
            return None
        deeper = self.rows.corpus[self.rows.found]
        return np.asarray((deeper @ self.rows.queries[:, :, None])[:, :, 0])

    @cached_property
    def background(self) -> FloatArray:
        """Cosines with the sample, shape (n, m); nan for passages that were served."""
        cosines = (self.rows.queries @ self.rows.corpus[self.sample].T).astype(np.float64)
        served = (self.rows.found[:, : self.k, None] == self.sample).any(axis=1)
        return np.where(served, np.nan, cosines)

    @cached_property
    def corpus_cosine(self) -> FloatArray:
        """Mean cosine with the sample, at least .01, shape (n,): the score of the corpus as a document."""
        return np.maximum(np.nanmean(self.background, axis=1), _POSITIVE)


@dataclass(frozen=True)
class Predictor:
    """A label-free score.

    Attributes
    ----------
    name, label : str
        Key in the results; first cell of a row.
    of : callable
        From a view to scores (n,).
    deeper : bool
        Whether it reads more than the k served passages; left out where there are no more.
    """

    name: str
    label: str
    of: Callable[[View], FloatArray]
    deeper: bool = False


def maximum(view: View) -> FloatArray:
    """The best cosine."""
    return view.cosines[:, 0]


def mean_of_three(view: View) -> FloatArray:
    """Mean of the three best cosines."""
    return view.cosines[:, :3].mean(axis=1)


def mean_of_all(view: View) -> FloatArray:
    """Mean of the k cosines."""
    return view.cosines.mean(axis=1)


def margin(view: View) -> FloatArray:
    """Best minus second-best cosine."""
    return view.cosines[:, 0] - view.cosines[:, 1]


def deviation(view: View) -> FloatArray:
    """Standard deviation of the k cosines."""
    return view.cosines.std(axis=1)


def committed(view: View) -> FloatArray:
    """NQC: standard deviation of the k scores over the score of the corpus.

    Shtok, Kurland, Carmel, Raiber, Markovits (2012), Predicting query performance by query-drift estimation,
    ACM TOIS 30.
    """
    return deviation(view) / view.corpus_cosine


def magnitude_and_variance(view: View) -> FloatArray:
    """SMV: mean of s |ln(s / mean s)| over the score of the corpus; scores count as at least .01.

    Tao and Wu (2014), Query performance prediction by considering score magnitude and variance together,
    CIKM.
    """
    scores = np.maximum(view.cosines, _POSITIVE)
    apart = np.abs(np.log(scores / scores.mean(axis=1, keepdims=True)))
    return (scores * apart).mean(axis=1) / view.corpus_cosine


def coherence_ratio(view: View) -> FloatArray:
    """A-Ratio: coherence of the upper half of the list over that of the lower half.

    Entry (i, j) is cosine(p_i, p_j) s_i s_j, multiplied element by element, and the diagonal, where every
    passage agrees with itself, is left out; halves have equal size and at least two passages. Means below .01
    count as .01.

    Vlachou and Macdonald (2024), Coherence-based query performance measures for dense retrieval, ICTIR (the
    A-pairRatio). Their published notebook multiplies the matrices instead and keeps the diagonal.
    """
    half = max(2, view.k // 2)
    agreement = view.passages @ view.passages.transpose(0, 2, 1)
    weighted = agreement * view.cosines[:, :, None] * view.cosines[:, None, :]
    upper, lower = _off_diagonal(weighted[:, :half, :half]), _off_diagonal(weighted[:, -half:, -half:])
    return np.maximum(upper, _POSITIVE) / np.maximum(lower, _POSITIVE)


def excess(view: View) -> FloatArray:
    """Best cosine minus the 98 % quantile of the query's cosines with the sample."""
    return view.cosines[:, 0] - np.nanquantile(view.background, QUANTILE, axis=1)


BASELINES = (
    Predictor("max", "max cosine", maximum),
    Predictor("top3", "mean of top 3", mean_of_three),
    Predictor("topk", "mean of top k", mean_of_all),
    Predictor("margin", "margin", margin),
    Predictor("deviation", "standard deviation", deviation),
    Predictor("nqc", "NQC", committed),
    Predictor("smv", "SMV", magnitude_and_variance),
    Predictor("a_ratio", "A-Ratio", coherence_ratio),
    Predictor("excess", "max minus background quantile", excess),
)


def _off_diagonal(matrices: FloatArray) -> FloatArray:
    """Mean of the entries of (n, h, h) off the diagonal, shape (n,)."""
    size = matrices.shape[1]
    return (matrices.sum(axis=(1, 2)) - matrices.trace(axis1=1, axis2=2)) / (size * (size - 1))
