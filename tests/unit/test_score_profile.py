"""score() with a corpus profile: one call as many, what is adopted, what is refused, what the record says."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import jsonschema
import numpy as np
import pytest
import reference as ref
import reference_contrast as slow
from made_corpus import World, unit, world
from refusals import quiet, refuse
from strategies import generator

from rag_confidence import (
    CorpusProfile,
    MetricPolicy,
    RagConfidenceMetrics,
    diagnose,
    fit_conformal_gate,
    score,
    score_many,
)
from rag_confidence.errors import CalibrationMismatch
from rag_confidence.product.record import json_schema

WORLD = world(n=80)
PROFILE = WORLD.profile
QUERY, PASSAGES = WORLD.queries[0], WORLD.passages[0]
D = 24
VALIDATOR = jsonschema.Draft202012Validator(json_schema())
AGAINST = (
    *("contrast", "saturated_contrast", "best_excess", "head_excess", "level_excess"),
    *("background_mean", "background_std", "background_tail", "typicality"),
)


def many(rows: int) -> np.ndarray:
    """Passages at random in the cone of the corpus."""
    return np.asarray(generator(rows).standard_normal((rows, D)) + 1.0)


# Query, passages and options of every kind of retrieval.
SITUATIONS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "plain": (QUERY, PASSAGES, {}),
    "one passage": (QUERY, PASSAGES[:1], {}),
    "two passages": (QUERY, PASSAGES[:2], {}),
    "five passages": (QUERY, PASSAGES[:5], {}),
    "six passages": (QUERY, PASSAGES[:6], {}),
    "no passages": (QUERY, np.zeros((0, D)), {}),
    "zero query": (np.zeros(D), PASSAGES, {}),
    "opposite query": (-QUERY, PASSAGES, {}),
    "copies": (QUERY, np.repeat(PASSAGES, 2, axis=0), {}),
    "one passage six times": (QUERY, np.repeat(PASSAGES[:1], 6, axis=0), {}),
    "near copies": (QUERY, np.vstack([PASSAGES, PASSAGES + 0.01]), {}),
    "copy of the query": (QUERY, np.vstack([QUERY, PASSAGES]), {}),
    "passages of the sample": (QUERY, WORLD.corpus[:12], {}),
    "64 passages": (QUERY, many(64), {}),
    "65 passages": (QUERY, many(65), {}),
    "600 passages": (QUERY, many(600), {}),
    "tree": (QUERY, PASSAGES, {"parents": [None, *((i - 1) // 2 for i in range(1, 10))]}),
    "candidates": (QUERY, PASSAGES, {"candidates": WORLD.cosines[0]}),
    "few candidates": (QUERY, PASSAGES[:4], {"candidates": WORLD.cosines[0][:12]}),
    "dropped": (QUERY, np.vstack([[np.full(D, np.nan)], PASSAGES]), {"invalid_rows": "drop"}),
    "all dropped": (QUERY, np.full((3, D), np.nan), {"invalid_rows": "drop"}),
    "lexical": (QUERY, PASSAGES, {"embedding_backend": "lexical"}),
    "unperturbed": (QUERY, PASSAGES, {"perturb": False}),
    "huge": (QUERY * 1e140, PASSAGES * 1e140, {}),
    "tiny": (QUERY * 1e-140, PASSAGES * 1e-140, {}),
    "float32": (QUERY.astype(np.float32), PASSAGES.astype(np.float32), {}),
    "contradiction": (QUERY, PASSAGES, {"texts": ["t"] * 10, "contradiction": lambda texts: 0.7}),
}
PER_QUERY = ("parents", "candidates", "texts", "query_text")


def in_a_batch(query: Any, passages: Any, options: dict[str, Any]) -> RagConfidenceMetrics:
    """The same retrieval as the second of three of other lengths."""
    shared = {name: value for name, value in options.items() if name not in PER_QUERY}
    own = {name: [None, options[name], None] for name in PER_QUERY if name in options}
    if "contradiction" in options:
        own["texts"] = [["t"] * 3, options["texts"], ["t"] * 10]
    lists = [WORLD.passages[1][:3], passages, WORLD.passages[2]]
    return score_many([WORLD.queries[1], query, WORLD.queries[2]], lists, **shared, **own)[1]


def assert_close(a: dict[str, Any], b: dict[str, Any]) -> None:
    """Two records that agree, numbers to rounding."""
    assert a.keys() == b.keys()
    for key, value in a.items():
        if isinstance(value, float) and b[key] is not None:
            assert value == pytest.approx(b[key], abs=1e-9, rel=1e-9), key
        else:
            assert value == b[key], key


@pytest.mark.parametrize("situation", SITUATIONS)
def test_one_call_is_a_row_of_a_batch(situation: str) -> None:
    """The record of `score` is that of `score_many`, to rounding, is valid, and comes back from JSON."""
    query, passages, options = SITUATIONS[situation]
    m = score(query, passages, profile=PROFILE, **options)
    one = m.to_dict()
    assert_close(one, in_a_batch(query, passages, {**options, "profile": PROFILE}).to_dict())
    text = json.dumps(one, allow_nan=False)
    VALIDATOR.validate(json.loads(text))
    assert RagConfidenceMetrics.from_dict(json.loads(text)).to_dict() == one
    assert m.narrate()


@pytest.mark.needs_extra("topology")
@pytest.mark.parametrize("loops", ["ratio", "surrogate"])
def test_loops_are_evidence_only(loops: Any) -> None:
    """With a profile too they change no signal and no word."""
    plain = score(QUERY, PASSAGES, profile=PROFILE).to_dict()
    looped = score(QUERY, PASSAGES, profile=PROFILE, loops=loops).to_dict()
    assert looped["evidence.contradiction_loops"] is not None
    loops_aside = {key: value for key, value in looped.items() if "loop" not in key}
    assert_close(loops_aside, {key: plain[key] for key in loops_aside})


@pytest.mark.parametrize("row", range(4))
def test_signals_and_kpi_are_what_loops_find(row: int) -> None:
    """From vectors to the KPI in plain Python."""
    query, passages = WORLD.queries[row], WORLD.passages[row]
    order = ref.distinct_passages(query, passages)
    found = slow.coherence(query, passages[order]) | slow.against(
        PROFILE.vectors.astype(float),
        query,
        passages,
        level=PROFILE.background_level,
        scale=PROFILE.background_scale,
        typical=PROFILE.typical_companionship,
    )
    record = score(query, passages, profile=PROFILE).to_dict()
    for name, value in found.items():
        assert record[f"signals.{name}"] == pytest.approx(value, abs=1e-6), name
    assert PROFILE.contrast_units is not None
    assert record["kpi"] == pytest.approx(slow.kpi(found, PROFILE.contrast_units), abs=1e-5)
    fixed = score(query, passages, profile=WORLD.bare_profile).to_dict()
    assert fixed["signals.typicality"] is None
    assert fixed["answer_localization"] != record["answer_localization"]


def test_the_kpi_rises_with_the_best_cosine() -> None:
    """A best of five passages that is turned towards the query never lowers the KPI."""
    q, best = unit(QUERY), unit(PASSAGES[0])
    aside = unit(best - (best @ q) * q)
    kpis = []
    for cosine in np.linspace(float(unit(PASSAGES[6]) @ q), 0.995, 25):
        turned = cosine * q + math.sqrt(1.0 - cosine**2) * aside
        kpis.append(score(QUERY, np.vstack([turned, PASSAGES[6:]]), profile=PROFILE).kpi)
    assert kpis == sorted(kpis)
    assert kpis[-1] > kpis[0] + 0.1


def test_candidates_say_what_else_was_found() -> None:
    """Beyond the spread they change the contrast alone: a crowd behind the served list lowers it."""
    plain = score(QUERY, PASSAGES, profile=PROFILE).to_dict()
    best = float(WORLD.cosines[0, 9])
    crowd = score(
        QUERY,
        PASSAGES,
        profile=PROFILE,
        candidates=[*WORLD.cosines[0, :10], *(best - 1e-6 * i for i in range(1, 11))],
    ).to_dict()
    changed = {key for key in plain if plain[key] != crowd[key] and key.startswith("signals.")}
    assert {"signals.contrast", "signals.saturated_contrast"} <= changed
    assert changed <= {
        *("signals.contrast", "signals.saturated_contrast", "signals.answer_localization"),
        *("signals.std_top10_cosine", "signals.std_top20_cosine", "signals.head_tail_gap"),
    }
    assert crowd["signals.contrast"] < plain["signals.contrast"]
    served = score(QUERY, PASSAGES, profile=PROFILE, candidates=WORLD.cosines[0, :10]).to_dict()
    assert_close(served, plain)


def test_without_a_profile_nothing_is_measured_against_it() -> None:
    """The signals that need one are null, and the KPI is the one that it was."""
    record = score(QUERY, PASSAGES).to_dict()
    assert all(record[f"signals.{name}"] is None for name in AGAINST)
    assert record["profile_fingerprint"] is None
    assert record["weights.answer_localization"] == 0.35


def test_the_record_says_what_counted() -> None:
    """Fingerprint of the profile, weights of the policy for it, fingerprint of the policy that was given."""
    policy = MetricPolicy(answer_at=70.0)
    record = score(QUERY, PASSAGES, profile=PROFILE, policy=policy).to_dict()
    assert record["profile_fingerprint"] == PROFILE.fingerprint
    assert record["policy_fingerprint"] == policy.fingerprint
    assert record["evidence.topical_match_cosine"] == record["signals.max_cosine"]
    used = [record[f"weights.{name}"] for name in ("answer_localization", "support_cohesion")]
    assert used == pytest.approx([0.96, 0.04])
    assert all(record[f"signals.{name}"] is not None for name in AGAINST)


def test_a_profile_of_which_nothing_is_left_is_refused() -> None:
    """Where all of the sample was served there is no background: one sentence, alone and in a batch."""
    message = "^`profile` must hold at least 20 vectors beside those that were retrieved; got one of "
    refuse(ValueError, message, lambda: score(QUERY, WORLD.corpus, profile=PROFILE))
    refuse(ValueError, message, lambda: score_many([QUERY], [WORLD.corpus], profile=PROFILE))


# --- text


TEXTS = [f"passage number {i}" for i in range(10)]


def worded() -> CorpusProfile:
    """A profile that counted words: all texts hold "common", one of them "rare"."""
    texts = ["common"] * len(WORLD.corpus)
    texts[3] = "common rare"
    return CorpusProfile.fit(WORLD.corpus, texts=texts)


def text_signals(texts: Any = None, question: Any = None, **options: Any) -> tuple[Any, Any]:
    """The two text signals, the same from `score` and from a batch."""
    given = {"texts": texts, "query_text": question, "profile": worded(), **options}
    passages = options.pop("passages", PASSAGES)
    given.pop("passages", None)
    one = score(QUERY, passages, **given).to_dict()
    row = in_a_batch(QUERY, passages, {k: v for k, v in given.items() if v is not None}).to_dict()
    found = one["signals.text_best"], one["signals.text_top3"]
    assert found == (row["signals.text_best"], row["signals.text_top3"])
    return found


def test_rare_words_of_the_question_are_looked_for() -> None:
    """In every passage, with both texts and a profile that counted words; else not assessed."""
    texts = [*TEXTS[:8], "rare indeed", "a rare and common one"]
    assert text_signals(texts, "rare common") == pytest.approx((1.0, 2 / 3))
    assert text_signals(TEXTS, "rare common") == (0.0, 0.0)
    assert text_signals(texts) == text_signals(None, "rare common") == (None, None)
    assert text_signals(texts, "rare", profile=PROFILE) == (None, None)


def test_words_of_dropped_passages_do_not_count() -> None:
    """A passage that was dropped as invalid is no evidence, whatever its text says."""
    rows = PASSAGES.copy()
    rows[4] = np.nan
    texts = [*TEXTS[:4], "rare", *TEXTS[5:]]
    assert text_signals(texts, "rare", passages=rows, invalid_rows="drop") == (0.0, 0.0)
    assert text_signals(texts, "rare")[0] == 1.0


# --- what is adopted, and what is refused


def test_the_embedder_is_that_of_the_profile() -> None:
    """Its name goes into the record unless the call gives one; another one is refused."""
    assert score(QUERY, PASSAGES, profile=PROFILE).to_dict()["embedder"] == "made-up"
    assert score(QUERY, PASSAGES, profile=PROFILE, embedder="made-up").to_dict()["embedder"] == "made-up"
    unnamed = CorpusProfile.fit(WORLD.corpus)
    assert score(QUERY, PASSAGES, profile=unnamed, embedder="other").to_dict()["embedder"] == "other"
    assert score_many([QUERY], [PASSAGES], profile=PROFILE).provenance.embedder == "made-up"


OTHERS: dict[str, tuple[type[Exception], str, dict[str, Any]]] = {
    "another name": (CalibrationMismatch, "^`embedder` must be 'made-up'", {"embedder": "other"}),
    "the seed": (ValueError, "^`profile` must be left out with", {"policy": MetricPolicy.seed()}),
    "a class": (TypeError, "^`profile` must be a CorpusProfile; got type", {"profile": CorpusProfile}),
    "a path": (TypeError, "^`profile` must be a CorpusProfile; got str", {"profile": "profile.npz"}),
    "a document": (TypeError, "^`profile` must be a CorpusProfile; got dict", {"profile": PROFILE.to_dict()}),
}


@pytest.mark.parametrize("other", OTHERS)
def test_what_does_not_go_together_is_refused(other: str) -> None:
    """By `score` and by `score_many`, naming the argument and a cure."""
    kind, pattern, options = OTHERS[other]
    options = {"profile": PROFILE, **options}
    refuse(kind, pattern, lambda: score(QUERY, PASSAGES, **options))
    refuse(kind, pattern, lambda: score_many([QUERY], [PASSAGES], **options))


def test_another_dimension_is_refused() -> None:
    """The message holds both numbers."""
    pattern = "^`profile` must have the dimension of the embeddings, 20; got a profile of dimension 24"
    refuse(CalibrationMismatch, pattern, lambda: score(QUERY[:20], PASSAGES[:, :20], profile=PROFILE))


def test_another_embedder_of_the_same_dimension_is_refused_by_row() -> None:
    """Vectors on other axes are named by their place in the batch, whatever the lengths of its lists."""
    rng = generator(7)
    topics = rng.standard_normal((10, 128))

    def drawn(n: int) -> np.ndarray:
        return np.asarray(topics[rng.integers(0, 10, n)] + 0.5 * rng.standard_normal((n, 128)))

    profile = CorpusProfile.fit(drawn(400))
    turn = np.linalg.qr(rng.standard_normal((128, 128)))[0]
    lists = [drawn(5), drawn(6), drawn(7) @ turn, drawn(6), drawn(7) @ turn]
    queries = drawn(5)
    assert score(queries[0], lists[0], profile=profile)
    message = "got passages at 2 rows, 2, 4, whose vectors lie"
    refuse(CalibrationMismatch, message, lambda: score_many(queries, lists, profile=profile))
    alone = "got passages whose vectors lie"
    refuse(CalibrationMismatch, alone, lambda: score(queries[2], lists[2], profile=profile))
    tree = [None, *[0] * 6]
    refuse(CalibrationMismatch, alone, lambda: score(queries[2], lists[2], profile=profile, parents=tree))


# --- gates


def labels_of(w: World) -> np.ndarray:
    """Half of the retrievals are sufficient: those whose best passage stands out."""
    kpi = score_many(w.queries, w.passages, profile=w.profile).kpi
    return (kpi + 0.05 * generator(1).standard_normal(len(kpi)) > np.median(kpi)).astype(int)


LABELS = labels_of(WORLD)


def gate_of(**made: Any) -> Any:
    """A gate on the KPIs of the world, scored in a given way."""
    batch = score_many(WORLD.queries, WORLD.passages, **made)
    with quiet():
        return fit_conformal_gate(batch.kpi, LABELS, alpha=0.2, provenance=batch.provenance)


def test_a_gate_decides_alike_alone_and_in_a_batch() -> None:
    """On the KPI with the profile that it was fitted with."""
    gate = gate_of(profile=PROFILE)
    batch = score_many(WORLD.queries, WORLD.passages, profile=PROFILE, gate=gate)
    assert {*batch.decision} >= {"accept", "reject"}
    for row in range(20):
        one = score(WORLD.queries[row], WORLD.passages[row], profile=PROFILE, gate=gate).to_dict()
        assert_close(one, batch[row].to_dict())
        assert one["score_used"] == "kpi"
        assert one["decision"] == gate.predict_one(one["kpi"]).decision.name


@pytest.mark.parametrize(
    ("made", "used"),
    [
        ({}, {"profile": PROFILE}),
        ({"profile": PROFILE}, {}),
        ({"profile": WORLD.bare_profile}, {"profile": PROFILE}),
        ({"embedder": "made-up"}, {"profile": PROFILE}),
    ],
)
def test_a_gate_of_another_profile_is_refused(made: dict[str, Any], used: dict[str, Any]) -> None:
    """A KPI with this profile is another score than one with another profile, or without."""
    refuse(
        CalibrationMismatch,
        r"^`gate` must be fitted on KPIs .*; got one for the profile .* Pass the same profile=",
        lambda: score(QUERY, PASSAGES, gate=gate_of(**made), **used),
    )


def test_provenance_names_the_profile() -> None:
    """So that what is fitted on these KPIs knows it."""
    made = score_many(WORLD.queries, WORLD.passages, profile=PROFILE).provenance
    assert (made.profile, made.policy) == (PROFILE.fingerprint, MetricPolicy().fingerprint)
    assert score_many(WORLD.queries, WORLD.passages).provenance.profile is None


# --- words


def test_the_card_says_nothing_that_is_wrong_with_a_profile() -> None:
    """No advice to fit the grounding gate, and no words for what the drivers do not measure here."""
    for m in score_many(WORLD.queries, WORLD.passages, profile=PROFILE)[:20]:
        card = m.narrate()
        assert "fit_grounding" not in card
        assert "the support" not in card.split("support:")[0].replace("support cohesion", "")
        assert "(not counted)" in card
    assert "fit_grounding" in score(QUERY, PASSAGES).narrate()


def test_the_weakest_signal_is_one_that_counts() -> None:
    """Never a driver without weight; the reason of a doubtful retrieval names what made it doubtful."""
    for m in score_many(WORLD.queries, WORLD.passages, profile=PROFILE):
        assert m.primary_risk in {"topical_grounding", "answer_localization"}
        if m.reason_code in {"ambiguous", "weak"}:
            weaker = m.topical_grounding is not None and m.topical_grounding < m.answer_localization
            assert m.primary_risk == ("topical_grounding" if weaker else "answer_localization")


def test_a_log_with_a_profile_can_be_diagnosed() -> None:
    """From the batch and from its records, with labels and without."""
    batch = score_many(WORLD.queries, WORLD.passages, profile=PROFILE)
    for metrics in (batch, batch.to_dicts()):
        assert str(diagnose(metrics))
        assert str(diagnose(metrics, LABELS))


def test_a_profile_from_a_file_scores_alike(tmp_path: Any) -> None:
    """To the last bit."""
    checks: list[Callable[[], CorpusProfile]] = []
    for name in ("profile.json", "profile.npz"):
        PROFILE.save(tmp_path / name)
        checks.append(lambda name=name: CorpusProfile.load(tmp_path / name))
    for load in checks:
        assert (
            score(QUERY, PASSAGES, profile=load()).to_dict()
            == score(QUERY, PASSAGES, profile=PROFILE).to_dict()
        )


# --- lists with junk, copies and rounded cosines


def test_junk_at_the_end_lowers_no_reference() -> None:
    """Passages worse than the background are held to be the background: they change nothing a second time."""
    junk = generator(5).standard_normal((30, QUERY.size)) - 3.0 * QUERY / np.linalg.norm(QUERY)
    base = score(QUERY, np.vstack([PASSAGES, junk[:10]]), profile=PROFILE)
    more = score(QUERY, np.vstack([PASSAGES, junk]), profile=PROFILE)
    assert more.to_dict()["signals.contrast"] == pytest.approx(base.to_dict()["signals.contrast"], abs=1e-9)


def test_copies_of_a_passage_count_once_in_the_reference() -> None:
    """A list served twice has the contrast of the list."""
    once, twice = (
        score(QUERY, rows, profile=PROFILE).to_dict() for rows in (PASSAGES, np.tile(PASSAGES, (2, 1)))
    )
    assert twice["signals.contrast"] == pytest.approx(once["signals.contrast"], abs=1e-9)


@pytest.mark.parametrize("digits", [3, 4, 5])
def test_rounded_candidates_are_recognised(digits: int) -> None:
    """Cosines written with few digits leave out of the background what exact ones do, to their precision."""
    exact = WORLD.cosines[0]
    records = [
        score(QUERY, PASSAGES, profile=PROFILE, candidates=values).to_dict()
        for values in (exact, np.round(exact, digits))
    ]
    assert records[1]["signals.background_tail"] == pytest.approx(
        records[0]["signals.background_tail"], abs=10.0 * 10.0**-digits
    )
    assert records[1]["kpi"] == pytest.approx(records[0]["kpi"], abs=200.0 * 10.0**-digits)


def test_a_gate_of_the_policy_is_said_not_to_be_read() -> None:
    """A fitted grounding gate has no place beside a profile; the record says so."""
    fitted = MetricPolicy(grounding_center=0.3)
    told = "the policy's own grounding gate is not read with a profile"
    assert told in score(QUERY, PASSAGES, profile=PROFILE, policy=fitted).warnings
    assert told not in score(QUERY, PASSAGES, profile=PROFILE).warnings
    assert told not in score(QUERY, PASSAGES, policy=fitted).warnings
