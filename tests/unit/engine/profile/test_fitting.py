"""Summaries of a corpus sample, against direct computation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import reference as ref_lists
import reference_contrast as slow
import reference_profile as ref
from hypothesis import given
from hypothesis import strategies as st
from made_corpus import unit, world
from reference_profile import Array
from refusals import refuse
from strategies import generator, rotations

from rag_confidence.engine.profile.checks import check_served
from rag_confidence.engine.profile.fitting import (
    LEAST_LISTS,
    MOST_ROWS,
    PASSAGE_LEVELS,
    Traffic,
    background_level,
    chosen_rows,
    duplicate_ids,
    effective_dimension,
    n_distinct,
    norm_summary,
    passage_quantiles,
    principal_axes,
    shuffled,
    traffic_of,
)
from rag_confidence.engine.profile.sample import Sample


def rows(seed: int, m: int = 30, d: int = 5) -> Array:
    """Unit rows, stretched along the first axes."""
    found = generator(seed).standard_normal((m, d)) * np.arange(d, 0, -1) + 0.5
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True))


seeds = st.integers(0, 2**32 - 1)


@given(seeds, st.sampled_from([(30, 5), (6, 9), (9, 9)]))
def test_effective_dimension_is_a_participation_ratio(seed: int, shape: tuple[int, int]) -> None:
    """It is (sum)^2 / (sum of squares) of the covariance spectrum, with more rows than columns or fewer."""
    unit = rows(seed, *shape)
    assert effective_dimension(unit) == pytest.approx(ref.participation_ratio(unit), rel=1e-9)
    assert 1.0 - 1e-9 <= effective_dimension(unit) <= min(shape[0] - 1, shape[1]) + 1e-9


@given(st.data(), seeds)
def test_dimension_ignores_rotation_and_order(data: st.DataObject, seed: int) -> None:
    """A rotation of the space and a permutation of the rows change neither dimension nor cosines."""
    unit = rows(seed)
    turned = unit[generator(1).permutation(30)] @ data.draw(rotations(5))
    assert effective_dimension(turned) == pytest.approx(effective_dimension(unit), rel=1e-9)
    np.testing.assert_allclose(passage_quantiles(turned), passage_quantiles(unit), rtol=0, atol=1e-12)


@given(seeds)
def test_passage_quantiles_are_of_all_pairs(seed: int) -> None:
    """The cosines are those of every pair of different rows, each pair once."""
    unit = rows(seed, m=9)
    pairs = [ref.cosine(unit[i], unit[j]) for i in range(9) for j in range(i)]
    np.testing.assert_allclose(passage_quantiles(unit), np.quantile(pairs, PASSAGE_LEVELS), atol=1e-12)


@pytest.mark.parametrize("shape", [(40, 6), (5, 12)])
def test_principal_axes_hold_the_most_energy(shape: tuple[int, int]) -> None:
    """They are orthonormal and span what the right singular vectors of largest singular value span."""
    unit = rows(3, *shape)
    axes = principal_axes(unit, 3)
    expected = np.linalg.svd(unit)[2][:3]
    np.testing.assert_allclose(axes @ axes.T, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(axes.T @ axes, expected.T @ expected, atol=1e-10)


def test_axes_of_low_rank_are_still_orthonormal() -> None:
    """Rows on a line in many dimensions give orthonormal axes, the first along the line."""
    line = np.zeros((6, 12))
    line[:, 2] = 1.0
    axes = principal_axes(line, 4)
    np.testing.assert_allclose(axes @ axes.T, np.eye(4), atol=1e-12)
    assert abs(axes[0, 2]) == pytest.approx(1.0)
    assert principal_axes(line, 0).shape == (0, 12)


def test_large_samples_are_thinned_by_the_seed() -> None:
    """Up to the cap all rows are kept; above it as many distinct ones, the same for the same seed."""
    np.testing.assert_array_equal(chosen_rows(MOST_ROWS, 0), np.arange(MOST_ROWS))
    kept = chosen_rows(3 * MOST_ROWS, 0)
    assert len(kept) == len(set(kept.tolist())) == MOST_ROWS
    assert (np.diff(kept) > 0).all()
    np.testing.assert_array_equal(kept, chosen_rows(3 * MOST_ROWS, 0))
    assert not np.array_equal(kept, chosen_rows(3 * MOST_ROWS, 1))
    assert sorted(shuffled(10, 0)) == list(range(10))


def test_distinct_rows_are_counted() -> None:
    """Copies, and copies but for rounding, count once; -0.0 is 0.0."""
    unit = rows(4)
    assert n_distinct(np.concatenate([unit, unit[:7]])) == 30
    assert n_distinct(np.concatenate([unit, unit[:7].astype(np.float32).astype(float)])) <= 32
    assert n_distinct(np.array([[1.0, 0.0], [1.0, -0.0]])) == 1


def test_norms_and_duplicate_ids() -> None:
    """Norms are summed up by their quantiles .01, .5 and .99; repeated ids are named in order."""
    assert norm_summary(np.arange(101.0)) == pytest.approx((1.0, 50.0, 99.0))
    assert duplicate_ids(("b", "a", "b", 1, "a", 2)) == ["b", "a"]


# --- what is usual

WORLD = world(d=6, m=70, n=24)
SAMPLE = Sample.of(unit(WORLD.corpus), duplicate_cosine=0.995)
QUERIES, SERVED = unit(WORLD.queries), unit(WORLD.passages)


def slow_level(queries: Array, served: list[Array]) -> tuple[float, float]:
    """Medians of the tail and of the deviation of backgrounds, by loops."""
    found = [
        ref.background(ref.remaining(SAMPLE.vectors, query, passages, limit=0.995))
        for query, passages in zip(queries, served, strict=True)
    ]
    return float(np.median([one["tail"] for one in found])), float(np.median([one["std"] for one in found]))


def test_the_level_is_that_of_the_queries() -> None:
    """Median upper tail and median deviation; what was served for a query is no background of it."""
    copied = SERVED.copy()
    copied[:, 0] = SAMPLE.vectors[np.argmax(QUERIES @ SAMPLE.vectors.T, axis=1)]
    none = [np.zeros((0, 6))] * len(QUERIES)
    assert background_level(SAMPLE, QUERIES, None) == pytest.approx(slow_level(QUERIES, none), abs=1e-9)
    assert background_level(SAMPLE, QUERIES, copied) == pytest.approx(
        slow_level(QUERIES, [*copied]), abs=1e-9
    )
    assert background_level(SAMPLE, QUERIES, copied)[0] < background_level(SAMPLE, QUERIES, None)[0]


def test_without_queries_the_rows_stand_in_for_them() -> None:
    """Each sampled row leaves itself and its copies out."""
    expected = slow_level(SAMPLE.vectors, [row[None] for row in SAMPLE.vectors])
    assert background_level(SAMPLE, None, None) == pytest.approx(expected, abs=1e-9)
    twice = Sample.of(np.repeat(unit(WORLD.corpus), 2, axis=0), duplicate_cosine=0.995)
    assert background_level(twice, None, None)[1] == pytest.approx(expected[1], abs=0.01)


def test_no_background_has_no_level() -> None:
    """A sample of copies leaves nothing over, which the fit refuses as flat."""
    copies = Sample.of(np.repeat(unit(WORLD.corpus[:1]), 70, axis=0), duplicate_cosine=0.995)
    assert background_level(copies, None, None) == (0.0, 0.0)


def slow_traffic() -> tuple[float, tuple[float, float]]:
    """Mean companionship, and units of the saturated contrast, by loops."""
    together, contrasts = [], []
    for query, passages in zip(WORLD.queries, WORLD.passages, strict=True):
        cosines = ref_lists.cosines(query, passages)
        order = ref_lists.distinct_passages(query, passages)
        together.append(slow.coherence(query, passages[order])["companionship"])
        kept = ref.remaining(SAMPLE.vectors, query, passages, limit=0.995)
        tail = ref.background(kept)["tail"]
        contrasts.append(slow.contrast(max(cosines), slow.reference(tail, cosines)))
    typical = sum(together) / len(together)
    worth = [slow.saturated(value, slow.cap(typical)) for value in contrasts]
    median = float(np.median(worth))
    scale = max((median - float(np.quantile(worth, 0.2))) / 0.85, 0.1)
    return typical, (median - 0.85 * scale, scale)


def test_served_lists_show_what_is_typical() -> None:
    """Their mean companionship, and the centre and scale of their contrast."""
    typical, units = slow_traffic()
    found = traffic_of(SAMPLE, QUERIES, SERVED)
    assert found.typical_companionship == pytest.approx(typical, abs=1e-9)
    assert found.contrast_units == pytest.approx(units, abs=1e-9)


@pytest.mark.parametrize("k", [1, 5])
def test_short_lists_show_no_companionship(k: int) -> None:
    """Below six passages there is no tail, and the contrast is not that of the lists to come."""
    found = traffic_of(SAMPLE, QUERIES, SERVED[:, :k])
    assert found.typical_companionship is None
    assert found.contrast_units is None


def test_nothing_is_told_from_nothing() -> None:
    """Without queries, without lists, or with too few of these, nothing is typical."""
    assert traffic_of(SAMPLE, None, None) == traffic_of(SAMPLE, QUERIES, None) == Traffic()
    few = LEAST_LISTS - 1
    assert traffic_of(SAMPLE, QUERIES[:few], SERVED[:few]) == Traffic()
    assert traffic_of(SAMPLE, QUERIES[: few + 1], SERVED[: few + 1]).contrast_units is not None


def test_served_passages_become_unit_rows() -> None:
    """Of any length; none are none."""
    np.testing.assert_allclose(check_served(WORLD.passages * 7.0, QUERIES), SERVED, atol=1e-12)
    assert check_served(None, QUERIES) is None
    assert check_served(None, None) is None


@pytest.mark.parametrize(
    ("value", "pattern"),
    [
        (SERVED[:5], r"must have shape \(24, k, 6\).*got \(5, 10, 6\)"),
        (SERVED[:, :, :5], r"must have shape \(24, k, 6\).*got \(24, 10, 5\)"),
        (SERVED[:, :0], r"got \(24, 0, 6\)"),
        (SERVED[0], r"must have shape"),
        (SERVED * 0.0, "must be finite and not zero in every row; got 240 bad: 0, 1"),
        (np.where(np.arange(6) == 3, np.nan, SERVED), "must be finite and not zero in every row"),
        ("abc", "must"),
        (None, None),
    ],
)
def test_served_passages_that_do_not_fit_are_refused(value: Any, pattern: str | None) -> None:
    """Another shape, empty lists, rows that are no direction; and passages without their queries."""
    if pattern is None:
        message = refuse(
            ValueError, "must be left out without `query_sample`", lambda: check_served(SERVED, None)
        )
        assert message.startswith("`query_passages`")
        return
    refuse((ValueError, TypeError), f"^`query_passages` .*{pattern}", lambda: check_served(value, QUERIES))
