"""Passages that contradict each other: geometry cannot see it, a contradiction function can."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.util import find_spec

import numpy as np
from _data import FloatArray
from _retrieval import load_embedder
from _tables import Cell, Check, Section, Table

from rag_confidence import MetricPolicy, RagConfidenceMetrics, score

QUESTION = "How long may the paracetamol syrup be kept after the bottle has been opened?"
AGREE = (
    "Once the bottle has been opened, the paracetamol syrup may be kept for six months.",
    "Write the date on the paracetamol syrup when you open the bottle, and keep it closed after use.",
    "The paracetamol syrup should be kept in its bottle, away from light, once it has been opened.",
    "Do not freeze the paracetamol syrup; an opened bottle may be kept at room temperature.",
)
CONFLICT = "Once the bottle has been opened, the paracetamol syrup may be kept for four weeks."
CONTRADICTING = (AGREE[0], CONFLICT, *AGREE[1:])
_SPANS = re.compile(r"\b(\w+) (days|weeks|months|years)\b")


def conflict(policy: MetricPolicy, fitted_on: str) -> Section:
    """Score the agreeing and the contradicting set with and without a contradiction function."""
    title = "Contradicting passages"
    if find_spec("wordllama") is None:
        return Section(title, skipped="wordllama is not installed (extra demo)")
    embed = load_embedder()
    question = embed([QUESTION])[0]
    agree = score(question, embed([*AGREE]), [*AGREE], policy=policy, contradiction=time_spans_differ)
    blind = score(question, embed([*CONTRADICTING]), [*CONTRADICTING], policy=policy)
    told = score(
        question, embed([*CONTRADICTING]), [*CONTRADICTING], policy=policy, contradiction=time_spans_differ
    )
    return Section(title, [_table(agree, blind, told, fitted_on)], _checks(agree, blind, told))


def time_spans_differ(texts: Sequence[str]) -> FloatArray:
    """1 for two texts alike but for a span of time, else 0; shape (n, n). Stands in for an NLI model."""
    spans = [frozenset(_SPANS.findall(text.lower())) for text in texts]
    rest = [set(_SPANS.sub("", text.lower()).split()) for text in texts]
    scores = np.zeros((len(texts), len(texts)))
    for i in range(len(texts)):
        for j in range(i):
            alike = len(rest[i] & rest[j]) >= 0.8 * len(rest[i] | rest[j])
            scores[i, j] = scores[j, i] = float(
                alike and bool(spans[i]) and bool(spans[j]) and spans[i] != spans[j]
            )
    return scores


def _table(
    agree: RagConfidenceMetrics, blind: RagConfidenceMetrics, told: RagConfidenceMetrics, fitted_on: str
) -> Table:
    rows: list[list[Cell]] = []
    for passages, asked, metrics in (
        ("agree", "yes", agree),
        ("contradict", "no", blind),
        ("contradict", "yes", told),
    ):
        figures = (
            metrics.topical_grounding,
            metrics.answer_localization,
            metrics.support_cohesion,
            metrics.evidence_consistency,
        )
        rows.append(
            [
                passages,
                asked,
                f"{100 * metrics.kpi:.1f}",
                *(f"{x:.1f}" for x in figures if x is not None),
                metrics.verdict.value,
            ]
        )
    return Table(
        "The same question over four passages that agree, and with a fifth that contradicts the first",
        f"Passages written for this script, embedded with wordllama, gate fitted on {fitted_on}. The drivers "
        "barely move: a statement and its contradiction have nearly the same vector.",
        [
            "passages",
            "contradiction=",
            "KPI",
            "grounding",
            "localization",
            "cohesion",
            "consistency",
            "verdict",
        ],
        rows,
    )


def _checks(
    agree: RagConfidenceMetrics, blind: RagConfidenceMetrics, told: RagConfidenceMetrics
) -> list[Check]:
    said = "contradiction not assessed" in blind.narrate() and not blind.to_dict()["contradiction_assessed"]
    return [
        Check(
            "contradicting passages get ESCALATE with contradiction=",
            told.verdict == "ESCALATE",
            told.verdict_reason,
        ),
        Check(
            'without it the card says "contradiction not assessed"',
            said and blind.verdict != "ESCALATE",
            blind.verdict.value,
        ),
        Check(
            "passages that agree do not get ESCALATE with it",
            agree.verdict != "ESCALATE",
            agree.verdict.value,
        ),
    ]
