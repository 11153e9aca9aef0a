"""Signals against the background of a corpus: plain loops, one list as many, and what may not change them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import reference_contrast as slow
from hypothesis import given
from hypothesis import strategies as st
from made_corpus import Array, unit, world
from refusals import refuse
from strategies import generator, rotations

from rag_confidence import CorpusProfile
from rag_confidence.engine.contrast import against_background, against_background_of_list
from rag_confidence.engine.measure import measure

WORLD = world(d=8, m=120, n=25)
PROFILE = WORLD.profile
seeds = st.integers(0, 2**32 - 1)


def found(
    queries: Array, passages: Array, profile: CorpusProfile = PROFILE, deeper: Array | None = None
) -> dict[str, Array]:
    """The signals of a block of retrievals."""
    signals = measure(queries, passages, duplicate_cosine=0.995).signals
    return against_background(signals, queries, passages, profile=profile, deeper=deeper)


def of_sample(corpus: Array) -> CorpusProfile:
    """The profile with another sample, in the same units."""
    return replace(PROFILE, vectors=unit(corpus).astype(np.float32))


def assert_same(a: dict[str, Array], b: dict[str, Array], tolerance: float) -> None:
    """The same keys and numbers; nan in the same places."""
    assert a.keys() == b.keys()
    for name in a:
        np.testing.assert_allclose(a[name], b[name], rtol=0, atol=tolerance, err_msg=name)


def slowly(row: int, passages: Array, deeper: Array | None = None) -> dict[str, float]:
    """The signals of one retrieval by loops."""
    return slow.against(
        PROFILE.vectors.astype(float),
        WORLD.queries[row],
        passages,
        level=PROFILE.background_level,
        scale=PROFILE.background_scale,
        typical=PROFILE.typical_companionship,
        deeper=[] if deeper is None else deeper.tolist(),
    )


@pytest.mark.parametrize("k", [1, 3, 6, 10])
def test_everything_is_what_loops_find(k: int) -> None:
    """Contrast, excesses and levels of single retrievals, by exact sums."""
    signals = found(WORLD.queries, WORLD.passages[:, :k])
    for row in range(4):
        for name, value in slowly(row, WORLD.passages[row, :k]).items():
            assert signals[name][row] == pytest.approx(value, abs=1e-6), name


@pytest.mark.parametrize("depth", [11, 19, 20, 25, 40])
def test_a_deeper_list_moves_the_reference(depth: int) -> None:
    """Cosines beyond the served ones count as what they are, and are no background."""
    deeper = WORLD.cosines[:, 10:depth].copy()
    deeper[1, 1:] = math.nan
    # One of the sampled vectors was retrieved without being served.
    deeper[2, 0] = unit(WORLD.queries[2]) @ unit(PROFILE.vectors[7].astype(float))
    signals = found(WORLD.queries, WORLD.passages, deeper=deeper)
    for row in range(4):
        for name, value in slowly(row, WORLD.passages[row], deeper[row][~np.isnan(deeper[row])]).items():
            assert signals[name][row] == pytest.approx(value, abs=1e-6), name


def test_typicality_is_the_cosine_to_the_mean_query() -> None:
    """In [-1, 1]; nan for a profile that saw no queries."""
    mean = unit(WORLD.queries).mean(axis=0)
    signals = found(WORLD.queries, WORLD.passages)
    np.testing.assert_allclose(signals["typicality"], unit(WORLD.queries) @ unit(mean), atol=1e-12)
    assert np.isnan(found(WORLD.queries, WORLD.passages, WORLD.bare_profile)["typicality"]).all()


@given(seeds, st.sampled_from([1, 2, 5, 6, 9, 10, 20, 24]), st.booleans())
def test_one_list_has_the_numbers_of_a_block(seed: int, k: int, copied: bool) -> None:
    """In plain Python, with passages from the sample or without."""
    rng = generator(seed)
    query, passages = rng.standard_normal(8) + 1.0, rng.standard_normal((k, 8)) + 1.0
    if copied:
        passages[rng.integers(k)] = 3.0 * WORLD.corpus[rng.integers(120)]
    signals = measure(query[None], passages[None], duplicate_cosine=0.995).signals
    measured = {name: float(signals[name][0]) for name in ("max_cosine", "mean_top3_cosine")}
    cosines = (unit(passages) @ unit(query)).tolist()
    one = against_background_of_list(measured, query, passages, cosines=cosines, profile=PROFILE)
    block = found(np.stack([query, WORLD.queries[0]]), np.stack([passages, passages]))
    assert one.keys() == block.keys()
    for name, value in one.items():
        assert value == pytest.approx(float(block[name][0]), abs=1e-9), name


@given(st.data())
def test_rotating_everything_changes_nothing(data: st.DataObject) -> None:
    """Sample, queries and passages turned together: only angles count."""
    q = data.draw(rotations(8))
    turned = replace(of_sample(PROFILE.vectors.astype(float) @ q), query_centroid=PROFILE.query_centroid @ q)
    after = found(WORLD.queries @ q, WORLD.passages @ q, turned)
    assert_same(after, found(WORLD.queries, WORLD.passages), 1e-6)


@given(seeds)
def test_lengths_and_order_carry_nothing(seed: int) -> None:
    """Rows of any length, served in any order."""
    rng = generator(seed)
    order = rng.permutation(10)
    lengths = 10.0 ** rng.uniform(-3, 3, (25, 10, 1))
    after = found(WORLD.queries * 10.0 ** rng.uniform(-3, 3, (25, 1)), (WORLD.passages * lengths)[:, order])
    assert_same(after, found(WORLD.queries, WORLD.passages), 1e-9)


def test_float32_agrees_with_float64() -> None:
    """Narrow vectors move a signal by rounding alone."""
    narrow = found(WORLD.queries.astype(np.float32), WORLD.passages.astype(np.float32))
    assert_same(narrow, found(WORLD.queries, WORLD.passages), 1e-5)
    for name in ("best_excess", "background_mean", "background_std", "background_tail"):
        np.testing.assert_allclose(narrow[name], found(WORLD.queries, WORLD.passages)[name], atol=1e-6)


@pytest.mark.parametrize("copies", [1, 3])
def test_what_was_served_is_no_background(copies: int) -> None:
    """Adding the served passages to the sample, once or more, changes nothing."""
    for row in range(5):
        q, p = WORLD.queries[row : row + 1], WORLD.passages[row : row + 1]
        more = of_sample(np.concatenate([unit(PROFILE.vectors.astype(float)), *[p[0]] * copies]))
        assert_same(found(q, p, more), found(q, p), 1e-7)


def test_what_was_named_is_no_background() -> None:
    """Ids leave sampled vectors out, as if they had not been sampled."""
    named = CorpusProfile.fit(WORLD.corpus, ids=list(range(120)))
    q, p = WORLD.queries[:3], WORLD.passages[:3]
    signals = measure(q, p, duplicate_cosine=0.995).signals
    left = against_background(signals, q, p, profile=named, left_out=[range(40), None, ["unknown"]])
    short = against_background(
        signals, q, p, profile=replace(named, vectors=named.vectors[40:], ids=named.ids[40:])
    )
    whole = against_background(signals, q, p, profile=named)
    for name in ("contrast", "best_excess", "background_mean"):
        assert left[name][0] == pytest.approx(short[name][0], abs=1e-12)
        np.testing.assert_allclose(left[name][1:], whole[name][1:], atol=1e-12)


def test_a_profile_of_which_nothing_is_left_is_refused() -> None:
    """Where nearly all of the sample was served there is no background, and the profile is too small."""
    passages = WORLD.corpus[None, :110]
    cosines = (unit(passages[0]) @ unit(WORLD.queries[0])).tolist()
    measured = {"max_cosine": max(cosines), "mean_top3_cosine": 0.1}
    message = "^`profile` must hold at least 20 vectors beside those that were retrieved; got one of 120. "
    refuse(ValueError, message, lambda: found(WORLD.queries[:1], passages))
    refuse(
        ValueError,
        message,
        lambda: against_background_of_list(
            measured, WORLD.queries[0], passages[0], cosines=cosines, profile=PROFILE
        ),
    )
