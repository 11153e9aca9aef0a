"""An audit has to object to scores that are known to be wrong."""

from __future__ import annotations

import numpy as np
import pytest

from rag_confidence.conformal.audit.scores import audit_scores

HISTORIES = range(20)


@pytest.mark.parametrize("history", HISTORIES)
def test_overconfident_scores_are_named(history: int) -> None:
    """Scores with twice the true log-odds are called miscalibrated in every history of 2000 rows."""
    rng = np.random.default_rng([34, history])
    odds = rng.normal(0, 1.5, 2000)
    labels = rng.random(2000) < 1 / (1 + np.exp(-odds))
    said = " ".join(audit_scores(1 / (1 + np.exp(-2 * odds)), labels).warnings)
    assert "overconfident beyond chance" in said
    assert "underconfident beyond chance" in said


@pytest.mark.parametrize("history", HISTORIES)
def test_scores_without_information_are_named(history: int) -> None:
    """Scores drawn apart from the labels are said to separate hardly, in every history."""
    rng = np.random.default_rng([35, history])
    audit = audit_scores(rng.random(500), rng.random(500) < 0.5)
    assert any("its lower end is below 0.60" in sentence for sentence in audit.warnings)
