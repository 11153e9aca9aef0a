"""A demonstration that needs no data: fixed thresholds and the gate on the same made-up retrievals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from textwrap import fill
from typing import Any

from rag_confidence._options import check_integer
from rag_confidence.conformal.bands import Trial, count_band
from rag_confidence.conformal.gate.evaluation import GateEvaluation, evaluate_conformal_gate
from rag_confidence.conformal.gate.fit import fit_conformal_gate
from rag_confidence.conformal.gate.fitted import ConformalGate
from rag_confidence.conformal.gate.loose import Thresholds
from rag_confidence.conformal.proportion import Proportion
from rag_confidence.conformal.quantile import Level, as_level, conformal_rank
from rag_confidence.synthetic import accepted_above, rag_benchmark

_FIXED = (0.60, 0.70, 0.80)
_ROWS = 2000
_CALIBRATION = 1000
_BAND = 0.95
_WIDTH = 105
_HEADER = ("method", "FSR", "true FSR", "risk", "sufficient", "accept", "reject", "abstain", "conflict")
_LEGEND = """\
FSR: insufficient rows that are accepted, P(ACCEPT | 0); true FSR: the same for all future rows, known here.
risk: accepted rows that are insufficient, P(0 | ACCEPT). sufficient: sufficient rows that are accepted,
P(ACCEPT | 1). accept, reject, abstain: of all rows. conflict: rows strange for both labels."""


@dataclass(frozen=True)
class DemoMethod:
    """Rates of one method on the test rows, all in [0, 1].

    Attributes
    ----------
    name : str
    false_sufficiency_rate : float
        Insufficient rows that were accepted; low is good.
    true_false_sufficiency_rate : float
        The same over all rows that the distribution could give.
    selective_risk : float or None
        Accepted rows that are insufficient; None where none was accepted.
    sufficient_accepted : float
        Sufficient rows that were accepted; high is good.
    coverage_0, coverage_1 : float or None
        Rows of a class whose label was kept; None for a fixed threshold, which promises none.
    acceptance_rate, rejection_rate, abstention_rate, conflict_rate : float
        Of all rows.
    """

    name: str
    false_sufficiency_rate: float
    true_false_sufficiency_rate: float
    selective_risk: float | None
    sufficient_accepted: float
    coverage_0: float | None
    coverage_1: float | None
    acceptance_rate: float
    rejection_rate: float
    abstention_rate: float
    conflict_rate: float

    def cells(self) -> tuple[str, ...]:
        """Its line of the table."""
        risk = "-" if self.selective_risk is None else f"{self.selective_risk:.3f}"
        rates = (self.acceptance_rate, self.rejection_rate, self.abstention_rate, self.conflict_rate)
        return (
            self.name,
            f"{self.false_sufficiency_rate:.3f}",
            f"{self.true_false_sufficiency_rate:.3f}",
            risk,
            f"{self.sufficient_accepted:.3f}",
            *(f"{rate:.3f}" for rate in rates),
        )


@dataclass(frozen=True)
class DemoReport:
    """What `run_demo` found; printed, it is a table and a sentence.

    Attributes
    ----------
    seed : int
    alpha : float
    n0, n1 : int
        Insufficient and sufficient rows that the gate was fitted on.
    test_n0, test_n1 : int
        Those that all methods were tested on.
    q0, t1 : float
        Thresholds of the gate; infinite where it had too few rows for `alpha`.
    methods : tuple of DemoMethod
        Three fixed thresholds, then the gate.
    fsr_band : tuple of float
        Exact 95 % band of the share of insufficient test rows whose label is lost, over calibration and
        test draws.
    sentence : str
        Where the gate's false-sufficiency rate lies.
    """

    seed: int
    alpha: float
    n0: int
    n1: int
    test_n0: int
    test_n1: int
    q0: float
    t1: float
    methods: tuple[DemoMethod, ...]
    fsr_band: tuple[float, float]
    sentence: str

    @property
    def gate(self) -> DemoMethod:
        """The row of the conformal gate."""
        return self.methods[-1]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; an infinite threshold is null."""
        plain = asdict(self)
        for name in ("q0", "t1"):
            plain[name] = plain[name] if math.isfinite(plain[name]) else None
        return plain | {"methods": [asdict(method) for method in self.methods], "fsr_band": [*self.fsr_band]}

    def table(self) -> str:
        """The methods as a text table."""
        cells = [_HEADER, *(method.cells() for method in self.methods)]
        widths = [max(len(row[at]) for row in cells) for at in range(len(_HEADER))]
        first, *rest = ("  ".join(_aligned(row, widths)) for row in cells)
        return "\n".join([first, "-" * len(first), *rest])

    def __str__(self) -> str:
        rows = f"{self.n0 + self.n1} calibration rows, {self.test_n0 + self.test_n1} test rows"
        title = f"Made-up retrievals, seed {self.seed}, alpha {self.alpha:g}: {rows}"
        return "\n\n".join([title, self.table(), _LEGEND, fill(self.sentence, _WIDTH)])


