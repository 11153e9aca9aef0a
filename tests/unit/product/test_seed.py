"""`MetricPolicy.seed()`: the source scorer's numbers, to 1e-6."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from rag_confidence import MetricPolicy, score, score_many

SEED = MetricPolicy.seed()
NAMES = (
    "retrieval_confidence",
    "topical_grounding",
    "answer_localization",
    "support_cohesion",
    "evidence_consistency",
)
EVIDENCE = {
    "persistence_margin": 5,
    "dominance": 6,
    "fragmentation": 7,
    "focus_depth": 8,
    "concentration": 9,
    "n_relevance_clusters": 10,
    "sheaf_consistency": 11,
    "contradiction_loop_life": 12,
    "contradiction_loops": 13,
}


@dataclass(frozen=True)
class Case:
    """An input, and what the source returns with perturb=False, as `NAMES` then `EVIDENCE` list it."""

    query: list[float]
    passages: list[list[float]]
    parents: list[int | None] | None
    expected: tuple[float | None, ...]
    verdict: str
    primary_risk: str


CASES = {
    "three-close": Case(
        [1, 0, 0],
        [[0.9, 0.1, 0.2], [0.8, 0.3, 0.1], [0.85, -0.2, 0.3]],
        None,
        (99.364753, 99.753843, 100, 100, 98.4398, 1, 1, 0, 0, 0.331702, 1, 0.984398, None, None),
        "ANSWER",
        "evidence_consistency",
    ),
    "off-topic": Case(
        [1, 0, 0, 0],
        [[0.1, 1, 0, 0], [0.05, 0, 1, 0], [-0.1, 0.2, 0.2, 1]],
        None,
        (
            *(0.351106, 0.396443, 87.98458, 88.827698, 82.250656),
            *(0.874225, 0.888277, 0.125775, 0, 0.22173, 2, 0.822507, None, None),
        ),
        "ABSTAIN",
        "topical_grounding",
    ),
    "split": Case(
        [1, 0, 0, 0],
        [[0.7, 0.7, 0, 0], [0.7, 0.69, 0.1, 0], [0.7, -0.7, 0, 0], [0.69, -0.7, 0, 0.1], [0.1, 0, 1, 0]],
        None,
        (91.173965, 95.667421, 100, 100, 81.21218, 1, 1, 0, 0, 0.106935, 1, 0.812122, 0, 0),
        "ANSWER",
        "evidence_consistency",
    ),
    "square-loop": Case(
        [1, 0, 0],
        [[0.8, 0.6, 0], [0.8, 0, 0.6], [0.8, -0.6, 0], [0.8, 0, -0.6]],
        None,
        (85.037012, 98.593637, 100, 100, 45, 1, 1, 0, 0, 1, 1, 0.9, 0.351472, 1),
        "ESCALATE",
        "evidence_consistency",
    ),
    "one": Case(
        [0.6, 0.8],
        [[0.8, 0.6]],
        None,
        (89.327557, 99.807327, 70, 100, 100, 0.5, 1, 0, 0, 0, 1, 1, None, None),
        "ANSWER",
        "answer_localization",
    ),
    "tree-split": Case(
        [1, 0, 0, 0],
        [
            [0.4, 0.4, 0.4, 0.4],
            [0.5, 0.5, 0.1, 0],
            [0.9, 0.2, 0, 0],
            [0.5, 0, 0.1, 0.5],
            [0.88, 0, 0, 0.2],
            [0.1, 0.2, 1, 0],
        ],
        [None, 0, 1, 0, 3, 0],
        (
            *(60.711387, 99.502207, 53.513627, 64.901946, 44.239439),
            *(0.459214, 0.649019, 0.540786, 0, 0.123035, 2, 0.884789, 0.218234, 1),
        ),
        "ESCALATE",
        "evidence_consistency",
    ),
    "tree-focused": Case(
        [1, 0, 0, 0],
        [
            [0.3, 0.5, 0.5, 0.5],
            [0.6, 0.5, 0.1, 0],
            [0.95, 0.1, 0, 0],
            [0.9, 0.15, 0.05, 0],
            [0.1, 0.2, 1, 0],
        ],
        [None, 0, 1, 1, 0],
        (
            *(83.673135, 99.657285, 77.125397, 80.093832, 87.774139),
            *(0.751464, 0.800938, 0.248536, 0.5, 0.199204, 2, 0.877741, 0, 0),
        ),
        "ANSWER",
        "answer_localization",
    ),
}
WITH_LOOPS = [name for name, case in CASES.items() if case.expected[-1] is not None]
WITHOUT = [name for name in CASES if name not in WITH_LOOPS]


def assess(case: Case, **options: Any) -> Any:
    """The case by the seed's definitions."""
    defaults = {"policy": SEED, "perturb": False, "parents": case.parents}
    return score(case.query, case.passages, **(defaults | options))


