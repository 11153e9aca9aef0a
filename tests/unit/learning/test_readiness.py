"""When a diagnosis says that a gate can be fitted, and what it says then."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from retrieval_logs import Records, healthy

from rag_confidence import plan
from rag_confidence.learning.diagnose import diagnose

N = 120
RECORDS, LABELS = healthy(N)
NOISE = np.random.default_rng(0).random(N)


def with_column(name: str, values: Any) -> Records:
    """The healthy log with one key replaced, by one value or one for each record."""
    column = np.broadcast_to(np.asarray(values, dtype=object), (N,)).tolist()
    return [{**record, name: value} for record, value in zip(RECORDS, column, strict=True)]


def test_a_gate_and_a_model_are_advised_with_a_hundred_labels() -> None:
    """Level and counts are said, and that the model's rows may not calibrate its gate."""
    (one,) = diagnose(RECORDS, LABELS, alpha=0.2).of("ready_for_gate")
    assert one.severity == "advice"
    need = plan(0.2).insufficient.n_finite
    wanted = {"n0": 60, "n1": 60, "alpha": 0.2, "n_finite": [need, need], "try_model": True}
    assert one.numbers == wanted
    assert "60 sufficient and 60 insufficient labels are enough for a gate at level 0.2" in one.sentence
    assert "fit_conformal_gate on the KPI with these labels and alpha=0.2." in one.action
    assert (
        "a third of the rows (split_history): rows that trained it may not calibrate its gate" in one.action
    )


def test_no_model_is_advised_with_few_labels_or_beside_another() -> None:
    """Below a hundred rows a third is too little; where records have a model there is nothing to try."""
    few = diagnose(RECORDS[:98], LABELS[:98]).of("ready_for_gate")
    modelled = diagnose(with_column("model_fingerprint", "m"), LABELS).of("ready_for_gate")
    for (one,) in (few, modelled):
        assert not one.numbers["try_model"]
        assert "ConfidenceModel" not in one.action
        assert one.action.endswith("rows that trained a model may not calibrate its gate.")
    assert "predictions of the model" in modelled[0].action


def test_the_better_score_is_the_one_to_gate_on() -> None:
    """Where the best cosine beats the KPI both findings name the same score."""
    other = np.random.default_rng(1).random(N)
    cosines = with_column("signals.max_cosine", 0.5 * other + 0.25 * LABELS)
    kpis = (0.7 * NOISE + 0.2 * LABELS).tolist()
    found = diagnose([{**record, "kpi": kpi} for record, kpi in zip(cosines, kpis, strict=True)], LABELS)
    assert found.of("cosine_beats_kpi")
    assert "on signals.max_cosine" in found.of("ready_for_gate")[0].action


@pytest.mark.parametrize(
    ("records", "labels", "why"),
    [
        (RECORDS, None, "no_labels"),
        (RECORDS, ~LABELS, "kpi_inverted"),
        (RECORDS, np.arange(N) < 8, "too_few_labels"),
        (with_column("kpi", NOISE), LABELS, "separation_open"),
        (with_column("embedder", ["e1"] * 60 + ["e2"] * 60), LABELS, "mixed_embedders"),
        (with_column("signals.max_cosine", 0.2 * NOISE + 0.5 * LABELS), LABELS, "near_misses_missing"),
    ],
)
def test_nothing_is_ready_while_something_is_open(records: Records, labels: Any, why: str) -> None:
    """Separation that fails or is open, missing labels and mixtures come first."""
    found = diagnose(records, labels)
    assert found.of(why)
    assert not found.of("ready_for_gate")


def test_a_log_that_a_gate_decided_has_one() -> None:
    """These labels can test the gate there is."""
    assert not diagnose(with_column("gate_fingerprint", "g"), LABELS).of("ready_for_gate")
