"""The line from arrays to a verdict: notes, callables, dropped rows, caps and optional parts."""

from __future__ import annotations

import json
import math
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from rag_confidence import MetricPolicy, RagConfidenceMetrics, score, score_many

D = 16
QUERY = np.eye(D)[0]


def fan(cosines: list[float], likeness: float = 0.8, seed: int = 0) -> np.ndarray:
    """Unit rows with the given cosines to QUERY that share `likeness` of the rest."""
    own = np.random.default_rng(seed).standard_normal((len(cosines), D))
    own[:, :2] = 0.0
    own /= np.linalg.norm(own, axis=1, keepdims=True)
    c = np.array(cosines)[:, None]
    aside = math.sqrt(likeness) * np.eye(D)[1] + math.sqrt(1 - likeness) * own
    return np.asarray(c * QUERY + np.sqrt(1 - c**2) * aside)


GOOD = fan([0.86, 0.80, 0.78, 0.76, 0.75])
SQUARE = np.array([[0.8, 0.6, 0], [0.8, 0, 0.6], [0.8, -0.6, 0], [0.8, 0, -0.6]])
TEXTS = ["alpha", "beta", "gamma", "delta", "epsilon"]


def differing(a: RagConfidenceMetrics, b: RagConfidenceMetrics, tolerance: float = 1e-9) -> set[str]:
    """Keys under which two records differ by more than rounding."""
    first, second = a.to_dict(), b.to_dict()
    near = {
        key
        for key in first
        if type(first[key]) is float
        and type(second[key]) is float
        and math.isclose(first[key], second[key], rel_tol=tolerance, abs_tol=tolerance)
    }
    return {key for key in first if first[key] != second[key]} - near


# --- notes


def test_a_clean_retrieval_has_no_notes() -> None:
    """Warnings are for what was capped, dropped or not assessed."""
    assert score(QUERY, GOOD).warnings == ()
    assert score(QUERY, GOOD, k_requested=5).warnings == ()


def test_a_shortfall_is_noted() -> None:
    """k returned below k requested is reported in numbers and in words."""
    m = score(QUERY, GOOD, k_requested=8)
    assert m.warnings == ("5 passages returned of 8 requested",)
    assert (m.to_dict()["k_requested"], m.to_dict()["k_returned"]) == (8, 5)
    assert score(QUERY, [], k_requested=8).warnings == ("0 passages returned of 8 requested",)


def test_lexical_vectors_are_noted() -> None:
    """What a lexical backend cannot assess is said."""
    (note,) = score(QUERY, GOOD, embedding_backend="lexical").warnings
    assert "grounding not assessed" in note


def test_notes_stay_with_their_query() -> None:
    """In a batch a note belongs to one retrieval."""
    rows = np.vstack([GOOD, np.zeros(D)])
    batch = score_many([QUERY] * 3, [GOOD, rows, GOOD[:2]], invalid_rows="drop", k_requested=[5, None, 4])
    assert [len(m.warnings) for m in batch] == [0, 1, 1]
    assert "1 of 6 passages dropped" in batch[1].warnings[0]


# --- dropped rows


def test_places_are_those_of_the_list_as_served() -> None:
    """Support indices, snippets and contradiction refer to the list that was handed in."""
    rows = np.insert(GOOD, [0, 2], np.zeros(D), axis=0)
    texts = ["bad", "alpha", "beta", "worse", "gamma", "delta", "epsilon"]
    seen: list[list[str]] = []
    m = score(
        QUERY,
        rows,
        texts=texts,
        contradiction=lambda t: seen.append(list(t)) or 0.0,
        invalid_rows="drop",
    )
    assert [(s.index, s.snippet) for s in m.support] == [(1, "alpha"), (2, "beta"), (4, "gamma")]
    assert seen == [TEXTS]
    assert m.kpi == score(QUERY, GOOD).kpi


def test_dropped_rows_stay_in_the_candidates() -> None:
    """Candidates follow the list as served, and the rows that stay are compared in their places."""
    rows = np.insert(GOOD, 2, np.full(D, math.nan), axis=0)
    cosines = np.insert(GOOD @ QUERY, 2, 0.77)
    m = score(QUERY, rows, candidates=[*cosines, *[0.1] * 20], invalid_rows="drop")
    assert m.to_dict()["signals.head_tail_gap"] == pytest.approx(np.mean([0.86, 0.80, 0.78]) - 0.1)


