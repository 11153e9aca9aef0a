"""One plain short list from arrays to a record in plain Python: what a serving path calls."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from rag_confidence._assess import Notes, assess, call_of, note_counts, probability
from rag_confidence._inputs import Batch
from rag_confidence._predictions import GatePrediction
from rag_confidence._settings import Asked, Settings
from rag_confidence.engine.single import LONGEST, measure_list
from rag_confidence.engine.stability import probe_directions
from rag_confidence.product.assemble import Row, build_record
from rag_confidence.product.drivers import default_drivers_of_one
from rag_confidence.product.metrics import RagConfidenceMetrics, supported
from rag_confidence.product.verdict import decide_one, primary_risk_one


def assess_one(batch: Batch, asked: Asked, settings: Settings) -> RagConfidenceMetrics:
    """`assess` for a batch of one, without arrays where the retrieval is a plain short list."""
    if not _is_plain(batch, asked, settings):
        return assess(batch, asked, settings)[0]
    policy, block = settings.policy, batch.blocks[0]
    directions = probe_directions(block.queries.shape[1], settings.seed) if settings.perturb else None
    measured = measure_list(
        block.queries, block.passages, duplicate_cosine=settings.duplicate_cosine, directions=directions
    )
    grounded = settings.embedding_backend != "lexical"
    drivers = default_drivers_of_one(measured.signals, policy, grounded=grounded)
    notes: Notes = defaultdict(list)
    note_counts(batch, asked, settings, notes)
    row = Row(
        measured=measured.signals,
        values=drivers.values,
        weights=drivers.weights,
        kpi=drivers.kpi,
        code=decide_one(drivers.kpi, drivers.values, policy),
        risk=primary_risk_one(drivers.values, policy),
        k_requested=asked.k_requested[0],
        k_returned=block.passages.shape[1],
        n_dropped=0,
        contradiction=np.nan,
        p_sufficient=probability(drivers.kpi, settings),
        warnings=notes[0],
        gated=_gated(drivers.kpi, asked, settings),
    )
    record = build_record(row, call_of(settings))
    return RagConfidenceMetrics(
        record, supported(measured.leaders, asked.texts.get(0)), asked.questions.get(0)
    )


def _gated(kpi: float, asked: Asked, settings: Settings) -> GatePrediction | None:
    if settings.gate is None:
        return None
    return settings.gate.predict_one(kpi, None if asked.groups is None else asked.groups[0])


def _is_plain(batch: Batch, asked: Asked, settings: Settings) -> bool:
    """Whether one short flat list is all there is: nothing dropped, and no extra evidence asked for."""
    return (
        len(batch.blocks) == 1
        and batch.blocks[0].passages.shape[1] <= LONGEST
        and not (batch.served or asked.parents or asked.candidates or settings.contradiction)
        and settings.loops == "off"
        and settings.policy.definitions == "default"
    )
