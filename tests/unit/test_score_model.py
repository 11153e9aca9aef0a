"""score() with a learned model: what it writes, what a gate sees of it, and what is refused."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from made_corpus import Array, world
from refusals import quiet, refuse
from strategies import generator

from rag_confidence import (
    ConfidenceModel,
    MetricPolicy,
    RagConfidenceMetrics,
    diagnose,
    fit_conformal_gate,
    fit_isotonic,
    fit_risk_gate,
    score,
    score_many,
)
from rag_confidence.errors import CalibrationMismatch, RowsReused
from rag_confidence.product.record import json_schema

WORLD = world(1, n=240)
PROFILE = WORLD.profile
D = 24
VALIDATOR = jsonschema.Draft202012Validator(json_schema())
IDS = [f"question {i}" for i in range(240)]
TRAIN, REST = slice(0, 100), slice(100, 240)


def batch_of(rows: slice, **options: Any) -> Any:
    """These retrievals, scored with the profile."""
    return score_many(WORLD.queries[rows], WORLD.passages[rows], **{"profile": PROFILE, **options})


def labels_of() -> Array:
    """Half of the retrievals are sufficient: those with a high KPI, up to noise."""
    kpi = batch_of(slice(None)).kpi
    noisy = kpi + 0.15 * generator(2).standard_normal(len(kpi))
    return np.asarray(noisy > np.median(noisy)).astype(int)


LABELS = labels_of()
MODEL = ConfidenceModel.fit(batch_of(TRAIN), LABELS[TRAIN], row_ids=IDS[TRAIN])


def one(row: int = 0, **options: Any) -> RagConfidenceMetrics:
    """One retrieval, scored with the profile and the model."""
    given = {"profile": PROFILE, "model": MODEL, **options}
    return score(WORLD.queries[row], WORLD.passages[row], **given)


def gate_on_model(model: ConfidenceModel = MODEL, **options: Any) -> Any:
    """A gate on what the model says of the other rows."""
    with quiet():
        return fit_conformal_gate(
            model.predict(batch_of(REST)),
            LABELS[REST],
            alpha=0.2,
            **{
                "provenance": model.provenance,
                "row_ids": IDS[REST],
                "disjoint_from": [model],
                **options,
            },
        )


def gate_on_kpi() -> Any:
    """A gate on the KPI of the same rows."""
    with quiet():
        batch = batch_of(REST)
        return fit_conformal_gate(batch.kpi, LABELS[REST], alpha=0.2, provenance=batch.provenance)


# --- what is written


def test_a_model_writes_its_probability_and_nothing_else() -> None:
    """KPI, signals and verdict are those without it."""
    plain, modelled = one(model=None).to_dict(), one().to_dict()
    changed = {key for key in plain if plain[key] != modelled[key]}
    assert changed == {"p_sufficient", "model_fingerprint", "model_contributions", "model_out_of_range"}
    assert modelled["model_fingerprint"] == MODEL.fingerprint
    assert [plain[key] for key in sorted(changed)] == [None] * 4


def test_one_call_is_a_row_of_a_batch_to_the_last_digit() -> None:
    """A gate's threshold is a prediction of the log: the same retrieval must meet the same number."""
    batch = batch_of(slice(0, 60), model=MODEL)
    np.testing.assert_array_equal(batch.p_sufficient, MODEL.predict(batch_of(slice(0, 60))))
    np.testing.assert_array_equal(batch.p_sufficient, MODEL.predict(batch.to_dicts()))
    for row in range(60):
        m = one(row)
        assert m.p_sufficient == batch.p_sufficient[row] == batch[row].p_sufficient
        assert m.to_dict()["model_contributions"] == pytest.approx(
            batch[row].to_dict()["model_contributions"], abs=1e-9
        )


def test_the_parts_add_up_to_the_probability() -> None:
    """The contributions are the log-odds, signal by signal, and the intercept."""
    for row in range(10):
        record = one(row).to_dict()
        parts = record["model_contributions"]
        assert set(parts) == {"intercept", *MODEL.names}
        p = 1.0 / (1.0 + math.exp(-math.fsum(parts.values())))
        assert record["p_sufficient"] == pytest.approx(p, abs=1e-9)
        columns = MODEL.contributions(batch_of(slice(0, 10)))
        assert parts == pytest.approx({name: column[row] for name, column in columns.items()}, abs=1e-9)


