"""The tools of the MCP server, in memory: what they offer, what they return, and how they refuse."""

from __future__ import annotations

import json
import sys
from typing import Any

import jsonschema
import pytest
from mcp_session import CALLS, LABELS, PASSAGES, QUERY, SCORES, URI, called, in_memory, refusal

from rag_confidence import ConformalGate, Provenance, fit_conformal_gate, score
from rag_confidence.conformal.risk.fit import fit_risk_gate

pytestmark = pytest.mark.needs_extra("mcp")

# Of the server that this one follows: parameters in their order, with the defaults of the optional ones.
FENCE: dict[str, dict[str, Any]] = {
    "audit_scores": {"scores": ..., "labels": ..., "threshold": 0.5, "num_bins": 10},
    "fit_conformal_gate": {"scores": ..., "labels": ..., "alpha": 0.10},
    "apply_conformal_gate": {"scores": ..., "q0": ..., "q1": ..., "alpha": 0.10},
    "evaluate_conformal_gate": {"eval_scores": ..., "eval_labels": ..., "q0": ..., "q1": ..., "alpha": 0.10},
    "find_lexical_traps": {
        "scores": ...,
        "labels": ...,
        "threshold": 0.70,
        "item_ids": None,
        "queries": None,
        "passages": None,
    },
    "run_demo": {"seed": 42, "alpha": 0.10},
}

# What is offered


@pytest.mark.parametrize(
    ("provenance", "words"),
    [
        (None, "the name of the embedder that made them"),
        (Provenance(policy="p"), "no `embedder`"),
        (Provenance(policy="p", embedder='the "small" {one}'), 'embedder="the \\"small\\" {one}"'),
    ],
)
def test_a_server_with_a_gate_tells_agents_to_decide_with_it(
    provenance: Provenance | None, words: str
) -> None:
    """Its instructions name the tool, the embedder and the verdict; without a gate they lead to a fit."""
    told = instructions_of(fit_conformal_gate(SCORES, LABELS, provenance=provenance))
    assert "call score_retrieval" in told
    assert f"and {words}, and branch on `verdict`" in told
    assert "Do not fit a gate of your own" in told
    assert "then fit_conformal_gate" in instructions_of(None)


def instructions_of(gate: ConformalGate | None) -> str:
    """What a server with this gate tells its clients when they connect."""
    from rag_confidence.adapters._mcp.tools import build_server

    return str(build_server(gate=gate).instructions)


async def _offered(client: Any) -> Any:
    return (await client.list_tools()).tools, (await client.list_resources()).resources


def test_the_tools_are_those_that_are_documented() -> None:
    """The six tools of Fence, scoring, planning and certified risk, and no other."""
    tools, resources = in_memory(_offered)
    assert {tool.name for tool in tools} == {*CALLS, "score_texts"}
    assert [(resource.uri, resource.mime_type) for resource in resources] == [(URI, "text/markdown")]


@pytest.mark.parametrize("name", FENCE)
def test_a_fence_tool_has_its_parameters_and_defaults(name: str) -> None:
    """Names, order, defaults and which are required; what is added comes after and is optional."""
    tools, _ = in_memory(_offered)
    schema = next(tool.input_schema for tool in tools if tool.name == name)
    known = FENCE[name]
    assert [*schema["properties"]][: len(known)] == [*known]
    assert schema.get("required", []) == [name for name, default in known.items() if default is ...]
    for parameter, default in known.items():
        assert schema["properties"][parameter].get("default", ...) == default


def test_every_argument_and_every_result_is_described() -> None:
    """Schemas are valid, closed, and explain each entry down to the last level."""
    for tool in in_memory(_offered)[0]:
        for schema in (tool.input_schema, tool.output_schema):
            jsonschema.Draft202012Validator.check_schema(schema)
            assert schema["additionalProperties"] is False
            for part in (schema, *schema.get("$defs", {}).values()):
                assert all(entry.get("description") for entry in part["properties"].values()), tool.name
        assert tool.description
        assert tool.title
        assert tool.annotations.read_only_hint


@pytest.mark.parametrize("name", CALLS)
def test_a_result_obeys_its_schema(name: str) -> None:
    """Structured content validates against the schema that the tool announces, and its text is the same."""
    tools, _ = in_memory(_offered)
    tool = next(tool for tool in tools if tool.name == name)
    result = called(name, CALLS[name])
    jsonschema.validate(CALLS[name], tool.input_schema)
    jsonschema.validate(result.structured_content, tool.output_schema)
    assert [json.loads(part.text) for part in result.content] == [result.structured_content]


