"""What must hold for every retrieval, through the public functions alone."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import reference as ref
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import SMALL_DIMENSIONS, Array, Retrieval, generic_retrievals, retrievals, rotations, scales

from rag_confidence import MetricPolicy, RagConfidenceMetrics, score, score_many

SIGNALS = (
    "topical_grounding",
    "answer_localization",
    "support_cohesion",
    "evidence_consistency",
    "query_robustness",
)
SHAPE = SIGNALS[1:]
BY_RANK = {
    f"signals.{name}"
    for name in (
        *("head_coherence", "tail_coherence", "companionship"),
        *("best_pair", "best_nearest", "best_partial"),
    )
}
"""What is read off single ranks: of passages tied in cosine, rounding says which comes first."""
POLICY = MetricPolicy()
WEIGHTS = {name: getattr(POLICY.weights, name) for name in SHAPE}
FLOORS = {name: getattr(POLICY.floors, name) for name in SHAPE}


def assess(r: Retrieval, **options: Any) -> RagConfidenceMetrics:
    """`score` without the sampled probe, unless it is asked for."""
    return score(r.query, r.passages, **{"perturb": False, **options})


def numbers(m: RagConfidenceMetrics) -> dict[str, float]:
    """All assessed numbers by their JSON key, except those that are rounded for display."""
    record = {k: v for k, v in m.to_dict().items() if "." in k or k in {"kpi", "k_returned", "effective_k"}}
    return {k: float(v) for k, v in record.items() if isinstance(v, int | float)}


def unrounded(m: RagConfidenceMetrics) -> dict[str, float | None]:
    """KPI and signals, which are never rounded."""
    return {k: v for k, v in m.to_dict().items() if k == "kpi" or k.startswith("signals.")}


def assert_same(
    a: RagConfidenceMetrics, b: RagConfidenceMetrics, tolerance: float, *, ranked: bool = True
) -> None:
    """The same unrounded numbers to a tolerance; null in the same places."""
    first, second = unrounded(a), unrounded(b)
    assert first.keys() == second.keys()
    for key in first.keys() - (set() if ranked else BY_RANK):
        value = first[key]
        assert (value is None) == (second[key] is None), key
        assert value is None or value == pytest.approx(second[key], abs=tolerance, rel=tolerance), key


def near_a_cut(m: RagConfidenceMetrics, tolerance: float = 1e-9) -> bool:
    """True if rounding could change a word."""
    cuts = {POLICY.answer_at, POLICY.review_at, POLICY.grounding_min, *FLOORS.values()}
    record = unrounded(m)
    values = [100 * v for v in (record["kpi"], *(record[f"signals.{s}"] for s in SIGNALS)) if v is not None]
    return any(abs(v - cut) < 100 * tolerance for v in values for cut in cuts)


# --- contract of every result


def check_record(m: RagConfidenceMetrics) -> None:
    """The record is strict JSON, and `from_dict`, which checks every range, gives it back."""
    text = json.dumps(m.to_dict(), allow_nan=False)
    assert RagConfidenceMetrics.from_dict(json.loads(text)).to_dict() == m.to_dict()


@given(retrievals(), st.booleans(), st.sampled_from([POLICY, MetricPolicy.seed()]))
def test_every_number_is_in_range_and_finite(r: Retrieval, perturb: bool, policy: MetricPolicy) -> None:
    """Any retrieval gives strict JSON with the KPI and all signals in [0, 1] and their display in 0..100."""
    m = assess(r, perturb=perturb, policy=policy)
    check_record(m)
    assert 0.0 <= m.kpi <= 1.0
    for name in SIGNALS:
        value, shown = m.to_dict()[f"signals.{name}"], getattr(m, name)
        assert (value is None) == (shown is None), name
        assert value is None or (0.0 <= value <= 1.0 and 0.0 <= shown <= 100.0), name
    assert m.verdict in {"ANSWER", "REVIEW", "ABSTAIN", "ESCALATE"}
    assert m.primary_risk in {*SIGNALS, "none"}
    assert m.verdict_reason
    assert m.narrate()


@given(st.data(), retrievals())
def test_extreme_scales_and_zero_queries_are_defined(data: st.DataObject, r: Retrieval) -> None:
    """Rows from 1e-150 to 1e150 are scored like any other; a zero query abstains without an exception."""
    factor = data.draw(scales(len(r.passages) + 1))
    scaled = r.passages * factor[1:, None]
    json.dumps(score(r.query * factor[0], scaled).to_dict(), allow_nan=False)
    m = score(np.zeros_like(r.query), scaled)
    assert (m.verdict, m.reason_code) == ("ABSTAIN", "degenerate_query")
    json.dumps(m.to_dict(), allow_nan=False)


@pytest.mark.parametrize("k", [2, 3, 7, 10, 20, 25, 40])
def test_tied_cosines_stay_in_range(k: int) -> None:
    """Passages at one and the same cosine, whatever it is: gaps and spreads are 0, never below."""
    query = np.eye(k + 1)[0]
    for height in np.random.default_rng(k).random(40):
        passages = np.column_stack([np.full(k, height), np.eye(k)])
        check_record(score(query, passages, perturb=False))


@pytest.mark.parametrize("policy", [POLICY, MetricPolicy.seed()])
def test_antipodes_stay_in_range(policy: MetricPolicy) -> None:
    """Opposite passages, flat or on a tree, reach the largest energy and not more."""
    for row in np.random.default_rng(3).standard_normal((60, 3)):
        for parents in (None, [None, 0]):
            pair = np.array([row, -row])
            check_record(score(np.ones(3), pair, parents=parents, policy=policy, perturb=False))


def test_pairs_stay_in_range() -> None:
    """Two passages at any angle: lambda_2 is at its largest value 2, and not above by rounding."""
    rng = np.random.default_rng(0)
    batch = score_many(rng.random((1500, 3)), rng.random((1500, 2, 3)), perturb=False)
    for m in batch:
        check_record(m)


@pytest.mark.parametrize("d", [1, 2, 384])
def test_no_passages_abstain(d: int) -> None:
    """An empty list of passages is an answer, not an error."""
    m = score(np.ones(d), np.zeros((0, d)))
    assert (m.verdict, m.reason_code) == ("ABSTAIN", "no_passages")
    json.dumps(m.to_dict(), allow_nan=False)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8, np.int64, np.uint8])
def test_narrow_and_integer_inputs(dtype: type) -> None:
    """Small integers mean the same in every dtype, as lists, and in non-contiguous arrays."""
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 100, size=(9, 12))
    expected = score(rows[0].astype(float), rows[1:].astype(float))
    assert_same(score(rows[0].astype(dtype), rows[1:].astype(dtype)), expected, 1e-12)
    assert_same(score(rows[0].tolist(), rows[1:].tolist()), expected, 1e-12)
    assert_same(score(rows[0], np.asfortranarray(np.repeat(rows[1:], 2, axis=1))[:, ::2]), expected, 1e-12)


@given(generic_retrievals())
def test_float32_agrees_with_float64(r: Retrieval) -> None:
    """Narrowing to float32 moves cosines by at most 1e-6."""
    wide = assess(r).to_dict()
    narrow = assess(Retrieval(r.query.astype(np.float32), r.passages.astype(np.float32))).to_dict()
    for key in ("signals.max_cosine", "signals.mean_top3_cosine", "signals.second_bar"):
        assert narrow[key] == pytest.approx(wide[key], abs=1e-6), key


# --- invariance


@given(st.data(), retrievals())
def test_rotation_of_the_space_changes_nothing(data: st.DataObject, r: Retrieval) -> None:
    """Query and passages turned together keep every number, orthogonal and duplicate passages included."""
    assume(r.clear_cut())
    q = data.draw(rotations(len(r.query)))
    turned = Retrieval(r.query @ q, r.passages @ q)
    assert_same(assess(turned), assess(r), 1e-6, ranked=r.ranked())


@pytest.mark.parametrize("n", [2, 3, 5])
def test_rotated_orthogonal_passages_stay_orthogonal(n: int) -> None:
    """Passages that share nothing share nothing in any basis: rounding makes no edge between them."""
    rng = np.random.default_rng(n)
    straight = Retrieval(np.ones(8), np.eye(8)[:n])
    expected = assess(straight)
    assert expected.to_dict()["signals.lambda_2"] == 0.0
    for _ in range(20):
        q = np.linalg.qr(rng.standard_normal((8, 8)))[0]
        assert_same(assess(Retrieval(straight.query @ q, straight.passages @ q)), expected, 1e-9)


@given(st.data(), generic_retrievals())
def test_rotation_of_the_space_changes_nothing_in_general_position(data: st.DataObject, r: Retrieval) -> None:
    """In general position the agreement is to 1e-9."""
    q = data.draw(rotations(len(r.query)))
    assert_same(assess(Retrieval(r.query @ q, r.passages @ q)), assess(r), 1e-9)


@given(st.data(), generic_retrievals())
def test_permutation_of_passages_changes_nothing(data: st.DataObject, r: Retrieval) -> None:
    """The order of the served list carries no information."""
    order = data.draw(st.permutations(range(len(r.passages))))
    a, b = assess(r), assess(Retrieval(r.query, r.passages[order]))
    assert_same(a, b, 1e-9)
    assert near_a_cut(a) or (a.verdict, a.reason_code, a.primary_risk) == (
        b.verdict,
        b.reason_code,
        b.primary_risk,
    )


@given(st.data(), generic_retrievals())
def test_positive_scale_changes_nothing(data: st.DataObject, r: Retrieval) -> None:
    """Any row and the query may be multiplied by any positive number."""
    factor = data.draw(scales(len(r.passages) + 1))
    scaled = Retrieval(r.query * factor[0], r.passages * factor[1:, None])
    assert_same(assess(scaled), assess(r), 1e-9)


@given(st.data(), generic_retrievals())
def test_powers_of_two_change_nothing_at_all(data: st.DataObject, r: Retrieval) -> None:
    """Scaling by powers of two is exact in floats, so the signals are equal to the last digits."""
    factor = 2.0 ** np.array(
        data.draw(st.lists(st.integers(-9, 9), min_size=len(r.passages), max_size=len(r.passages)))
    )
    assert_same(assess(Retrieval(r.query, r.passages * factor[:, None])), assess(r), 1e-13)


@given(st.data(), generic_retrievals())
def test_exact_duplicates_change_only_counts(data: st.DataObject, r: Retrieval) -> None:
    """A passage served again, wherever it stands, changes no signal and no word."""
    twin = data.draw(st.integers(0, len(r.passages) - 1))
    place = data.draw(st.integers(0, len(r.passages)))
    more = Retrieval(r.query, np.insert(r.passages, place, r.passages[twin], axis=0))
    a, b = assess(r), assess(more)
    assert_same(a, b, 1e-9)
    assert b.to_dict()["k_returned"] == a.to_dict()["k_returned"] + 1
    assert b.to_dict()["effective_k"] == a.to_dict()["effective_k"]
    assert near_a_cut(a) or (a.verdict, a.reason_code) == (b.verdict, b.reason_code)


@given(retrievals(dimensions=SMALL_DIMENSIONS))
def test_effective_k_counts_distinct_passages(r: Retrieval) -> None:
    """Near duplicates are merged greedily in the order of cosine, and counted once."""
    c = r.cosines
    gaps = np.abs(c[:, None] - c)[~np.eye(len(c), dtype=bool)]
    assume(r.clear_cut() and bool(np.all(gaps > 1e-9)))
    assert assess(r).to_dict()["effective_k"] == len(ref.distinct_passages(r.query, r.passages))


@given(generic_retrievals(), st.integers(0, 2**32 - 1))
def test_identical_passages_equal_one(r: Retrieval, copies: int) -> None:
    """Any number of copies of one passage is scored as that passage."""
    one = Retrieval(r.query, r.passages[:1])
    assert_same(
        assess(Retrieval(r.query, np.repeat(r.passages[:1], 2 + copies % 9, axis=0))), assess(one), 1e-9
    )


# --- monotonicity


@given(generic_retrievals(dimensions=(3, 8)), st.floats(0.0, 1.0), st.integers(0, 2**32 - 1))
def test_a_worse_passage_never_raises_grounding_or_robustness(r: Retrieval, part: float, seed: int) -> None:
    """A passage below every served cosine raises neither grounding nor an assessed robustness."""
    q, lowest = np.array(ref.unit(r.query)), min(r.cosines)
    cosine = -1 + part * (lowest + 1) - 1e-9
    assume(cosine >= -1)
    tangent = np.random.default_rng(seed).standard_normal(len(q))
    tangent = np.array(ref.unit(tangent - (tangent @ q) * q))
    worse = cosine * q + math.sqrt(1 - cosine**2) * tangent
    before, after = assess(r), assess(Retrieval(r.query, np.vstack([r.passages, worse])))
    assert after.topical_grounding <= before.topical_grounding + 1e-9
    if before.query_robustness is not None:
        assert after.query_robustness is not None
        assert after.query_robustness <= before.query_robustness + 1e-9


@given(st.data(), st.lists(st.floats(-0.9, 0.9), min_size=1, max_size=6), st.floats(0.0, 0.95))
def test_grounding_is_monotone_in_each_cosine(
    data: st.DataObject, cosines: list[float], raised: float
) -> None:
    """With the rest fixed, a higher cosine never lowers grounding, and raises it in the top 3."""
    which = data.draw(st.integers(0, len(cosines) - 1))
    higher = list(cosines)
    higher[which] = max(raised, cosines[which])
    before, after = fan(cosines), fan(higher)
    a, b = (m.to_dict()["signals.topical_grounding"] for m in (before, after))
    assert b >= a - 1e-12
    if ref.top_mean(higher) > ref.top_mean(cosines) + 1e-9:
        assert b > a


def fan(cosines: list[float]) -> RagConfidenceMetrics:
    """Score of passages with the given cosines, each in a direction of its own."""
    c = np.array(cosines)
    passages = np.column_stack([c, np.diag(np.sqrt(1 - c**2))])
    return score(np.eye(len(c) + 1)[0], passages, perturb=False)


def test_fragmentation_on_a_split_tree() -> None:
    """Two relevant branches under an irrelevant root fragment a tree and lower localization."""
    parents = [None, 0, 1, 0, 3]
    query = np.eye(4)[0]
    focused = np.array([[0.2, 1, 0, 0], [1, 0.5, 0, 0], [1, 0.1, 0, 0], [0.1, 0, 1, 0], [0.1, 0, 1, 0.3]])
    split = np.array([[0.2, 1, 0, 0], [1, 0.5, 0, 0], [1, 0.1, 0, 0], [1, 0, 0.5, 0], [1, 0, 0, 0.1]])
    one, two = score(query, focused, parents=parents), score(query, split, parents=parents)
    assert two.to_dict()["evidence.fragmentation"] > one.to_dict()["evidence.fragmentation"]
    assert two.answer_localization < one.answer_localization
    assert one.to_dict()["evidence.n_relevance_clusters"] == 1
    assert two.to_dict()["evidence.n_relevance_clusters"] == 2


# --- independence of what must not matter


@given(generic_retrievals(), st.integers(0, 1000))
def test_the_probe_is_evidence_only(r: Retrieval, seed: int) -> None:
    """With or without the sampled probe, and for any of its seeds, KPI and signals are the same."""
    plain, probed = assess(r), assess(r, perturb=True, seed=seed)
    assert unrounded(plain) == unrounded(probed)
    assert plain.to_dict()["evidence.stability_move"] is None
    assert 0.0 <= probed.to_dict()["evidence.stability_move"] <= 2 * math.sin(math.radians(5) / 2) + 1e-6
    assert (plain.verdict, plain.verdict_reason) == (probed.verdict, probed.verdict_reason)


@pytest.mark.parametrize("dimension", [1, 2, 16, 384])
@pytest.mark.parametrize("seed", [0, 1, 42])
def test_inputs_from_the_same_seed_as_the_probe(dimension: int, seed: int) -> None:
    """A query drawn from default_rng(seed) is probed like any other: the probe's stream is its own."""
    rng = np.random.default_rng(seed)
    query, passages = rng.standard_normal(dimension), rng.standard_normal((6, dimension))
    m = score(query, passages, seed=seed)
    move = m.to_dict()["evidence.stability_move"]
    assert move is None if dimension == 1 else 0.0 < move <= 2 * math.sin(math.radians(5) / 2) + 1e-6
    json.dumps(m.to_dict(), allow_nan=False)


