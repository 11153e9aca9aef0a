"""How good a score is on labelled rows: one function a metric, and the registry of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from _data import FloatArray, IntArray, Mask

from rag_confidence import auroc, fit_platt, risk_coverage

FSR = 0.10
ABSTENTION = np.linspace(0.0, 1.0, 11)[:-1]
_FOLDS = 5
_SALT = 0xB51E


@dataclass(frozen=True)
class Metric:
    """A number for scores (n,) and labels (n,).

    Attributes
    ----------
    name, label : str
        Key in the results; head of a column.
    high_is_good : bool
    of : callable
        From scores and labels to the number.
    """

    name: str
    label: str
    high_is_good: bool
    of: Callable[[FloatArray, Mask], float]


def area(scores: FloatArray, sufficient: Mask) -> float:
    """AUROC; nan with one class only."""
    found = auroc(scores, sufficient)
    return float("nan") if found is None else found


def aurc(scores: FloatArray, sufficient: Mask) -> float:
    """Area under the risk-coverage curve."""
    return risk_coverage(scores, sufficient).aurc


def excess_aurc(scores: FloatArray, sufficient: Mask) -> float:
    """AURC above that of the best order of the same rows."""
    return risk_coverage(scores, sufficient).e_aurc


def abstention_nauc(scores: FloatArray, sufficient: Mask) -> float:
    """Area under the abstention curve, 0 for abstaining at random and 1 for the best order; nan if undefined.

    Notes
    -----
    At each abstention rate r of 0, .1, ..., .9 the round(r n) rows of lowest score are left out, at most
    n - 1, and the labels of the others averaged; areas by trapezoids. nAUC = (A - A_flat) / (A_best -
    A_flat), where the best curve orders the rows by their labels and the flat one stays at the mean. Ties
    are parted by the order of the rows, as in MTEB, whose numbers this reproduces.

    References
    ----------
    Gisserot-Boukhlef, Faysse, Malherbe, Hudelot, Colombo (2024), Towards trustworthy reranking: a simple yet
    effective abstention mechanism, TMLR; implemented in MTEB as `nauc`.
    """
    best = _curve_area(sufficient.astype(float), sufficient)
    flat = float(sufficient.mean() * (ABSTENTION[-1] - ABSTENTION[0]))
    if best == flat:
        return float("nan")
    return (_curve_area(scores, sufficient) - flat) / (best - flat)


def acceptance(scores: FloatArray, sufficient: Mask) -> float:
    """Largest share of rows accepted by a cut that accepts at most a tenth of the insufficient ones."""
    return _accepted(scores, sufficient)[0]


def kept(scores: FloatArray, sufficient: Mask) -> float:
    """Share of the sufficient rows that this cut accepts."""
    return _accepted(scores, sufficient)[1]


def brier(probabilities: FloatArray, sufficient: Mask) -> float:
    """Mean squared difference between probability and label."""
    return float(np.mean((probabilities - sufficient) ** 2))


METRICS = (
    Metric("auroc", "AUROC", True, area),
    Metric("aurc", "AURC", False, aurc),
    Metric("e_aurc", "E-AURC", False, excess_aurc),
    Metric("nauc", "nAUC", True, abstention_nauc),
    Metric("acceptance", "acceptance", True, acceptance),
    Metric("kept", "sufficient accepted", True, kept),
)
"""What needs no probability. The Brier score is apart: it needs one."""


def all_of(scores: FloatArray, sufficient: Mask) -> dict[str, float]:
    """Every metric by name."""
    return {metric.name: metric.of(scores, sufficient) for metric in METRICS}


def cross_fitted(scores: FloatArray, sufficient: Mask, seed: int) -> FloatArray:
    """Probabilities of each row from Platt maps fitted on the other four fifths, shape (n,)."""
    fold = stratified_folds(sufficient, _FOLDS, np.random.default_rng([_SALT, seed]))
    found = np.empty(len(scores))
    for held in range(_FOLDS):
        out = fold == held
        found[out] = fit_platt(scores[~out], sufficient[~out])(scores[out])
    return found


def stratified_folds(sufficient: Mask, folds: int, rng: np.random.Generator) -> IntArray:
    """A fold for each row, at random, each class spread evenly over them."""
    fold = np.empty(len(sufficient), dtype=np.intp)
    for label in (False, True):
        rows = rng.permutation(np.flatnonzero(sufficient == label))
        fold[rows] = np.arange(len(rows)) % folds
    return fold


def _curve_area(scores: FloatArray, sufficient: Mask) -> float:
    ordered = sufficient[np.argsort(scores, kind="stable")]
    left_out = [min(round(rate * len(ordered)), len(ordered) - 1) for rate in ABSTENTION]
    return float(np.trapezoid([ordered[count:].mean() for count in left_out], ABSTENTION))


def _accepted(scores: FloatArray, sufficient: Mask) -> tuple[float, float]:
    """Accepted share of all rows and of the sufficient ones at the laxest cut whose FSR is at most `FSR`."""
    curve = risk_coverage(scores, sufficient)
    rows = np.rint(curve.coverage * len(scores))
    wrong = np.rint(curve.risk * rows)
    allowed = np.flatnonzero(wrong <= FSR * np.count_nonzero(~sufficient) + 1e-9)
    if not allowed.size:
        return 0.0, 0.0
    last = allowed[-1]
    right = rows[last] - wrong[last]
    return float(rows[last] / len(scores)), float(right / max(np.count_nonzero(sufficient), 1))