def test_the_prompt_is_filled_in_and_refuses_a_level_that_cannot_be_meant() -> None:
    """The audit names the pipeline and the level that were asked for."""
    from mcp import MCPError

    async def asked(client: Any) -> str:
        filled = await client.get_prompt("audit_rag_pipeline", {"pipeline": "the wiki bot", "alpha": "0.02"})
        text: str = filled.messages[0].content.text
        return text

    async def refused(client: Any) -> None:
        with pytest.raises(MCPError, match="`alpha` must be strictly between 0 and 1; got '2'"):
            await client.get_prompt("audit_rag_pipeline", {"alpha": "2"})

    text = in_memory(asked)
    assert "the wiki bot" in text
    assert "0.02" in text
    assert "{" not in text
    in_memory(refused)


# Results


def test_a_fitted_gate_decides_and_is_measured_through_its_numbers() -> None:
    """fit, apply and evaluate hand q0 and q1 on as they are; what they find is what the library finds."""
    gate = fit_conformal_gate(SCORES, LABELS)
    fitted = called("fit_conformal_gate", CALLS["fit_conformal_gate"]).structured_content
    assert (fitted["q0"], fitted["q1"]) == (gate.q0, gate.q1)
    assert fitted["guarantee"] == json.loads(json.dumps(gate.guarantee.to_dict()))
    assert fitted["accepts_when"] == "s > 0.45 and s >= 0.525"
    thresholds = {"q0": fitted["q0"], "q1": fitted["q1"]}
    applied = called("apply_conformal_gate", {"scores": SCORES, **thresholds}).structured_content
    assert [one["decision"] for one in applied["decisions"]] == [
        decided.decision.name for decided in gate.predict(SCORES)
    ]
    assert (applied["n_accept"], applied["n_reject"], applied["n_abstain"]) == (19, 19, 2)
    arguments = {"eval_scores": SCORES, "eval_labels": LABELS, **thresholds}
    measured = called("evaluate_conformal_gate", arguments).structured_content
    assert measured["false_sufficiency_rate"]["count"] == 0
    assert measured["above_alpha"] is False


def test_a_rate_above_alpha_is_not_called_a_broken_bound() -> None:
    """An interval above alpha is said to be so, and that a sound marginal gate may show it."""
    arguments = {"eval_scores": [0.9] * 40, "eval_labels": [0] * 40, "q0": 0.5, "q1": 0.5, "alpha": 0.1}
    measured = called("evaluate_conformal_gate", arguments).structured_content
    assert measured["above_alpha"] is True
    assert "lies above alpha = 0.1, which a sound marginal gate may be." in measured["summary"]
    honest = called("evaluate_conformal_gate", {**arguments, "alpha": 0.95}).structured_content
    assert "does not contradict alpha = 0.95. " in honest["summary"]


@pytest.mark.filterwarnings("ignore::rag_confidence.errors.SmallCalibrationWarning")
@pytest.mark.filterwarnings("ignore::rag_confidence.errors.WeakSeparationWarning")
def test_infinite_thresholds_are_null_with_a_flag_and_abstain() -> None:
    """Too few rows: null and a flag come out, null goes in again, and nothing is decided."""
    arguments = {"scores": [0.1] * 8 + [0.9] * 8, "labels": [0] * 8 + [1] * 8}
    fitted = called("fit_conformal_gate", arguments).structured_content
    assert (fitted["q0"], fitted["q0_infinite"]) == (None, True)
    assert (fitted["q1"], fitted["q1_infinite"]) == (None, True)
    assert (fitted["accepts_when"], fitted["rejects_when"]) == ("never", "never")
    assert fitted["labels_needed_0"] == 9
    assert "9 are needed" in fitted["warnings"][0]
    assert fitted["guarantee"]["holds"] is False
    applied = called("apply_conformal_gate", {"scores": [0.0, 1.0], "q0": None, "q1": None})
    decided = applied.structured_content
    assert [one["decision"] for one in decided["decisions"]] == ["ABSTAIN", "ABSTAIN"]
    assert [one["prediction_set"] for one in decided["decisions"]] == [[0, 1], [0, 1]]
    assert len(decided["warnings"]) == 2