@given(generic_retrievals())
def test_texts_and_calibrator_never_change_the_kpi(r: Retrieval) -> None:
    """Texts serve snippets, a calibrator writes `p_sufficient`: the KPI stays."""
    m = assess(r)
    assert unrounded(assess(r, texts=[f"passage {i}" for i in range(len(r.passages))])) == unrounded(m)
    calibrated = assess(r, calibrator=lambda kpi: 0.9)
    assert calibrated.kpi == m.kpi
    assert calibrated.verdict == m.verdict


@given(retrievals(), st.integers(0, 2**31))
def test_the_same_call_twice_is_the_same_record(r: Retrieval, seed: int) -> None:
    """Deterministic for a seed, whatever the global generator does in between."""
    first = assess(r, perturb=True, seed=seed).to_dict()
    np.random.standard_normal(3)  # noqa: NPY002
    assert assess(r, perturb=True, seed=seed).to_dict() == first


def test_the_same_record_in_another_process() -> None:
    """Deterministic across processes and hash seeds."""
    code = (
        "import json, numpy as np; from rag_confidence import score;"
        "r = np.random.default_rng(9); x = r.standard_normal((8, 32));"
        "print(json.dumps(score(x[0], x[1:], seed=3).to_dict(), sort_keys=True))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    rows = np.random.default_rng(9).standard_normal((8, 32))
    assert [json.loads(o) for o in outputs] == [score(rows[0], rows[1:], seed=3).to_dict()]


def test_inputs_are_left_alone() -> None:
    """The caller's arrays are never written to, read-only ones included."""
    rng = np.random.default_rng(0)
    query, passages = 1e120 * rng.standard_normal(4), rng.standard_normal((5, 4))
    passages[1] = passages[0]
    query.flags.writeable = passages.flags.writeable = False
    score(query, passages)
    score_many(query[None], passages[None])


@pytest.mark.needs_extra("topology")
@given(generic_retrievals(max_n=7, dimensions=(3, 8)), st.sampled_from(["ratio", "surrogate"]))
def test_loops_are_evidence_only(r: Retrieval, loops: str) -> None:
    """Whatever test of loops is run, KPI, signals and verdict are the same, to rounding."""
    plain, looped = assess(r), assess(r, loops=loops)
    assert_same(plain, looped, 1e-12)
    assert near_a_cut(plain) or (plain.verdict, plain.reason_code) == (looped.verdict, looped.reason_code)
    check_record(looped)


@given(st.data(), generic_retrievals(dimensions=(3, 8)))
def test_dropped_rows_leave_the_rest_as_it_is(data: st.DataObject, r: Retrieval) -> None:
    """With `invalid_rows="drop"` nan, infinite and zero rows count for nothing but themselves."""
    bad = data.draw(st.lists(st.sampled_from([np.nan, np.inf, -np.inf, 0.0]), min_size=1, max_size=3))
    rows = list(r.passages)
    for value in bad:
        rows.insert(data.draw(st.integers(0, len(rows))), np.full(len(r.query), value))
    m = assess(Retrieval(r.query, np.array(rows)), invalid_rows="drop")
    assert_same(m, assess(r), 1e-12)
    assert m.to_dict()["evidence.n_dropped_rows"] == len(bad)
    assert m.to_dict()["k_returned"] == len(rows)
    for support in m.support:
        assert np.isfinite(rows[support.index]).all()
        assert rows[support.index].any()
    with pytest.raises(ValueError, match="passage_embeddings"):
        assess(Retrieval(r.query, np.array(rows)))


@given(retrievals(dimensions=SMALL_DIMENSIONS))
def test_support_names_the_best_distinct_passages(r: Retrieval) -> None:
    """Support lists served positions of distinct passages, best cosine first."""
    c = r.cosines
    gaps = np.abs(c[:, None] - c)[~np.eye(len(c), dtype=bool)]
    assume(r.clear_cut() and bool(np.all(gaps > 1e-9)))
    support = assess(r).support
    kept = ref.distinct_passages(r.query, r.passages)
    assert [s.index for s in support] == kept[: len(support)]
    np.testing.assert_allclose([s.cosine for s in support], c[kept[: len(support)]], atol=1e-14)


def test_shape_is_measured_on_the_best_512() -> None:
    """A longer list is scored as its 512 passages of highest cosine, and says so."""
    rng = np.random.default_rng(11)
    r = Retrieval(rng.standard_normal(12), rng.standard_normal((600, 12)))
    best = np.sort(np.argsort(-np.array(r.passages @ r.query / np.linalg.norm(r.passages, axis=1)))[:512])
    long, short = assess(r), assess(Retrieval(r.query, r.passages[best]))
    assert_same(long, short, 1e-9)
    assert long.to_dict()["evidence.n_shape"] == short.to_dict()["evidence.n_shape"] == 512
    assert any("512" in sentence for sentence in long.warnings)
    assert not short.warnings
    assert [best[s.index] for s in short.support] == [s.index for s in long.support]


# --- many at once


def test_score_many_in_several_chunks() -> None:
    """A block too large for one product is cut up, and every row still equals `score`."""
    rng = np.random.default_rng(12)
    queries, passages = rng.standard_normal((150, 384)), rng.standard_normal((150, 10, 384))
    passages[::7, 3] = passages[::7, 8]
    passages[5] *= 1e120
    check_batch(score_many(queries, passages), queries, list(passages), True)


@given(st.data(), st.integers(1, 6), st.booleans())
def test_score_many_equals_a_loop_of_score(data: st.DataObject, k: int, perturb: bool) -> None:
    """One array (Q, k, d) gives the numbers of `score` query by query, zero queries included."""
    items = [data.draw(retrievals(k, k, dimensions=(3,))) for _ in range(5)]
    assume(all(r.clear_cut() for r in items))
    queries = np.array([r.query for r in items])
    if data.draw(st.booleans()):
        queries[2] = 0.0
    passages = np.array([r.passages for r in items])
    check_batch(score_many(queries, passages, perturb=perturb), queries, list(passages), perturb)


@given(st.data(), st.booleans())
def test_score_many_of_ragged_lists(data: st.DataObject, perturb: bool) -> None:
    """A list of (k_i, d) gives the numbers of `score`, empty lists among them."""
    items = [data.draw(retrievals(1, 6, dimensions=(4,))) for _ in range(5)]
    assume(all(r.clear_cut() for r in items))
    passages = [r.passages for r in items]
    passages[3] = np.zeros((0, 4))
    queries = np.array([r.query for r in items])
    check_batch(score_many(queries, passages, perturb=perturb), queries, passages, perturb)


def check_batch(batch: Any, queries: Array, passages: list[Array], perturb: bool) -> None:
    """Every row of a batch against `score`: numbers to 1e-9, words equal away from cuts."""
    assert len(batch) == len(queries)
    for i, many in enumerate(batch):
        single = score(queries[i], passages[i], perturb=perturb)
        assert_same(many, single, 1e-9)
        assert batch[i].to_dict() == many.to_dict()
        a, b = numbers(many), numbers(single)
        assert a == pytest.approx(b, rel=1e-9, abs=1e-9)
        if not near_a_cut(single):
            words = {k: v for k, v in single.to_dict().items() if isinstance(v, str | None)}
            assert {k: many.to_dict()[k] for k in words} == words


# --- default definitions, spelt out


def robustness(angle: float) -> float:
    """The policy's map of the flip angle."""
    degrees = math.degrees(angle)
    return degrees / (degrees + POLICY.robustness_angle)


@given(retrievals(dimensions=(2, 3, 8, 384)))
def test_default_drivers_match_the_naive_ones(r: Retrieval) -> None:
    """Grounding, localization, cohesion, consistency, robustness and the KPI are those of the definitions."""
    c, g = r.cosines, r.gram
    gaps = np.abs(c[:, None] - c)[~np.eye(len(c), dtype=bool)]
    assume(r.clear_cut() and bool(np.all((gaps > 1e-9) | (g[~np.eye(len(c), dtype=bool)] > 1 - 1e-9))))
    assume(bool(np.all((np.abs(g) > 1e-9) | (g == 0))))
    expected = ref.default_drivers(
        r.query,
        r.passages.tolist(),
        centre=POLICY.grounding_center,
        scale=POLICY.grounding_scale,
        tau=POLICY.localization_tau,
        robustness=robustness,
    )
    m = assess(r)
    for name in SIGNALS:
        assert m.to_dict()[f"signals.{name}"] == pytest.approx(expected[name], abs=1e-7), name
    assert m.kpi == pytest.approx(ref.kpi(expected, WEIGHTS), abs=1e-7)


def check_bars(record: dict[str, Any], bars: list[ref.Bar], essential: float) -> None:
    """The evidence keys that are read off a barcode, given the length of its essential bar."""
    lengths = [birth - death for birth, death in ref.long_bars(bars)]
    total, second = math.fsum(lengths), max(lengths, default=0.0)
    assert record["signals.second_bar"] == pytest.approx(second, abs=1e-12)
    assert record["evidence.n_relevance_clusters"] == 1 + len(lengths)
    assert record["evidence.fragmentation"] == pytest.approx(total, abs=1e-12)
    assert record["evidence.persistence_margin"] == pytest.approx(
        essential - max(lengths, default=0.0), abs=1e-12
    )
    dominance = essential / (essential + total) if essential > 1e-12 else None
    assert dominance is None or record["evidence.dominance"] == pytest.approx(dominance, abs=1e-9)


def clear_bars(bars: list[ref.Bar]) -> bool:
    """True if rounding cannot decide whether something is a bar."""
    return all(not 1e-11 < birth - death < 1e-7 for birth, death in bars)


@given(retrievals())
def test_flat_evidence_is_read_off_the_joint_barcode(r: Retrieval) -> None:
    """On a flat list the bars are those of the joint filtration, duplicates or not."""
    c, g = r.cosines.tolist(), r.gram.tolist()
    assume(r.clear_cut() and len(ref.distinct_passages(r.query, r.passages)) == len(exact_distinct(r)))
    edges = ref.joint_edges(c, g)
    bars = ref.superlevel_bars(c, edges)
    assume(clear_bars(bars))
    record = assess(r).to_dict()
    check_bars(record, bars, max(c) - ref.complete_level(c, edges))
    assert record["evidence.focus_depth"] is None
    assert record["evidence.n_nodes"] == record["effective_k"]


def exact_distinct(r: Retrieval) -> list[int]:
    """Passages that remain when only exact copies are merged."""
    return ref.distinct_passages(r.query, r.passages, 1 - 1e-9)


@given(st.data(), retrievals(max_n=9, dimensions=(2, 3, 8)))
def test_tree_evidence_is_measured_along_the_tree(data: st.DataObject, r: Retrieval) -> None:
    """With parents the bars, the energies and the focus are those of the tree, every node counted."""
    parents = [None] + [data.draw(st.integers(0, i - 1)) for i in range(1, len(r.passages))]
    c = r.cosines.tolist()
    edges = ref.tree_edges(c, parents)
    bars = ref.superlevel_bars(c, edges)
    assume(clear_bars(bars) and all(abs(max(c) - x - 0.1) > 1e-9 for x in c))
    record = assess(r, parents=parents).to_dict()
    check_bars(record, bars, max(c) - ref.complete_level(c, edges))
    energy = ref.edge_energy([ref.unit(p) for p in r.passages], list(edges))
    assert record["signals.dirichlet_energy"] == pytest.approx(energy, abs=1e-12)
    assert record["signals.evidence_consistency"] == pytest.approx(1 - energy, abs=1e-12)
    tau = POLICY.localization_tau
    localization = tau / (ref.second_bar(bars) + tau)
    assert record["signals.answer_localization"] == pytest.approx(localization, abs=1e-9)
    in_focus = [1.0 if x >= max(c) - 0.1 else 0.0 for x in c]
    assert record["evidence.focus_depth"] == pytest.approx(ref.focus_depth(in_focus, parents), abs=1e-12)
    assert record["evidence.n_nodes"] == len(c)


@given(
    retrievals(min_n=2, dimensions=(3, 8)),
    st.sampled_from([-0.5, 0.0, 0.46]),
    st.sampled_from([None, 0.0, 0.49, 0.5, 1.0]),
    st.booleans(),
)
def test_verdicts_match_the_table(
    r: Retrieval, centre: float, contradiction: float | None, lexical: bool
) -> None:
    """The verdict is the first row of the table that holds, from unrounded numbers."""
    options: dict[str, Any] = {"policy": MetricPolicy(grounding_center=centre)}
    if contradiction is not None:
        options |= {"texts": ["t"] * len(r.passages), "contradiction": lambda texts: contradiction}
    if lexical:
        options["embedding_backend"] = "lexical"
    m = assess(r, **options)
    assume(not near_a_cut(m))
    signals = {name: m.to_dict()[f"signals.{name}"] for name in SIGNALS}
    drivers = {name: None if signals[name] is None else 100 * signals[name] for name in SHAPE}
    assert (signals["topical_grounding"] is None) == lexical
    assert m.to_dict()["grounding_assessed"] is not lexical
    assert m.kpi == pytest.approx(ref.kpi(signals, WEIGHTS, grounding_assessed=not lexical), abs=1e-12)
    expected = ref.verdict(
        kpi=100 * m.kpi,
        drivers=drivers,
        floors=FLOORS,
        grounding=None if lexical else 100 * signals["topical_grounding"],
        n=len(r.passages),
        contradiction=contradiction,
    )
    assert (m.verdict, m.reason_code) == expected


# --- the seed's definitions


@pytest.mark.needs_extra("topology")
@given(
    st.data(), retrievals(min_n=1, max_n=7, dimensions=(2, 3, 8), kinds=("fresh", "grid", "near", "mirror"))
)
def test_seed_policy_matches_the_naive_seed(data: st.DataObject, r: Retrieval) -> None:
    """`MetricPolicy.seed()` gives what the seed's formulas give, flat or on a tree, to 1e-6."""
    parents = None
    if data.draw(st.booleans()):
        parents = [None] + [data.draw(st.integers(0, i - 1)) for i in range(1, len(r.passages))]
    centroid = r.passages.mean(axis=0)
    assume(np.abs(centroid).max() > 1e-3)
    nodes = r.passages if parents is not None else np.vstack([centroid, r.passages])
    c = np.array(ref.cosines(r.query, nodes))
    assume(len(c) == 1 or np.ptp(c) > 1e-3 or np.ptp(c) < 1e-12)
    assume(clear_of_seed_cuts(c))
    expected = ref.seed_score(r.query, r.passages, parents)
    assume(expected["max_loop_life"] is None or abs(expected["max_loop_life"] - 0.10) > 1e-4)
    m = score(r.query, r.passages, parents=parents, policy=MetricPolicy.seed(), perturb=False)
    compare_with_seed(m, expected)


def clear_of_seed_cuts(c: Array) -> bool:
    """True if rounding changes neither a bar of 1e-6 nor a relevance of 0.6."""
    relevance = np.array(ref.min_max(c.tolist()))
    gaps = np.abs(relevance[:, None] - relevance)
    return bool(np.all((gaps < 1e-9) | (gaps > 1e-5)) and np.all(np.abs(relevance - 0.6) > 1e-9))


def compare_with_seed(m: RagConfidenceMetrics, expected: dict[str, Any]) -> None:
    """Drivers, KPI, verdict and primary risk of the seed."""
    got = m.to_dict()
    for name in ("topical_grounding", "answer_localization", "support_cohesion", "evidence_consistency"):
        assert 100 * got[f"signals.{name}"] == pytest.approx(expected[name], abs=1e-6), name
    assert 100 * m.kpi == pytest.approx(expected["retrieval_confidence"], abs=1e-6)
    cuts = (45.0, 65.0, *ref.SEED_FLOORS.values())
    values = [expected["retrieval_confidence"], *(expected[name] for name in SIGNALS if name in expected)]
    if all(abs(v - cut) > 1e-6 for v in values for cut in cuts):
        assert m.verdict == expected["verdict"]
