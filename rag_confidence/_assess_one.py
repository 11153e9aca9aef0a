"""One plain short list from arrays to a record in plain Python: what a serving path calls."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from rag_confidence._assess import (
    Notes,
    assess,
    call_of,
    note_counts,
    probability,
    text_signals,
    unread,
)
from rag_confidence._inputs import Batch, Block
from rag_confidence._predictions import GatePrediction
from rag_confidence._settings import Asked, Settings
from rag_confidence.engine.contrast import against_background_of_list
from rag_confidence.engine.profile.corpus_profile import CorpusProfile
from rag_confidence.engine.single import LONGEST, MeasuredList, measure_list
from rag_confidence.engine.stability import probe_directions
from rag_confidence.product.assemble import Row, build_record, signal_values
from rag_confidence.product.drivers import DriversOfOne, default_drivers_of_one
from rag_confidence.product.metrics import RagConfidenceMetrics, supported
from rag_confidence.product.profiled import profiled_drivers_of_one
from rag_confidence.product.verdict import decide_one, primary_risk_one


def assess_one(batch: Batch, asked: Asked, settings: Settings) -> RagConfidenceMetrics:
    """`assess` for a batch of one, without arrays where the retrieval is a plain short list."""
    if not _is_plain(batch, asked, settings):
        return assess(batch, asked, settings)[0]
    policy, block = settings.policy_read, batch.blocks[0]
    directions = probe_directions(block.queries.shape[1], settings.seed) if settings.perturb else None
    measured = measure_list(
        block.queries, block.passages, duplicate_cosine=settings.duplicate_cosine, directions=directions
    )
    if settings.profile is not None:
        measured.signals.update(_against(settings.profile, measured, block, settings.embedder))
        measured.signals.update(text_signals(batch, asked, 0, settings.profile))
    drivers = _drivers(measured.signals, settings)
    notes: Notes = defaultdict(list)
    note_counts(batch, asked, settings, notes)
    predicted = None
    if settings.model is not None:
        signals = signal_values(measured.signals, drivers.values, np.nan)
        missing = [name for name in settings.model.names if math.isnan(signals.get(name, math.nan))]
        notes[0] += [unread(missing)] if missing else []
        predicted = settings.model.predict_one(signals)
    probable = probability(drivers.kpi, settings) if predicted is None else predicted.p_sufficient
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
        p_sufficient=probable,
        warnings=notes[0],
        gated=_gated(probable if settings.score_used == "model" else drivers.kpi, asked, settings),
        predicted=predicted,
    )
    record = build_record(row, call_of(settings))
    return RagConfidenceMetrics(
        record, supported(measured.leaders, asked.texts.get(0)), asked.questions.get(0)
    )


def _against(
    profile: CorpusProfile, measured: MeasuredList, block: Block, embedder: str | None
) -> dict[str, float]:
    """The signals that need a profile."""
    profile.check(block.queries, block.passages, embedder)
    return against_background_of_list(
        measured.signals, block.queries[0], block.passages[0], cosines=measured.cosines, profile=profile
    )


def _drivers(measured: Mapping[str, float], settings: Settings) -> DriversOfOne:
    grounded = settings.embedding_backend != "lexical"
    if settings.profile is not None:
        return profiled_drivers_of_one(
            measured, settings.policy, units=settings.profile.contrast_units, grounded=grounded
        )
    return default_drivers_of_one(measured, settings.policy, grounded=grounded)


def _gated(score: float, asked: Asked, settings: Settings) -> GatePrediction | None:
    if settings.gate is None:
        return None
    return settings.gate.predict_one(score, None if asked.groups is None else asked.groups[0])


def _is_plain(batch: Batch, asked: Asked, settings: Settings) -> bool:
    """Whether one short flat list is all there is: nothing dropped, and no extra evidence asked for."""
    return (
        len(batch.blocks) == 1
        and batch.blocks[0].passages.shape[1] <= LONGEST
        and not (batch.served or asked.parents or asked.candidates or settings.contradiction)
        and settings.loops == "off"
        and settings.policy.definitions == "default"
    )