def test_signals_out_of_range_are_named() -> None:
    """A retrieval unlike those that were learned from says so, in the record and on the card."""
    strange = score(WORLD.queries[0], np.tile(-WORLD.queries[0], (8, 1)), profile=PROFILE, model=MODEL)
    record = strange.to_dict()
    assert "signals.max_cosine" in record["model_out_of_range"]
    assert tuple(record["model_out_of_range"]) == MODEL.out_of_range([record])[0]
    assert "outside what it was trained on: " in strange.narrate()
    assert "max_cosine" in strange.narrate().split("outside what it was trained on: ")[1]
    assert (
        "outside what"
        not in next(m for m in map(one, range(20)) if not m.record["model_out_of_range"]).narrate()
    )


@pytest.mark.parametrize(
    ("query", "passages", "options"),
    [
        (WORLD.queries[0], np.zeros((0, D)), {}),
        (np.zeros(D), WORLD.passages[0], {}),
        (WORLD.queries[0], np.full((2, D), np.nan), {"invalid_rows": "drop"}),
    ],
)
def test_nothing_measured_has_no_probability(query: Array, passages: Array, options: dict[str, Any]) -> None:
    """Without passages or without a question there is none, alone, in a batch, and in a batch of such."""
    m = score(query, passages, profile=PROFILE, model=MODEL, gate=gate_on_model(), **options)
    assert m.p_sufficient is m.decision is m.to_dict()["model_contributions"] is None
    assert m.to_dict()["model_fingerprint"] == MODEL.fingerprint
    assert "model:" not in m.narrate()
    for others in ([], [0, 1]):
        queries = [query, *(WORLD.queries[row] for row in others)]
        lists = [passages, *(WORLD.passages[row] for row in others)]
        batch = score_many(queries, lists, profile=PROFILE, model=MODEL, **options)
        assert np.isnan(batch.p_sufficient).tolist() == [True, *[False] * len(others)]
        assert batch[0].to_dict()["model_contributions"] is None


def test_no_retrievals_are_no_predictions() -> None:
    """An empty batch is scored with a model as without."""
    assert len(score_many(np.zeros((0, D)), np.zeros((0, 5, D)), profile=PROFILE, model=MODEL)) == 0


@pytest.mark.parametrize(
    "options",
    [
        {"parents": [None, *[0] * 9]},
        {"candidates": WORLD.cosines[0]},
        {"contradiction": lambda texts: 0.9, "texts": ["t"] * 10},
        {"perturb": False},
        {"query_text": "a question", "texts": ["t"] * 10},
    ],
)
def test_records_are_valid_and_come_back(options: dict[str, Any]) -> None:
    """With every kind of retrieval the record follows the schema, and from_dict gives it back."""
    for gate in (None, gate_on_model()):
        m = one(gate=gate, **options)
        text = json.dumps(m.to_dict(), allow_nan=False)
        VALIDATOR.validate(json.loads(text))
        again = RagConfidenceMetrics.from_dict(json.loads(text))
        assert again.to_dict() == m.to_dict()
        assert again.p_sufficient == m.p_sufficient
        again.to_dict()["model_contributions"]["intercept"] = 99.0
        assert again.to_dict() == m.to_dict()


def test_the_card_shows_the_largest_parts() -> None:
    """One line with the probability and the four signals that moved it most, largest first."""
    m = one(3)
    line = next(line for line in m.narrate().splitlines() if line.startswith("  model: P(sufficient)"))
    parts = {k: v for k, v in m.to_dict()["model_contributions"].items() if k != "intercept"}
    largest = sorted(parts, key=lambda name: -abs(parts[name]))[:4]
    assert line == f"  model: P(sufficient) {m.p_sufficient:.3f}; log-odds from " + ", ".join(
        f"{name.removeprefix('signals.')} {parts[name]:+.2f}" for name in largest
    )
    assert "model:" not in one(model=None).narrate()


# --- what a gate sees


