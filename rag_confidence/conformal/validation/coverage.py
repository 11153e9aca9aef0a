"""Does a gate keep its promise? Repeated trials of a class-conditional gate against exact bands."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import TypeAlias

import numpy as np

from rag_confidence._options import check_integer
from rag_confidence._predictions import Gate
from rag_confidence._types import FloatArray, Mask
from rag_confidence.conformal.bands import check_band_level
from rag_confidence.conformal.gate.fit import fit_conformal_gate
from rag_confidence.conformal.quantile import Level, as_level
from rag_confidence.conformal.validation.draws import Draw
from rag_confidence.conformal.validation.report import ClassCounts, CoverageReport, class_coverage
from rag_confidence.synthetic import LabelledScores

_SALT = 0xC0FE4
_ANY_DELTA = Fraction(1, 20)

Fit: TypeAlias = Callable[[FloatArray, Mask], Gate]
"""(scores, labels) -> a gate."""


def validate_coverage(
    draw: Draw,
    n: int,
    alpha: Level,
    *,
    n_test: int,
    repeats: int = 100,
    seed: int = 0,
    level: float = 0.95,
    delta: Level | None = None,
    continuous: bool = True,
    fit: Fit | None = None,
) -> CoverageReport:
    """Coverage of both classes over repeated trials, held against what an honest gate must show.

    Parameters
    ----------
    draw : callable
        (rng, n, n_test) -> calibration and test rows: `fresh_draws`, `random_splits`, or your own. Both parts
        must hold both classes.
    n, n_test : int
        Passed to `draw`, at least 1.
    alpha : float, str, Fraction or Decimal
        Miscoverage level in (0, 1) of both classes.
    repeats : int, default 100
        Trials.
    seed : int, default 0
    level : float, default 0.95
        A gate of exactly the conformal (or pac) rank, on scores without ties, is flagged with probability
        1 - level at most, over all tests together. A sound gate that is more careful than that is flagged
        too, as "coverage too high".
    delta : float, str, Fraction, Decimal or None, default None
        Set for a gate fitted with ``guarantee="pac"``: its ranks, and so its expected coverage, are higher.
    continuous : bool, default True
        Whether scores do not tie. With False a coverage above its band is no fault, and the spread is not
        tested, because ties can only raise coverage.
    fit : callable, optional
        (scores, labels) -> gate to check; by default `fit_conformal_gate` at `alpha` on raw scores.

    Returns
    -------
    CoverageReport
        ``flagged`` says whether something is wrong, ``faults`` of each class what.

    Raises
    ------
    TypeError, ValueError
        For sizes and levels out of range, a part without a class, and what the gate refuses.

    Notes
    -----
    Given its calibration set, the coverage of a class is Beta(k, n_y - k + 1), and the count of covered test
    rows beta-binomial. Four tests share 1 - level (Bonferroni): for each class the mean over trials, exactly,
    and the spread of trials, by simulation. That the rank k itself keeps the level is checked apart from the
    counts: k/(n_y + 1) >= 1 - alpha, or P(Binomial(n_y, 1 - alpha) >= k) <= delta. Cost:
    `repeats` fits and predictions.

    A pass is no proof: shifts below `smallest_visible_shift` go unseen, and draws from one pool show nothing
    about rows unlike it.

    References
    ----------
    Vovk (2012), Conditional validity of inductive conformal predictors.

    Examples
    --------
    >>> from rag_confidence.conformal.validation.draws import fresh_draws
    >>> from rag_confidence.synthetic import draw_rag_rows
    >>> validate_coverage(fresh_draws(draw_rag_rows), 400, 0.1, n_test=400, repeats=20).ok
    True
    """
    check_band_level(level)
    sizes = check_integer("n", n, 1), check_integer("n_test", n_test, 1)
    alpha_used, chance = as_level(alpha), None if delta is None else as_level(delta, "delta")
    start = [_SALT, check_integer("seed", seed, 0)]
    fit = fit or _default_fit(alpha_used, chance)
    rngs = (np.random.default_rng([*start, at]) for at in range(check_integer("repeats", repeats, 1)))
    runs = [_run(*draw(rng, *sizes), fit) for rng in rngs]
    judged = partial(class_coverage, alpha=alpha_used, delta=chance, level=level, continuous=continuous)
    insufficient, sufficient = (judged(y, [run[y] for run in runs if run[y].n_test]) for y in (0, 1))
    return CoverageReport(
        insufficient=insufficient,
        sufficient=sufficient,
        false_sufficiency_rate=sum(run[0].accepted for run in runs) / sum(run[0].n_test for run in runs),
        alpha=float(alpha_used),
        level=level,
        n=n,
        n_test=n_test,
        repeats=repeats,
        seed=seed,
    )


def _default_fit(alpha: Fraction, delta: Fraction | None) -> Fit:
    """The plain gate; how well it separates is not the question here."""
    return partial(
        fit_conformal_gate,
        alpha=alpha,
        guarantee="marginal" if delta is None else "pac",
        delta=delta or _ANY_DELTA,
        score_kind="raw",
        auroc_floor=0.0,
    )


def _run(calibration: LabelledScores, test: LabelledScores, fit: Fit) -> tuple[ClassCounts, ClassCounts]:
    """One trial, counted for each class."""
    decided = fit(calibration.scores, calibration.labels).predict(test.scores)
    kept = (decided.label0_kept, decided.label1_kept)
    counts = []
    for label in (False, True):
        own, rows = calibration.scores[calibration.labels == label], test.labels == label
        counts.append(
            ClassCounts(
                n=len(own),
                n_test=int(np.count_nonzero(rows)),
                covered=int(np.count_nonzero(kept[label][rows])),
                accepted=int(np.count_nonzero(decided.accepted[rows])),
                repeated=int(np.count_nonzero(np.isin(test.scores[rows], own))),
            )
        )
    return counts[0], counts[1]