def run_demo(seed: int = 42, alpha: Level = 0.10) -> DemoReport:
    """Fixed thresholds and a conformal gate on 2,000 made-up retrievals, half of them for calibration.

    Parameters
    ----------
    seed : int, default 42
        Not negative.
    alpha : float, str, Fraction or Decimal, default 0.10
        Level of the gate in (0, 1).

    Returns
    -------
    DemoReport

    Raises
    ------
    TypeError, ValueError
        For a seed that is no count and a level outside (0, 1).

    Notes
    -----
    The rows are those of `rag_benchmark`. One draw proves nothing: a false-sufficiency rate below alpha is
    close to a coin flip for a sound gate, so the report says where the rate lies in its exact band instead.

    Warns
    -----
    SmallCalibrationWarning
        For an alpha below 1/500 or so, which 1,000 rows do not support.

    Examples
    --------
    >>> report = run_demo(seed=42, alpha=0.10)
    >>> [method.name for method in report.methods]
    ['fixed 0.60', 'fixed 0.70', 'fixed 0.80', 'conformal gate']
    """
    level = as_level(alpha)
    rows = rag_benchmark(check_integer("seed", seed, 0), _ROWS)
    known, new = rows.take(slice(_CALIBRATION)), rows.take(slice(_CALIBRATION, None))
    gate = fit_conformal_gate(known.scores, known.labels, level)
    found = evaluate_conformal_gate(new.scores, new.labels, gate)
    methods = [
        _method(
            f"fixed {cut:.2f}",
            evaluate_conformal_gate(new.scores, new.labels, Thresholds(q0=cut, q1=1.0 - cut)),
            cut,
            promises=False,
        )
        for cut in _FIXED
    ]
    band = _lost_band(gate, found.n0)
    return DemoReport(
        seed=seed,
        alpha=float(level),
        n0=gate.n0,
        n1=gate.n1,
        test_n0=found.n0,
        test_n1=found.n1,
        q0=gate.q0,
        t1=gate.t1,
        methods=(*methods, _method("conformal gate", found, max(gate.q0, gate.t1), promises=True)),
        fsr_band=band,
        sentence=_sentence(gate, found, band),
    )


def _method(name: str, found: GateEvaluation, cut: float, *, promises: bool) -> DemoMethod:
    """Rates of a method that accepts scores above `cut`."""
    return DemoMethod(
        name=name,
        false_sufficiency_rate=_rate(found.false_sufficiency_rate),
        true_false_sufficiency_rate=accepted_above(cut)[0],
        selective_risk=found.selective_risk.rate,
        sufficient_accepted=_rate(found.sufficient_accepted),
        coverage_0=found.coverage_0.rate if promises else None,
        coverage_1=found.coverage_1.rate if promises else None,
        acceptance_rate=_rate(found.acceptance_rate),
        rejection_rate=_rate(found.rejection_rate),
        abstention_rate=_rate(found.abstention_rate),
        conflict_rate=_rate(found.conflict_rate),
    )


def _rate(share: Proportion) -> float:
    """A rate of rows that there are."""
    return share.count / share.total


def _lost_band(gate: ConformalGate, tested: int) -> tuple[float, float]:
    """Band of the share of insufficient test rows whose label is lost."""
    rank = conformal_rank(gate.n0, gate.levels.accept)
    low, high = count_band(Trial(gate.n0, rank, tested), _BAND)
    return (tested - high) / tested, (tested - low) / tested


def _sentence(gate: ConformalGate, found: GateEvaluation, band: tuple[float, float]) -> str:
    """Where the rate lies: in its band, above it, or below."""
    if math.isinf(gate.q0):
        return (
            f"{gate.n0} insufficient calibration rows do not support alpha = {gate.alpha:g} "
            f"({gate.labels_needed[0]} would): the gate accepts nothing."
        )
    rate, (low, high) = _rate(found.false_sufficiency_rate), band
    place = "above" if rate > high else "below" if rate < low else "within"
    return (
        f"On this draw the gate's false-sufficiency rate is {rate:.4f}, {place} the exact {_BAND:.0%} band "
        f"[{low:.4f}, {high:.4f}] of a sound gate at alpha = {gate.alpha:g} with {gate.n0} insufficient rows "
        f"for calibration and {found.n0} for the test; its mean over draws is at most {gate.alpha:g}."
    )


def _aligned(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    name, *numbers = row
    return [name.ljust(widths[0]), *(n.rjust(w) for n, w in zip(numbers, widths[1:], strict=True))]