@pytest.mark.filterwarnings("ignore::rag_confidence.errors.SmallCalibrationWarning")
def test_one_infinite_threshold_still_accepts() -> None:
    """With enough insufficient rows and too few sufficient ones the gate accepts and never rejects."""
    arguments = {"scores": SCORES[:20] + [0.9] * 5, "labels": [0] * 20 + [1] * 5}
    fitted = called("fit_conformal_gate", arguments).structured_content
    assert (fitted["q0"], fitted["q1"], fitted["q1_infinite"]) == (0.45, None, True)
    assert (fitted["accepts_when"], fitted["rejects_when"]) == ("s > 0.45", "never")
    applied = called("apply_conformal_gate", {"scores": [0.1, 0.5], "q0": 0.45, "q1": None})
    assert [one["decision"] for one in applied.structured_content["decisions"]] == ["ABSTAIN", "ACCEPT"]


def test_a_certified_threshold_is_applied_as_q0() -> None:
    """With the q0 of fit_risk_gate, apply accepts what the gate accepts and abstains on the rest."""
    gate = fit_risk_gate(SCORES, LABELS, 0.2)
    fitted = called("fit_risk_gate", CALLS["fit_risk_gate"]).structured_content
    assert (fitted["certified"], fitted["q0"], fitted["acceptance"]) == (
        True,
        gate.threshold,
        gate.acceptance,
    )
    assert fitted["guarantee"]["bound"] == 0.2
    applied = called("apply_conformal_gate", {"scores": SCORES, "q0": fitted["q0"], "q1": None})
    assert [one["decision"] for one in applied.structured_content["decisions"]] == [
        decided.decision.name for decided in gate.predict(SCORES)
    ]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_threshold_that_cannot_be_certified_is_null_and_one_for_everything_is_below_all() -> None:
    """Nothing certified accepts nothing; where every row is sufficient, every fraction is accepted."""
    nothing = called("fit_risk_gate", {**CALLS["fit_risk_gate"], "target_risk": 0.01}).structured_content
    assert (nothing["certified"], nothing["q0"], nothing["q0_infinite"]) == (False, None, True)
    assert nothing["warnings"]
    everything = called("fit_risk_gate", {**CALLS["fit_risk_gate"], "labels": [1] * 40}).structured_content
    applied = called("apply_conformal_gate", {"scores": [0.0, 1.0], "q0": everything["q0"], "q1": None})
    assert applied.structured_content["n_accept"] == 2
    assert not any("q0" in warning for warning in applied.structured_content["warnings"])


def test_a_history_with_what_is_known_about_it_writes_it_into_the_guarantee() -> None:
    """Dates, source and kinds of negatives come back in the sentence that is to be passed on."""
    arguments = {
        **CALLS["fit_conformal_gate"],
        "guarantee": "pac",
        "delta": 0.2,
        "alpha_reject": 0.2,
        "negatives": {"near_miss": 20},
        "collected": ["2026-01-01", "2026-02-01"],
        "labeling_source": "two readers",
    }
    fitted = called("fit_conformal_gate", arguments).structured_content["guarantee"]
    assert (fitted["kind"], fitted["delta"], fitted["alpha_reject"]) == ("pac", 0.2, 0.2)
    assert fitted["negatives"] == {"near_miss": 20}
    assert "two readers, from 2026-01-01 to 2026-02-01" in fitted["sentence"]


def test_traps_come_with_their_texts_and_no_more_than_asked_for() -> None:
    """Ids, queries and passages stand beside the scores; what is left out is counted."""
    arguments = {
        **CALLS["find_lexical_traps"],
        "item_ids": [f"row {row}" for row in range(40)],
        "queries": ["What was the revenue in 2026?"] * 40,
        "passages": ["The revenue in 2024 was high."] * 40,
        "max_traps": 2,
    }
    found = called("find_lexical_traps", arguments).structured_content
    assert [trap["item_id"] for trap in found["traps"]] == ["row 19", "row 18"]
    assert found["n_traps"] == 4
    assert found["traps"][0]["word_overlap"] == 0.5
    assert found["warnings"] == ["2 traps were left out; raise max_traps."]


def test_a_retrieval_is_scored_as_by_the_library() -> None:
    """The verdict, the unrounded KPI and on request the whole record; contradiction is the caller's."""
    arguments = {**CALLS["score_retrieval"], "texts": ["a", "b", "c"], "full_record": True}
    found = called("score_retrieval", arguments).structured_content
    expected = score(QUERY, PASSAGES, texts=["a", "b", "c"]).to_dict()
    assert found["record"] == json.loads(json.dumps(expected))
    assert found["kpi"] == expected["kpi"]
    best = found["support"][0]
    assert (best["index"], round(best["cosine"], 4), best["snippet"]) == (0, 0.9705, "a")
    assert found["gate"] is None
    contested = called("score_retrieval", {**arguments, "contradiction": 0.9}).structured_content
    assert (contested["verdict"], contested["contradiction_assessed"]) == ("ESCALATE", True)