def test_a_gate_on_the_model_sees_the_probability() -> None:
    """The decision is that of the gate on p, alone and in a batch, and the record says what was used."""
    gate = gate_on_model()
    batch = batch_of(slice(0, 40), model=MODEL, gate=gate)
    assert {*batch.decision} >= {"accept", "reject"}
    for row in range(40):
        m, wanted = one(row, gate=gate), gate.predict_one(batch.p_sufficient[row])
        record = m.to_dict()
        assert (record["score_used"], record["gate_fingerprint"]) == ("model", gate.fingerprint)
        assert record["decision"] == wanted.decision.name == batch.decision[row].upper()
        assert record["margin_to_threshold"] == wanted.margin_to_threshold
        assert record["p_value_0"] == wanted.p_value_0
        assert f"score {m.p_sufficient:.3f}" in m.verdict_reason or m.reason_code == "conflicting"


def test_a_gate_on_the_kpi_sees_the_kpi() -> None:
    """A model beside it writes its probability and moves no decision."""
    gate = gate_on_kpi()
    for row in range(20):
        with_model, without = one(row, gate=gate).to_dict(), one(row, gate=gate, model=None).to_dict()
        assert with_model["score_used"] == without["score_used"] == "kpi"
        assert (
            with_model["decision"] == without["decision"] == gate.predict_one(with_model["kpi"]).decision.name
        )


def test_a_risk_gate_reads_a_model_too() -> None:
    """Any gate that names the model decides on what it says."""
    with quiet():
        gate = fit_risk_gate(MODEL.predict(batch_of(REST)), LABELS[REST], 0.4, provenance=MODEL.provenance)
    record = one(gate=gate).to_dict()
    assert record["score_used"] == "model"
    assert record["decision"] == gate.predict_one(record["p_sufficient"]).decision.name


def test_a_conflict_stays_one() -> None:
    """The policy's ESCALATE makes a gate on the model stricter, never milder."""
    options = {"texts": ["t"] * 10, "contradiction": lambda texts: 0.9, "gate": gate_on_model()}
    for row in range(20):
        m = one(row, **options)
        if m.policy_verdict == "ESCALATE":
            assert m.verdict == ("ABSTAIN" if m.to_dict()["decision"] == "REJECT" else "ESCALATE")


# --- what is refused


OTHER = world(2, n=60)


def other_model() -> ConfidenceModel:
    """A model of the same rows that learned something else."""
    with quiet():
        return ConfidenceModel.fit(batch_of(TRAIN), 1 - LABELS[TRAIN])


