"""The line that score() and score_many() share: signals, drivers, verdicts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from rag_confidence._inputs import Batch, Block
from rag_confidence._options import check_contradiction, check_fraction_result, ranked_candidates
from rag_confidence._predictions import Model
from rag_confidence._settings import Asked, Settings
from rag_confidence._types import FloatArray, IntArray, Mask
from rag_confidence.engine.contrast import against_background
from rag_confidence.engine.evidence import LoopEvidence, loop_evidence, seed_loop_evidence, with_loops
from rag_confidence.engine.lockstep import block_geometry, spread_signals
from rag_confidence.engine.measure import measure
from rag_confidence.engine.profile.corpus_profile import CorpusProfile
from rag_confidence.engine.profile.left_out import SAME_COSINE
from rag_confidence.engine.profile.words import text_match
from rag_confidence.engine.relevance import distinct, unit_rows
from rag_confidence.engine.seed import seed_signals
from rag_confidence.engine.signals import N_LEADERS, SHAPE_LIMIT, Measured, Signals, scatter
from rag_confidence.engine.stability import probe_directions
from rag_confidence.engine.tree import on_tree
from rag_confidence.product.assemble import Call, signal_columns
from rag_confidence.product.batch import Context, MetricsBatch
from rag_confidence.product.drivers import Drivers, default_drivers
from rag_confidence.product.gating import Gated
from rag_confidence.product.profiled import profiled_drivers
from rag_confidence.product.seed import seed_drivers
from rag_confidence.product.verdict import (
    Situation,
    decide,
    primary_risks,
)

Notes = defaultdict[int, list[str]]

MOST_DEEPER = 100
"""Candidates beyond the served passages that are looked for in the background."""


def assess(batch: Batch, asked: Asked, settings: Settings) -> MetricsBatch:
    """Assess every retrieval of a checked batch."""
    notes: Notes = defaultdict(list)
    note_counts(batch, asked, settings, notes)
    measured = measure_batch(batch, asked, settings, notes)
    if settings.profile is not None:
        _match_texts(measured.signals, batch, asked, settings.profile)
    drivers = _drivers(measured.signals, settings)
    contradiction = _contradiction(batch, asked, settings)
    assessed = ~(batch.no_passages | batch.degenerate_query)
    columns = {}
    if settings.model is not None:
        columns = signal_columns(measured.signals, drivers, contradiction)
        _note_unread(columns, assessed, settings.model, notes)
    p_sufficient = _probabilities(drivers.kpi, columns, assessed, settings)
    scores = p_sufficient if settings.score_used == "model" else drivers.kpi
    situation = Situation(
        batch.no_passages, batch.degenerate_query, contradiction, measured.signals["n_loops"]
    )
    return MetricsBatch(
        signals=measured.signals,
        drivers=drivers,
        codes=decide(drivers, situation, settings.policy_read),
        risks=primary_risks(drivers, settings.policy_read),
        leaders=measured.leaders,
        leader_cosines=measured.leader_cosines,
        call=call_of(settings),
        gated=_gated(scores, assessed, asked, settings),
        context=Context(
            k_requested=asked.k_requested,
            k_returned=batch.k_returned,
            n_dropped=batch.n_dropped,
            contradiction=contradiction,
            p_sufficient=p_sufficient,
            warnings=dict(notes),
            questions=asked.questions,
            texts=asked.texts,
        ),
    )


def measure_batch(batch: Batch, asked: Asked, settings: Settings, notes: Notes) -> Measured:
    """Signals of every retrieval; those that cannot be scored stay not assessed."""
    parts = [(block, _measured_block(block, asked, settings, notes)) for block in batch.blocks]
    if len(parts) == 1 and len(parts[0][0].rows) == len(batch) and not batch.served:
        return parts[0][1]
    count = len(batch)
    whole = Measured(
        Signals.of(count, {}), np.full((count, N_LEADERS), -1), np.full((count, N_LEADERS), np.nan)
    )
    for block, part in parts:
        scatter(whole.signals, block.rows, part.signals)
        width = part.leaders.shape[1]
        whole.leaders[block.rows, :width] = _served(part.leaders, block, batch)
        whole.leader_cosines[block.rows, :width] = part.leader_cosines
    return whole


def _served(leaders: IntArray, block: Block, batch: Batch) -> IntArray:
    """Positions among the passages as handed in: dropped ones count again."""
    places = leaders.copy()
    for at, row in enumerate(block.rows.tolist()):
        if row in batch.served:
            places[at] = np.where(leaders[at] < 0, -1, batch.served[row][leaders[at]])
    return places


def _measured_block(block: Block, asked: Asked, settings: Settings, notes: Notes) -> Measured:
    dimension = block.queries.shape[1]
    directions = probe_directions(dimension, settings.seed) if settings.perturb else None
    measured = measure(
        block.queries, block.passages, duplicate_cosine=settings.duplicate_cosine, directions=directions
    )
    every = settings.loops != "off" or settings.policy.definitions == "seed"
    rows = [
        (at, row)
        for at, row in enumerate(block.rows.tolist())
        if every or row in asked.parents or row in asked.candidates
    ]
    if not rows and settings.profile is None:
        return measured
    signals = measured.signals.with_values({})
    for at, row in rows:
        single = Block(block.rows[at : at + 1], block.queries[at : at + 1], block.passages[at : at + 1])
        refined = _refined(signals.take([at]), single, asked, settings, directions)
        if row in asked.candidates:
            name = asked.name("candidates", row)
            refined = _with_candidates(refined, single, name, asked.candidates[row])
        found = _loops(single, settings)
        notes[row] += [found.note] if found.note else []
        scatter(signals, [at], with_loops(refined, found))
    if settings.profile is not None:
        signals = _profiled(signals, block, asked, settings.profile, settings.embedder)
    return replace(measured, signals=signals)


def _match_texts(signals: Signals, batch: Batch, asked: Asked, profile: CorpusProfile) -> None:
    """Write the text signals of the retrievals that can have some into `signals`, which nobody else holds."""
    for row in [row for block in batch.blocks for row in block.rows.tolist()]:
        match = text_signals(batch, asked, row, profile)
        if match:
            scatter(signals, [row], signals.take([row]).with_values(match))


def text_signals(batch: Batch, asked: Asked, row: int, profile: CorpusProfile) -> dict[str, float]:
    """Shares of the question's rare words in its passages; nothing without both texts or without counts."""
    question = asked.questions.get(row)
    if question is None or row not in asked.texts or profile.document_frequencies is None:
        return {}
    return text_match(profile, question, _kept_texts(batch, asked, row))