def test_an_empty_retrieval_abstains() -> None:
    """No passages are a result, not an error."""
    found = called("score_retrieval", {"query_embedding": QUERY, "passage_embeddings": []})
    assert found.structured_content["verdict"] == "ABSTAIN"
    assert found.structured_content["reason_code"] == "no_passages"


@pytest.mark.needs_extra("demo")
def test_texts_are_scored_on_this_machine() -> None:
    """Without vectors the small static model embeds; passages about the question ground better."""
    query = "How do bees survive the winter?"
    near = ["In winter the bees form a cluster around the queen.", "Bees need honey to survive the winter."]
    far = ["The central bank sets the interest rate.", "Inflation rose in the second quarter."]
    on, off = (
        called("score_texts", {"query": query, "passages": texts}).structured_content for texts in (near, far)
    )
    assert on["topical_grounding"] > 80 > 20 > off["topical_grounding"]
    assert off["verdict"] == "ABSTAIN"
    assert "--policy" in on["warnings"][-1]


# Refusals


@pytest.mark.parametrize(
    ("name", "changes", "sentence"),
    [
        (
            "audit_scores",
            {"scores": [50.0] * 40},
            "`scores` must be fractions in [0, 1]; got 50.0. They look",
        ),
        ("audit_scores", {"threshold": 1.5}, "`threshold` must be"),
        ("audit_scores", {"num_bins": 0}, "`num_bins` must be an integer of at least 1; got 0."),
        ("audit_scores", {"scores": []}, "`scores` must hold at least one score; got none."),
        ("audit_scores", {"labels": [1]}, "`labels` must have one entry for each of the 40 rows of `scores`"),
        ("fit_conformal_gate", {"labels": [0] * 40}, "`labels` must hold both classes; got 40 rows, all 0."),
        ("fit_conformal_gate", {"labels": [2] * 40}, "`labels` must be 0 or 1 (or booleans); got 2."),
        ("fit_conformal_gate", {"labels": ["no"] * 40}, "`labels` must be 0 or 1 (or booleans); got 'no'."),
        ("fit_conformal_gate", {"scores": ["0.5"] * 40}, "`scores` must hold real numbers; got"),
        ("fit_conformal_gate", {"scores": [None] * 40}, "`scores` must hold real numbers; got"),
        ("fit_conformal_gate", {"scores": 0.5}, "`scores` must be a valid list; got 0.5."),
        ("fit_conformal_gate", {"alpha": 1.0}, "`alpha` must be strictly between 0 and 1; got 1.0."),
        ("fit_conformal_gate", {"alpha": "0.1"}, "`alpha` must be a valid number; got '0.1'."),
        ("fit_conformal_gate", {"alpah": 0.1}, "`alpah` must be an argument of fit_conformal_gate;"),
        ("fit_conformal_gate", {"guarantee": "firm"}, "`guarantee` must be 'marginal' or 'pac'; got 'firm'."),
        ("fit_conformal_gate", {"negatives": {"far": 20}}, "`negatives` must name kinds among"),
        ("apply_conformal_gate", {"scores": [1.5]}, "`scores` must be fractions in [0, 1]; got 1.5."),
        ("apply_conformal_gate", {"scores": []}, "`scores` must hold at least one score; got none."),
        ("apply_conformal_gate", {"q0": "high"}, "`q0` must be a valid number; got 'high'."),
        ("evaluate_conformal_gate", {"eval_labels": [0]}, "`eval_labels` must have one entry for each of"),
        ("evaluate_conformal_gate", {"eval_scores": [9.0] * 40}, "`eval_scores` must be fractions"),
        ("find_lexical_traps", {"item_ids": ["a"]}, "`item_ids` must have one entry for each of the 40 rows"),
        ("find_lexical_traps", {"queries": [1] * 40}, "`queries` must hold strings; got int."),
        ("run_demo", {"alpha": 0.0}, "`alpha` must be strictly between 0 and 1; got 0.0."),
        ("run_demo", {"seed": -1}, "`seed` must be"),
        ("fit_risk_gate", {"target_risk": 0.0}, "`target_risk` must be strictly between 0 and 1; got 0.0."),
        ("plan_calibration", {"attempts": 0}, "`attempts` must be an integer of at least 1; got 0."),
        ("score_retrieval", {"query_embedding": [1.0]}, "`passage_embeddings` must have shape (n, 1)"),
        ("score_retrieval", {"query_embedding": ["a", "b", "c"]}, "`query_embedding` must"),
        ("score_retrieval", {"group": "x"}, "`group` must be"),
        ("score_retrieval", {"contradiction": 0.5}, "`texts` must be given with `contradiction`"),
    ],
)
def test_a_refusal_is_a_sentence_of_the_library(name: str, changes: dict[str, Any], sentence: str) -> None:
    """Wrong input is a tool error that names the argument, in our words and without a traceback."""
    assert refusal(name, {**CALLS[name], **changes}).startswith(sentence)


