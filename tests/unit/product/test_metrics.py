"""RagConfidenceMetrics: attributes, records, copies."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import Retrieval, retrievals

from rag_confidence import MetricPolicy, RagConfidenceMetrics, ReasonCode, Verdict, score

QUERY = [1.0, 0.0, 0.0]
ROWS = [[0.9, 0.1, 0.2], [0.8, 0.3, 0.1], [0.85, -0.2, 0.3]]
SIGNALS = (
    "topical_grounding",
    "answer_localization",
    "support_cohesion",
    "evidence_consistency",
    "query_robustness",
)
M = score(QUERY, ROWS, ["a", "b", "c"], query_text="why?", calibrator=lambda kpi: 0.5)


@given(retrievals(), st.booleans(), st.sampled_from([MetricPolicy(), MetricPolicy.seed()]))
def test_records_round_trip(r: Retrieval, perturb: bool, policy: MetricPolicy) -> None:
    """from_dict(to_dict()) is the same record, as it is and through JSON text."""
    record = score(r.query, r.passages, perturb=perturb, policy=policy).to_dict()
    assert RagConfidenceMetrics.from_dict(record).to_dict() == record
    text = json.dumps(record, allow_nan=False)
    assert json.dumps(RagConfidenceMetrics.from_dict(json.loads(text)).to_dict()) == text


def test_attributes_survive_the_round_trip() -> None:
    """All but the support and the question, which are not in the record."""
    twin = RagConfidenceMetrics.from_dict(M.to_dict())
    for name in (*SIGNALS, "verdict", "reason_code", "kpi", "p_sufficient", "warnings", "primary_risk"):
        assert getattr(twin, name) == getattr(M, name), name
    assert (twin.support, twin.query_text) == ((), None)
    assert twin.explain() == M.explain()


def test_attributes_are_percentages_and_fractions() -> None:
    """Drivers are 0..100, the KPI and the probability are in [0, 1]."""
    assert M.retrieval_confidence == 100 * M.kpi
    assert M.p_sufficient == 0.5
    for name in SIGNALS:
        assert getattr(M, name) == 100 * M.to_dict()[f"signals.{name}"]
    assert M.confidence_band == M.to_dict()["confidence_band"]
    assert M.grounding_assessed is True


def test_words_may_be_compared_with_strings_and_members() -> None:
    """Serving code may branch on either."""
    assert M.verdict is Verdict.ANSWER
    assert M.verdict == "ANSWER"
    assert M.reason_code is ReasonCode.HEALTHY
    assert {"ANSWER": 1}[M.verdict] == 1


@pytest.mark.parametrize(
    "twin",
    [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))],
    ids=["copy", "deep", "pickle"],
)
def test_metrics_are_copied_and_pickled(twin: Callable[[Any], Any]) -> None:
    """Results go to other processes and caches, with support and question."""
    other = twin(M)
    assert other == M
    assert other.to_dict() == M.to_dict()
    assert other.support == M.support
    assert other.narrate(snippets=True) == M.narrate(snippets=True)


def test_metrics_are_frozen() -> None:
    """A result is not edited; to_dict gives a copy."""
    with pytest.raises(AttributeError):
        M.kpi = 1.0  # type: ignore[misc]
    with pytest.raises(AttributeError):
        M.record = {}  # type: ignore[misc]
    before = M.to_dict()
    changed = M.to_dict()
    changed["verdict"] = "ABSTAIN"
    changed["warnings"].append("x")
    assert M.to_dict() == before


def test_the_representation_is_short() -> None:
    """One line with the verdict and why."""
    assert repr(M) == (
        f"RagConfidenceMetrics(verdict=ANSWER, kpi={M.kpi:.3f}, reason_code=healthy, "
        f"primary_risk={M.primary_risk})"
    )


def test_not_assessed_is_none() -> None:
    """None, never 0 or 100."""
    m = score(QUERY, [], embedding_backend="lexical")
    assert [getattr(m, name) for name in SIGNALS] == [None] * 5
    assert m.p_sufficient is None
    assert (m.kpi, m.retrieval_confidence) == (0.0, 0.0)
