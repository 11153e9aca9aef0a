"""Backgrounds of queries, against plain Python loops, and what may not change them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import reference_profile as ref
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_profile import Array
from strategies import generator, rotations

from rag_confidence.engine.profile.background import background_of, summary
from rag_confidence.engine.profile.columns import Background
from rag_confidence.engine.profile.left_out import Retrieved, named_pairs
from rag_confidence.engine.profile.sample import Sample

NUMBERS = ("mean", "std", "q50", "q90", "q95", "q98", "highest", "tail")
COUNTS = ("n", "n_left_out")
LIMIT = 0.995


@dataclass(frozen=True)
class Held:
    """What `background_of` needs of a profile."""

    sample: Sample


@dataclass(frozen=True)
class Scene:
    """A corpus sample (m, d), queries (Q, d) and passages (Q, k, d), some of which are in the sample."""

    corpus: Array
    queries: Array
    passages: Array

    def held(self, **options: object) -> Held:
        return Held(Sample.of(unit(self.corpus), **{"duplicate_cosine": LIMIT, **options}))

    @property
    def cosines(self) -> Array:
        return np.asarray(np.einsum("qd,qkd->qk", unit(self.queries), unit(self.passages)))


def unit(rows: Array) -> Array:
    return np.asarray(rows / np.linalg.norm(rows, axis=-1, keepdims=True))


def scene(seed: int, m: int = 40, count: int = 3, k: int = 4, d: int = 6) -> Scene:
    """Vectors in one cone; about half of the passages are sampled vectors, exact, near or just too far."""
    rng = generator(seed)
    corpus = rng.standard_normal((m, d)) + 1.0
    queries = rng.standard_normal((count, d)) + 1.0
    passages = rng.standard_normal((count, k, d)) + 1.0
    for query, place in np.ndindex(count, k):
        if rng.random() < 0.5:
            row = corpus[rng.integers(m)]
            passages[query, place] = row * rng.uniform(0.5, 2.0) + rng.choice(
                [0.0, 0.02, 0.2]
            ) * rng.standard_normal(d)
    return Scene(corpus, queries, passages)


scenes = st.integers(0, 2**32 - 1).map(scene)


def of(s: Scene, **options: object) -> Background:
    return background_of(s.held(), s.queries, s.passages, s.cosines, **options)


def assert_same(a: Background, b: Background, atol: float = 1e-12) -> None:
    for name in (*COUNTS, *NUMBERS, "typicality"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=0, atol=atol, err_msg=name)


@given(scenes)
def test_columns_match_plain_loops(s: Scene) -> None:
    """Every column is what leaving out by brute force and numpy's quantiles give, query by query."""
    found = of(s)
    for query in range(len(s.queries)):
        kept = ref.remaining(s.corpus, s.queries[query], s.passages[query], limit=LIMIT)
        assert (found.n[query], found.n_left_out[query]) == (len(kept), len(s.corpus) - len(kept))
        for name, value in ref.background(kept).items():
            assert getattr(found, name)[query] == pytest.approx(value, abs=1e-12)


@given(scenes, st.sampled_from([np.float32, np.float64]))
def test_a_query_alone_is_a_query_in_a_batch(s: Scene, dtype: type) -> None:
    """One query at a time gives the columns of the batch, in either precision of the vectors."""
    queries, passages = s.queries.astype(dtype), s.passages.astype(dtype)
    held, cosines = s.held(), s.cosines
    whole = background_of(held, queries, passages, cosines)
    for at in range(len(queries)):
        cut = slice(at, at + 1)
        alone = background_of(held, queries[cut], passages[cut], cosines[cut])
        for name in (*COUNTS, *NUMBERS):
            np.testing.assert_allclose(getattr(alone, name), getattr(whole, name)[cut], rtol=0, atol=1e-13)


