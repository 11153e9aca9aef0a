"""What repeated trials of a gate say of its coverage, and what is wrong with it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from rag_confidence.conformal.bands import Trial, count_band
from rag_confidence.conformal.binomial import binomial_tail_at_most
from rag_confidence.conformal.quantile import conformal_rank, pac_rank
from rag_confidence.conformal.validation.trials import MeanTest, SpreadTest, mean_test, spread_test

TESTS = 4
"""Two classes, mean and spread of each: the level is shared among them."""

_ONE_TRIAL = 0.95

_ROUNDING = 1e-9
"""Relative error of a float tail, amply: a rank that is off by one moves a tail by far more."""

HEADER = (
    "label",
    "target",
    "expected",
    "observed",
    "band of the mean",
    "p",
    "trials in band",
    "spread",
    "ok",
)


@dataclass(frozen=True)
class ClassCoverage:
    """How often the label of one class was kept, over all trials.

    Attributes
    ----------
    label : int
        0 for insufficient, 1 for sufficient.
    target : float
        1 - alpha.
    mean : MeanTest
        Share of test rows of the class whose label was kept, against its exact distribution.
    spread : SpreadTest
        How much trials differ.
    in_band : float
        Share of trials whose count lies in the exact 95 % band of one trial.
    repeated : float
        Share of test rows whose very score occurs among the calibration rows of their class.
    faults : tuple of str
        What is wrong; empty where nothing is.
    """

    label: int
    target: float
    mean: MeanTest
    spread: SpreadTest
    in_band: float
    repeated: float
    faults: tuple[str, ...]

    def row(self) -> tuple[str, ...]:
        """The cells under `HEADER`."""
        mean, ratio = self.mean, self.spread.ratio
        return (
            str(self.label),
            f"{self.target:.3f}",
            f"{mean.expected:.4f}",
            f"{mean.mean:.4f}",
            f"[{mean.low:.4f}, {mean.high:.4f}]",
            f"{mean.p_value:.3g}",
            f"{self.in_band:.2f}",
            "-" if ratio is None else f"{ratio:.2f}",
            "; ".join(self.faults) or "yes",
        )


@dataclass(frozen=True)
class CoverageReport:
    """What `validate_coverage` found.

    Attributes
    ----------
    insufficient, sufficient : ClassCoverage
        The two classes.
    false_sufficiency_rate : float
        Share of the insufficient test rows that were accepted; never more than the share whose label was
        lost.
    alpha, level : float
    n, n_test, repeats, seed : int
        Rows or queries asked of each draw, trials, seed.
    """

    insufficient: ClassCoverage
    sufficient: ClassCoverage
    false_sufficiency_rate: float
    alpha: float
    level: float
    n: int
    n_test: int
    repeats: int
    seed: int

    @property
    def flagged(self) -> bool:
        """Whether anything is wrong in either class."""
        return bool(self.insufficient.faults or self.sufficient.faults)

    @property
    def ok(self) -> bool:
        """Whether nothing is."""
        return not self.flagged

    def table(self) -> str:
        """A Markdown table with a line for each class."""
        rows = (HEADER, ("---",) * len(HEADER), self.insufficient.row(), self.sufficient.row())
        return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


class ClassCounts(NamedTuple):
    """One trial of one class: rows, and what became of the test rows."""

    n: int
    n_test: int
    covered: int
    accepted: int
    repeated: int


def class_coverage(
    label: int,
    counts: Sequence[ClassCounts],
    *,
    alpha: Fraction,
    delta: Fraction | None,
    level: float,
    continuous: bool,
) -> ClassCoverage:
    """What the counts of one class say."""
    if not counts:
        raise ValueError(
            f"`draw` must give test rows of both classes; got none with label {label}. Test on more rows."
        )
    trials = [Trial(c.n, _rank(c.n, alpha, delta), c.n_test) for c in counts]
    covered = np.array([c.covered for c in counts])
    each = 1.0 - (1.0 - level) / TESTS
    mean, spread = mean_test(covered, trials, each), spread_test(covered, trials, each)
    repeated = sum(c.repeated for c in counts) / mean.tested
    faults = _faults(mean, spread, repeated) if continuous else _faults_with_ties(mean)
    if not all(_supports(n, rank, alpha, delta) for n, rank in {(t.n, t.rank) for t in trials}):
        faults = (*faults, "rank too low for the level")
    in_band = [_in_band(trial, c.covered) for trial, c in zip(trials, counts, strict=True)]
    return ClassCoverage(label, 1.0 - float(alpha), mean, spread, float(np.mean(in_band)), repeated, faults)


def _rank(n: int, alpha: Fraction, delta: Fraction | None) -> int | float:
    return conformal_rank(n, alpha) if delta is None else pac_rank(n, alpha, delta)


def _supports(n: int, rank: int | float, alpha: Fraction, delta: Fraction | None) -> bool:
    """Whether the rank that counts are held against keeps the level by itself.

    Gate and bands take it from one function, so counts alone would never show a rank that is too low.
    """
    if math.isinf(rank):
        return True
    if delta is None:
        return Fraction(int(rank), n + 1) >= 1 - alpha
    return binomial_tail_at_most(n - int(rank), n, float(alpha)) <= float(delta) * (1.0 + _ROUNDING)


def _in_band(trial: Trial, covered: int) -> bool:
    """Whether a count lies in the exact 95 % band of one trial."""
    low, high = count_band(trial, _ONE_TRIAL)
    return low <= covered <= high


def _faults(mean: MeanTest, spread: SpreadTest, repeated: float) -> tuple[str, ...]:
    found = []
    if not mean.within:
        found.append(f"coverage too {'low' if mean.mean < mean.expected else 'high'}")
    if not spread.within and spread.ratio is not None:
        found.append(f"trials differ too {'much' if spread.ratio > 1.0 else 'little'}")
    if repeated > 0.0:
        found.append(f"{repeated:.1%} of test scores occur in the calibration set")
    return tuple(found)


def _faults_with_ties(mean: MeanTest) -> tuple[str, ...]:
    return ("coverage too low",) if 2.0 * mean.p_low <= 1.0 - mean.level else ()