def test_a_missing_argument_is_named() -> None:
    """What is required and not there is said by name."""
    assert refusal("apply_conformal_gate", {"scores": [0.5], "q0": 0.5}).startswith("`q1` must be given;")


@pytest.mark.parametrize(
    ("name", "changes", "sentence"),
    [
        (
            "fit_conformal_gate",
            {"scores": [0.5] * 50_001},
            "`scores` must hold at most 50000 entries; got 50001.",
        ),
        (
            "fit_conformal_gate",
            {"labels": [0] * 50_001},
            "`labels` must hold at most 50000 entries; got 50001.",
        ),
        ("apply_conformal_gate", {"scores": [0.5] * 10_001}, "`scores` must hold at most 10000 entries;"),
        (
            "score_retrieval",
            {"passage_embeddings": [[1.0, 0.0, 0.0]] * 201},
            "`passage_embeddings` must hold at most 200 entries; got 201.",
        ),
        ("score_retrieval", {"query_embedding": [1.0] * 4097}, "`query_embedding` must hold at most 4096"),
        (
            "score_retrieval",
            {"query_embedding": [1.0] * 4096, "passage_embeddings": [[1.0] * 4096] * 100},
            "`passage_embeddings` must hold at most 400000 numbers in all; got 409600.",
        ),
        (
            "score_retrieval",
            {"texts": ["a" * 20_001, "b", "c"]},
            "`texts` must hold texts of at most 20000 characters; got one of 20001.",
        ),
        (
            "find_lexical_traps",
            {"passages": ["a" * 20_000] * 51},
            "`passages` must hold at most 1000000 characters in all; got 1020000.",
        ),
    ],
)
def test_a_call_that_is_too_large_is_refused(name: str, changes: dict[str, Any], sentence: str) -> None:
    """Sizes are bounded before anything is computed, and the bound is said."""
    assert refusal(name, {**CALLS[name], **changes}).startswith(sentence)


@pytest.mark.needs_extra("demo")
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"query": " ", "passages": ["a"]}, "`query` and `passages` must hold words; got a blank text."),
        ({"query": "q", "passages": [1]}, "`passages` must hold strings; got int."),
        ({"query": 1, "passages": ["a"]}, "`query` must be a valid string; got 1."),
        ({"query": "q" * 20_001, "passages": ["a"]}, "`query` must hold texts of at most 20000 characters;"),
    ],
)
def test_texts_that_cannot_be_embedded_are_refused(arguments: dict[str, Any], sentence: str) -> None:
    """Blank and oversized texts do not reach the model."""
    assert refusal("score_texts", arguments).startswith(sentence)


def test_texts_without_the_model_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the extra `demo` is missing, the tool names it."""
    from rag_confidence.adapters._mcp import embedding

    embedding._model.cache_clear()
    monkeypatch.setitem(sys.modules, "wordllama", None)
    assert "rag-confidence[demo]" in refusal("score_texts", {"query": "q", "passages": ["a"]})


def test_an_error_of_ours_is_not_shown_to_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only sentences about the input leave the server; a bug leaves its name and nothing else."""
    from rag_confidence.adapters._mcp import gate_tools

    def broken(*_: Any, **__: Any) -> None:
        raise TypeError("unsupported operand in /secret/path")

    monkeypatch.setattr(gate_tools, "plan", broken)
    assert refusal("plan_calibration", {}) == "Error executing tool plan_calibration"


def test_an_unknown_tool_is_a_tool_error() -> None:
    """The client's mistake is told as one."""
    assert refusal("fit_gate", {}) == "Unknown tool: fit_gate"
