"""Decisions of a risk gate, and its way to a file and back."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import quiet, refuse

from rag_confidence import _artefact
from rag_confidence._types import Decision, ReasonCode
from rag_confidence.conformal.risk.fit import fit_risk_gate
from rag_confidence.conformal.risk.fitted import RiskGate
from rag_confidence.errors import ArtefactError, OutOfRangeWarning

rng = np.random.default_rng([71, 0])
SCORES = np.round(rng.random(300), 3)
LABELS = rng.random(300) < SCORES**0.25


def gate(scores: Any = SCORES, **options: Any) -> RiskGate:
    """A gate that accepts the upper part of [0, 1]."""
    return fit_risk_gate(scores, LABELS, 0.2, **options)


def empty_gate(scores: Any = SCORES, **options: Any) -> RiskGate:
    """A gate with nothing certified."""
    with quiet():
        return fit_risk_gate(scores, ~LABELS, 0.2, **options)


def whole_gate(scores: Any = SCORES) -> RiskGate:
    """A gate that may accept everything."""
    return fit_risk_gate(scores, LABELS | True, 0.2)


def test_a_score_is_accepted_above_the_threshold_only() -> None:
    """The threshold itself abstains, the next float above it is accepted; nothing is ever rejected."""
    risk = gate()
    at = risk.predict_one(risk.threshold)
    assert (at.decision, at.reason_code, at.margin_to_threshold) == (
        Decision.ABSTAIN,
        ReasonCode.GATE_AMBIGUOUS,
        0.0,
    )
    above = risk.predict_one(math.nextafter(risk.threshold, 2.0))
    assert (above.decision, above.reason_code) == (Decision.ACCEPT, ReasonCode.GATE_ACCEPT)
    assert risk.predict_one(0.0).decision is Decision.ABSTAIN


def test_there_are_no_sets_and_no_p_values() -> None:
    """What this gate does not have is None, and the guarantee comes with the decision."""
    risk = gate()
    found = risk.predict_one(0.5)
    assert (found.prediction_set, found.p_value_0, found.p_value_1, found.group) == (None,) * 4
    assert found.guarantee is risk.guarantee


def test_the_accepted_calibration_rows_are_those_counted() -> None:
    """Applied to its own rows the gate accepts as many as its certificate says, with as many errors."""
    risk = gate()
    accepted = risk.predict(SCORES).accepted
    assert (accepted.sum(), (accepted & ~LABELS).sum()) == (risk.accepted, risk.errors)


@given(st.lists(st.floats(0.0, 1.0), max_size=20), st.sampled_from([np.float64, np.float32, np.float16]))
def test_columns_equal_single_decisions(scores: list[float], precision: Any) -> None:
    """`predict` decides row by row as `predict_one`, in any precision of gate, and so do its items."""
    values, known = np.array(scores), SCORES.astype(precision)
    for risk in (gate(known), empty_gate(known), whole_gate(known)):
        columns = risk.predict(values)
        singles = [risk.predict_one(value) for value in values]
        assert list(columns) == singles
        assert columns.decision.tolist() == [one.decision.value for one in singles]
        assert columns.reason_code.tolist() == [one.reason_code.value for one in singles]


def test_nothing_certified_abstains_on_everything() -> None:
    """Not even the largest score is accepted, the reason says so and there is no margin."""
    found = empty_gate().predict_one(1.0)
    assert (found.decision, found.reason_code) == (Decision.ABSTAIN, ReasonCode.GATE_INFINITE)
    assert found.margin_to_threshold is None
    assert not found.guarantee.holds


def test_everything_certified_accepts_everything() -> None:
    """A threshold below all scores accepts the smallest one; there is no margin to it."""
    found = whole_gate().predict_one(0.0)
    assert (found.decision, found.margin_to_threshold) == (Decision.ACCEPT, None)


@pytest.mark.parametrize("build", [gate, empty_gate, whole_gate])
def test_coarser_scores_are_refused(build: Any) -> None:
    """Rounding could take the good rows out of what is accepted, so nothing is decided on rounded scores."""
    message = "must be as precise as the float64 that the risk gate was fitted on; got float32"
    refuse(TypeError, f"^`score` {message}", lambda: build().predict_one(np.float32(0.5)))
    refuse(TypeError, f"^`scores` {message}", lambda: build().predict(np.array([0.5], np.float32)))
    refuse(TypeError, "got float16", lambda: build(SCORES.astype(np.float32)).predict_one(np.float16(0.5)))


def test_a_finer_score_is_compared_in_the_precision_of_the_gate() -> None:
    """On float32 rows a double next to the threshold is the threshold: rounding alone accepts nothing."""
    risk = gate(SCORES.astype(np.float32))
    beside = risk.predict_one(math.nextafter(risk.threshold, 2.0))
    assert (beside.decision, beside.margin_to_threshold) == (Decision.ABSTAIN, 0.0)
    assert risk.predict([0, 1]).decision.tolist() == ["abstain", "accept"]


def test_rounding_would_break_the_bound() -> None:
    """Sufficient rows just above the threshold round onto it, and the insufficient ones alone stay above."""
    scores = np.concatenate([np.full(500, 0.5), 0.5 + 1e-12 * np.arange(1, 501), [0.9, 0.95]])
    labels = np.repeat([False, True, False], [500, 500, 2])
    risk = fit_risk_gate(scores, labels, 0.1)
    assert (risk.threshold, risk.accepted, risk.errors) == (0.5, 502, 2)
    coarse = scores.astype(np.float32)
    assert not labels[coarse > np.float32(risk.threshold)].any()
    refuse(TypeError, "^`scores` must be as precise", lambda: risk.predict(coarse))


def test_scores_of_another_scale_are_refused() -> None:
    """Percentages, nan and text meet one clear error, in either call."""
    refuse(ValueError, "^`score` must be fractions.*percentages", lambda: gate().predict_one(73.0))
    refuse(ValueError, "^`scores` must be finite", lambda: gate().predict([0.5, math.nan]))
    refuse(TypeError, "^`score` must be a real number", lambda: gate().predict_one("0.5"))  # type: ignore[arg-type]


def test_raw_scores_far_outside_warn() -> None:
    """A raw score far beyond the calibrated range was probably made in another way."""
    risk = fit_risk_gate(SCORES * 10 - 3, LABELS, 0.2, score_kind="raw")
    with pytest.warns(OutOfRangeWarning):
        assert risk.predict_one(1000.0).decision is Decision.ACCEPT


def test_groups_are_refused() -> None:
    """There are no thresholds by group, and a group is not ignored."""
    refuse(ValueError, "^`group` must be left out .*got 'de'", lambda: gate().predict_one(0.5, "de"))
    refuse(ValueError, "^`groups` must be left out", lambda: gate().predict([0.5], ["de"]))


def test_the_score_range_is_that_of_the_history() -> None:
    """What `score(gate=...)` compares with KPIs in [0, 1]."""
    assert gate().score_range == (SCORES.min(), SCORES.max())


@pytest.mark.parametrize("method", ["sequence", "bonferroni"])
def test_a_saved_gate_comes_back_to_the_last_bit(method: Any, tmp_path: Path) -> None:
    """From a file and from a dict: same record, fingerprint, threshold, guarantee and decisions."""
    for risk in (gate(method=method, row_ids=range(300)), empty_gate(method=method)):
        risk.save(tmp_path / "gate.json")
        document = json.loads(json.dumps(risk.to_dict(), allow_nan=False))
        for loaded in (RiskGate.load(tmp_path / "gate.json"), RiskGate.from_dict(document)):
            assert loaded.to_dict() == risk.to_dict()
            assert loaded.fingerprint == risk.fingerprint
            assert (loaded.threshold, loaded.guarantee) == (risk.threshold, risk.guarantee)
            assert loaded.certificate == risk.certificate
            assert loaded.rows.ids == risk.rows.ids
            assert loaded.predict(SCORES).decision.tolist() == risk.predict(SCORES).decision.tolist()


def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    """One changed digit does not match the digest."""
    path = tmp_path / "gate.json"
    gate().save(path)
    path.write_text(path.read_text().replace('"delta": "1/10"', '"delta": "1/5"'))
    with pytest.raises(ArtefactError, match="unchanged since it was saved"):
        RiskGate.load(path)


def test_the_artefact_of_another_class_is_refused() -> None:
    """A digest that is right does not make another kind a risk gate."""
    with pytest.raises(ArtefactError, match="must be a saved risk_gate; got a 'conformal_gate'"):
        RiskGate.from_dict(_artefact.wrap("conformal_gate", {}))


@pytest.mark.parametrize(
    "change", [{"threshold": 0.5}, {"method": "holm"}, {"target_risk": "0"}, {"rows": {}}, {"delta": "x"}]
)
def test_a_payload_that_does_not_add_up_is_refused(change: dict[str, Any]) -> None:
    """Even with a right digest: the threshold must follow from rows, levels and method."""
    payload = {**gate().to_dict()["payload"], **change}
    with pytest.raises(ArtefactError, match="must be a saved risk_gate; got one that cannot be read"):
        RiskGate.from_dict(_artefact.wrap("risk_gate", payload))


def test_the_fingerprint_follows_the_levels() -> None:
    """Another delta or method is another gate, although the rows are the same."""
    prints = {gate().fingerprint, gate(delta=0.2).fingerprint, gate(method="bonferroni").fingerprint}
    assert len(prints) == 3


def test_a_gate_shows_its_numbers() -> None:
    """The representation names method, levels and certificate, or that there is none."""
    assert repr(gate()).startswith("RiskGate(sequence at target_risk=0.2, delta=0.1: accepts above ")
    assert "nothing certified" in repr(empty_gate())


def test_separation_is_reported_with_an_interval() -> None:
    """The AUROC of the rows and its 95 % interval stand beside the certificate."""
    risk = gate()
    assert risk.auroc is not None
    assert risk.auroc_interval is not None
    low, high = risk.auroc_interval
    assert low < risk.auroc < high
