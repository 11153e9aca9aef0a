"""The frozen contract of score(): collected by pytest, or run alone by `python tests/test_score_api.py`.

Only the package and NumPy are needed; all vectors are made here.
"""

from __future__ import annotations

import inspect
import json
import math
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import rag_confidence
from rag_confidence import MetricPolicy, RagConfidenceMetrics, score, score_many

KEYS = [
    "schema_version",
    "verdict",
    "policy_verdict",
    "verdict_action",
    "verdict_reason",
    "reason_code",
    "primary_risk",
    "retrieval_confidence",
    "confidence_band",
    "retrieval_confidence_band",
    "kpi",
    "p_sufficient",
    "decision",
    "prediction_set",
    "p_value_0",
    "p_value_1",
    "margin_to_threshold",
    "score_used",
    "group",
    "gate_fingerprint",
    "guarantee",
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
    "profile_fingerprint",
    "model_fingerprint",
    "model_contributions",
    "model_out_of_range",
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
    "signals.std_top20_cosine",
    "signals.head_tail_gap",
    "signals.second_bar",
    "signals.lambda_2",
    "signals.dirichlet_energy",
    "signals.conditioned_energy",
    "signals.flip_angle",
    "signals.head_coherence",
    "signals.tail_coherence",
    "signals.companionship",
    "signals.best_pair",
    "signals.best_nearest",
    "signals.best_partial",
    "signals.contrast",
    "signals.saturated_contrast",
    "signals.best_excess",
    "signals.head_excess",
    "signals.level_excess",
    "signals.background_mean",
    "signals.background_std",
    "signals.background_tail",
    "signals.typicality",
    "signals.text_best",
    "signals.text_top3",
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
PARAMETERS = {
    "texts": None,
    "parents": None,
    "policy": None,
    "calibrator": None,
    "perturb": True,
    "profile": None,
    "model": None,
    "gate": None,
    "group": None,
    "candidates": None,
    "query_text": None,
    "contradiction": None,
    "embedder": None,
    "embedding_backend": "precomputed",
    "k_requested": None,
    "invalid_rows": "raise",
    "duplicate_cosine": 0.995,
    "loops": "off",
    "seed": 0,
}
SIGNALS = (
    "topical_grounding",
    "answer_localization",
    "support_cohesion",
    "evidence_consistency",
    "query_robustness",
)
VERDICTS = {"ANSWER", "REVIEW", "ABSTAIN", "ESCALATE"}
D = 24
QUERY = np.eye(D)[0]


def passages(cosines: list[float], likeness: float = 0.8, seed: int = 0) -> np.ndarray:
    """Unit rows with the given cosines to QUERY; `likeness` is what they share beside it."""
    rng = np.random.default_rng(seed)
    own = rng.standard_normal((len(cosines), D))
    own[:, :2] = 0.0
    own /= np.linalg.norm(own, axis=1, keepdims=True)
    aside = math.sqrt(likeness) * np.eye(D)[1] + math.sqrt(1 - likeness) * own
    c = np.array(cosines)[:, None]
    return np.asarray(c * QUERY + np.sqrt(1 - c**2) * aside)


ON_TOPIC = passages([0.86, 0.80, 0.78, 0.76, 0.75])
OFF_TOPIC = passages([0.12, 0.08, 0.05, 0.02, -0.03], likeness=0.1)
TREE = [None, 0, 1, 0, 3]
FOCUSED = [[0.2, 1, 0, 0], [1, 0.5, 0, 0], [1, 0.1, 0, 0], [0.1, 0, 1, 0], [0.1, 0, 1, 0.3]]
SPLIT = [[0.2, 1, 0, 0], [1, 0.5, 0, 0], [1, 0.1, 0, 0], [1, 0, 0.5, 0], [1, 0, 0, 0.1]]


def refusal(*args: Any, **options: Any) -> str:
    """The message of the ValueError that a call must end in."""
    try:
        score(*args, **options)
    except ValueError as error:
        return str(error)
    raise AssertionError("nothing was refused")


def samples() -> list[RagConfidenceMetrics]:
    """One assessment of each kind."""
    return [
        score(QUERY, ON_TOPIC),
        score(QUERY, OFF_TOPIC),
        score(QUERY, ON_TOPIC[:1]),
        score(QUERY, ON_TOPIC[:2], perturb=False),
        score(QUERY, ON_TOPIC, embedding_backend="lexical"),
        score(QUERY, ON_TOPIC, parents=TREE, calibrator=lambda kpi: kpi),
        score(QUERY, ON_TOPIC, texts=["t"] * 5, contradiction=lambda texts: 0.9),
        score(QUERY, ON_TOPIC, policy=MetricPolicy.seed()),
        score(QUERY, np.zeros((0, D))),
        score(np.zeros(D), ON_TOPIC),
    ]


# --- contract


def test_the_key_set_is_frozen() -> None:
    """Every record has exactly these keys, in this order; a new key needs a new schema version."""
    for m in samples():
        assert list(m.to_dict()) == KEYS
        assert m.to_dict()["schema_version"] == "1.2"


def test_the_signature_is_frozen() -> None:
    """Names, order and defaults of the arguments of score() and score_many() stay."""
    for function, first in (
        (score, ["query_embedding", "passage_embeddings"]),
        (score_many, ["query_embeddings", "passage_embeddings"]),
    ):
        found = inspect.signature(function).parameters
        assert list(found) == [*first, *PARAMETERS]
        assert {name: found[name].default for name in PARAMETERS} == PARAMETERS
        keyword_only = [name for name, p in found.items() if p.kind is p.KEYWORD_ONLY]
        assert keyword_only == list(PARAMETERS)[5:]


def test_public_names_import_from_the_package() -> None:
    """What the documentation names comes from the top of the package."""
    for name in ("score", "score_many", "RagConfidenceMetrics", "MetricPolicy", "EngineReport"):
        assert name in rag_confidence.__all__
    assert all(hasattr(rag_confidence, name) for name in rag_confidence.__all__)


def test_records_are_strict_json() -> None:
    """No nan and no infinity: json.dumps(allow_nan=False) takes every record and gives it back."""
    for m in samples():
        record = m.to_dict()
        assert json.loads(json.dumps(record, allow_nan=False)) == record


def test_values_are_plain_python() -> None:
    """No NumPy scalar and no enum hides in a record."""
    for m in samples():
        for key, value in m.to_dict().items():
            assert type(value) in (str, float, int, bool, list, dict, type(None)), key
            assert key != "warnings" or all(type(w) is str for w in value)


def test_values_are_in_range() -> None:
    """KPI and signals in [0, 1], their display in 0..100, weights that sum to one or to nothing."""
    for m in samples():
        record = m.to_dict()
        assert 0.0 <= record["kpi"] <= 1.0
        assert 0.0 <= record["retrieval_confidence"] <= 100.0
        for name in SIGNALS:
            value = record[f"signals.{name}"]
            assert value is None or 0.0 <= value <= 1.0
            assert value is None or 0.0 <= record[name] <= 100.0
        total = sum(record[f"weights.{name}"] for name in SIGNALS[1:])
        assert math.isclose(total, 1.0) or total == 0.0


def test_words_are_from_the_vocabulary() -> None:
    """Verdicts, bands and risks use the words of the contract and no others."""
    bands = {
        "confidence_band": {"HIGH", "MEDIUM", "LOW"},
        "retrieval_confidence_band": {"strong", "good", "mixed", "weak"},
        "topical_grounding_band": {"on-topic", "loosely-related", "off-topic", None},
        "answer_localization_band": {"sharp", "fuzzy", "diffuse", None},
        "support_cohesion_band": {"compact", "split", "scattered", None},
        "evidence_consistency_band": {"consistent", "minor-tension", "conflicting", None},
        "query_robustness_band": {"stable", "phrasing-sensitive", "fragile", None},
    }
    for m in samples():
        record = m.to_dict()
        assert record["verdict"] in VERDICTS
        assert record["primary_risk"] in {*SIGNALS, "none"}
        for key, words in bands.items():
            assert record[key] in words


def test_attributes_and_record_agree() -> None:
    """The attributes are the record's values on 0..100, unrounded."""
    for m in samples():
        record = m.to_dict()
        assert m.verdict == record["verdict"]
        assert m.reason_code == record["reason_code"]
        assert m.primary_risk == record["primary_risk"]
        assert math.isclose(m.retrieval_confidence, 100 * record["kpi"])
        assert abs(m.retrieval_confidence - record["retrieval_confidence"]) <= 0.1
        for name in SIGNALS:
            value = getattr(m, name)
            assert (value is None) == (record[name] is None)
            assert value is None or math.isclose(value, 100 * record[f"signals.{name}"])


def test_records_round_trip() -> None:
    """from_dict(to_dict()) is the same record, through JSON text too."""
    for m in samples():
        text = json.dumps(m.to_dict())
        assert RagConfidenceMetrics.from_dict(json.loads(text)).to_dict() == m.to_dict()


def test_every_result_says_why() -> None:
    """A reason for the user, an action for the caller, a card for people."""
    for m in samples():
        assert m.verdict_reason.endswith(".")
        assert m.verdict_action
        assert str(m.verdict) in m.narrate()


# --- invariants


def test_on_topic_is_answered() -> None:
    """Close passages that resemble each other are answered from."""
    m = score(QUERY, ON_TOPIC)
    assert (m.verdict, m.reason_code) == ("ANSWER", "healthy")


def test_off_topic_abstains() -> None:
    """Passages about something else are not answered from, whatever their shape."""
    for rows in (OFF_TOPIC, passages([0.1] * 4, likeness=0.95)):
        m = score(QUERY, rows)
        assert (m.verdict, m.reason_code) == ("ABSTAIN", "off_topic")
    assert score(QUERY, OFF_TOPIC).primary_risk == "topical_grounding"


def test_grounding_rises_with_the_cosine() -> None:
    """Moving every passage towards the query raises grounding."""
    heights = np.arange(0.1, 1.0, 0.1)
    found = [score(QUERY, passages([c, c - 0.01, c - 0.02])).topical_grounding for c in heights]
    assert found == sorted(set(found))


def test_the_kpi_separates() -> None:
    """On topic and off topic are far apart."""
    assert score(QUERY, ON_TOPIC).kpi > score(QUERY, OFF_TOPIC).kpi + 0.5


def test_a_split_tree_is_fragmented() -> None:
    """Two relevant branches under an irrelevant root: more fragmentation, less localization."""
    one, two = (score(np.eye(4)[0], rows, parents=TREE) for rows in (FOCUSED, SPLIT))
    assert two.to_dict()["evidence.fragmentation"] > one.to_dict()["evidence.fragmentation"]
    assert two.answer_localization < one.answer_localization


def test_the_same_call_gives_the_same_record() -> None:
    """No hidden state: neither other calls nor the global generator change a result."""
    first = score(QUERY, ON_TOPIC, seed=7).to_dict()
    np.random.seed(1)  # noqa: NPY002
    score(QUERY, OFF_TOPIC)
    assert score(QUERY, ON_TOPIC, seed=7).to_dict() == first


def test_another_process_gives_the_same_record() -> None:
    """Nothing depends on the process or on its hash seed."""
    code = (
        "import json, sys, numpy as np; sys.path.insert(0, sys.argv[1]); from rag_confidence import score;"
        "x = np.random.default_rng(4).standard_normal((7, 9));"
        "print(json.dumps(score(x[0], x[1:]).to_dict()))"
    )
    root = str(Path(rag_confidence.__file__).resolve().parents[1])
    run = subprocess.run(
        [sys.executable, "-c", code, root],
        env={"PYTHONHASHSEED": "77"},
        capture_output=True,
        text=True,
        check=True,
    )
    x = np.random.default_rng(4).standard_normal((7, 9))
    assert json.loads(run.stdout) == score(x[0], x[1:]).to_dict()


def test_a_calibrator_writes_a_probability() -> None:
    """The calibrator sees the KPI in [0, 1]; its answer is p_sufficient, and the KPI stays."""
    seen: list[float] = []
    m = score(QUERY, ON_TOPIC, calibrator=lambda kpi: seen.append(kpi) or 0.25)
    assert seen == [m.kpi]
    assert m.p_sufficient == m.to_dict()["p_sufficient"] == 0.25
    assert m.kpi == score(QUERY, ON_TOPIC).kpi
    assert score(QUERY, ON_TOPIC).p_sufficient is None


def test_a_calibrator_cannot_lift_the_veto() -> None:
    """Off topic stays off topic, whatever probability a calibrator writes."""
    m = score(QUERY, OFF_TOPIC, calibrator=lambda kpi: 0.9)
    assert (m.verdict, m.reason_code) == ("ABSTAIN", "off_topic")


def test_a_calibrator_must_return_a_probability() -> None:
    """nan, and numbers outside [0, 1], are refused."""
    for value in (math.nan, -0.1, 1.1, math.inf):
        assert "`calibrator` must return" in refusal(QUERY, ON_TOPIC, calibrator=lambda kpi, v=value: v)


def test_a_custom_policy_moves_the_verdict() -> None:
    """Thresholds change words and never numbers."""
    plain = score(QUERY, ON_TOPIC)
    strict = score(QUERY, ON_TOPIC, policy=MetricPolicy(answer_at=100, review_at=10))
    severe = score(QUERY, ON_TOPIC, policy=MetricPolicy(answer_at=100, review_at=100))
    assert (plain.verdict, strict.verdict, severe.verdict) == ("ANSWER", "REVIEW", "ABSTAIN")
    assert plain.kpi == strict.kpi == severe.kpi
    assert len({m.to_dict()["policy_fingerprint"] for m in (plain, strict, severe)}) == 3


def test_the_probe_is_evidence_only() -> None:
    """perturb=False leaves the movement null and every signal as it was."""
    probed, plain = score(QUERY, ON_TOPIC).to_dict(), score(QUERY, ON_TOPIC, perturb=False).to_dict()
    assert plain["evidence.stability_move"] is None
    assert plain["evidence.stability_move_kind"] is None
    assert probed["evidence.stability_move"] > 0.0
    changed = {key for key in KEYS if probed[key] != plain[key]}
    assert changed == {"evidence.stability_move", "evidence.stability_move_kind"}


def test_contradiction_escalates() -> None:
    """A contradiction score of .5 or more escalates; without a function the record says so."""
    texts = [f"passage {i}" for i in range(5)]
    for value, verdict in ((0.49, "ANSWER"), (0.5, "ESCALATE"), (1.0, "ESCALATE")):
        m = score(QUERY, ON_TOPIC, texts=texts, contradiction=lambda t, v=value: v)
        assert m.verdict == verdict
        assert m.to_dict()["signals.contradiction"] == value
    silent = score(QUERY, ON_TOPIC, texts=texts)
    assert not silent.to_dict()["contradiction_assessed"]
    assert "contradiction not assessed" in silent.narrate()


def test_lexical_vectors_have_no_grounding() -> None:
    """A lexical backend scores shape only: grounding is null, and REVIEW is the best verdict."""
    for rows in (ON_TOPIC, OFF_TOPIC):
        m = score(QUERY, rows, embedding_backend="lexical")
        assert m.topical_grounding is None
        assert not m.grounding_assessed
        assert m.verdict in {"REVIEW", "ABSTAIN"}
    assert score(QUERY, ON_TOPIC, embedding_backend="lexical").reason_code == "shape_only"


def test_a_batch_equals_a_loop() -> None:
    """score_many gives the records of a loop of score."""
    groups = [ON_TOPIC, OFF_TOPIC[:3], ON_TOPIC[:1], np.zeros((0, D))]
    batch = score_many(np.tile(QUERY, (4, 1)), groups)
    assert [m.verdict for m in batch] == [score(QUERY, rows).verdict for rows in groups]
    for m, rows in zip(batch, groups, strict=True):
        assert math.isclose(m.kpi, score(QUERY, rows).kpi, rel_tol=1e-9)


# --- edge cases


def test_one_passage() -> None:
    """n = 1: cohesion and robustness are not assessed, and the other weights are renormalised."""
    m = score(QUERY, ON_TOPIC[:1])
    assert m.support_cohesion is None
    assert m.query_robustness is None
    assert m.answer_localization == m.evidence_consistency == 100.0
    assert math.isclose(m.to_dict()["weights.answer_localization"], 0.35 / 0.60)
    assert m.verdict == "ANSWER"


def test_two_passages() -> None:
    """n = 2: every driver is assessed."""
    m = score(QUERY, ON_TOPIC[:2])
    assert all(getattr(m, name) is not None for name in SIGNALS)


def test_identical_passages() -> None:
    """Copies count once: six of one passage are one passage."""
    one, six = score(QUERY, ON_TOPIC[:1]), score(QUERY, np.repeat(ON_TOPIC[:1], 6, axis=0))
    assert math.isclose(one.kpi, six.kpi)
    assert six.to_dict()["k_returned"] == 6
    assert six.to_dict()["effective_k"] == 1


def test_a_zero_query_abstains() -> None:
    """A question without a direction has a verdict, not an exception."""
    m = score(np.zeros(D), ON_TOPIC)
    assert (m.verdict, m.reason_code, m.kpi) == ("ABSTAIN", "degenerate_query", 0.0)


def test_lists_do_as_well_as_arrays() -> None:
    """Nested lists and tuples give what arrays give."""
    assert score(QUERY.tolist(), ON_TOPIC.tolist()).to_dict() == score(QUERY, ON_TOPIC).to_dict()
    assert score(tuple(QUERY), tuple(map(tuple, ON_TOPIC))).to_dict() == score(QUERY, ON_TOPIC).to_dict()


def test_another_dimension_is_refused() -> None:
    """A mismatch names both arguments, both dimensions and a cure."""
    message = refusal(np.ones(384), np.ones((5, 768)))
    assert message.startswith(
        "`passage_embeddings` must have shape (n, 384) to match `query_embedding`; got (5, 768). "
    )
    assert "same model" in message


def test_a_query_with_nan_is_refused() -> None:
    """One nan in the question is an error, never a confident answer."""
    assert "`query_embedding` must be finite" in refusal([math.nan, *QUERY[1:]], ON_TOPIC)


def test_bad_rows_are_refused_or_dropped() -> None:
    """nan, infinite and zero passages are listed in an error, or dropped and counted on request."""
    rows = np.vstack([ON_TOPIC, np.full(D, math.nan), np.full(D, math.inf), np.zeros(D)])
    assert "got 3 bad: 5, 6, 7." in refusal(QUERY, rows)
    m = score(QUERY, rows, invalid_rows="drop")
    assert m.kpi == score(QUERY, ON_TOPIC).kpi
    assert m.to_dict()["evidence.n_dropped_rows"] == 3


def test_no_passages_abstain() -> None:
    """Nothing retrieved has a verdict, not an exception."""
    for nothing in ([], np.zeros((0, D))):
        m = score(QUERY, nothing)
        assert (m.verdict, m.reason_code, m.kpi) == ("ABSTAIN", "no_passages", 0.0)


def test_a_real_parent_tree() -> None:
    """A tree of sections has a focus; a flat list has none."""
    tree = score(np.eye(4)[0], FOCUSED, parents=TREE).to_dict()
    flat = score(np.eye(4)[0], FOCUSED).to_dict()
    assert 0.0 < tree["evidence.focus_depth"] <= 1.0
    assert tree["evidence.stability_move_kind"] == "bottleneck"
    assert flat["evidence.focus_depth"] is None
    assert flat["evidence.stability_move_kind"] == "bound"


def test_broken_trees_are_refused() -> None:
    """Cycles, several roots, none, and wrong lengths are errors at once."""
    for parents in ([None, 2, 1], [None, None, 0], [1, 2, 0], [None, 0], [None, 0, 3], [None, 2, 0]):
        assert "`parents`" in refusal(QUERY, ON_TOPIC[:3], parents=parents)


def test_three_hundred_passages() -> None:
    """A long list, flat or a tree, is scored."""
    rng = np.random.default_rng(2)
    rows = rng.standard_normal((300, 384)) + 2.0
    flat = score(rows.mean(axis=0), rows)
    tree = score(rows.mean(axis=0), rows, parents=[None, *((i - 1) // 4 for i in range(1, 300))])
    assert flat.to_dict()["evidence.n_nodes"] == tree.to_dict()["evidence.n_nodes"] == 300
    assert flat.verdict in VERDICTS


def test_the_callers_arrays_stay() -> None:
    """Read-only arrays are accepted and nothing is written."""
    query, rows = QUERY.copy(), ON_TOPIC.copy()
    query.flags.writeable = rows.flags.writeable = False
    score(query, rows)
    assert (rows == ON_TOPIC).all()


def main() -> int:
    """Run every test of this file without pytest; the exit status is the number that failed."""
    tests = [(name, f) for name, f in globals().items() if name.startswith("test_")]
    failed = 0
    for name, test in tests:
        try:
            test()
        except Exception:  # noqa: BLE001 - a runner reports whatever a test raises
            failed += 1
            print(f"FAILED {name}\n{traceback.format_exc()}")
    print(f"{len(tests) - failed} passed, {failed} failed")
    return failed


if __name__ == "__main__":
    sys.exit(main())
