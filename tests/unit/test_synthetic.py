"""The synthetic score sets have the distributions that they state."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import gammainc
from scipy.stats import beta, kstest

from rag_confidence.synthetic import (
    KINDS,
    Kind,
    Nonconformity,
    accepted_above,
    draw_rag_rows,
    labelled_scores,
    logprob_scores,
    rag_benchmark,
    skewed_scores,
    uniform_scores,
)

SHAPES = {
    uniform_scores: lambda x: np.asarray(x),
    skewed_scores: lambda x: 1.0 - (1.0 - np.asarray(x)) ** 5,
    logprob_scores: lambda x: gammainc(12, -np.log1p(-np.asarray(x)) * 48.0),
}


def accepted(threshold: float, *, label: int) -> float:
    """Share of a class that a fixed threshold accepts, summed over the mixture."""
    weights = [k.share * (k.sufficient if label else 1.0 - k.sufficient) for k in KINDS]
    return float(np.average([beta.sf(threshold, k.a, k.b) for k in KINDS], weights=weights))


def test_the_shares_of_the_kinds_add_up() -> None:
    """Every row has exactly one kind, and 47.5 % of rows are sufficient."""
    assert sum(k.share for k in KINDS) == pytest.approx(1.0, abs=1e-12)
    assert sum(k.share * k.sufficient for k in KINDS) == pytest.approx(0.475, abs=1e-12)


def test_one_seed_gives_one_set() -> None:
    """The same seed repeats every row; another seed does not."""
    first, again, other = rag_benchmark(7, 300), rag_benchmark(7, 300), rag_benchmark(8, 300)
    assert np.array_equal(first.scores, again.scores)
    assert np.array_equal(first.labels, again.labels)
    assert np.array_equal(first.kind, again.kind)
    assert not np.array_equal(first.scores, other.scores)


def test_the_global_generator_is_left_alone() -> None:
    """Drawing a benchmark reads and moves no generator of the process."""
    before = np.random.get_state()[1].copy()  # type: ignore[union-attr]  # noqa: NPY002
    rag_benchmark(1, 10)
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_the_benchmark_has_2000_rows_of_four_kinds() -> None:
    """Defaults: 2,000 fractions with kinds whose labels are what the names say."""
    rows = rag_benchmark()
    assert len(rows) == 2000
    assert ((rows.scores >= 0.0) & (rows.scores <= 1.0)).all()
    assert set(rows.kind.tolist()) == {"true_positive", "true_negative", "borderline", "lexical_trap"}
    assert rows.labels[rows.kind == "true_positive"].all()
    assert not rows.labels[np.isin(rows.kind, ("true_negative", "lexical_trap"))].any()
    assert set(rows.labels[rows.kind == "borderline"].tolist()) == {True, False}


@pytest.mark.parametrize(
    ("threshold", "insufficient", "sufficient"), [(0.6, 0.33, 0.87), (0.7, 0.25, 0.75), (0.8, 0.15, 0.52)]
)
def test_fixed_thresholds_fail_as_published(threshold: float, insufficient: float, sufficient: float) -> None:
    """A fixed threshold accepts the stated shares of both classes, to a point."""
    assert accepted(threshold, label=0) == pytest.approx(insufficient, abs=0.01)
    assert accepted(threshold, label=1) == pytest.approx(sufficient, abs=0.01)


@pytest.mark.parametrize("threshold", [-math.inf, -1.0, 0.0, 0.3, 0.6, 0.97, 1.0, math.inf])
def test_true_acceptance_is_that_of_the_mixture(threshold: float) -> None:
    """Both shares equal the weighted survival functions, at and beyond the ends of [0, 1] too."""
    expected = accepted(threshold, label=0), accepted(threshold, label=1)
    assert accepted_above(threshold) == pytest.approx(expected, abs=1e-12)


def test_true_acceptance_is_what_many_rows_show() -> None:
    """Over 100,000 rows the shares accepted are the exact ones, to four standard errors."""
    rows = rag_benchmark(4, 100_000)
    for label, exact in enumerate(accepted_above(0.75)):
        assert (rows.scores[rows.labels == bool(label)] > 0.75).mean() == pytest.approx(exact, abs=0.01)


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.name)
def test_each_kind_scores_as_its_beta(kind: Kind) -> None:
    """The rows of a kind follow its beta distribution, with either label."""
    rows = rag_benchmark(3, 20_000)
    chosen = rows.take(rows.kind == kind.name)
    assert kstest(chosen.scores, beta(kind.a, kind.b).cdf).pvalue > 1e-3
    assert len(chosen) == pytest.approx(20_000 * kind.share, abs=5 * 70)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda f: f.__name__)
def test_nonconformity_follows_its_stated_distribution(shape: Nonconformity) -> None:
    """Each shape has values in [0, 1] and the distribution function of its docstring."""
    drawn = shape(np.random.default_rng(5), 20_000)
    assert drawn.shape == (20_000,)
    assert drawn.min() >= 0.0
    assert drawn.max() <= 1.0
    assert kstest(drawn, SHAPES[shape]).pvalue > 1e-3


@pytest.mark.parametrize("shape", SHAPES, ids=lambda f: f.__name__)
def test_labelled_classes_mirror_each_other(shape: Nonconformity) -> None:
    """Label 0 scores reach * a and label 1 scores 1 - reach * a, with a of the stated distribution."""
    rows = labelled_scores(np.random.default_rng(6), 20_000, shape, sufficient=0.3, reach=0.6)
    assert kstest(rows.scores[~rows.labels] / 0.6, SHAPES[shape]).pvalue > 1e-3
    assert kstest((1.0 - rows.scores[rows.labels]) / 0.6, SHAPES[shape]).pvalue > 1e-3
    assert rows.labels.mean() == pytest.approx(0.3, abs=0.02)
    assert np.array_equal(rows.kind == "sufficient", rows.labels)


def test_rows_are_taken_together() -> None:
    """`take` keeps score, label and kind of a row together, in the order asked for."""
    rows = rag_benchmark(1, 50)
    chosen = rows.take(np.array([7, 3]))
    assert chosen.scores.tolist() == [rows.scores[7], rows.scores[3]]
    assert chosen.labels.tolist() == [rows.labels[7], rows.labels[3]]
    assert chosen.kind.tolist() == [rows.kind[7], rows.kind[3]]
    assert len(rows.take(slice(10, 30))) == 20


def test_errors_name_the_argument() -> None:
    """No rows, a negative seed, and parameters out of range are refused by name."""
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"`n` must be at least 1; got 0\."):
        draw_rag_rows(rng, 0)
    with pytest.raises(ValueError, match=r"`seed` must not be negative; got -1\."):
        rag_benchmark(-1)
    for shape in SHAPES:
        with pytest.raises(ValueError, match=r"`n` must be at least 1; got 0\."):
            shape(rng, 0)
    with pytest.raises(ValueError, match=r"`sufficient` must be strictly between 0 and 1; got 1\.0\."):
        labelled_scores(rng, 5, uniform_scores, sufficient=1.0)
    with pytest.raises(ValueError, match=r"`reach` must be above 0 and at most 1; got 0\."):
        labelled_scores(rng, 5, uniform_scores, reach=0)
