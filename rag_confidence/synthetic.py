"""Score sets drawn from known distributions: what demonstrations, tests and benchmarks are run on.

Everything here is made up and says nothing about a real retriever; the distributions are known, so a measured
rate can be held against the true one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rag_confidence._types import FloatArray, IntArray, Mask

Nonconformity: TypeAlias = Callable[[np.random.Generator, int], FloatArray]
"""Draws n nonconformity scores in [0, 1]; higher is stranger."""

_SALT = 0x5C0BE5
_SKEW = 5
_TOKENS = 12
_MEAN_SURPRISE = 0.25


@dataclass(frozen=True)
class Kind:
    """One kind of retrieval in the benchmark: how common it is, and how it scores.

    Attributes
    ----------
    name : str
    share : float
        Probability that a row is of this kind.
    sufficient : float
        Probability that such a row has label 1.
    a, b : float
        Its scores are Beta(a, b), whatever the label.
    """

    name: str
    share: float
    sufficient: float
    a: float
    b: float


KINDS = (
    Kind("true_positive", 0.40, 1.0, 11.0, 2.5),
    Kind("true_negative", 0.30, 0.0, 4.0, 8.0),
    Kind("borderline", 0.15, 0.5, 6.0, 5.0),
    Kind("lexical_trap", 0.15, 0.0, 8.0, 2.2),
)
"""The mixture of `rag_benchmark`: traps score nearly as high as true positives."""


@dataclass(frozen=True, eq=False)
class LabelledScores:
    """Scores with their labels, one row a retrieval.

    Attributes
    ----------
    scores : ndarray, shape (n,)
        Sufficiency scores, high is good.
    labels : ndarray of bool, shape (n,)
        True for sufficient.
    kind : ndarray of str, shape (n,)
        What sort of row it is.
    """

    scores: FloatArray
    labels: Mask
    kind: NDArray[np.str_]

    def __len__(self) -> int:
        return len(self.scores)

    def take(self, rows: IntArray | Mask | slice) -> LabelledScores:
        """The rows of these indices, of this mask or of this slice, in that order."""
        return LabelledScores(self.scores[rows], self.labels[rows], self.kind[rows])


def rag_benchmark(seed: int = 42, n: int = 2000) -> LabelledScores:
    """Retrievals that a fixed threshold answers wrongly: true positives and negatives, borderlines, traps.

    Rows are independent and come in random order, so any split of them is a random split.

    Parameters
    ----------
    seed : int, default 42
        Not negative.
    n : int, default 2000
        Rows, at least 1.

    Returns
    -------
    LabelledScores
        Scores in [0, 1]; ``kind`` is the name of one of `KINDS`. 47.5 % of rows are sufficient on average.

    Raises
    ------
    ValueError
        For a negative seed, and for no rows.

    Notes
    -----
    A row has the kind with probability ``share``, label 1 with probability ``sufficient``, and a score from
    Beta(a, b). Fixed thresholds .60, .70 and .80 accept .33, .24 and .15 of the insufficient rows and .87,
    .75 and .52 of the sufficient ones.

    Examples
    --------
    >>> rows = rag_benchmark(seed=42)
    >>> len(rows), len(set(rows.kind.tolist())), bool(rows.labels[rows.kind == "lexical_trap"].any())
    (2000, 4, False)
    """
    if seed < 0:
        raise ValueError(f"`seed` must not be negative; got {seed}. Any whole number from 0 on will do.")
    return draw_rag_rows(np.random.default_rng([_SALT, seed]), n)


def draw_rag_rows(rng: np.random.Generator, n: int) -> LabelledScores:
    """`rag_benchmark` from a generator of the caller's."""
    _check_rows(n)
    shares, sufficient, a, b = _columns("share", "sufficient", "a", "b")
    kind = rng.choice(len(KINDS), size=n, p=shares)
    labels = rng.random(n) < sufficient[kind]
    return LabelledScores(rng.beta(a[kind], b[kind]), labels, np.array([k.name for k in KINDS])[kind])