def _profiled(
    signals: Signals, block: Block, asked: Asked, profile: CorpusProfile, embedder: str | None
) -> Signals:
    """The signals of a block with those that need a profile."""
    profile.check(block.queries, block.passages, embedder, rows=block.rows if asked.is_batch else None)
    deeper, same = deeper_cosines(block, asked)
    found = against_background(
        signals, block.queries, block.passages, profile=profile, deeper=deeper, same=same
    )
    return signals.with_values(found)


def deeper_cosines(block: Block, asked: Asked) -> tuple[FloatArray | None, FloatArray | None]:
    """Cosines (Q, D) of the best that was retrieved beyond the served passages, and how exact they are (Q,).

    nan pads; None if none is known. At most `MOST_DEEPER` a query: what lies deeper is no news.
    """
    k, named = block.passages.shape[1], asked.candidates
    rest = {at: named[row] for at, row in enumerate(block.rows.tolist()) if row in named}
    width = min(max((len(cosines) - k for cosines in rest.values()), default=0), MOST_DEEPER)
    if width <= 0:
        return None, None
    deeper, same = np.full((len(block.rows), width), np.nan), np.full(len(block.rows), SAME_COSINE)
    for at, cosines in rest.items():
        best = -np.sort(-cosines[k:])[:width]
        deeper[at, : len(best)] = best
        same[at] = max(SAME_COSINE, float(np.abs(cosines[:k] - _served_cosines(block, at)).max()))
    return deeper, same


def _refined(
    flat: Signals, single: Block, asked: Asked, settings: Settings, directions: FloatArray | None
) -> Signals:
    """Signals of one retrieval along its tree, or by the seed's definitions."""
    parents = asked.parents.get(int(single.rows[0]))
    query, passages = single.queries[0], single.passages[0]
    if settings.policy.definitions == "seed":
        jitter = settings.seed if settings.perturb else None
        return seed_signals(flat, query, passages, parents, jitter_seed=jitter)
    if parents is None:
        return flat
    return on_tree(flat, query, passages, parents, directions)


def _loops(single: Block, settings: Settings) -> LoopEvidence:
    if settings.policy.definitions == "seed":
        return seed_loop_evidence(unit_rows(single.passages[0])[0], settings.policy.loop_life_flag)
    if settings.loops == "off":
        return LoopEvidence()
    gram = block_geometry(single.queries, single.passages)[0].gram
    keep = np.flatnonzero(distinct(gram, settings.duplicate_cosine)[0])
    return loop_evidence(gram[0][np.ix_(keep, keep)], settings.loops, seed=settings.seed)


def _with_candidates(signals: Signals, single: Block, name: str, candidates: FloatArray) -> Signals:
    """Spread signals of the whole retrieved list instead of the served part."""
    ranked = ranked_candidates(name, candidates, _served_cosines(single, 0))[None]
    return signals.with_values(spread_signals(ranked))


def _served_cosines(block: Block, at: int) -> FloatArray:
    """Cosines (k,) of the passages of one query of a block."""
    return np.asarray(unit_rows(block.passages[at])[0] @ unit_rows(block.queries[at : at + 1])[0][0])


