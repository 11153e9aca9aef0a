"""Several rows of a query: what a gate fitted with clusters bounds, and what goes wrong with rows instead."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
from refusals import quiet

from rag_confidence.conformal.gate.evaluation import evaluate_conformal_gate
from rag_confidence.conformal.gate.fit import fit_conformal_gate
from rag_confidence.conformal.gate.fitted import ConformalGate

ALPHA, HARD, ROWS = 0.1, 0.08, 30
QUERIES, TRIALS = 200, 200


@dataclass(frozen=True)
class Retrievals:
    """Scores of many rows, their labels, and the query of each."""

    scores: np.ndarray
    labels: np.ndarray
    queries: np.ndarray


def retrievals(rng: np.random.Generator, queries: int) -> Retrievals:
    """One insufficient row a query, but thirty of higher score for 8 % of them; one sufficient row each."""
    hard = rng.random(queries) < HARD
    of = np.repeat(np.arange(queries), np.where(hard, ROWS, 1))
    insufficient = rng.normal(4.0 * hard[of], 1.0)
    sufficient = rng.normal(6.0, 1.0, queries)
    return Retrievals(
        np.concatenate([insufficient, sufficient]),
        np.repeat([False, True], [len(of), queries]),
        np.concatenate([of, np.arange(queries)]),
    )


def fitted(known: Retrievals, *, clustered: bool) -> ConformalGate:
    """A gate on these rows that accepts whatever has lost its label 0."""
    fit = partial(fit_conformal_gate, alpha=ALPHA, score_kind="raw", on_conflict="accept")
    with quiet():
        return fit(known.scores, known.labels, clusters=known.queries if clustered else None)


def false_accepts(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """For each trial the share of queries with an accepted insufficient row, and the share of such rows."""
    rng, queries, rows = np.random.default_rng([81, seed]), np.zeros(TRIALS), np.zeros(TRIALS)
    for trial in range(TRIALS):
        gate, new = fitted(retrievals(rng, QUERIES), clustered=True), retrievals(rng, QUERIES)
        accepted = gate.predict(new.scores).accepted[~new.labels]
        queries[trial] = len(np.unique(new.queries[~new.labels][accepted])) / QUERIES
        rows[trial] = accepted.mean()
    return queries, rows


def standard_error(rates: np.ndarray) -> float:
    """Of the mean over trials."""
    return float(rates.std(ddof=1) / np.sqrt(len(rates)))


def test_clusters_bound_queries_and_not_rows() -> None:
    """The rate of queries is at alpha; that of single rows is several times alpha, and nothing bounds it."""
    queries, rows = false_accepts(1)
    assert queries.mean() == pytest.approx(ALPHA, abs=4 * standard_error(queries))
    assert rows.mean() - 4 * standard_error(rows) > 3 * ALPHA


def test_bands_of_rows_would_ring_for_a_sound_gate_with_clusters() -> None:
    """Held against the band of as many independent rows, most sound gates look broken: they get none."""
    rng, rings = np.random.default_rng([81, 2]), 0
    for _ in range(TRIALS):
        gate = fitted(retrievals(rng, QUERIES), clustered=True)
        taken_for_rows = replace(gate, history=replace(gate.history, clustered=False))
        new = retrievals(rng, QUERIES)
        rings += bool(evaluate_conformal_gate(new.scores, new.labels, taken_for_rows).beyond_band)
        assert evaluate_conformal_gate(new.scores, new.labels, gate).beyond_band is None
    assert rings > TRIALS / 2


def test_without_clusters_hardly_anything_is_said_of_a_query() -> None:
    """Fitted on rows, the gate keeps alpha for rows, and accepts some row of most of the hard queries."""
    rng, rows, hard = np.random.default_rng([81, 3]), np.zeros(TRIALS), np.zeros(TRIALS)
    for trial in range(TRIALS):
        new = retrievals(rng, QUERIES)
        gate = fitted(retrievals(rng, QUERIES), clustered=False)
        accepted = gate.predict(new.scores).accepted[~new.labels]
        of = new.queries[~new.labels]
        rows[trial] = accepted.mean()
        hard[trial] = np.mean(np.bincount(of, accepted)[np.bincount(of) == ROWS] > 0)
    assert rows.mean() == pytest.approx(ALPHA, abs=4 * standard_error(rows))
    assert hard.mean() > 0.5
