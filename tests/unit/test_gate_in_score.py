"""In score() the gate has the last word: its decision maps to the verdict, and nothing makes it milder."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from histories import few
from hypothesis import given
from hypothesis import strategies as st
from refusals import named, quiet, refuse
from strategies import Retrieval, generator, retrievals

from rag_confidence import MetricPolicy, RagConfidenceMetrics, fit_isotonic, fit_risk_gate, score, score_many
from rag_confidence._types import Decision, Guarantee, Provenance
from rag_confidence.conformal.gate.fit import fit_conformal_gate
from rag_confidence.conformal.gate.fitted import ConformalGate
from rag_confidence.conformal.gate.loose import Thresholds
from rag_confidence.errors import CalibrationMismatch, OutOfRangeWarning
from rag_confidence.product.record import json_schema

LABELS = [0] * 9 + [1] * 9
VALIDATOR = jsonschema.Draft202012Validator(json_schema())
GATE_KEYS = {
    *("decision", "prediction_set", "p_value_0", "p_value_1", "margin_to_threshold", "score_used"),
    *("group", "gate_fingerprint", "guarantee", "policy_verdict"),
}
# Verdict for each decision, as the policy sees no conflict and as it does.
FINAL = {
    "ACCEPT": ("ANSWER", "ESCALATE"),
    "ABSTAIN": ("REVIEW", "ESCALATE"),
    "REJECT": ("ABSTAIN", "ABSTAIN"),
}


def fitted(insufficient: float, sufficient: float, **options: Any) -> ConformalGate:
    """A gate on nine equal scores a class."""
    with quiet():
        return fit_conformal_gate([insufficient] * 9 + [sufficient] * 9, LABELS, **options)


def below(kpi: float) -> float:
    return kpi / 2


def above(kpi: float) -> float:
    return (1 + kpi) / 2


def infinite() -> ConformalGate:
    """A gate on too few labels."""
    with quiet():
        return fit_conformal_gate([0.1, 0.9], [0, 1])


def grouped(kpi: float) -> ConformalGate:
    """A gate with a group that accepts a KPI and one that rejects it."""
    scores = [below(kpi)] * 9 + [kpi] * 9 + [kpi] * 9 + [above(kpi)] * 9
    with quiet():
        return fit_conformal_gate(scores, LABELS * 2, groups=["mild"] * 18 + ["strict"] * 18)


# The gate that gives an outcome at a KPI, with the decision, the set and the reason.
OUTCOMES: dict[str, tuple[Callable[[float], Any], dict[str, Any], str, list[int], str]] = {
    "accept": (lambda s: fitted(below(s), s), {}, "ACCEPT", [1], "gate_accept"),
    "reject": (lambda s: fitted(s, above(s)), {}, "REJECT", [0], "gate_reject"),
    "ambiguous": (lambda s: fitted(s, s), {}, "ABSTAIN", [0, 1], "gate_ambiguous"),
    "empty": (lambda s: fitted(below(s), above(s)), {}, "ABSTAIN", [], "gate_empty_set"),
    "empty, accepted": (
        lambda s: fitted(below(s), above(s), on_conflict="accept"),
        {},
        "ACCEPT",
        [],
        "gate_empty_set",
    ),
    "empty, rejected": (
        lambda s: fitted(below(s), above(s), on_conflict="reject"),
        {},
        "REJECT",
        [],
        "gate_empty_set",
    ),
    "infinite": (lambda s: infinite(), {}, "ABSTAIN", [0, 1], "gate_infinite"),
    "unseen group": (grouped, {"group": "new"}, "ABSTAIN", [0, 1], "gate_unfit_group"),
    "mild group": (grouped, {"group": "mild"}, "ACCEPT", [1], "gate_accept"),
    "strict group": (grouped, {"group": "strict"}, "REJECT", [0], "gate_reject"),
    "loose accept": (lambda s: Thresholds(below(s), 1 - s), {}, "ACCEPT", [1], "gate_accept"),
    "loose reject": (lambda s: Thresholds(s, 1 - above(s)), {}, "REJECT", [0], "gate_reject"),
}


def sample(seed: int = 0, n: int = 6, d: int = 16, noise: float = 0.4) -> tuple[Any, Any]:
    """A question and passages around it."""
    rng = generator(seed)
    query = rng.standard_normal(d)
    return query, query + noise * rng.standard_normal((n, d)) * np.linalg.norm(query) / math.sqrt(d)


QUERY, PASSAGES = sample()
TEXTS = [f"passage {i}" for i in range(6)]


def conflict(texts: list[str]) -> float:
    return 0.9


def harmony(texts: list[str]) -> float:
    return 0.1


# What brings the policy to each row of its table, for the retrieval above.
SITUATIONS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "off_topic": ("ABSTAIN", "off_topic", {"policy": MetricPolicy(grounding_center=0.999)}),
    "conflicting": ("ESCALATE", "conflicting", {"texts": TEXTS, "contradiction": conflict}),
    "weak": ("ABSTAIN", "weak", {"policy": MetricPolicy(review_at=99.9, answer_at=99.95)}),
    "ambiguous": ("REVIEW", "ambiguous", {"policy": MetricPolicy(review_at=1, answer_at=99.9)}),
    "driver_floor": (
        "REVIEW",
        "driver_floor",
        {
            "policy": MetricPolicy(
                review_at=1, answer_at=1, floors=replace(MetricPolicy().floors, answer_localization=100.0)
            )
        },
    ),
    "shape_only": ("REVIEW", "shape_only", {"embedding_backend": "lexical"}),
    "healthy": ("ANSWER", "healthy", {}),
    "healthy, harmony": ("ANSWER", "healthy", {"texts": TEXTS, "contradiction": harmony}),
}


def situated(name: str, **more: Any) -> RagConfidenceMetrics:
    """The retrieval above in one of the situations."""
    options = dict(SITUATIONS[name][2])
    if name in {"shape_only", "conflicting", "healthy", "healthy, harmony"}:
        floors = replace(MetricPolicy().floors, **dict.fromkeys(vars(MetricPolicy().floors), 0.0))
        options.setdefault("policy", MetricPolicy(review_at=0, answer_at=0, floors=floors))
    return score(QUERY, PASSAGES, **options, **more)


# --- decision and verdict


@pytest.mark.parametrize("situation", SITUATIONS)
def test_each_situation_is_what_it_says(situation: str) -> None:
    """Without a gate each situation has its verdict and reason, and every key of the gate is null."""
    verdict, reason, _ = SITUATIONS[situation]
    m = situated(situation)
    assert (m.verdict, m.reason_code) == (verdict, reason)
    record = m.to_dict()
    assert record["policy_verdict"] == verdict
    assert all(record[key] is None for key in GATE_KEYS - {"policy_verdict"})
    assert m.decision is m.prediction_set is m.guarantee is None


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("situation", SITUATIONS)
def test_the_decision_maps_to_the_verdict(situation: str, outcome: str) -> None:
    """ACCEPT answers, ABSTAIN reviews, REJECT abstains; a conflict of the policy escalates the first two."""
    policy_verdict, policy_reason, _ = SITUATIONS[situation]
    make, options, decision, kept, reason = OUTCOMES[outcome]
    kpi = situated(situation).kpi
    assert 0 < kpi < 1
    m = situated(situation, gate=make(kpi), **options)
    conflicting = policy_reason == "conflicting"
    assert m.decision == Decision[decision]
    assert m.verdict == FINAL[decision][conflicting]
    assert m.policy_verdict == policy_verdict
    record = m.to_dict()
    assert (record["decision"], record["prediction_set"]) == (decision, kept)
    escalated = conflicting and decision != "REJECT"
    assert m.reason_code == ("conflicting" if escalated else reason)
    assert record["score_used"] == "kpi"
    assert record["kpi"] == kpi


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_each_outcome_has_a_sentence(outcome: str) -> None:
    """The reason is a sentence for people, without numbers that are not there; the report shows the gate."""
    make, options, decision, _, _ = OUTCOMES[outcome]
    m = situated("healthy", gate=make(situated("healthy").kpi), **options)
    assert m.verdict_reason.endswith(".")
    assert m.verdict_reason[0].isupper()
    for odd in ("nan", "None", "inf", "{", "GATE_"):
        assert odd not in m.verdict_reason
    assert decision in m.narrate()
    assert m.guarantee is not None
    assert m.guarantee.sentence in m.narrate()


def test_sentences_tell_outcomes_apart() -> None:
    """A gate that accepts, rejects, is torn, surprised, too small, or lacks the group says so differently."""
    kpi = situated("healthy").kpi
    names = ("accept", "reject", "ambiguous", "empty", "infinite", "unseen group")
    said = {situated("healthy", gate=OUTCOMES[n][0](kpi), **OUTCOMES[n][1]).verdict_reason for n in names}
    assert len(said) == len(names)
    unseen = situated("healthy", gate=grouped(kpi), group="new").verdict_reason
    assert "'new'" in unseen


@pytest.mark.parametrize(
    ("query", "passages", "reason"),
    [(QUERY, PASSAGES[:0], "no_passages"), (0 * QUERY, PASSAGES, "degenerate_query")],
    ids=["no passages", "zero query"],
)
@pytest.mark.parametrize("outcome", OUTCOMES)
def test_without_a_score_there_is_no_decision(query: Any, passages: Any, reason: str, outcome: str) -> None:
    """No passages and a zero query abstain, with every key of the gate null, whatever the gate."""
    make, options, *_ = OUTCOMES[outcome]
    for gate in (make(0.5), make(0.0) if outcome not in {"reject", "ambiguous"} else make(0.5)):
        m = score(query, passages, gate=gate, **options)
        assert (m.verdict, m.policy_verdict, m.reason_code) == ("ABSTAIN", "ABSTAIN", reason)
        record = m.to_dict()
        assert all(record[key] is None for key in GATE_KEYS - {"policy_verdict"})


def test_the_record_has_what_the_gate_says() -> None:
    """p-values, margin, fingerprint and guarantee in the record are those of predict_one at the KPI."""
    kpi = situated("healthy").kpi
    scores = np.linspace(0, 1, 40)
    with quiet():
        gate = fit_conformal_gate(scores, [int(s > 0.5) for s in scores], 0.1)
    m, one = situated("healthy", gate=gate), gate.predict_one(kpi)
    record = m.to_dict()
    assert record["p_value_0"] == one.p_value_0
    assert record["p_value_1"] == one.p_value_1
    assert record["margin_to_threshold"] == one.margin_to_threshold
    assert record["gate_fingerprint"] == gate.fingerprint
    assert record["guarantee"] == json.loads(json.dumps(one.guarantee.to_dict()))
    assert m.guarantee == one.guarantee
    assert isinstance(m.guarantee, Guarantee)


def test_a_kpi_at_the_threshold_is_kept() -> None:
    """The KPI that is itself the class-0 threshold keeps label 0: no rounding on the way to the gate."""
    for seed in range(30):
        query, passages = sample(seed)
        kpi = score(query, passages).kpi
        at = score(query, passages, gate=fitted(kpi, below(kpi)))
        assert at.decision is Decision.ABSTAIN
        just_under = score(query, passages, gate=fitted(math.nextafter(kpi, 0), below(kpi)))
        assert just_under.decision is Decision.ACCEPT


# --- nothing makes it milder


OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "policy": st.sampled_from(
            [
                MetricPolicy(),
                MetricPolicy.seed(),
                MetricPolicy(review_at=0, answer_at=0),
                MetricPolicy(grounding_min=0, review_at=0, answer_at=0),
                MetricPolicy(review_at=100, answer_at=100),
            ]
        ),
        "contradiction": st.sampled_from([conflict, harmony]),
        "calibrator": st.sampled_from([lambda kpi: 1.0, lambda kpi: 0.0]),
        "perturb": st.booleans(),
        "embedding_backend": st.sampled_from(["precomputed", "lexical"]),
        "loops": st.sampled_from(["off"]),
        "duplicate_cosine": st.sampled_from([0.9, 0.995, 1.0]),
        "invalid_rows": st.sampled_from(["raise", "drop"]),
        "k_requested": st.sampled_from([1, 50]),
        "seed": st.integers(0, 3),
        "embedder": st.sampled_from(["minilm", "use"]),
        "query_text": st.just("a question"),
        "tree": st.just(True),
    },
)


def asked(r: Retrieval, options: dict[str, Any]) -> dict[str, Any]:
    """Options that fit a retrieval: texts for a contradiction, a chain for a tree."""
    found = {key: value for key, value in options.items() if key != "tree"}
    n = len(r.passages)
    if "contradiction" in found:
        found["texts"] = [f"text {i}" for i in range(n)]
    if "tree" in options:
        found["parents"] = [None, *range(n - 1)]
    return found


@given(retrievals(dimensions=(2, 4, 8)), OPTIONS, st.sampled_from(sorted(OUTCOMES)))
def test_nothing_turns_another_decision_into_an_answer(
    r: Retrieval, options: dict[str, Any], outcome: str
) -> None:
    """Whatever the options and the policy, ANSWER means ACCEPT, and REJECT means ABSTAIN."""
    call = asked(r, options)
    kpi = score(r.query, r.passages, **call).kpi
    make, group, *_ = OUTCOMES[outcome]
    gate = make(min(max(kpi, 0.01), 0.99))
    m = score(r.query, r.passages, gate=gate, **group, **call)
    assert m.decision is not None
    assert m.decision == gate.predict_one(kpi, group.get("group")).decision
    if m.verdict == "ANSWER":
        assert m.decision is Decision.ACCEPT
    if m.decision is Decision.REJECT:
        assert m.verdict == "ABSTAIN"
    plain = score(r.query, r.passages, **call)
    conflicting = plain.reason_code == "conflicting"
    assert m.verdict == FINAL[m.decision.name][conflicting]
    assert m.policy_verdict == plain.verdict


@few
@given(retrievals(dimensions=(2, 4, 8)), OPTIONS, st.sampled_from(sorted(OUTCOMES)))
def test_a_gate_changes_nothing_but_its_own_keys(r: Retrieval, options: dict[str, Any], outcome: str) -> None:
    """With a gate every other key is as without: the KPI and the signals do not see it."""
    call = asked(r, options)
    plain = score(r.query, r.passages, **call).to_dict()
    make, group, *_ = OUTCOMES[outcome]
    gated = score(
        r.query, r.passages, gate=make(min(max(plain["kpi"], 0.01), 0.99)), **group, **call
    ).to_dict()
    assert list(gated) == list(plain)
    assert [note for note in gated["warnings"] if "the gate does not say" not in note] == plain["warnings"]
    free = GATE_KEYS | {"verdict", "verdict_action", "verdict_reason", "reason_code", "warnings"}
    assert {k: v for k, v in gated.items() if k not in free} == {
        k: v for k, v in plain.items() if k not in free
    }


# --- one and many


def batch_of(count: int) -> tuple[Any, list[Any]]:
    """Retrievals of several lengths, two of them without a score."""
    pairs = [sample(seed, n=1 + seed % 5, noise=0.2 + 0.15 * seed) for seed in range(count)]
    queries, passages = np.array([q for q, _ in pairs]), [p for _, p in pairs]
    queries[3] = 0
    passages[5] = passages[5][:0]
    return queries, passages


def between(kpis: Any) -> Any:
    """Scores between the KPIs of a batch: rounding, which may differ for one and many, does not matter."""
    ordered = np.sort(kpis)
    return (ordered[1:] + ordered[:-1]) / 2


def assert_same(many: Any, singles: list[RagConfidenceMetrics]) -> None:
    """Records of a batch are those of the single calls: words exactly, numbers to rounding."""
    for a, b in zip(many, singles, strict=True):
        first, second = a.to_dict(), b.to_dict()
        assert list(first) == list(second)
        for key, value in first.items():
            exact = not isinstance(value, float)
            assert value == (second[key] if exact else pytest.approx(second[key], abs=1e-9)), key


@pytest.mark.parametrize("on_conflict", ["abstain", "accept", "reject"])
@pytest.mark.parametrize("guarantee", ["marginal", "pac"])
def test_one_is_many(on_conflict: str, guarantee: str) -> None:
    """score_many with a gate gives the records of score, and columns that agree with them."""
    queries, passages = batch_of(12)
    cuts = between(score_many(queries, passages).kpi)
    with quiet():
        gate = fit_conformal_gate(
            np.r_[cuts[:9], cuts[2:]], LABELS, 0.3, on_conflict=on_conflict, guarantee=guarantee, delta=0.4
        )
    many = score_many(queries, passages, gate=gate)
    singles = [score(q, p, gate=gate) for q, p in zip(queries, passages, strict=True)]
    assert_same(many, singles)
    assert many.verdict.tolist() == [m.verdict.value for m in singles]
    assert many.policy_verdict.tolist() == [m.policy_verdict.value for m in singles]
    assert many.reason_code.tolist() == [m.reason_code.value for m in singles]
    assert [word or None for word in many.decision.tolist()] == [
        None if m.decision is None else m.decision.value for m in singles
    ]
    assert singles[3].decision is singles[5].decision is None
    assert len({m.decision for m in singles}) > 2


def test_one_is_many_under_a_conflict() -> None:
    """Conflicts escalate the same rows alone and in a batch."""
    queries, passages = batch_of(10)
    texts = [[f"{row} {i}" for i in range(len(p))] for row, p in enumerate(passages)]

    def odd_rows(some: list[str]) -> float:
        return 0.9 if int(some[0].split()[0]) % 2 else 0.1

    cuts = between(score_many(queries, passages).kpi)
    with quiet():
        gate = fit_conformal_gate(np.r_[cuts, cuts], LABELS, 0.3)
    policy = MetricPolicy(grounding_min=0)
    options: dict[str, Any] = {"gate": gate, "policy": policy, "contradiction": odd_rows}
    many = score_many(queries, passages, texts, **options)
    singles = [score(q, p, t, **options) for q, p, t in zip(queries, passages, texts, strict=True)]
    assert_same(many, singles)
    assert many.verdict.tolist() == [m.verdict.value for m in singles]
    assert "ESCALATE" in many.verdict


def test_groups_of_a_batch() -> None:
    """One group holds for all queries, a list gives each its own; both equal score with that group."""
    queries, passages = batch_of(10)
    gate = grouped(0.4)
    names = [("mild", "strict", "new")[i % 3] for i in range(10)]
    many = score_many(queries, passages, gate=gate, group=names)
    singles = [score(q, p, gate=gate, group=g) for q, p, g in zip(queries, passages, names, strict=True)]
    assert_same(many, singles)
    alike = score_many(queries, passages, gate=gate, group="mild")
    assert_same(alike, [score(q, p, gate=gate, group="mild") for q, p in zip(queries, passages, strict=True)])
    refuse(ValueError, "^`group` must ", lambda: score_many(queries, passages, gate=gate, group=names[:-1]))
    refuse((TypeError, ValueError), r"^`groups?` must ", lambda: score_many(queries, passages, gate=gate))


def test_an_empty_batch_is_decided() -> None:
    """No queries give no decisions, and queries without any score give none either."""
    gate = fitted(0.2, 0.8)
    assert len(score_many(np.zeros((0, 4)), np.zeros((0, 3, 4)), gate=gate)) == 0
    many = score_many(np.zeros((2, 4)), np.ones((2, 3, 4)), gate=gate)
    assert many.verdict.tolist() == ["ABSTAIN", "ABSTAIN"]
    assert [m.decision for m in many] == [None, None]


# --- a gate for other scores


def gate_for(m: RagConfidenceMetrics, **options: Any) -> ConformalGate:
    """A gate with the provenance of a record."""
    return fitted(0.2, 0.8, provenance=m.provenance, **options)


def test_a_gate_meets_the_scores_it_was_fitted_on() -> None:
    """With the same policy, embedder and backend a gate decides; one without provenance always does."""
    for options in (
        {},
        {"embedder": "minilm"},
        {"policy": MetricPolicy(answer_at=70)},
        {"embedding_backend": "lexical"},
    ):
        m = score(QUERY, PASSAGES, **options)
        assert score(QUERY, PASSAGES, gate=gate_for(m), **options).decision is not None
        assert score(QUERY, PASSAGES, gate=fitted(0.2, 0.8), **options).decision is not None


@pytest.mark.parametrize(
    ("fitted_with", "used_with", "names"),
    [
        ({}, {"policy": MetricPolicy(grounding_center=0.5)}, "policy"),
        ({"policy": MetricPolicy.seed()}, {}, "policy"),
        ({"embedder": "minilm"}, {"embedder": "use"}, "embedder"),
        ({"embedder": "minilm"}, {}, "embedder"),
        ({}, {"embedder": "use"}, "embedder"),
        ({}, {"embedding_backend": "lexical"}, "embedder"),
        ({"embedder": "x", "embedding_backend": "lexical"}, {"embedder": "x"}, "embedder"),
    ],
    ids=named,
)
def test_a_gate_for_other_scores_is_refused(fitted_with: Any, used_with: Any, names: str) -> None:
    """Another policy, embedder or backend is a CalibrationMismatch that names what differs."""
    gate = gate_for(score(QUERY, PASSAGES, **fitted_with))
    pattern = f"^`gate` must be fitted on KPIs made as in this call; got one for the {names} "
    refuse(CalibrationMismatch, pattern, lambda: score(QUERY, PASSAGES, gate=gate, **used_with))
    refuse(
        CalibrationMismatch, pattern, lambda: score_many(QUERY[None], PASSAGES[None], gate=gate, **used_with)
    )


@pytest.mark.parametrize("name", ["profile", "model"])
def test_a_gate_for_a_profile_or_model_is_refused(name: str) -> None:
    """A gate on scores of a profile or of a model refuses the plain KPI."""
    here = score(QUERY, PASSAGES).provenance
    gate = fitted(0.2, 0.8, provenance=replace(here, **{name: "abc"}))
    pattern = f"^`gate` must be fitted on KPIs made as in this call; got one for the {name} "
    refuse(CalibrationMismatch, pattern, lambda: score(QUERY, PASSAGES, gate=gate))


def test_a_mismatch_is_found_after_loading(tmp_path: Path) -> None:
    """A saved gate remembers how its scores were made."""
    gate_for(score(QUERY, PASSAGES, embedder="minilm")).save(tmp_path / "gate.json")
    gate = ConformalGate.load(tmp_path / "gate.json")
    assert score(QUERY, PASSAGES, gate=gate, embedder="minilm").decision is not None
    refuse(
        CalibrationMismatch, "embedder 'minilm'", lambda: score(QUERY, PASSAGES, gate=gate, embedder="use")
    )


def test_a_batch_has_the_provenance_of_its_records() -> None:
    """score_many and score state the same provenance for the same call."""
    options = {"embedder": "minilm", "policy": MetricPolicy(answer_at=70)}
    many = score_many(QUERY[None], PASSAGES[None], **options)
    assert many.provenance == many[0].provenance == score(QUERY, PASSAGES, **options).provenance
    assert isinstance(many.provenance, Provenance)


def test_a_gate_on_percentages_is_refused() -> None:
    """A gate fitted on percentages cannot meet a KPI in [0, 1]: the error says so and names the right key."""
    with quiet():
        gate = fit_conformal_gate([20.0] * 9 + [80.0] * 9, LABELS, score_kind="raw")
    message = refuse(
        CalibrationMismatch, "^`gate` must be fitted on KPIs", lambda: score(QUERY, PASSAGES, gate=gate)
    )
    assert "percentages" in message
    assert "kpi" in message


def test_a_raw_gate_on_fractions_is_a_gate() -> None:
    """A raw gate whose scores lie in [0, 1] decides on the KPI."""
    gate = fitted(0.2, 0.8, score_kind="raw")
    assert score(QUERY, PASSAGES, gate=gate).decision is not None


@pytest.mark.parametrize("gate", [5, "gate", {"q0": 0.5}, object(), ConformalGate, lambda s: True], ids=named)
def test_what_is_no_gate_is_refused(gate: Any) -> None:
    """Something that is no fitted gate is refused before anything is measured."""
    refuse(TypeError, "^`gate` must be a fitted gate; got ", lambda: score(QUERY, PASSAGES, gate=gate))
    refuse(
        TypeError,
        "^`gate` must be a fitted gate; got ",
        lambda: score_many(QUERY[None], PASSAGES[None], gate=gate),
    )


def test_a_group_needs_a_gate_with_groups() -> None:
    """A group without a gate, or for a gate without groups, is refused; so is a missing one."""
    either = (TypeError, ValueError)
    refuse(either, r"^`groups?` must ", lambda: score(QUERY, PASSAGES, gate=fitted(0.2, 0.8), group="a"))
    refuse(either, r"^`groups?` must ", lambda: score(QUERY, PASSAGES, gate=grouped(0.5)))
    refuse(either, r"^`groups?` must ", lambda: score(QUERY, PASSAGES, group="a"))
    refuse(either, r"^`groups?` must ", lambda: score(QUERY, PASSAGES, gate=grouped(0.5), group=0.5))


# --- the record


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("situation", ["healthy", "conflicting", "off_topic", "shape_only"])
def test_a_record_with_a_gate_comes_back(situation: str, outcome: str) -> None:
    """The record is strict JSON under the schema, from_dict gives it back, and copies share nothing."""
    make, options, *_ = OUTCOMES[outcome]
    m = situated(situation, gate=make(situated(situation).kpi), **options)
    record = m.to_dict()
    text = json.dumps(record, allow_nan=False)
    VALIDATOR.validate(json.loads(text))
    again = RagConfidenceMetrics.from_dict(json.loads(text))
    assert again.to_dict() == record
    assert (again.decision, again.prediction_set, again.guarantee) == (
        m.decision,
        m.prediction_set,
        m.guarantee,
    )
    record["guarantee"]["not_claimed"].append("x")
    record["guarantee"]["n0"] = -1
    record["prediction_set"].append(5)
    assert again.to_dict() == m.to_dict() != record


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("decision", "accept"),
        ("decision", "MAYBE"),
        ("prediction_set", [2]),
        ("prediction_set", [1, 0]),
        ("prediction_set", [True]),
        ("p_value_0", 1.5),
        ("p_value_1", "0.5"),
        ("score_used", "max_cosine"),
        ("guarantee", {}),
        ("guarantee", "at most 10 %"),
        ("policy_verdict", None),
        ("policy_verdict", "answer"),
        ("gate_fingerprint", 5),
    ],
    ids=named,
)
def test_a_changed_record_is_refused(key: str, value: Any) -> None:
    """from_dict holds every key of the gate to the contract."""
    record = situated("healthy", gate=fitted(0.2, 0.8)).to_dict()
    record[key] = value
    refuse(ValueError, rf"^`record\['{key}'\]` must be ", lambda: RagConfidenceMetrics.from_dict(record))


# The keys of schema version 1.0.
FIRST = [
    "schema_version",
    "verdict",
    "verdict_action",
    "verdict_reason",
    "reason_code",
    "primary_risk",
    "retrieval_confidence",
    "confidence_band",
    "retrieval_confidence_band",
    "kpi",
    "p_sufficient",
    "topical_grounding",
    "topical_grounding_band",
    "answer_localization",
    "answer_localization_band",
    "support_cohesion",
    "support_cohesion_band",
    "evidence_consistency",
    "evidence_consistency_band",
    "query_robustness",
    "query_robustness_band",
    "grounding_assessed",
    "contradiction_assessed",
    "k_requested",
    "k_returned",
    "effective_k",
    "embedder",
    "policy_fingerprint",
    "warnings",
    "weights.answer_localization",
    "weights.support_cohesion",
    "weights.evidence_consistency",
    "weights.query_robustness",
    "signals.topical_grounding",
    "signals.answer_localization",
    "signals.support_cohesion",
    "signals.evidence_consistency",
    "signals.query_robustness",
    "signals.max_cosine",
    "signals.mean_top3_cosine",
    "signals.top_gap",
    "signals.std_top10_cosine",
    "signals.head_tail_gap",
    "signals.second_bar",
    "signals.lambda_2",
    "signals.dirichlet_energy",
    "signals.conditioned_energy",
    "signals.flip_angle",
    "signals.contradiction",
    "evidence.topical_match_cosine",
    "evidence.n_relevance_clusters",
    "evidence.persistence_margin",
    "evidence.dominance",
    "evidence.fragmentation",
    "evidence.focus_depth",
    "evidence.concentration",
    "evidence.sheaf_consistency",
    "evidence.contradiction_loops",
    "evidence.minor_loops",
    "evidence.contradiction_loop_life",
    "evidence.loop_ratio",
    "evidence.loop_p_value",
    "evidence.stability_move",
    "evidence.stability_move_kind",
    "evidence.embedding_backend",
    "evidence.n_nodes",
    "evidence.n_shape",
    "evidence.n_dropped_rows",
]


SECOND = {
    *("profile_fingerprint", "model_fingerprint", "model_contributions", "model_out_of_range"),
    *("signals.std_top20_cosine", "signals.head_coherence", "signals.tail_coherence"),
    *("signals.companionship", "signals.best_pair", "signals.best_nearest", "signals.best_partial"),
    *("signals.contrast", "signals.saturated_contrast", "signals.best_excess", "signals.head_excess"),
    *("signals.level_excess", "signals.background_mean", "signals.background_std"),
    *("signals.background_tail", "signals.typicality", "signals.text_best", "signals.text_top3"),
}


def test_keys_are_gained_and_none_is_lost() -> None:
    """The keys are the same with and without a gate: those of 1.0, of the gate, and of profile and model."""
    plain, gated = situated("healthy").to_dict(), situated("healthy", gate=fitted(0.2, 0.8)).to_dict()
    assert list(plain) == list(gated)
    assert len(FIRST) == 68
    assert set(plain) - GATE_KEYS == set(FIRST) | SECOND
    assert not GATE_KEYS & SECOND


@pytest.mark.parametrize(
    "made",
    [
        lambda rng, labels: np.minimum(rng.normal(-3, 1, 400) + 1.5 * labels, -0.01),
        lambda rng, labels: rng.normal(-8, 2, 400).clip(-20, 0.9) + labels * 0.05,
        lambda rng, labels: rng.uniform(20, 90, 400) + 5 * labels,
    ],
    ids=["log-probabilities", "logits up to 1", "percentages"],
)
def test_what_was_fitted_on_another_scale_is_refused(made: Any) -> None:
    """A gate or a map for scores that no KPI can be would answer anything: it is refused, not obeyed."""
    rng = np.random.default_rng(5)
    labels = (np.arange(400) % 2).astype(int)
    scores = made(rng, labels)
    with quiet():
        gates = [fit_conformal_gate(scores, labels, score_kind="raw")]
        gates.append(fit_risk_gate(scores, labels, 0.6, score_kind="raw"))
        chance = fit_isotonic(scores, labels)
    for gate in gates:
        refuse(
            CalibrationMismatch,
            r"^`gate` must be fitted on KPIs",
            lambda g=gate: score(QUERY, PASSAGES, gate=g),
        )
    refuse(
        CalibrationMismatch,
        r"^`calibrator` must be fitted on KPIs",
        lambda: score(QUERY, PASSAGES, calibrator=chance),
    )


def test_a_row_of_the_log_is_decided_as_in_the_log() -> None:
    """A threshold is a KPI of the log; scored again, alone or in a batch, that row meets the same number."""
    rng = np.random.default_rng(3)
    queries = rng.standard_normal((300, 32))
    passages = queries[:, None, :] * 0.7 + rng.standard_normal((300, 8, 32))
    batch = score_many(queries, passages)
    alone = np.array([score(q, p).kpi for q, p in zip(queries, passages, strict=True)])
    assert (alone == batch.kpi).mean() > 0.99
    labels = rng.random(300) < np.argsort(np.argsort(batch.kpi)) / 300
    for alpha in (0.05, 0.1, 0.2):
        gate = fit_conformal_gate(batch.kpi, labels, alpha, provenance=batch.provenance)
        for at in np.flatnonzero(np.isin(batch.kpi, [gate.q0, gate.t1])).tolist():
            one = score(queries[at], passages[at], gate=gate)
            assert one.decision == score_many(queries, passages, gate=gate).decision[at]


def test_reading_decisions_warns_no_more() -> None:
    """A score far outside warns once, at the line that asked, and not again when the answer is read."""
    gate = fit_conformal_gate([*range(20), *range(15, 35)], [0] * 20 + [1] * 20, score_kind="raw")
    with pytest.warns(OutOfRangeWarning) as caught:
        found = gate.predict([500.0])
    assert caught[0].filename == __file__
    assert found[0].decision == "accept"


def test_a_gate_of_unknown_origin_is_noted() -> None:
    """A gate that does not say how its scores were made guards against nothing, and each record says so."""
    silent, named = fitted(0.2, 0.8), replace(fitted(0.2, 0.8), provenance=score(QUERY, PASSAGES).provenance)
    assert any("nothing was compared" in note for note in score(QUERY, PASSAGES, gate=silent).warnings)
    assert not score(QUERY, PASSAGES, gate=named).warnings
