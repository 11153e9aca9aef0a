"""Sentences for people: actions, reasons, the card, and the explanation of the KPI."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import Retrieval, retrievals

from rag_confidence import MetricPolicy, RagConfidenceMetrics, ReasonCode, Signal, Verdict, score
from rag_confidence.product.narrative import _MEANINGS, _PROFILED_MEANINGS, ACTIONS, reason
from rag_confidence.product.verdict import CODES, SIGNAL_BANDS

QUERY = np.eye(4)[0]
GOOD = np.array([[0.9, 0.4, 0.1, 0], [0.85, 0.5, 0, 0.1], [0.8, 0.5, 0.1, 0.1]])
FAR = np.array([[0.1, 1, 0, 0], [0.05, 0, 1, 0], [-0.1, 0.2, 0.2, 1]])
POLICY = MetricPolicy()
SHOWN: dict[str, float] = {
    "kpi": 41.3,
    "contradiction": 0.75,
    "loop_life": 0.2,
    **dict.fromkeys(map(str, Signal), 41.5),
}


def fit_to_show(sentence: str) -> bool:
    """One sentence in plain words: no placeholder, no code, no null."""
    return (
        re.fullmatch(r"[A-Z][^.!?\n]*(?:\.\d+[^.!?\n]*)*\.", sentence) is not None
        and not re.search(r"[{}_`]|None|nan|inf\b|null|KPI", sentence)
        and len(sentence) < 220
    )


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("risk", Signal)
def test_every_reason_is_a_sentence_for_a_user(code: ReasonCode, risk: Signal) -> None:
    """For every code and every weakest signal."""
    sentence = reason(code, SHOWN, risk.value, POLICY)
    assert fit_to_show(sentence), sentence


def test_a_loop_is_called_a_loop() -> None:
    """Where no contradiction function spoke, the reason rests on the loop."""
    sentence = reason(ReasonCode.CONFLICTING, SHOWN | {"contradiction": 0.1}, "none", MetricPolicy.seed())
    assert fit_to_show(sentence), sentence
    assert re.search(r"loop of .*0\.20", sentence)


@pytest.mark.parametrize(
    ("code", "parts"),
    [
        ("off_topic", ["grounding 41.5", "below 50"]),
        ("conflicting", ["0.75", "0.5"]),
        ("weak", ["41.3", "45", "query robustness"]),
        ("ambiguous", ["41.3", "65", "query robustness"]),
        ("driver_floor", ["41.3", "query robustness 41.5", "floor of 60"]),
        ("healthy", ["41.3", "65"]),
        ("shape_only", ["41.3", "cannot be assessed"]),
    ],
)
def test_reasons_name_the_margin(code: str, parts: list[str]) -> None:
    """The value that decided stands beside its threshold."""
    sentence = reason(ReasonCode(code), SHOWN, "query_robustness", POLICY)
    assert all(part in sentence for part in parts), sentence


def test_the_words_of_the_issue_are_used() -> None:
    """Nothing, weak, ambiguous, conflicting: a user learns which it was."""
    words = {"no_passages": "Nothing", "weak": "weak", "ambiguous": "ambiguous", "conflicting": "conflict"}
    for code, word in words.items():
        assert word in reason(ReasonCode(code), SHOWN, "query_robustness", POLICY)


@given(
    retrievals(),
    st.sampled_from([MetricPolicy(), MetricPolicy.seed(), MetricPolicy(answer_at=5, review_at=1)]),
)
def test_reasons_of_real_results_are_sentences(r: Retrieval, policy: MetricPolicy) -> None:
    """Whatever is scored."""
    m = score(r.query, r.passages, policy=policy, perturb=False)
    assert fit_to_show(m.verdict_reason), m.verdict_reason


def test_every_verdict_has_an_action() -> None:
    """A short phrase each, all different."""
    assert set(ACTIONS) == set(Verdict)
    assert len(set(ACTIONS.values())) == 4


def test_every_band_has_a_meaning() -> None:
    """The card explains each word that it prints."""
    assert set(_MEANINGS) == {word for words in SIGNAL_BANDS.values() for word in words}


WITH_PROFILE = score(QUERY, GOOD).to_dict() | {
    "profile_fingerprint": "abc",
    "answer_localization_band": "fuzzy",
    "weights.evidence_consistency": 0.0,
}
WITH_MODEL: dict[str, Any] = {
    "model_fingerprint": "abc",
    "p_sufficient": 0.25,
    "model_contributions": {"intercept": -9.0, "signals.a": 0.5, "signals.b": -0.75},
    "model_out_of_range": [],
}


def test_with_a_profile_drivers_are_described_as_what_they_are_there() -> None:
    """Localization and cohesion have other meanings; drivers without weight are said not to count."""
    changed = {"sharp", "fuzzy", "diffuse", "compact", "split", "scattered"}
    changed |= {"on-topic", "loosely-related", "off-topic"}
    assert set(_PROFILED_MEANINGS) == changed
    assert all(_PROFILED_MEANINGS[word] != _MEANINGS[word] for word in changed)
    card = RagConfidenceMetrics.from_dict(WITH_PROFILE).narrate()
    assert _PROFILED_MEANINGS["fuzzy"] in card
    assert _MEANINGS["fuzzy"] not in card
    rows = {line.strip()[:12]: line for line in card.splitlines()}
    assert rows["evidence con"].endswith("(not counted)")
    assert not rows["query robust"].endswith("(not counted)")
    assert "fit_grounding" not in card
    assert (
        "fit_grounding"
        in RagConfidenceMetrics.from_dict(WITH_PROFILE | {"profile_fingerprint": None}).narrate()
    )


@pytest.mark.parametrize(
    ("changed", "lines"),
    [
        ({}, ["  model: P(sufficient) 0.250; log-odds from b -0.75, a +0.50"]),
        (
            {"model_contributions": {"intercept": 1.0}},
            ["  model: P(sufficient) 0.250; log-odds from no signal"],
        ),
        (
            {"model_contributions": {f"signals.{name}": at / 8 for at, name in enumerate("abcdef")}},
            ["  model: P(sufficient) 0.250; log-odds from f +0.62, e +0.50, d +0.38, c +0.25"],
        ),
        (
            {"model_out_of_range": ["signals.a", "signals.b"]},
            [
                "  model: P(sufficient) 0.250; log-odds from b -0.75, a +0.50",
                "  model: outside what it was trained on: a, b",
            ],
        ),
        ({"model_contributions": None, "model_out_of_range": None, "p_sufficient": None}, []),
    ],
)
def test_the_card_shows_what_a_model_rests_on(changed: dict[str, Any], lines: list[str]) -> None:
    """The four largest parts beside the intercept, largest first, and what is out of range."""
    m = RagConfidenceMetrics.from_dict(WITH_PROFILE | WITH_MODEL | changed)
    assert [line for line in m.narrate().splitlines() if "model:" in line] == lines


@pytest.mark.parametrize(("cut", "value"), [(0.5004, 0.50049), (0.5, 0.5), (0.99951, 0.99955), (1e-4, 1e-4)])
def test_a_contradiction_that_reaches_its_threshold_is_shown_to(cut: float, value: float) -> None:
    """The printed score is not below the printed threshold."""
    m = score(
        QUERY, GOOD, ["a"] * 3, contradiction=lambda t: value, policy=MetricPolicy(contradiction_at=cut)
    )
    assert m.reason_code == "conflicting"
    printed = re.findall(r"score (\S+) reaches (\S+)\.$", m.verdict_reason)
    assert float(printed[0][0]) >= float(printed[0][1])


# --- the card


def card(*args: Any, **options: Any) -> str:
    """narrate() of one call."""
    return score(*args, **options).narrate()


def lines_with(text: str, word: str) -> list[str]:
    """Lines of a card that hold a word."""
    return [line for line in text.splitlines() if word in line]


def test_the_card_shows_all_numbers_of_the_record() -> None:
    """Verdict, action, reason, KPI and five signals with their bands."""
    m = score(QUERY, GOOD, query_text="What is it?")
    record, text = m.to_dict(), m.narrate()
    assert text.startswith("Question: What is it?\nANSWER: serve the answer\n")
    assert record["verdict_reason"] in text
    assert f"{record['retrieval_confidence']:.1f}  {record['retrieval_confidence_band']}" in text
    for name in map(str, Signal):
        (line,) = lines_with(text, name.replace("_", " ") + " ")[:1]
        assert f"{record[name]:.1f}" in line
        assert record[f"{name}_band"] in line
    assert "Question" not in score(QUERY, GOOD).narrate()


@pytest.mark.parametrize(
    ("options", "missing"),
    [
        ({}, []),
        ({"passage_embeddings": GOOD[:1]}, ["support cohesion", "query robustness"]),
        ({"embedding_backend": "lexical"}, ["topical grounding"]),
        ({"policy": MetricPolicy.seed(), "perturb": False}, ["query robustness"]),
        ({"passage_embeddings": []}, [str(s).replace("_", " ") for s in Signal]),
    ],
)
def test_the_card_says_what_was_not_assessed(options: dict[str, Any], missing: list[str]) -> None:
    """A line for each, and never a number in its place."""
    text = card(**({"query_embedding": QUERY, "passage_embeddings": GOOD} | options))
    rows = [line.strip() for line in text.splitlines() if line.endswith("-  not assessed")]
    assert [re.sub(r"\s+-.*", "", row) for row in rows] == missing
    assert "contradiction not assessed" in text


def test_the_card_carries_the_warnings() -> None:
    """Each warning is a note."""
    m = score(QUERY, GOOD, k_requested=9, embedding_backend="lexical")
    assert len(m.warnings) == 2
    for note in m.warnings:
        assert f"note: {note}" in m.narrate()


@pytest.mark.parametrize("value", [0.0, 0.25, 0.4999, 0.49999, 0.5, 0.995, 1.0])
def test_the_contradiction_score_crosses_no_cut_on_the_card(value: float) -> None:
    """A score below the threshold of .5 is not printed as 0.50."""
    text = card(QUERY, GOOD, ["a"] * 3, contradiction=lambda texts: value)
    assert "not assessed" not in text
    (line,) = lines_with(text, "contradiction score: ")
    printed = float(line.split(":")[1])
    assert printed == pytest.approx(value, abs=0.01)
    assert (printed >= 0.5) == (value >= 0.5)


def test_snippets_are_shown_on_request() -> None:
    """Support with texts, without texts, and none at all."""
    m = score(QUERY, GOOD, ["first", "second", "third"])
    assert "first" not in m.narrate()
    assert re.search(r"support:\n +\[0\] \+0\.909  first\n", m.narrate(snippets=True))
    assert "(no text given)" in score(QUERY, GOOD).narrate(snippets=True)
    assert "support:" not in score(QUERY, []).narrate(snippets=True)


def test_a_record_can_be_narrated_later() -> None:
    """The card needs only the record."""
    m = score(QUERY, GOOD)
    assert RagConfidenceMetrics.from_dict(m.to_dict()).narrate() == m.narrate()


# --- explain


@given(retrievals(), st.sampled_from(["precomputed", "lexical"]))
def test_lost_points_are_exact_one_at_a_time(r: Retrieval, backend: Any) -> None:
    """Raising one signal to 100, the rest unchanged, wins exactly the points it is said to cost."""
    m = score(r.query, r.passages, perturb=False, embedding_backend=backend)
    found = {c.signal: c for c in m.explain()}
    assert set(found) == set(map(str, Signal))
    gate = 1.0 if m.topical_grounding is None else m.topical_grounding / 100
    shape = sum(c.weight * (c.value or 0.0) for c in found.values() if c.signal != "topical_grounding")
    assert m.retrieval_confidence == pytest.approx(gate * shape, abs=1e-9)
    for name, c in found.items():
        assert c.value == getattr(m, name)
        if c.value is None:
            assert c.points_lost == 0.0
        elif name == "topical_grounding":
            assert (c.weight, c.points_lost) == (1.0, pytest.approx(shape - gate * shape, abs=1e-9))
        else:
            raised = gate * (shape + c.weight * (100.0 - c.value))
            assert c.points_lost == pytest.approx(raised - gate * shape, abs=1e-9)
    lost = [c.points_lost for c in m.explain()]
    assert lost == sorted(lost, reverse=True)


def test_a_perfect_gate_makes_the_points_add_up() -> None:
    """With grounding at 100 the lost points and the KPI make 100."""
    m = score(QUERY, GOOD, policy=MetricPolicy(grounding_center=-1, grounding_scale=0.01))
    assert sum(c.points_lost for c in m.explain()) + m.retrieval_confidence == pytest.approx(100.0)


def test_without_passages_nothing_is_lost() -> None:
    """No signal, no band, no weight, no points."""
    for m in (score(QUERY, []), score(np.zeros(4), GOOD)):
        for c in m.explain():
            assert (c.value, c.band, c.points_lost) == (None, None, 0.0)


def test_a_closed_gate_costs_the_whole_shape() -> None:
    """Off topic, grounding is the costliest signal."""
    assert score(QUERY, FAR).explain()[0].signal == "topical_grounding"
