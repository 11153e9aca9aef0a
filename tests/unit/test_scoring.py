"""score() and score_many() as a user calls them: verdicts, batches, support, purity."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import Retrieval, generic_retrievals, retrievals

from rag_confidence import MetricPolicy, RagConfidenceMetrics, score, score_many

QUERY = np.eye(4)[0]
GOOD = np.array([[0.9, 0.4, 0.1, 0], [0.85, 0.5, 0, 0.1], [0.8, 0.5, 0.1, 0.1]])
FAR = np.array([[0.1, 1, 0, 0], [0.05, 0, 1, 0], [-0.1, 0.2, 0.2, 1]])
SPLIT = np.array([[0.8, 0.6, 0, 0], [0.8, 0, 0.6, 0], [0.8, -0.6, 0, 0], [0.79, 0, -0.6, 0]])
TEXTS = ["one", "two", "three"]


def judged(value: float, rows: Any = GOOD, **options: Any) -> RagConfidenceMetrics:
    """With a contradiction function that always says `value`."""
    return score(QUERY, rows, texts=["t"] * len(rows), contradiction=lambda t: value, **options)


WAYS: dict[str, tuple[str, Any]] = {
    "no_passages": ("ABSTAIN", lambda: score(QUERY, [])),
    "degenerate_query": ("ABSTAIN", lambda: score(np.zeros(4), GOOD)),
    "off_topic": ("ABSTAIN", lambda: score(QUERY, FAR)),
    "conflicting": ("ESCALATE", lambda: judged(0.5)),
    "weak": ("ABSTAIN", lambda: score(QUERY, GOOD, policy=MetricPolicy(review_at=100, answer_at=100))),
    "ambiguous": ("REVIEW", lambda: score(QUERY, GOOD, policy=MetricPolicy(answer_at=100))),
    "driver_floor": (
        "REVIEW",
        lambda: score(QUERY, SPLIT, policy=MetricPolicy(answer_at=20, review_at=10)),
    ),
    "shape_only": ("REVIEW", lambda: score(QUERY, GOOD, embedding_backend="lexical")),
    "healthy": ("ANSWER", lambda: score(QUERY, GOOD)),
}


@pytest.mark.parametrize("code", WAYS)
def test_every_reason_can_be_reached(code: str) -> None:
    """Each row of the verdict table has an input that ends there, with the verdict of the table."""
    verdict, call = WAYS[code]
    m = call()
    assert (m.verdict, m.reason_code) == (verdict, code)


@pytest.mark.parametrize(
    ("first", "call"),
    [
        ("no_passages", lambda: score(np.zeros(4), [])),
        ("off_topic", lambda: judged(1.0, FAR)),
        ("off_topic", lambda: score(QUERY, FAR, policy=MetricPolicy(answer_at=0, review_at=0))),
        ("conflicting", lambda: judged(1.0, policy=MetricPolicy(review_at=100, answer_at=100))),
        ("conflicting", lambda: judged(1.0, SPLIT)),
        ("conflicting", lambda: judged(1.0, FAR, embedding_backend="lexical")),
        ("weak", lambda: score(QUERY, GOOD, embedding_backend="lexical", policy=MetricPolicy(100, 100))),
        ("ambiguous", lambda: score(QUERY, GOOD, embedding_backend="lexical", policy=MetricPolicy(100))),
    ],
)
def test_the_first_row_that_holds_decides(first: str, call: Any) -> None:
    """Where two rows of the table hold, the upper one is the reason."""
    assert call().reason_code == first


def test_a_zero_query_without_passages_is_no_passages() -> None:
    """The uppermost row has the last word, in single calls and in batches."""
    batch = score_many([np.zeros(4), QUERY], [np.zeros((0, 4)), np.zeros((0, 4))])
    assert batch.reason_code.tolist() == ["no_passages", "no_passages"]


# --- batches


def test_mixed_batches_equal_a_loop() -> None:
    """Ragged lists, trees beside flat lists, empty results, texts for some: as a loop of score."""
    groups = [GOOD, FAR[:2], GOOD[:1], np.zeros((0, 4)), SPLIT, GOOD]
    parents = [None, None, [None], None, [None, 0, 0, 2], [None, 0, 1]]
    texts = [TEXTS, None, ["one"], [], None, TEXTS]
    candidates = [None, [*_cosines(FAR[:2]), 0.0], None, None, None, _cosines(GOOD)]
    questions = ["q", None, None, None, "r", None]
    batch = score_many(
        [QUERY] * 6, groups, texts, parents, candidates=candidates, query_text=questions, k_requested=4
    )
    for i, m in enumerate(batch):
        one = score(
            QUERY,
            groups[i],
            texts[i],
            parents[i],
            candidates=candidates[i],
            query_text=questions[i],
            k_requested=4,
        )
        assert_close(m.to_dict(), one.to_dict())
        assert [s.index for s in m.support] == [s.index for s in one.support]
        assert [s.snippet for s in m.support] == [s.snippet for s in one.support]
        assert m.narrate(snippets=True) == one.narrate(snippets=True)


def _cosines(rows: np.ndarray) -> list[float]:
    return [float(c) for c in rows[:, 0] / np.linalg.norm(rows, axis=1)]


def assert_close(got: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Equal words, and numbers to rtol 1e-9."""
    assert got.keys() == wanted.keys()
    for key, value in wanted.items():
        if type(value) is float:
            assert got[key] == pytest.approx(value, rel=1e-9, abs=1e-12), key
        else:
            assert got[key] == value, key