REFUSED: dict[str, tuple[type[Exception], str, Any]] = {
    "a calibrator too": (
        ValueError,
        "^`calibrator` must be left out with a `model`",
        lambda: {"calibrator": lambda kpi: kpi},
    ),
    "a fitted calibrator too": (
        ValueError,
        "^`calibrator` must be left out with a `model`",
        lambda: {"calibrator": fit_isotonic(batch_of(REST).kpi, LABELS[REST])},
    ),
    "a class": (
        TypeError,
        "^`model` must be a fitted ConfidenceModel; got type",
        lambda: {"model": ConfidenceModel},
    ),
    "a function": (
        TypeError,
        "^`model` must be a fitted ConfidenceModel; got function",
        lambda: {"model": lambda kpi: kpi},
    ),
    "a document": (
        TypeError,
        "^`model` must be a fitted ConfidenceModel; got dict",
        lambda: {"model": MODEL.to_dict()},
    ),
    "no profile": (
        CalibrationMismatch,
        r"^`model` must .* for the profile .* where this call has None\. Pass the same profile=",
        lambda: {"profile": None, "embedder": "made-up"},
    ),
    "another profile": (
        CalibrationMismatch,
        r"^`model` must .* for the profile .* Pass the same profile=",
        lambda: {"profile": OTHER.profile},
    ),
    "another policy": (
        CalibrationMismatch,
        r"^`model` must .* for the policy .* Pass the same policy=",
        lambda: {"policy": MetricPolicy(answer_at=70)},
    ),
    "lexical vectors": (
        CalibrationMismatch,
        r"^`model` must .* for the embedder .* Pass the same embedder=",
        lambda: {"embedding_backend": "lexical"},
    ),
    "a gate on a model that is not there": (
        CalibrationMismatch,
        r"^`gate` must .* for the model .* where this call has None\. Pass the same model=",
        lambda: {"model": None, "gate": gate_on_model()},
    ),
    "a gate on another model": (
        CalibrationMismatch,
        r"^`gate` must .* for the model .* Pass the same model=",
        lambda: {"model": other_model(), "gate": gate_on_model()},
    ),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_does_not_go_together_is_refused(why: str) -> None:
    """By `score` and by `score_many`, with what is wrong and what to do."""
    kind, pattern, options = REFUSED[why]
    with quiet():
        given = {"profile": PROFILE, "model": MODEL, **options()}
    refuse(kind, pattern, lambda: score(WORLD.queries[0], WORLD.passages[0], **given))
    refuse(kind, pattern, lambda: score_many(WORLD.queries[:3], WORLD.passages[:3], **given))


def test_a_gate_refuses_the_rows_that_the_model_learned_from() -> None:
    """By their ids, and without ids by the predictions themselves; one such row is enough."""
    own, told = MODEL.predict(batch_of(TRAIN)), {"disjoint_from": [MODEL]}
    with quiet():
        for named in ({"row_ids": IDS[TRAIN]}, {}):
            for fit in (
                lambda more: fit_conformal_gate(own, LABELS[TRAIN], provenance=MODEL.provenance, **more),
                lambda more: fit_risk_gate(own, LABELS[TRAIN], 0.4, provenance=MODEL.provenance, **more),
            ):
                refuse(
                    RowsReused,
                    "^`disjoint_from` must .*shares 100 rows",
                    lambda fit=fit, named=named: fit(told | named),
                )
    mixed = slice(99, 240)
    with quiet():
        refuse(
            RowsReused,
            "shares 1 row",
            lambda: fit_conformal_gate(
                MODEL.predict(batch_of(mixed)), LABELS[mixed], row_ids=IDS[mixed], disjoint_from=[MODEL]
            ),
        )


def test_a_gate_on_the_kpi_of_those_rows_is_refused_by_their_ids() -> None:
    """The model decides nothing there, but it was told of."""
    batch = batch_of(TRAIN)
    with quiet():
        refuse(
            RowsReused,
            "shares 100 rows",
            lambda: fit_conformal_gate(
                batch.kpi,
                LABELS[TRAIN],
                row_ids=IDS[TRAIN],
                disjoint_from=[MODEL],
                provenance=batch.provenance,
            ),
        )


# --- files and logs


def test_what_was_saved_scores_alike(tmp_path: Path) -> None:
    """Model and gate from their files give the same record, to the last digit."""
    gate, expected = gate_on_model(), one(5, gate=gate_on_model()).to_dict()
    MODEL.save(tmp_path / "model.json")
    gate.save(tmp_path / "gate.json")
    loaded = ConfidenceModel.load(tmp_path / "model.json")
    assert loaded.fingerprint == MODEL.fingerprint
    assert one(5, model=loaded, gate=type(gate).load(tmp_path / "gate.json")).to_dict() == expected
    text = json.dumps(MODEL.to_dict())
    assert one(5, model=ConfidenceModel.from_dict(json.loads(text)), gate=gate).to_dict() == expected


def test_a_model_learns_from_a_log_as_from_the_batch() -> None:
    """Records that went through JSON give the same model, also when they were scored with another one."""
    logged = [json.loads(json.dumps(record)) for record in batch_of(TRAIN, model=other_model()).to_dicts()]
    again = ConfidenceModel.fit(logged, LABELS[TRAIN], row_ids=IDS[TRAIN])
    assert again.fingerprint == MODEL.fingerprint


def test_a_log_with_a_model_can_be_diagnosed() -> None:
    """With and without labels."""
    batch = batch_of(REST, model=MODEL, gate=gate_on_model())
    assert str(diagnose(batch, LABELS[REST]))
    assert str(diagnose(batch.to_dicts()))


def test_what_the_model_misses_is_said() -> None:
    """A model trained with candidates counts the gap of a shorter list as average: a warning names it."""
    lists = [row.tolist() for row in WORLD.cosines[TRAIN]]
    model = ConfidenceModel.fit(batch_of(TRAIN, candidates=lists), LABELS[TRAIN])
    told = "the model counts as average what was not assessed here: head_tail_gap"
    given = {"profile": PROFILE, "model": model}
    short = score(WORLD.queries[0], WORLD.passages[0], **given)
    whole = score(WORLD.queries[0], WORLD.passages[0], candidates=WORLD.cosines[0], **given)
    assert told in short.warnings
    assert told not in whole.warnings
    assert told in batch_of(slice(0, 3), model=model)[1].warnings
