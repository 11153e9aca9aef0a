"""An evaluation counts what happened on held-out rows and judges it by the law of one calibration set."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import reference_conformal as ref
from histories import LEVELS, History, few, histories
from hypothesis import given
from hypothesis import strategies as st
from refusals import quiet

from rag_confidence.conformal.gate.evaluation import GateEvaluation, evaluate_conformal_gate
from rag_confidence.conformal.gate.fit import fit_conformal_gate
from rag_confidence.conformal.gate.loose import Thresholds
from rag_confidence.errors import RowsReused

RATES = (
    *("false_sufficiency_rate", "false_rejection_rate", "coverage_0", "coverage_1", "acceptance_rate"),
    *("rejection_rate", "abstention_rate", "conflict_rate", "selective_risk"),
)


def rates_of(found: GateEvaluation) -> dict[str, Any]:
    """The rates by name."""
    return {name: getattr(found, name).rate for name in RATES}


def uniform_rows(n: int, seed: int, shift: float = 0.0) -> tuple[Any, Any]:
    """Overlapping raw scores of n rows a class."""
    rng = np.random.default_rng([66, seed])
    return np.r_[rng.normal(shift, 1, n), rng.normal(2 + shift, 1, n)], np.r_[
        np.zeros(n, int), np.ones(n, int)
    ]


@given(histories(), LEVELS, st.data(), st.sampled_from(["abstain", "accept", "reject"]))
def test_rates_are_shares(history: History, alpha: Any, data: Any, on_conflict: str) -> None:
    """Each rate is the share of the rows that its name says; null where there are none."""
    labels = data.draw(
        st.lists(st.integers(0, 1), min_size=len(history.probes), max_size=len(history.probes))
    )
    with quiet():
        gate = fit_conformal_gate(
            history.scores, history.labels, alpha, on_conflict=on_conflict, score_kind=history.score_kind
        )
        found = evaluate_conformal_gate(history.probes, labels, gate)
    slow = history.reference(alpha, on_conflict=on_conflict)
    sets = [slow.prediction_set(s) for s in history.numbers()]
    decisions = [slow.decide(s) for s in history.numbers()]
    assert rates_of(found) == pytest.approx(ref.rates(decisions, sets, labels))
    assert (found.n, found.n0, found.n1) == (len(labels), labels.count(0), labels.count(1))


@few
@given(histories(kinds=("fraction",)), st.data())
def test_loose_thresholds_are_evaluated_alike(history: History, data: Any) -> None:
    """Rates of loose thresholds are those of the decisions that they make; nothing is known of a band."""
    labels = data.draw(
        st.lists(st.integers(0, 1), min_size=len(history.probes), max_size=len(history.probes))
    )
    loose = Thresholds(q0=0.4, q1=0.5)
    found, decided = evaluate_conformal_gate(history.probes, labels, loose), loose.predict(history.probes)
    assert rates_of(found) == pytest.approx(
        ref.rates(decided.decision.tolist(), decided.prediction_sets, labels)
    )
    assert (found.band_0, found.band_1, found.beyond_band) == (None, None, None)


@pytest.mark.parametrize(("n", "m"), [(9, 20), (50, 30), (200, 500)])
@pytest.mark.parametrize("guarantee", ["marginal", "pac"])
def test_bands_are_exact_beta_binomial_points(n: int, m: int, guarantee: str) -> None:
    """The band is the smallest share that excluded labels exceed with probability at most 2.5 %."""
    from scipy.stats import betabinom

    scores, labels = uniform_rows(n, 1)
    with quiet():
        gate = fit_conformal_gate(scores, labels, 0.2, score_kind="raw", guarantee=guarantee, delta=0.2)
    fresh, of_fresh = uniform_rows(m, 2)
    with quiet():
        found = evaluate_conformal_gate(fresh, of_fresh, gate)
    k = int(ref.pac_rank(n, "0.2", "0.2") if guarantee == "pac" else ref.rank(n, "0.2"))
    law = betabinom(m, n - k + 1, k)
    count = next(c for c in range(m + 1) if law.sf(c) <= 0.025)
    assert found.band_0 == found.band_1 == pytest.approx(count / m)


def test_rows_like_the_calibration_rows_stay_in_the_band() -> None:
    """Exchangeable rows exceed a band in about 5 % of draws or less; shifted rows nearly always."""
    beyond = {0.0: 0, 1.0: 0}
    for seed in range(100):
        with quiet():
            gate = fit_conformal_gate(*uniform_rows(60, 1000 + seed), 0.1, score_kind="raw")
            for shift in beyond:
                found = evaluate_conformal_gate(*uniform_rows(80, 2000 + seed, shift), gate)
                beyond[shift] += bool(found.beyond_band)
    # Two classes at 2.5 % each: 5 expected at most, 13 has probability below .002.
    assert beyond[0.0] <= 12
    assert beyond[1.0] >= 95


def test_an_infinite_threshold_excludes_nothing() -> None:
    """A class that is always kept has coverage 1 and a band of 0."""
    with quiet():
        gate = fit_conformal_gate([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1])
    found = evaluate_conformal_gate([0.1, 0.9], [0, 1], gate)
    assert found.coverage_0.rate == found.coverage_1.rate == found.abstention_rate.rate == 1.0
    assert (found.band_0, found.band_1, found.beyond_band) == (0.0, 0.0, False)
    assert found.selective_risk.rate is None


def test_groups_are_reported_apart() -> None:
    """With groups each has its own evaluation, equal to that of its rows alone, and all rows are counted."""
    scores, labels = uniform_rows(60, 3)
    groups = [("a", 2)[i % 2] for i in range(120)]
    with quiet():
        gate = fit_conformal_gate(scores, labels, 0.1, score_kind="raw", groups=groups)
    fresh, of_fresh = uniform_rows(40, 4)
    asked = [("a", 2, "new")[i % 3] for i in range(80)]
    with quiet():
        found = evaluate_conformal_gate(fresh, of_fresh, gate, asked)
        decided = gate.predict(fresh, asked)
    assert set(found.by_group) == {"a", 2, "new"}
    assert rates_of(found) == pytest.approx(
        ref.rates(decided.decision.tolist(), decided.prediction_sets, of_fresh.tolist())
    )
    for group, part in found.by_group.items():
        at = [i for i, g in enumerate(asked) if g == group]
        with quiet():
            one = gate.predict(fresh[at], [group] * len(at))
        expected = ref.rates(one.decision.tolist(), one.prediction_sets, of_fresh[at].tolist())
        assert rates_of(part) == pytest.approx(expected)
    assert found.by_group["new"].abstention_rate.rate == 1.0


def several_rows(n: int, seed: int) -> tuple[Any, Any, Any]:
    """Three rows for each of n queries of a class, of nearly the same score, with the query of each."""
    scores, labels = uniform_rows(n, seed)
    near = np.random.default_rng([67, seed]).normal(0.0, 0.1, 6 * n)
    return np.repeat(scores, 3) + near, np.repeat(labels, 3), np.repeat(np.arange(2 * n), 3)


@pytest.mark.parametrize("grouped", [False, True])
def test_a_gate_with_clusters_has_rates_but_no_bands(grouped: bool) -> None:
    """Its ranks count queries, so no band is known for the share of rows; the rates are those of the rows."""
    scores, labels, queries = several_rows(40, 6)
    names = ["a"] * len(scores) if grouped else None
    with quiet():
        gate = fit_conformal_gate(scores, labels, 0.1, score_kind="raw", clusters=queries, groups=names)
    fresh, of_fresh, _ = several_rows(30, 7)
    asked = ["a"] * len(fresh) if grouped else None
    with quiet():
        found, decided = evaluate_conformal_gate(fresh, of_fresh, gate, asked), gate.predict(fresh, asked)
    for part in (found, *found.by_group.values()):
        assert (part.band_0, part.band_1, part.beyond_band) == (None, None, None)
        assert rates_of(part) == pytest.approx(
            ref.rates(decided.decision.tolist(), decided.prediction_sets, of_fresh.tolist())
        )
    assert len(found.by_group) == int(grouped)


def test_an_evaluation_is_json() -> None:
    """to_dict is strict JSON, with nulls where there is nothing to count, groups included."""
    scores, labels = uniform_rows(20, 5)
    with quiet():
        gate = fit_conformal_gate(scores, labels, 0.1, score_kind="raw", groups=["a"] * 20 + [1] * 20)
        found = evaluate_conformal_gate([1.0, 2.0], [1, 1], gate, ["a", 1])
    written = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert written["false_sufficiency_rate"]["rate"] is None
    assert [group for group, _ in written["by_group"]] == ["a", 1]


def test_a_gate_is_not_measured_on_its_own_rows() -> None:
    """Half of its own rows among those of an evaluation are refused: they flatter, and no band shows it."""
    rng = np.random.default_rng(8)
    labels = np.arange(400) % 2
    scores = rng.beta(2, 4, 400) + 0.3 * labels
    gate = fit_conformal_gate(np.minimum(scores, 1.0)[:200], labels[:200])
    seen = np.minimum(scores, 1.0)
    with pytest.raises(RowsReused, match=r"^`scores` must be of rows that the gate was not fitted on"):
        evaluate_conformal_gate(seen[:200], labels[:200], gate)
    assert evaluate_conformal_gate(seen[200:], labels[200:], gate).n == 200