@given(st.lists(generic_retrievals(min_n=1, dimensions=(8,)), min_size=1, max_size=6), st.booleans())
def test_batches_equal_a_loop(found: list[Retrieval], perturb: bool) -> None:
    """Any list of retrievals, seed policy included, gives the numbers of a loop."""
    for policy in (None, MetricPolicy.seed()):
        batch = score_many(
            [r.query for r in found], [r.passages for r in found], policy=policy, perturb=perturb
        )
        for m, r in zip(batch, found, strict=True):
            one = score(r.query, r.passages, policy=policy, perturb=perturb)
            assert m.kpi == pytest.approx(one.kpi, rel=1e-9, abs=1e-12)


@given(retrievals(max_n=9), st.booleans(), st.sampled_from(["precomputed", "lexical"]))
def test_a_batch_of_one_is_the_same_record(r: Retrieval, perturb: bool, backend: Any) -> None:
    """The plain path of a short single list and the columns of a batch agree under every key."""
    assume(r.clear_cut(1e-7))
    options: dict[str, Any] = {"perturb": perturb, "embedding_backend": backend, "calibrator": lambda k: k}
    one = score(r.query, r.passages, k_requested=5, **options)
    many = score_many(r.query[None], r.passages[None], k_requested=5, **options)[0]
    a, b = one.to_dict(), many.to_dict()
    for key, value in b.items():
        if type(value) is float:
            # Displayed numbers step, and an angle is steep at a tie.
            coarse = 0.11 if "." not in key and key != "kpi" and key != "p_sufficient" else 1e-6
            assert a[key] == pytest.approx(value, rel=1e-9, abs=coarse), key
        elif "band" not in key and not key.startswith(("verdict", "reason", "primary", "evidence.n_rel")):
            assert a[key] == value, key