def test_all_rows_dropped() -> None:
    """Nothing valid is nothing found; the counts and the reason say that rows came and went."""
    m = score(QUERY, np.zeros((3, D)), texts=TEXTS[:3], invalid_rows="drop")
    record = m.to_dict()
    assert (m.verdict, m.reason_code, m.support) == ("ABSTAIN", "no_passages", ())
    assert (record["k_returned"], record["evidence.n_dropped_rows"], record["effective_k"]) == (3, 3, 0)
    assert any("3 of 3 passages dropped" in note for note in m.warnings)


def test_the_reason_is_true_when_all_rows_were_dropped() -> None:
    """Three invalid passages are not "no passages returned"."""
    m = score(QUERY, np.zeros((3, D)), invalid_rows="drop")
    assert "returned no passages" not in m.verdict_reason


# --- callables


def test_callables_are_not_called_without_passages() -> None:
    """Nothing retrieved, or a question without a direction, has no KPI and no texts to judge."""
    calls: list[Any] = []
    options: dict[str, Any] = {
        "calibrator": lambda kpi: calls.append(kpi) or 0.9,
        "contradiction": lambda texts: calls.append(texts) or 0.9,
    }
    for query, rows, texts in ((QUERY, [], []), (np.zeros(D), GOOD, TEXTS)):
        m = score(query, rows, texts=texts, **options)
        assert m.verdict == "ABSTAIN"
        assert m.p_sufficient is None
        assert not m.to_dict()["contradiction_assessed"]
    assert calls == []


def test_callables_are_called_once_a_query() -> None:
    """Each sees its own query, in order; the texts come as a list that it may change."""
    kpis: list[float] = []

    def contradiction(texts: Any) -> float:
        texts.clear()
        return 0.0

    texts = [list(TEXTS), list(TEXTS[:2])]
    batch = score_many(
        [QUERY, QUERY],
        [GOOD, GOOD[:2]],
        texts=texts,
        calibrator=lambda kpi: kpis.append(kpi) or kpi / 2,
        contradiction=contradiction,
    )
    assert kpis == batch.kpi.tolist()
    assert batch.p_sufficient.tolist() == [kpi / 2 for kpi in kpis]
    assert texts == [TEXTS, TEXTS[:2]]
    assert batch[0].support[0].snippet == "alpha"


def test_errors_of_a_callable_are_its_own() -> None:
    """What a user's function raises reaches the user."""

    def broken(_: Any) -> float:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        score(QUERY, GOOD, calibrator=broken)
    with pytest.raises(KeyError, match="mine"):
        score(QUERY, GOOD, texts=TEXTS, contradiction=broken)


@pytest.mark.parametrize("p", [0.0, 0.9, 1.0])
def test_a_calibrator_changes_no_verdict(p: float) -> None:
    """A probability is reported beside the KPI and moves no word, on topic or off."""
    for rows in (GOOD, fan([0.1, 0.05, 0.0])):
        assert differing(score(QUERY, rows, calibrator=lambda _: p), score(QUERY, rows)) == {"p_sufficient"}


# --- candidates


def test_candidates_change_the_spread_alone() -> None:
    """Cosines beyond the served list sharpen three signals, and no driver."""
    m = score(QUERY, GOOD, candidates=[*(GOOD @ QUERY), *np.linspace(0.7, 0.1, 20)])
    spread = {"signals.std_top10_cosine", "signals.std_top20_cosine", "signals.head_tail_gap"}
    assert differing(m, score(QUERY, GOOD)) == spread
    assert differing(score(QUERY, GOOD, candidates=GOOD @ QUERY), score(QUERY, GOOD)) == set()


def test_a_list_cut_off_has_a_wider_spread() -> None:
    """Candidates that fall away behind the served list widen the spread of the ten best."""
    cosines = [*(GOOD @ QUERY), *[0.0] * 5]
    m = score(QUERY, GOOD, candidates=cosines)
    assert m.to_dict()["signals.std_top10_cosine"] == pytest.approx(np.std(cosines))


# --- faults of the source scorer


