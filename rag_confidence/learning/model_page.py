"""A learned model as a page for people."""

from __future__ import annotations

from collections.abc import Sequence

from rag_confidence.learning.crossfit import ModelReport
from rag_confidence.learning.prior import SIGNALS
from rag_confidence.learning.terms import Term
from rag_confidence.learning.wording import fraction, plain, rows


def model_page(intercept: float, terms: Sequence[Term], unused: Sequence[str], report: ModelReport) -> str:
    """Coefficients, the largest a standard deviation first, and what cross-fitting says of them."""
    ordered = sorted(terms, key=lambda term: -abs(term.standardised))
    width = max(len(_short(term.name)) for term in terms)
    head = f"  {'signal':<{width}}  {'a deviation':>11}  {'a unit':>10}  {'average':>9}  trained on"
    lines = [
        f"P(sufficient) learned from {rows(report.n0, 'insufficient row')} and {report.n1} sufficient",
        f"log-odds of a retrieval that is average in everything: {intercept:+.3f}; to which is added",
        head,
        *(_line(term, width) for term in ordered),
    ]
    if unused:
        lines.append(f"not assessed, or the same everywhere: {', '.join(map(_short, unused))}")
    return "\n".join([*lines, *_honest(report)])


def _line(term: Term, width: int) -> str:
    span = f"{plain(term.low)} to {plain(term.high)}"
    return (
        f"  {_short(term.name):<{width}}  {term.standardised:>+11.3f}  {term.coefficient:>+10.4g}"
        f"  {plain(term.centre):>9}  {span}"
    )


def _honest(report: ModelReport) -> list[str]:
    if report.auroc is None or report.auroc_low is None or report.auroc_high is None:
        return ["not cross-fitted: a class has too few rows or clusters to hold some out"]
    base, error, kpi = report.brier_base, report.brier, report.auroc_kpi
    lines = [
        f"cross-fitted AUROC {fraction(report.auroc)} (95 % interval {fraction(report.auroc_low)} to "
        f"{fraction(report.auroc_high)})"
    ]
    if kpi is not None:
        lines.append(f"AUROC of the KPI on the same rows {fraction(kpi)}")
        if report.auroc <= kpi:
            lines.append("On these rows the model ranks no better than the KPI, which needs no labels.")
    if error is not None and base is not None:
        lines.append(
            f"cross-fitted Brier score {fraction(error)}; of the share of sufficient rows {fraction(base)}"
        )
    return lines


def _short(name: str) -> str:
    return name.removeprefix(SIGNALS)