def _drivers(signals: Signals, settings: Settings) -> Drivers:
    grounded = settings.embedding_backend != "lexical"
    if settings.policy.definitions == "seed":
        return seed_drivers(signals, settings.policy, grounded=grounded)
    if settings.profile is not None:
        return profiled_drivers(
            signals, settings.policy, units=settings.profile.contrast_units, grounded=grounded
        )
    return default_drivers(signals, settings.policy, grounded=grounded)


def _contradiction(batch: Batch, asked: Asked, settings: Settings) -> FloatArray:
    """Score of the caller's function for each retrieval that has passages; nan elsewhere."""
    scores = np.full(len(batch), np.nan)
    if settings.contradiction is None:
        return scores
    for block in batch.blocks:
        for row in block.rows.tolist():
            texts = _kept_texts(batch, asked, row)
            scores[row] = check_contradiction("contradiction", settings.contradiction(texts), len(texts))
    return scores


def _kept_texts(batch: Batch, asked: Asked, row: int) -> list[str]:
    if row not in asked.texts:
        raise ValueError(
            f"`{asked.name('texts', row)}` must be given with `contradiction`; got None. "
            "Pass the text of each passage."
        )
    texts = asked.texts[row]
    return [texts[i] for i in batch.served[row]] if row in batch.served else list(texts)


def call_of(settings: Settings) -> Call:
    """What the records of a call repeat of its settings."""
    return Call(
        policy=settings.policy_read,
        backend=settings.embedding_backend,
        embedder=settings.embedder,
        gate_fingerprint=None if settings.gate is None else settings.gate.fingerprint,
        profile_fingerprint=None if settings.profile is None else settings.profile.fingerprint,
        model=settings.model,
        score_used=settings.score_used,
    )


def _gated(scores: FloatArray, assessed: Mask, asked: Asked, settings: Settings) -> Gated | None:
    """Decisions of the gate on every score that rests on passages."""
    if settings.gate is None:
        return None
    rows = np.flatnonzero(assessed)
    places = np.full(len(assessed), -1)
    places[rows] = np.arange(len(rows))
    groups = None if asked.groups is None else [asked.groups[row] for row in rows.tolist()]
    return Gated(settings.gate.predict(scores[rows], groups), places)


def _probabilities(
    kpi: FloatArray, columns: Mapping[str, FloatArray], assessed: Mask, settings: Settings
) -> FloatArray:
    """What the calibrator or the model says of each retrieval with passages; nan elsewhere."""
    found = np.full(len(assessed), np.nan)
    if settings.model is not None:
        of_those = {name: column[assessed] for name, column in columns.items()}
        found[assessed] = settings.model.predict_columns(of_those)
    if settings.calibrator is not None:
        for row in np.flatnonzero(assessed).tolist():
            found[row] = probability(float(kpi[row]), settings)
    return found


def probability(kpi: float, settings: Settings) -> float:
    """What the calibrator makes of one KPI; nan without one."""
    if settings.calibrator is None:
        return np.nan
    return check_fraction_result("calibrator", settings.calibrator(kpi))


def _note_unread(columns: Mapping[str, FloatArray], assessed: Mask, model: Model, notes: Notes) -> None:
    """`unread` for every retrieval that lacks a signal of the model."""
    unknown = np.full(len(assessed), np.nan)
    lacking = {name: np.isnan(columns.get(name, unknown)) & assessed for name in model.names}
    for row in np.flatnonzero(np.any([*lacking.values()], axis=0)).tolist():
        notes[row].append(unread([name for name, missing in lacking.items() if missing[row]]))


def unread(missing: Sequence[str]) -> str:
    """The sentence on signals that the model was trained on and that a retrieval lacks."""
    told = ", ".join(name.removeprefix("signals.") for name in missing)
    return f"the model counts as average what was not assessed here: {told}"


def note_counts(batch: Batch, asked: Asked, settings: Settings, notes: Notes) -> None:
    """Sentences on what was capped, dropped or missing."""
    counts = zip(asked.k_requested, batch.k_returned.tolist(), batch.n_dropped.tolist(), strict=True)
    for row, (wanted, got, dropped) in enumerate(counts):
        if got - dropped > SHAPE_LIMIT and settings.policy.definitions == "default":
            what = "cohesion and robustness" if row in asked.parents else "shape"
            notes[row].append(
                f"{what} measured on the {SHAPE_LIMIT} passages of highest cosine, of {got - dropped}"
            )
        if dropped:
            notes[row].append(f"{dropped} of {got} passages dropped as invalid")
        if wanted is not None and got < wanted:
            notes[row].append(f"{got} passages returned of {wanted} requested")
        if settings.gate is not None and settings.gate.provenance is None:
            notes[row].append("the gate does not say how its scores were made: nothing was compared with it")
        if settings.profile is not None and not settings.policy.has_default_gate:
            notes[row].append("the policy's own grounding gate is not read with a profile")
        if settings.embedding_backend == "lexical":
            notes[row].append("topical grounding not assessed: lexical vectors have no absolute scale")
