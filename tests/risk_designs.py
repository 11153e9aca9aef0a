"""Distributions of labelled scores whose selective risk is known in closed form at every threshold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from refusals import quiet
from scipy.stats import beta

from rag_confidence.conformal.risk.fit import fit_risk_gate
from rag_confidence.conformal.risk.fitted import RiskGate
from rag_confidence.synthetic import KINDS, draw_rag_rows

Scores: TypeAlias = NDArray[np.float64]
Labels: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True)
class Design:
    """How rows are drawn, and R(t) = P(insufficient | S > t) for t in [0, 1)."""

    name: str
    draw: Callable[[np.random.Generator, int], tuple[Scores, Labels]]
    risk: Callable[[float], float]

    def risk_of(self, gate: RiskGate) -> float:
        """True risk of what a gate accepts; 0 where it accepts nothing."""
        return self.risk(max(gate.threshold, -1.0)) if gate.certified else 0.0


def slope() -> Design:
    """Uniform scores, P(insufficient | s) = 1 - s: the risk rises from 0 to 1/2 as the threshold falls."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Scores, Labels]:
        scores = rng.random(n)
        return scores, rng.random(n) < scores

    return Design("slope", draw, lambda t: (1.0 - max(t, 0.0)) / 2.0)


def mixture(prior: float, *, decimals: int | None = None, power: float = 6.0) -> Design:
    """Insufficient scores are Beta(1, power), sufficient ones Beta(power, 1); cut to decimals on request."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Scores, Labels]:
        labels = rng.random(n) >= prior
        scores = np.where(labels, rng.beta(power, 1.0, n), rng.beta(1.0, power, n))
        if decimals is not None:
            scores = np.floor(scores * 10**decimals) / 10**decimals
        return scores, labels

    def risk(t: float) -> float:
        # Cut scores exceed t where the scores behind them reach the next step.
        start = t if decimals is None else (np.floor(t * 10**decimals + 0.5) + 1.0) / 10**decimals
        start = max(start, 0.0)
        zero, one = prior * (1.0 - start) ** power, (1.0 - prior) * (1.0 - start**power)
        return float(zero / (zero + one))

    return Design(f"mixture {decimals}", draw, risk)


def benchmark() -> Design:
    """The synthetic benchmark with its traps: not monotone near the top."""

    def risk(t: float) -> float:
        above = [kind.share * float(beta.sf(max(t, 0.0), kind.a, kind.b)) for kind in KINDS]
        bad = sum(part * (1.0 - kind.sufficient) for part, kind in zip(above, KINDS, strict=True))
        return float(bad / sum(above))

    def draw(rng: np.random.Generator, n: int) -> tuple[Scores, Labels]:
        rows = draw_rag_rows(rng, n)
        return np.asarray(rows.scores, dtype=np.float64), rows.labels

    return Design("benchmark", draw, risk)


def steps(name: str, edges: list[float], rates: list[float], *, cells: int | None = None) -> Design:
    """P(insufficient) by the share of rows that score higher: `rates` between the `edges` of [0, 1].

    With `cells` the scores take only that many values, evenly spread.
    """
    ends, rate = np.array(edges), np.array(rates)
    total = np.concatenate([[0.0], np.cumsum(np.diff(ends) * rate)])

    def draw(rng: np.random.Generator, n: int) -> tuple[Scores, Labels]:
        higher = rng.random(n)
        labels = rng.random(n) >= rate[np.searchsorted(ends, higher, side="right") - 1]
        return 1.0 - (higher if cells is None else np.floor(higher * cells) / cells), labels

    def risk(t: float) -> float:
        share = min(1.0 - t, 1.0)
        return float(np.interp(share, ends, total) / share)

    return Design(f"{name} {cells}", draw, risk)


def waves(*, cells: int | None = None) -> Design:
    """A risk that crosses 20 % again and again, downwards: .10, .22, .18, .25, .20, .25, .19, .27."""
    edges = [0.0, 0.3, 0.36, 0.44, 0.5, 0.64, 0.7, 0.9, 1.0]
    return steps("waves", edges, [0.1, 0.8, 0.0, 0.8, 0.0, 0.8, 0.0, 1.0], cells=cells)


def constant(rate: float) -> Design:
    """The same share of insufficient rows whatever the score."""
    return steps("constant", [0.0, 1.0], [rate])


def true_risks(design: Design, trials: int, n: int, seed: int, **options: Any) -> tuple[Scores, Scores]:
    """True risk and calibration acceptance of gates on fresh histories."""
    rng = np.random.default_rng([72, seed])
    risks, shares = np.zeros(trials), np.zeros(trials)
    with quiet():
        for trial in range(trials):
            gate = fit_risk_gate(*design.draw(rng, n), **options)
            risks[trial], shares[trial] = design.risk_of(gate), gate.accepted / n
    return risks, shares
