"""A model printed: every signal with both coefficients, what it left out, and honest numbers."""

from __future__ import annotations

import numpy as np
from model_logs import PRIOR, labelled

from rag_confidence.learning.model import ConfidenceModel


def test_a_printed_model_names_every_coefficient() -> None:
    """The largest a deviation first, with the coefficient a unit and the training range."""
    records, labels = labelled(80, flip_angle=None)
    model = ConfidenceModel.fit(records, labels, prior=PRIOR)
    lines = str(model).splitlines()
    table = [line.split() for line in lines if line.startswith("  ")][1:]
    assert {f"signals.{row[0]}" for row in table} == set(model.names)
    shown = [abs(float(row[1])) for row in table]
    assert shown == sorted(shown, reverse=True)
    for name, standardised, unit, *_ in table:
        assert float(standardised) == round(model.standardised[f"signals.{name}"], 3)
        assert float(unit) == float(f"{model.coefficients[f'signals.{name}']:.4g}")
    assert "not assessed, or the same everywhere: flip_angle" in lines
    assert "27 insufficient rows and 53 sufficient" in lines[0]
    assert any(line.startswith("cross-fitted AUROC .") for line in lines)


def test_without_cross_fitting_it_says_so() -> None:
    """One insufficient cluster: no figures, and the reason."""
    records, labels = labelled(40)
    clusters = np.where(labels, np.arange(40), -1)
    page = str(ConfidenceModel.fit(records, labels, prior=PRIOR, clusters=clusters))
    assert page.endswith("not cross-fitted: a class has too few rows or clusters to hold some out")


def test_a_model_that_ranks_no_better_than_the_kpi_says_so() -> None:
    """One plain sentence where cross-fitting shows no gain, none where it shows one."""
    sentence = "On these rows the model ranks no better than the KPI, which needs no labels."
    records, labels = labelled(80)
    better = ConfidenceModel.fit(records, labels, prior=PRIOR)
    assert better.report.auroc > better.report.auroc_kpi  # type: ignore[operator]
    assert sentence not in str(better)
    known, _ = labelled(80, kpi=0.4 * labels + 0.3)
    assert sentence in str(ConfidenceModel.fit(known, labels, prior=PRIOR)).splitlines()
