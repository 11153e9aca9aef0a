"""ConfidenceModel: parts that add up, one retrieval like many, a file that comes back, remembered rows."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_logs import PRIOR, USED, labelled
from refusals import quiet, refuse
from retrieval_logs import PASSAGES, QUERY, log_of

from rag_confidence import fit_conformal_gate, score, score_many
from rag_confidence.conformal.separation import auroc
from rag_confidence.errors import CalibrationMismatch, RowsReused
from rag_confidence.learning.model import ConfidenceModel
from rag_confidence.product.metrics import RagConfidenceMetrics

RECORDS, LABELS = labelled()
IDS = [f"q{i}" for i in range(len(LABELS))]
MODEL = ConfidenceModel.fit(RECORDS, LABELS, row_ids=IDS, prior=PRIOR)


def test_it_learns_what_the_signals_say() -> None:
    """On new rows it ranks far better than the KPI, which here is noise; the report said as much."""
    records, labels = labelled(300, seed=1)
    found = auroc(MODEL.predict(records), labels)
    assert found is not None
    assert found > 0.75
    report = MODEL.report
    assert report.auroc == pytest.approx(found, abs=0.1)
    assert report.auroc_kpi == pytest.approx(0.5, abs=0.15)
    assert report.brier is not None
    assert report.brier < (report.brier_base or 0.0)
    assert MODEL.standardised["signals.max_cosine"] > 0.3
    assert abs(MODEL.standardised["signals.flip_angle"]) < 0.4


def test_contributions_add_up_to_the_log_odds() -> None:
    """Added in their order they give the logit to the last bit, and the probability is that of the logit."""
    parts = MODEL.contributions(RECORDS)
    assert [*parts] == ["intercept", *MODEL.names]
    logit = np.zeros(len(RECORDS))
    for part in parts.values():
        logit += part
    assert MODEL.predict(RECORDS) == pytest.approx(1 / (1 + np.exp(-logit)), abs=1e-12)
    for name, coefficient in MODEL.coefficients.items():
        column = np.array([record[name] for record in RECORDS])
        assert np.ptp(parts[name]) == pytest.approx(abs(coefficient) * np.ptp(column))


def test_one_retrieval_is_like_many() -> None:
    """Records one by one, as columns, as a batch would hold them: the same probability to the last bit."""
    wanted = MODEL.predict(RECORDS)
    columns = {name: np.array([record[name] for record in RECORDS]) for name in MODEL.names}
    np.testing.assert_array_equal(MODEL.predict_columns(columns), wanted)
    for place, record in enumerate(RECORDS):
        one = MODEL.predict_one(record)
        assert one.p_sufficient == wanted[place]
        assert one.out_of_range == MODEL.out_of_range([record])[0]
        assert one.contributions == {name: c[0] for name, c in MODEL.contributions([record]).items()}


def test_batches_metrics_records_and_json_are_predicted_alike() -> None:
    """However retrievals were kept, model and predictions are the same to the last bit."""
    rng = np.random.default_rng(3)
    queries, passages = rng.standard_normal((40, 8)), rng.standard_normal((40, 6, 8))
    batch, labels = score_many(queries, passages), np.arange(40) % 2
    forms = (batch, [*batch], batch.to_dicts(), json.loads(json.dumps(batch.to_dicts())))
    models = [ConfidenceModel.fit(form, labels, prior=PRIOR) for form in forms]
    assert len({model.fingerprint for model in models}) == 1
    for form in forms:
        np.testing.assert_array_equal(models[0].predict(form), models[0].predict(batch))


@given(order=st.permutations(range(40)))
@settings(max_examples=15)
def test_the_order_of_rows_does_not_matter(order: list[int]) -> None:
    """Shuffled training rows predict the same, to rounding."""
    records, labels = labelled(40, seed=2)
    one = ConfidenceModel.fit(records, labels, prior=PRIOR)
    other = ConfidenceModel.fit([records[at] for at in order], labels[order], prior=PRIOR)
    assert other.predict(records) == pytest.approx(one.predict(records), abs=1e-9)


def test_a_signal_that_was_not_assessed_adds_nothing_and_is_counted() -> None:
    """Null is neither evidence for nor against; nothing at all has no probability."""
    records = log_of(
        2, {"embedder": "made-up"}, max_cosine=[0.6, None], flip_angle=None, dirichlet_energy=None
    )
    records[1]["signals.std_top10_cosine"] = None
    assert MODEL.n_missing(records).tolist() == [2, 4]
    parts = MODEL.contributions(records)
    assert parts["signals.flip_angle"].tolist() == [0.0, 0.0]
    predicted = MODEL.predict(records)
    assert 0.0 < predicted[0] < 1.0
    assert math.isnan(predicted[1])


def test_a_file_holds_the_model_to_the_last_bit(tmp_path: Path) -> None:
    """Saved and loaded, or through JSON: the same fingerprint, predictions, rows and report."""
    MODEL.save(tmp_path / "model.json")
    for again in (
        ConfidenceModel.load(tmp_path / "model.json"),
        ConfidenceModel.from_dict(json.loads(json.dumps(MODEL.to_dict()))),
    ):
        assert again.to_dict() == MODEL.to_dict()
        assert again.fingerprint == MODEL.fingerprint
        assert again.report == MODEL.report
        np.testing.assert_array_equal(again.predict(RECORDS), MODEL.predict(RECORDS))


def test_a_gate_refuses_the_rows_of_the_model() -> None:
    """By id, and without ids by the predictions themselves; other rows are accepted."""
    own = MODEL.predict(RECORDS)

    def gate(scores: object, labels: object, **more: object) -> object:
        with quiet():
            return fit_conformal_gate(
                scores, labels, provenance=MODEL.provenance, disjoint_from=[MODEL], **more
            )  # type: ignore[arg-type]

    refuse(RowsReused, "ConfidenceModel that shares 80 rows", lambda: gate(own, LABELS, row_ids=IDS))
    refuse(RowsReused, "ConfidenceModel that shares", lambda: gate(own, LABELS))
    records, labels = labelled(200, seed=4)
    fresh = MODEL.predict(records)
    assert gate(fresh, labels, row_ids=[f"new{i}" for i in range(200)])
    assert gate(fresh, labels)
    refuse(
        RowsReused, "shares 20 rows", lambda: gate(np.append(fresh, own[:20]), np.append(labels, LABELS[:20]))
    )


def test_it_says_how_its_predictions_are_made() -> None:
    """Policy, profile and embedder of its records, and its own fingerprint."""
    made = MODEL.provenance
    assert made is not None
    assert made.policy == RECORDS[0]["policy_fingerprint"]
    assert (made.embedder, made.profile, made.model) == ("made-up", None, MODEL.fingerprint)


@pytest.mark.parametrize("key", ["embedder", "profile_fingerprint", "policy_fingerprint"])
def test_retrievals_made_in_another_way_are_refused(key: str) -> None:
    """Other vectors, another corpus or another policy make other signals."""
    records = [{**record, key: "other"} for record in RECORDS[:3]]
    for call in (MODEL.predict, MODEL.contributions, MODEL.out_of_range):
        refuse(CalibrationMismatch, "made as those", lambda call=call: call(records))


def test_another_label_makes_another_fingerprint() -> None:
    """The hash covers what was learned and from which rows; the same fit twice has one."""
    again = ConfidenceModel.fit(RECORDS, LABELS, row_ids=IDS, prior=PRIOR)
    assert again.fingerprint == MODEL.fingerprint
    flipped = LABELS.copy()
    flipped[5] = not flipped[5]
    assert ConfidenceModel.fit(RECORDS, flipped, row_ids=IDS, prior=PRIOR).fingerprint != MODEL.fingerprint
    assert ConfidenceModel.fit(RECORDS, LABELS, prior=PRIOR).fingerprint != MODEL.fingerprint


def test_it_reads_as_one_line() -> None:
    """Signals, rows and fingerprint."""
    assert repr(MODEL).startswith(
        f"ConfidenceModel({len(USED)} signals, 27 insufficient and 53 sufficient rows"
    )


def test_metrics_of_a_record_are_predicted_too() -> None:
    """A list of RagConfidenceMetrics is as good as their records."""
    metrics = [RagConfidenceMetrics.from_dict(record) for record in RECORDS[:5]]
    np.testing.assert_array_equal(MODEL.predict(metrics), MODEL.predict(RECORDS[:5]))


@pytest.mark.parametrize("given", [score(QUERY, PASSAGES), [{"kpi": 0.5}], None])
def test_predict_one_takes_a_mapping_alone(given: Any) -> None:
    """A result is not one; its record is."""
    refuse(TypeError, r"`signals` must map .*to_dict\(\) of a result", lambda: MODEL.predict_one(given))
    assert 0.0 < MODEL.predict_one(score(QUERY, PASSAGES).to_dict()).p_sufficient < 1.0
