"""The methods that the gate benchmark compares, and the rates that it measures of each."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_confidence.conformal.gate.fit import fit_conformal_gate
from rag_confidence.conformal.quantile import conformal_rank, pac_rank
from rag_confidence.conformal.risk.fit import fit_risk_gate
from rag_confidence.synthetic import LabelledScores

Mask = NDArray[np.bool_]

LEVEL = Fraction(1, 10)
ALPHA = float(LEVEL)
DELTA = 0.05
RISK_DELTA = 0.10
FIXED = (0.60, 0.70, 0.80)
TARGETS = (0.10, 0.30)
MARGINAL = "gate, marginal"


@dataclass(frozen=True)
class Decided:
    """What a method makes of test scores, and the score above which it accepts."""

    accepted: Mask
    rejected: Mask
    label0_kept: Mask
    label1_kept: Mask
    cut: float


@dataclass(frozen=True)
class Method:
    """A way to decide, the error that it claims to bound, and at which level.

    Attributes
    ----------
    name : str
    fit : callable
        Calibration rows -> a function from test scores to `Decided`.
    level : float
        Bound on the false-sufficiency rate, or on the selective risk.
    bounds_risk : bool
        Which of the two.
    is_gate : bool
        Whether it keeps labels by rank, so that its coverage has a known distribution.
    delta : Fraction or None
        That of a pac gate.
    """

    name: str
    fit: Callable[[LabelledScores], Callable[[NDArray[Any]], Decided]]
    level: float
    bounds_risk: bool = False
    is_gate: bool = False
    delta: Fraction | None = None

    def rank(self, n: int) -> int | float:
        """Rank of the threshold of a gate among n scores of a class."""
        return conformal_rank(n, LEVEL) if self.delta is None else pac_rank(n, LEVEL, self.delta)


@dataclass(frozen=True)
class Rates:
    """What one method did on the test rows of one seed; nan where nothing could be observed.

    Attributes
    ----------
    fsr, risk : float
        P(ACCEPT | 0) and P(0 | ACCEPT).
    sufficient : float
        P(ACCEPT | 1): the share of true evidence that is used.
    kept_0, kept_1 : float
        P(y in set | y): the coverage that a gate promises.
    accept, abstain, conflict : float
        Shares of all rows.
    held : float
        1 where the bounded error was at most the level on these rows.
    """

    fsr: float
    risk: float
    sufficient: float
    kept_0: float
    kept_1: float
    accept: float
    abstain: float
    conflict: float
    held: float


def methods() -> list[Method]:
    """Fixed thresholds, the gates, and the risk gate at two targets."""
    fixed = [Method(f"fixed {cut:.2f}", partial(_fixed, cut), ALPHA) for cut in FIXED]
    gates = [
        Method(MARGINAL, partial(_gate, {}), ALPHA, is_gate=True),
        Method("gate, conflicts accepted", partial(_gate, {"on_conflict": "accept"}), ALPHA, is_gate=True),
        Method(
            "gate, pac",
            partial(_gate, {"guarantee": "pac", "delta": DELTA}),
            ALPHA,
            is_gate=True,
            delta=Fraction(str(DELTA)),
        ),
    ]
    risk = [Method(f"risk gate, {t:.2f}", partial(_risk, t), t, bounds_risk=True) for t in TARGETS]
    return [*fixed, *gates, *risk]


def rates(method: Method, decided: Decided, labels: Mask) -> Rates:
    """The rates of one method on the rows of one test."""
    accepted = decided.accepted
    found = {
        "fsr": share(accepted, ~labels),
        "risk": share(~labels, accepted),
        "sufficient": share(accepted, labels),
    }
    # A gate that accepts nothing makes no error that it could be blamed for.
    error = np.nan_to_num(found["risk" if method.bounds_risk else "fsr"])
    everything = np.ones(len(labels), dtype=bool)
    return Rates(
        **found,
        kept_0=share(decided.label0_kept, ~labels),
        kept_1=share(decided.label1_kept, labels),
        accept=share(accepted, everything),
        abstain=share(~accepted & ~decided.rejected, everything),
        conflict=share(~decided.label0_kept & ~decided.label1_kept, everything),
        held=float(error <= method.level + 1e-12),
    )


def share(event: Mask, among: Mask) -> float:
    """Share of the rows `among` that show an event; nan for no such rows."""
    total = int(np.count_nonzero(among))
    return int(np.count_nonzero(event & among)) / total if total else float("nan")


def _fixed(cut: float, _: LabelledScores) -> Callable[[NDArray[Any]], Decided]:
    def decide(scores: NDArray[Any]) -> Decided:
        above = scores > cut
        return Decided(above, ~above, ~above, above, cut)

    return decide


def _gate(options: dict[str, Any], known: LabelledScores) -> Callable[[NDArray[Any]], Decided]:
    gate = _quietly(fit_conformal_gate, known, alpha=LEVEL, **options)
    cut = gate.q0 if gate.on_conflict == "accept" else max(gate.q0, gate.t1)

    def decide(scores: NDArray[Any]) -> Decided:
        found = gate.predict(scores)
        kept = found.label0_kept, found.label1_kept
        return Decided(found.accepted, found.rejected, *kept, cut)

    return decide


def _risk(target: float, known: LabelledScores) -> Callable[[NDArray[Any]], Decided]:
    gate = _quietly(fit_risk_gate, known, target_risk=target, delta=RISK_DELTA)

    def decide(scores: NDArray[Any]) -> Decided:
        found = gate.predict(scores)
        nothing = np.zeros(len(scores), dtype=bool)
        return Decided(found.accepted, nothing, ~found.accepted, ~nothing, gate.threshold)

    return decide


def _quietly(fit: Callable[..., Any], known: LabelledScores, **options: Any) -> Any:
    """Fit without warnings: the tables show what too few labels and weak scores do."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit(known.scores, known.labels, **options)