def test_consistency_is_continuous() -> None:
    """Four passages at mutual cosine .986 or .981 differ by what the cosine says, not by a loop."""

    def ring(mutual: float) -> RagConfidenceMetrics:
        wide = math.sqrt((1 - mutual) / 2)
        axes = np.array([[1, 1], [1, -1], [-1, -1], [-1, 1]]) * wide / math.sqrt(2)
        height = np.full((4, 1), math.sqrt(1 - wide**2))
        return score([1.0, 0.0, 0.0], np.hstack([height, axes]), loops="off")

    steps = [ring(mutual).evidence_consistency for mutual in np.linspace(0.988, 0.978, 41)]
    assert np.abs(np.diff(steps)).max() < 0.1
    assert {ring(mutual).verdict.value for mutual in (0.986, 0.981)} <= {"ANSWER", "REVIEW"}
    assert ring(0.986).reason_code == ring(0.981).reason_code


@pytest.mark.needs_extra("topology")
def test_loops_do_not_enter_a_driver() -> None:
    """A square of passages has a loop; it is evidence and moves no driver and no verdict."""
    plain, looped = (score([1.0, 0, 0], SQUARE, loops=test) for test in ("off", "ratio"))
    assert looped.to_dict()["evidence.contradiction_loops"] == 1
    assert differing(plain, looped) == {
        "evidence.contradiction_loops",
        "evidence.minor_loops",
        "evidence.contradiction_loop_life",
        "evidence.loop_ratio",
    }


@pytest.mark.parametrize("contradiction", [None, 0.9])
def test_an_off_topic_square_is_off_topic(contradiction: float | None) -> None:
    """Sources on another subject are not called conflicting, whatever a contradiction function says."""
    options: dict[str, Any] = {}
    if contradiction is not None:
        options = {"texts": ["t"] * 4, "contradiction": lambda texts: contradiction}
    square = np.hstack([np.full((4, 1), 0.1), SQUARE[:, 1:]])
    m = score([1.0, 0, 0], square, **options)
    assert (m.verdict, m.reason_code) == ("ABSTAIN", "off_topic")


def test_near_duplicates_are_not_scattered() -> None:
    """Rewordings at a mutual cosine above .995 are one passage, and those just below hold together."""
    rng = np.random.default_rng(5)
    for noise, distinct in ((1e-3, 1), (0.2, 6)):
        rows = np.ones(D) + noise * rng.standard_normal((6, D))
        m = score(np.ones(D), rows)
        assert m.to_dict()["effective_k"] == distinct
        assert m.support_cohesion is None or m.support_cohesion > 99.0
        assert m.evidence_consistency > 95.0


def test_opposed_clusters_are_not_compact() -> None:
    """Two groups that share nothing have no cohesion; one group has."""
    axes = np.eye(D)
    two = np.array([axes[1] + 0.2 * axes[i] for i in (3, 4)] + [axes[2] + 0.2 * axes[i] for i in (5, 6)])
    assert score(QUERY + axes[1] + axes[2], two).support_cohesion < 1.0
    assert score(QUERY, GOOD).support_cohesion > 90.0


@pytest.mark.parametrize("noise", [1e-15, 1e-12, 1e-9])
def test_noise_on_identical_rows_moves_nothing(noise: float) -> None:
    """Six identical rows plus rounding noise keep every driver to 1e-6: nothing is min-max normalised."""
    rng = np.random.default_rng(6)
    rows = np.repeat(GOOD[:1], 6, axis=0)
    still, noisy = score(QUERY, rows), score(QUERY, rows + noise * rng.standard_normal(rows.shape))
    for name in ("topical_grounding", "answer_localization", "support_cohesion", "evidence_consistency"):
        a, b = getattr(still, name), getattr(noisy, name)
        assert (a is None and b is None) or a == pytest.approx(b, abs=1e-6), name
    assert still.kpi == pytest.approx(noisy.kpi, abs=1e-8)
    assert still.verdict == noisy.verdict


@pytest.mark.parametrize("factor", [1e-9, 1e9, 1e-150, 1e150])
def test_the_scale_of_rows_moves_nothing(factor: float) -> None:
    """Rows scaled by 1e-9 or 1e+-150, all or one, keep the record."""
    one = GOOD.copy()
    one[2] *= factor
    for rows in (GOOD * factor, one):
        assert differing(score(QUERY, rows, perturb=False), score(QUERY, GOOD, perturb=False)) == set()
    assert differing(score(QUERY * factor, GOOD, perturb=False), score(QUERY, GOOD, perturb=False)) == set()