def accepted_above(threshold: float) -> tuple[float, float]:
    """Exact shares of the insufficient and of the sufficient rows of `rag_benchmark` above a threshold.

    The first is the true false-sufficiency rate of whatever accepts the scores above it.
    """
    from scipy.special import betaincc

    shares, sufficient, a, b = _columns("share", "sufficient", "a", "b")
    above = betaincc(a, b, min(max(threshold, 0.0), 1.0))
    weights = shares * (1.0 - sufficient), shares * sufficient
    insufficient_rows, sufficient_rows = (float(above @ part / part.sum()) for part in weights)
    return insufficient_rows, sufficient_rows


def uniform_scores(rng: np.random.Generator, n: int) -> FloatArray:
    """Nonconformity scores spread evenly over [0, 1], shape (n,): distribution function x."""
    _check_rows(n)
    return rng.random(n)


def skewed_scores(rng: np.random.Generator, n: int) -> FloatArray:
    """Nonconformity scores of which most are near 0, shape (n,): distribution function 1 - (1 - x)**5."""
    _check_rows(n)
    return rng.beta(1.0, _SKEW, n)


def logprob_scores(rng: np.random.Generator, n: int) -> FloatArray:
    """One minus the geometric mean of 12 token probabilities, shape (n,).

    Each token has an exponential surprise -log p of mean 1/4, so -log(1 - x) is Gamma distributed with shape
    12 and scale 1/48.
    """
    _check_rows(n)
    surprise = rng.gamma(_TOKENS, _MEAN_SURPRISE / _TOKENS, n)
    return np.asarray(-np.expm1(-surprise))


def labelled_scores(
    rng: np.random.Generator,
    n: int,
    nonconformity: Nonconformity,
    *,
    sufficient: float = 0.5,
    reach: float = 0.7,
) -> LabelledScores:
    """Rows whose two classes mirror each other and have a known distribution.

    Parameters
    ----------
    rng : numpy.random.Generator
    n : int
        Rows, at least 1.
    nonconformity : callable
        `uniform_scores`, `skewed_scores`, `logprob_scores`, or another function (rng, n) with values in
        [0, 1].
    sufficient : float, default 0.5
        Probability of label 1, strictly between 0 and 1.
    reach : float, default 0.7
        How far each class reaches from its own end of [0, 1], above 0 and at most 1; the classes overlap
        from one half on.

    Returns
    -------
    LabelledScores
        With a drawn from `nonconformity`, insufficient rows score reach * a and sufficient ones
        1 - reach * a; ``kind`` is "insufficient" or "sufficient".

    Raises
    ------
    ValueError
        For no rows, and for `sufficient` or `reach` out of range.

    Notes
    -----
    With F the distribution function of `nonconformity`, P(score <= t) is F(t / reach) for label 0, and
    P(score >= t) is F((1 - t) / reach) for label 1: the coverage of any threshold is known exactly.

    Examples
    --------
    >>> rows = labelled_scores(np.random.default_rng(1), 1000, uniform_scores)
    >>> bool(rows.scores[~rows.labels].max() <= 0.7), bool(rows.scores[rows.labels].min() >= 0.3)
    (True, True)
    """
    _check_rows(n)
    if not 0.0 < sufficient < 1.0:
        raise ValueError(
            f"`sufficient` must be strictly between 0 and 1; got {sufficient}. Both labels occur."
        )
    if not 0.0 < reach <= 1.0:
        raise ValueError(f"`reach` must be above 0 and at most 1; got {reach}. Scores stay in [0, 1].")
    labels = rng.random(n) < sufficient
    distance = reach * nonconformity(rng, n)
    scores = np.where(labels, 1.0 - distance, distance)
    return LabelledScores(scores, labels, np.where(labels, "sufficient", "insufficient"))


def _columns(*names: str) -> list[NDArray[Any]]:
    return [np.array([getattr(kind, name) for kind in KINDS]) for name in names]


def _check_rows(n: int) -> None:
    if n < 1:
        raise ValueError(f"`n` must be at least 1; got {n}. Ask for some rows.")