@pytest.mark.parametrize("n", [1, 2, 3, 5, 10, 20, 31, 32, 33, 40, 41, 63, 64, 65, 100])
def test_a_batch_of_one_is_the_same_record_at_any_length(n: int) -> None:
    """Whichever path a length takes, words and numbers are those of the batch."""
    rng = np.random.default_rng(n)
    query, rows = rng.standard_normal(24) + 1, rng.standard_normal((n, 24)) + 1
    rows[n // 2] = rows[0]
    for options in ({}, {"perturb": False}, {"embedding_backend": "lexical"}, {"seed": 4}):
        one, many = score(query, rows, **options), score_many(query[None], rows[None], **options)[0]
        assert_close(one.to_dict(), many.to_dict())
        assert [s.index for s in one.support] == [s.index for s in many.support]
        assert one.support[0].cosine == pytest.approx(many.support[0].cosine)


def test_arrays_and_lists_of_one_length_agree() -> None:
    """(Q, k, d) and a list of Q arrays (k, d) are the same batch."""
    stacked = np.stack([GOOD, FAR, SPLIT[:3]])
    a, b = score_many([QUERY] * 3, stacked), score_many([QUERY] * 3, list(stacked))
    assert a.to_dicts() == b.to_dicts()


@pytest.mark.parametrize("passages", [np.zeros((0, 5, 4)), np.zeros((0, 0, 4)), [], ()])
def test_no_queries_give_an_empty_batch(passages: Any) -> None:
    """Q = 0 is a batch like any other."""
    batch = score_many(np.zeros((0, 4)), passages, texts=[], k_requested=3)
    assert len(batch) == 0
    assert list(batch) == batch.to_dicts() == []
    assert all(len(column) == 0 for column in batch.columns().values())


def test_a_batch_without_any_passage() -> None:
    """(Q, 0, d) abstains for every query."""
    batch = score_many([QUERY, QUERY], np.zeros((2, 0, 4)))
    assert batch.reason_code.tolist() == ["no_passages"] * 2
    assert [m.support for m in batch] == [(), ()]
    json.dumps(batch.to_dicts(), allow_nan=False)


def test_a_bad_query_refuses_the_whole_batch() -> None:
    """Nothing is returned for the others, so that no result goes to the wrong query."""
    with pytest.raises(ValueError, match=r"`passage_embeddings\[1\]`"):
        score_many([QUERY, QUERY], [GOOD, GOOD * math.nan])


# --- support


def test_support_names_the_best_passages_with_their_texts() -> None:
    """At most three, the best first, by their place in the served list."""
    m = score(QUERY, SPLIT[::-1], texts=["d", "c", "b", "a"])
    assert len(m.support) == 3
    assert m.support[0].index in {1, 2, 3}
    assert [s.snippet for s in m.support] == [["d", "c", "b", "a"][s.index] for s in m.support]
    assert all(s.cosine == pytest.approx(0.8) for s in m.support)
    assert [s.snippet for s in score(QUERY, GOOD).support] == [None] * 3


def test_support_leaves_duplicates_out() -> None:
    """A copy is not a second support."""
    m = score(QUERY, np.repeat(GOOD, 2, axis=0), duplicate_cosine=0.9999)
    assert [s.index for s in m.support] == [0, 2, 4]


def test_snippets_are_one_line_and_short() -> None:
    """Line breaks go, and long texts are cut at 160 characters."""
    texts = ["a\n b\t c ", "x" * 161, ""]
    assert [s.snippet for s in score(QUERY, GOOD, texts=texts).support] == ["a b c", "x" * 157 + "...", ""]


def test_texts_and_questions_stay_out_of_the_record() -> None:
    """Records can be logged: they hold no text and no vector."""
    m = score(QUERY, GOOD, texts=["secret"] * 3, query_text="secret", embedder="minilm")
    assert "secret" not in json.dumps(m.to_dict())
    assert "secret" not in repr(m)
    assert m.to_dict()["embedder"] == "minilm"
    assert "secret" in m.narrate(snippets=True)


# --- purity


def test_nothing_is_mutated() -> None:
    """Arrays, lists, and the options of a call are as they were; read-only arrays are accepted."""
    query, rows = QUERY.astype(np.float64), np.array([GOOD, SPLIT[:3], GOOD * 1e200])
    texts, parents = [list(TEXTS)] * 3, [[None, 0, 0], None, [None, 0, 1]]
    candidates = [np.array([*_cosines(GOOD), 0.1]), None, None]
    for array in (query, rows, candidates[0]):
        array.flags.writeable = False
    before = rows.tobytes()
    score(query, rows[0], texts[0], parents[0], candidates=candidates[0], loops="ratio")
    score_many(np.tile(query, (3, 1)), rows, texts, parents, candidates=candidates)
    for policy in (MetricPolicy.seed(), MetricPolicy()):
        score(query, rows[2], policy=policy, invalid_rows="drop")
    assert rows.tobytes() == before
    assert texts == [TEXTS] * 3
    assert parents == [[None, 0, 0], None, [None, 0, 1]]


def test_results_do_not_hold_the_callers_arrays() -> None:
    """Overwriting the input after the call changes no result."""
    rows, texts, wanted = GOOD.copy(), list(TEXTS), [5, 6]
    batch = score_many(np.tile(QUERY, (2, 1)), [rows, rows], [texts, texts], k_requested=wanted)
    before = [m.to_dict() for m in batch], [m.support for m in batch]
    rows[:], texts[:], wanted[:] = 0.0, ["x", "y", "z"], [1, 1]
    assert ([m.to_dict() for m in batch], [m.support for m in batch]) == before


def test_the_global_generator_is_left_alone() -> None:
    """Neither the probe nor the surrogates draw from NumPy's global state."""
    state = np.random.get_state()  # noqa: NPY002
    score(QUERY, SPLIT, seed=3)
    assert np.random.get_state()[1].tolist() == state[1].tolist()  # noqa: NPY002


@pytest.mark.needs_extra("topology")
def test_surrogates_follow_their_seed() -> None:
    """The same seed gives the same p-value, whatever was drawn before."""
    p = [score(QUERY, SPLIT, loops="surrogate", seed=s).to_dict()["evidence.loop_p_value"] for s in (5, 5)]
    assert p[0] == p[1]
    assert 0.05 <= p[0] <= 1.0