def test_blocks_are_joined_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many queries go through at once, each has the same background, ids and depth included."""
    s = scene(5, count=9)
    deeper = (unit(s.queries) @ unit(s.corpus).T)[:, :3]
    names = [[f"p{row}"] for row in range(9)]
    held = s.held(ids=tuple(f"p{row}" for row in range(len(s.corpus))))

    def run() -> Background:
        return background_of(held, s.queries, s.passages, s.cosines, deeper=deeper, left_out=names)

    whole = run()
    monkeypatch.setattr("rag_confidence.engine.profile.background._CHUNK_ENTRIES", 2 * len(s.corpus))
    assert_same(run(), whole)


@given(st.data(), scenes)
def test_a_rotation_of_everything_changes_nothing(data: st.DataObject, s: Scene) -> None:
    """An orthogonal map of sample, queries and passages leaves every column alone."""
    turn = data.draw(rotations(s.queries.shape[1]))
    turned = Scene(s.corpus @ turn, s.queries @ turn, s.passages @ turn)
    assert_same(of(turned), of(s), atol=1e-10)


@given(scenes, st.randoms(use_true_random=False))
def test_order_of_sample_and_passages_is_irrelevant(s: Scene, random: object) -> None:
    """A permuted sample and permuted passages give the same columns."""
    rng = generator(7)
    permuted = Scene(
        s.corpus[rng.permutation(len(s.corpus))],
        s.queries,
        s.passages[:, rng.permutation(s.passages.shape[1])],
    )
    assert_same(of(permuted), of(s))


@given(scenes, st.lists(st.integers(-100, 100), min_size=3, max_size=3))
def test_positive_scales_change_nothing(s: Scene, powers: list[int]) -> None:
    """Rows from 1e-100 to 1e100 long have the same background."""
    a, b, c = (10.0**power for power in powers)
    scaled = Scene(s.corpus, s.queries * a, s.passages * np.resize([b, c], (1, s.passages.shape[1], 1)))
    found = background_of(s.held(), scaled.queries, scaled.passages, s.cosines)
    assert_same(found, of(s))


@pytest.mark.parametrize("power", [-30, 0, 30])
@pytest.mark.parametrize("count", [1, 3])
def test_float32_agrees_with_float64(power: int, count: int) -> None:
    """Vectors in float32, however long, give the columns of float64 to 1e-6 and leave out the same."""
    s = scene(11, m=120, count=count, d=32)
    narrow = background_of(
        s.held(), s.queries.astype(np.float32), (s.passages * 10.0**power).astype(np.float32), s.cosines
    )
    assert_same(narrow, of(s), atol=1e-6)


@given(scenes, st.integers(0, 39))
def test_serving_a_sampled_passage_leaves_out_its_copies(s: Scene, row: int) -> None:
    """One more served passage that is in the sample removes exactly its copies."""
    added = np.concatenate([s.passages, np.broadcast_to(s.corpus[row], (3, 1, 6))], axis=1)
    more = Scene(s.corpus, s.queries, added)
    gram = unit(s.corpus) @ unit(s.corpus)[row]
    served = np.einsum("qkd,md->qkm", unit(s.passages), unit(s.corpus)).max(axis=1) >= LIMIT
    expected = np.count_nonzero(~served & (gram >= LIMIT), axis=1)
    np.testing.assert_array_equal(of(more).n_left_out - of(s).n_left_out, expected)
    assert expected.max() <= len(s.corpus)


@pytest.mark.parametrize("limit", [0.5, 0.9, 0.995, 0.99999, 1.0])
@pytest.mark.parametrize("count", [1, 4])
def test_no_copy_is_missed_at_any_limit(limit: float, count: int) -> None:
    """The short cut by cosines to the query finds all copies, whatever the limit and the angle."""
    rng = generator(3)
    corpus = rng.standard_normal((60, 3))
    near = corpus[:count, None] + 0.3 * rng.standard_normal((count, 8, 3))
    passages = np.concatenate([near, corpus[:count, None]], axis=1)
    queries = np.concatenate([passages[:1, 0], -passages[1:2, 1], rng.standard_normal((2, 3))])[:count]
    s = Scene(corpus, queries, passages)
    found = background_of(s.held(duplicate_cosine=limit), queries, passages, s.cosines)
    gram = np.einsum("qkd,md->qkm", unit(passages), unit(corpus)).max(axis=1)
    np.testing.assert_array_equal(found.n_left_out, (gram >= min(limit, 1 - 1e-6)).sum(axis=1))


@pytest.mark.parametrize("count", [1, 3])
def test_a_cosine_near_the_limit_is_decided_in_float64(count: int) -> None:
    """Passages in float32 at 1e-8 on either side of the limit are told apart, where float32 could not."""
    d = 4
    corpus = np.concatenate([np.eye(d), generator(1).standard_normal((40, d))])
    sides = [LIMIT + 2e-8, LIMIT - 2e-8]
    passages = np.array([[[1.0, np.sqrt(1 / c**2 - 1), 0.0, 0.0]] for c in sides], dtype=np.float32)
    exact = passages[:, 0, 0].astype(float) / np.linalg.norm(passages[:, 0].astype(float), axis=1)
    query = np.ones((1, d), dtype=np.float32)
    held = Held(Sample.of(unit(corpus), duplicate_cosine=float(exact.mean())))
    for passage, is_copy in zip(passages, exact >= exact.mean(), strict=True):
        queries, served = np.repeat(query, count, axis=0), np.repeat(passage[None], count, axis=0)
        cosines = np.einsum("qd,qkd->qk", unit(queries.astype(float)), unit(served.astype(float)))
        alone = background_of(held, queries, served, cosines)
        others = (unit(corpus)[1:] @ unit(passage[0].astype(float)) >= exact.mean()).sum()
        np.testing.assert_array_equal(alone.n_left_out, others + is_copy)


@settings(max_examples=20)
@given(scenes, st.integers(1, 5))
def test_deeper_cosines_leave_out_their_equals(s: Scene, depth: int) -> None:
    """Deeper cosines leave out the sampled vectors with the same cosine to 1e-6, and no others."""
    deeper = np.full((3, depth + 1), np.nan)
    deeper[:, :depth] = (unit(s.queries) @ unit(s.corpus).T)[:, :depth] + 5e-7
    deeper[0, 0] = -2.0
    for found in (of(s, deeper=deeper), alone(s, deeper)):
        for query in range(3):
            kept = ref.remaining(
                s.corpus, s.queries[query], s.passages[query], limit=LIMIT, deeper=deeper[query].tolist()
            )
            assert found.n[query] == len(kept)
            assert found.q90[query] == pytest.approx(ref.background(kept)["q90"], abs=1e-12)


def alone(s: Scene, deeper: Array) -> Background:
    parts = [
        background_of(
            s.held(),
            s.queries[i : i + 1],
            s.passages[i : i + 1],
            s.cosines[i : i + 1],
            deeper=deeper[i : i + 1],
        )
        for i in range(len(s.queries))
    ]
    return Background(
        *(np.concatenate([getattr(p, name) for p in parts]) for name in Background.__dataclass_fields__)
    )


@pytest.mark.parametrize("count", [1, 3])
def test_ids_are_left_out_once(count: int) -> None:
    """Named rows go, with the copies found by vector, each once; unknown ids and None change nothing."""
    s = scene(2, count=count)
    held = s.held(ids=tuple(range(100, 140)))
    passages = np.repeat(s.corpus[None, :1], count, axis=0)
    cosines = np.einsum("qd,qkd->qk", unit(s.queries), unit(passages))
    names = [[100, 101, 101, 105, "elsewhere"], None, []][:count]
    plain = background_of(held, s.queries, passages, cosines)
    found = background_of(held, s.queries, passages, cosines, left_out=names)
    np.testing.assert_array_equal(found.n_left_out - plain.n_left_out, [2, 0, 0][:count])
    kept = np.delete(unit(s.corpus) @ unit(s.queries)[0], [0, 1, 5])
    if plain.n_left_out[0] == 1:
        assert found.highest[0] == pytest.approx(kept.max(), abs=1e-12)


@pytest.mark.parametrize("count", [1, 3])
def test_padding_is_not_looked_at(count: int) -> None:
    """Where the cosine is nan the passage may hold anything, zeros and sampled vectors included."""
    s = scene(4, count=count)
    padding = np.zeros((count, 2, 6))
    padding[:, 1] = s.corpus[3]
    passages = np.concatenate([s.passages, padding], axis=1)
    cosines = np.concatenate([s.cosines, np.full((count, 2), np.nan)], axis=1)
    assert_same(background_of(s.held(), s.queries, passages, cosines), of(s))
    empty = background_of(s.held(), s.queries, padding, cosines[:, -2:])
    np.testing.assert_array_equal(empty.n_left_out, 0)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_without_passages_the_whole_sample_is_background(count: int) -> None:
    """No passages leave nothing out, and no queries make empty columns."""
    s = scene(6, count=2)
    found = background_of(s.held(), s.queries[:count], np.zeros((count, 0, 6)), np.zeros((count, 0)))
    np.testing.assert_array_equal(found.n, np.full(count, 40))
    np.testing.assert_allclose(
        found.highest, (unit(s.queries[:count]) @ unit(s.corpus).T).max(axis=1, initial=-1)
    )


@pytest.mark.parametrize(("left", "assessed"), [(20, True), (19, False)])
@pytest.mark.parametrize("count", [1, 2])
def test_too_small_a_background_is_not_assessed(left: int, assessed: bool, count: int) -> None:
    """With fewer than 20 background vectors left every number is nan, and their count still stands."""
    s = scene(8, count=count)
    held = s.held(ids=tuple(range(40)))
    none = np.zeros((count, 0, 6)), np.zeros((count, 0))
    found = background_of(held, s.queries, *none, left_out=[range(40 - left)] * count)
    np.testing.assert_array_equal(found.n, left)
    assert all(np.isfinite(getattr(found, name)).all() == assessed for name in NUMBERS)


@pytest.mark.parametrize("count", [1, 2])
def test_nothing_left_is_not_assessed(count: int) -> None:
    """Where all of the sample was retrieved every number is nan, without a warning."""
    s = scene(4, count=3)
    whole = np.broadcast_to(s.corpus, (3, *s.corpus.shape))[:count]
    found = of(Scene(s.corpus, s.queries[:count], whole))
    assert found.n.tolist() == [0] * count
    assert all(np.isnan(getattr(found, name)).all() for name in NUMBERS)


@pytest.mark.parametrize("count", [1, 2])
def test_typicality_is_the_cosine_to_the_mean_query(count: int) -> None:
    """Typicality is the cosine to the mean query; nan without one, or where it has no direction."""
    s = scene(9, count=count)
    mean = np.arange(1.0, 7.0)
    for centroid, expected in [(mean, unit(s.queries) @ unit(mean)), (0 * mean, np.nan), (None, np.nan)]:
        found = background_of(s.held(query_centroid=centroid), s.queries, s.passages, s.cosines)
        np.testing.assert_allclose(found.typicality, np.broadcast_to(expected, count), atol=1e-14)


def test_arguments_are_not_changed() -> None:
    """Queries, passages and the sample are the same arrays with the same contents afterwards."""
    s = scene(10)
    held = s.held()
    before = [array.copy() for array in (s.queries, s.passages, held.sample.vectors, held.sample.narrow)]
    for cut in (slice(0, 1), slice(0, 3)):
        summary(
            held.sample,
            Retrieved(s.queries[cut], s.passages[cut], s.cosines[cut], None),
            named_pairs({}, None),
        )
    after = (s.queries, s.passages, held.sample.vectors, held.sample.narrow)
    for a, b in zip(before, after, strict=True):
        np.testing.assert_array_equal(a, b)