def check(name: str) -> None:
    """Every number of a case to 1e-6, and its words."""
    case = CASES[name]
    m = assess(case)
    for key, wanted in zip(NAMES, case.expected, strict=False):
        assert getattr(m, key) == pytest.approx(wanted, abs=1e-6), key
    for key, at in EVIDENCE.items():
        got, wanted = m.to_dict()[f"evidence.{key}"], case.expected[at]
        assert got is None if wanted is None else got == pytest.approx(wanted, abs=1e-6), key
    assert (m.verdict, m.primary_risk) == (case.verdict, case.primary_risk)


@pytest.mark.parametrize("name", WITHOUT)
def test_the_source_is_reproduced(name: str) -> None:
    """Fewer than four passages have no loops, so these need no extra."""
    check(name)


@pytest.mark.needs_extra("topology")
@pytest.mark.parametrize("name", WITH_LOOPS)
def test_the_source_is_reproduced_with_loops(name: str) -> None:
    """From four passages on, loops divide consistency."""
    check(name)


@pytest.mark.parametrize("name", WITH_LOOPS)
def test_without_ripser_loops_are_missing_and_noted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only consistency and what follows from it may differ, and the record says why."""
    monkeypatch.setitem(sys.modules, "ripser", None)
    case = CASES[name]
    m = assess(case)
    record = m.to_dict()
    assert record["evidence.contradiction_loops"] is None
    assert any("loops not assessed" in note for note in m.warnings)
    assert m.evidence_consistency == pytest.approx(100 * case.expected[11], abs=1e-4)
    for key, at in (("topical_grounding", 1), ("answer_localization", 2), ("support_cohesion", 3)):
        assert getattr(m, key) == pytest.approx(case.expected[at], abs=1e-6), key
    assert m.verdict != "ESCALATE"


def test_robustness_that_was_not_probed_is_null() -> None:
    """perturb=False reports null, not 100, though the KPI counts it as the source does."""
    m = assess(CASES["three-close"])
    assert m.query_robustness is None
    assert m.to_dict()["query_robustness_band"] is None
    drivers = 0.35 + 0.25 + 0.25 * 0.984398 + 0.15
    assert m.kpi == pytest.approx(0.99753843 * drivers, abs=1e-7)
    assert "robustness" in m.narrate()
    assert "not assessed" in m.narrate()


def test_the_jitter_is_sampled_on_request() -> None:
    """perturb=True assesses robustness by the mean movement, for a seed."""
    a, b, c = (assess(CASES["off-topic"], perturb=True, seed=s) for s in (0, 0, 1))
    assert a.to_dict() == b.to_dict()
    assert a.query_robustness == pytest.approx(100 * (1 - a.to_dict()["evidence.stability_move"]))
    assert a.query_robustness != c.query_robustness
    assert a.to_dict()["evidence.stability_move_kind"] == "bottleneck"


@pytest.mark.needs_extra("topology")
def test_batches_give_the_same_numbers() -> None:
    """score_many by the seed's definitions is a loop of score."""
    flat = [case for case in CASES.values() if len(case.query) == 4]
    batch = score_many(
        [case.query for case in flat],
        [case.passages for case in flat],
        parents=[case.parents for case in flat],
        policy=SEED,
        perturb=False,
    )
    assert [100 * kpi for kpi in batch.kpi] == pytest.approx([c.expected[0] for c in flat], abs=1e-6)
    assert batch.verdict.tolist() == [case.verdict for case in flat]


@pytest.mark.needs_extra("topology")
def test_an_escalation_names_its_loop() -> None:
    """Without a contradiction function the reason speaks of the loop, not of a score."""
    m = assess(CASES["square-loop"])
    assert m.reason_code == "conflicting"
    assert "loop" in m.verdict_reason
    assert "not assessed" not in m.verdict_reason


def test_the_seed_has_no_grounding_veto() -> None:
    """The source multiplies by grounding and has no row for it: off topic is called weak."""
    assert assess(CASES["off-topic"]).reason_code == "weak"


def test_other_constants_can_be_changed() -> None:
    """The definitions and the thresholds are independent."""
    policy = MetricPolicy(definitions="seed", answer_at=100)
    assert policy.fingerprint != SEED.fingerprint
    assert assess(CASES["three-close"], policy=policy).verdict == "REVIEW"


def test_opposite_passages_have_a_zero_centroid() -> None:
    """A root without a direction is defined: cosine 0."""
    m = score([1.0, 0.0], [[0.5, 0.5], [-0.5, -0.5]], policy=SEED)
    assert all(np.isfinite(v) for v in m.to_dict().values() if isinstance(v, float))