def test_512_and_513_differ_by_the_stated_cap_alone() -> None:
    """A 513th passage, the worst of all, changes counts and adds a warning; nothing else."""
    rng = np.random.default_rng(7)
    rows = rng.standard_normal((512, D)) + 2 * QUERY
    worst = np.vstack([rows, -QUERY])
    at_cap, beyond = score(QUERY, rows), score(QUERY, worst)
    assert differing(at_cap, beyond) == {"k_returned", "warnings"}
    assert at_cap.warnings == ()
    assert beyond.warnings == ("shape measured on the 512 passages of highest cosine, of 513",)
    assert beyond.to_dict()["evidence.n_shape"] == 512


def test_ten_thousand_passages() -> None:
    """A very long list has a result."""
    rng = np.random.default_rng(8)
    rows = rng.standard_normal((10_000, 64)).astype(np.float32)
    m = score(rows[0], rows, loops="ratio")
    record = m.to_dict()
    assert (record["k_returned"], record["evidence.n_shape"]) == (10_000, 512)
    assert m.support[0].index == 0
    json.dumps(record, allow_nan=False)


@pytest.mark.parametrize("shape", ["bushy", "path"])
def test_a_tree_of_two_thousand_passages(shape: str) -> None:
    """A large tree is scored, the sampled probe included."""
    rng = np.random.default_rng(9)
    n = 2000
    rows = rng.standard_normal((n, 32))
    parents = [None, *((i - 1) // 3 if shape == "bushy" else i - 1 for i in range(1, n))]
    m = score(rows[0], rows, parents=parents)
    assert m.to_dict()["evidence.n_nodes"] == n


@pytest.mark.parametrize("d", [1, 2, 4096])
def test_any_dimension(d: int) -> None:
    """One dimension and four thousand are as good as any."""
    rng = np.random.default_rng(d)
    m = score(rng.standard_normal(d), rng.standard_normal((10, d)))
    RagConfidenceMetrics.from_dict(json.loads(json.dumps(m.to_dict(), allow_nan=False)))


def test_orthogonal_passages() -> None:
    """Passages that share nothing have no cohesion and a consistency of one half."""
    m = score(np.ones(4), np.eye(4))
    assert m.support_cohesion == 0.0
    assert m.evidence_consistency == pytest.approx(50.0)
    assert m.query_robustness == 0.0
    assert m.verdict in {"ABSTAIN", "REVIEW"}


@pytest.mark.parametrize("duplicate_cosine", [0.0, 0.5, 0.995, 1.0])
def test_identical_rows_under_any_duplicate_cosine(duplicate_cosine: float) -> None:
    """Where duplicates are not merged (1.0) they are passages like any other, and never nan."""
    for rows in (np.repeat(GOOD[:1], 4, axis=0), np.vstack([GOOD, GOOD])):
        m = score(QUERY, rows, duplicate_cosine=duplicate_cosine)
        RagConfidenceMetrics.from_dict(json.loads(json.dumps(m.to_dict(), allow_nan=False)))
    assert score(QUERY, GOOD, duplicate_cosine=0.0).to_dict()["effective_k"] == 1


# --- optional parts


LOOP_KEYS = {
    "evidence.contradiction_loops",
    "evidence.minor_loops",
    "evidence.contradiction_loop_life",
    "evidence.loop_ratio",
    "evidence.loop_p_value",
}


@pytest.fixture
def no_topology(monkeypatch: pytest.MonkeyPatch) -> None:
    """ripser and persim as if they were not installed."""
    for name in ("ripser", "persim"):
        monkeypatch.setitem(sys.modules, name, None)


@pytest.mark.usefixtures("no_topology")
@pytest.mark.parametrize("loops", ["ratio", "surrogate"])
def test_missing_loops_are_null_and_noted(loops: Any) -> None:
    """Without ripser the loops are not assessed, with one sentence on what to install."""
    m = score(QUERY, GOOD, loops=loops)
    record = m.to_dict()
    assert all(record[key] is None for key in LOOP_KEYS)
    (note,) = m.warnings
    assert "loops not assessed" in note
    assert "pip install 'rag-confidence[topology]'" in note
    assert differing(m, score(QUERY, GOOD)) == {"warnings"}


@pytest.mark.usefixtures("no_topology")
def test_nothing_else_needs_the_extra() -> None:
    """Without loops asked for nothing is missing, and nothing is said."""
    tree = [None, 0, 0, 1, 1]
    for options in ({}, {"parents": tree}, {"embedding_backend": "lexical"}):
        m = score(QUERY, GOOD, **options)
        assert not any("install" in note for note in m.warnings)


@pytest.mark.needs_extra("topology")
@pytest.mark.parametrize("loops", ["off", "ratio", "surrogate"])
@pytest.mark.parametrize("parents", [None, [None, 0, 0, 1, 1]])
def test_the_extra_changes_the_loop_keys_alone(
    loops: Any, parents: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With and without the optional packages every other key is identical."""
    full = score(QUERY, GOOD, loops=loops, parents=parents)
    for name in ("ripser", "persim"):
        monkeypatch.setitem(sys.modules, name, None)
    assert differing(full, score(QUERY, GOOD, loops=loops, parents=parents), 0.0) <= LOOP_KEYS | {"warnings"}


@pytest.mark.parametrize("n", [1, 3, 51])
def test_loops_outside_their_range_are_null_and_noted(n: int) -> None:
    """Fewer than 4 or more than 50 distinct passages have no loop test, and the record says so."""
    rows = np.random.default_rng(n).standard_normal((n, D))
    m = score(QUERY, rows, loops="ratio")
    assert all(m.to_dict()[key] is None for key in LOOP_KEYS)
    assert m.warnings == ("loops not assessed: they need 4 to 50 distinct passages",)


def test_the_seed_policy_says_when_it_skips_loops() -> None:
    """Beyond 512 passages the source's loops are not computed; that is noted, not done in silence."""
    rows = np.random.default_rng(10).standard_normal((513, 6))
    m = score(rows[0], rows, policy=MetricPolicy.seed(), perturb=False)
    assert m.to_dict()["evidence.contradiction_loops"] is None
    assert any("loops not assessed" in note for note in m.warnings)


def test_the_seed_policy_claims_no_cap_it_does_not_apply() -> None:
    """The source's barcode is of all passages; a warning that shape was cut at 512 would be untrue."""
    rows = np.random.default_rng(10).standard_normal((513, 6))
    m = score(rows[0], rows, policy=MetricPolicy.seed(), perturb=False)
    assert m.to_dict()["evidence.n_nodes"] == 514
    assert not any("shape measured on the 512" in note for note in m.warnings)


def test_a_rising_cosine_never_lowers_grounding_in_a_chain_of_near_duplicates() -> None:
    """B resembles A and C, which do not resemble each other: whoever is kept, grounding grows with B."""
    top, apart = np.arccos(0.7), np.radians(5.3) / np.sin(np.arccos(0.7))

    def at(turn: float, height: float) -> list[float]:
        return [np.sin(height) * np.cos(turn), np.sin(height) * np.sin(turn), np.cos(height)]

    far = at(2.0, np.arccos(0.1))
    found = [
        score([0.0, 0.0, 1.0], [at(-apart, top), at(0.0, np.arccos(b)), at(apart, np.arccos(0.699)), far])
        for b in (0.6995, 0.7, 0.7005)
    ]
    levels = [m.to_dict()["signals.topical_grounding"] for m in found]
    assert levels == sorted(levels)
    assert len({m.to_dict()["effective_k"] for m in found}) == 2


def test_copies_do_not_use_up_the_cap() -> None:
    """Exact duplicates change nothing but counts, also where there are more than the shape is measured on."""
    rng = np.random.default_rng(3)
    query, rows = rng.standard_normal(16), rng.standard_normal((20, 16))
    plain, many = score(query, rows).to_dict(), score(query, np.repeat(rows, 60, axis=0)).to_dict()
    assert many["effective_k"] == plain["effective_k"] == 20
    for key in ("kpi", "signals.lambda_2", "signals.head_tail_gap", "signals.mean_top3_cosine"):
        assert many[key] == pytest.approx(plain[key], abs=1e-9)


def test_a_tree_on_a_line_has_no_direction_to_turn_to() -> None:
    """With one dimension the movement is not assessed, and nothing warns."""
    record = score([1.0], [[1.0], [2.0]], parents=[None, 0]).to_dict()
    assert record["evidence.stability_move"] is None


def test_threads_share_policies_and_probes() -> None:
    """The same calls from eight threads at once give the same records."""
    rng = np.random.default_rng(5)
    query, rows = rng.standard_normal(32), rng.standard_normal((60, 12, 32))
    policy = MetricPolicy(answer_at=66)

    def record(passages: np.ndarray) -> dict[str, object]:
        return score(query, passages, policy=policy, seed=7).to_dict()

    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(record, rows))
    assert together == [record(passages) for passages in rows]
