"""Loop evidence on request: which test was run, what it found, and what kept it from running."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from rag_confidence._types import FloatArray, LoopTest
from rag_confidence.engine.loops import (
    MAX_POINTS,
    MAX_POINTS_SEED,
    MIN_POINTS,
    Loops,
    ratio_loops,
    rips_loops,
    rotation_test,
)
from rag_confidence.engine.relevance import chords
from rag_confidence.engine.signals import Signals

_AMONG = 5


@dataclass(frozen=True)
class LoopEvidence:
    """Loop columns of one retrieval, nan where not assessed, and a note when they could not be."""

    n_loops: float = np.nan
    n_minor_loops: float = np.nan
    loop_life: float = np.nan
    loop_ratio: float = np.nan
    loop_p_value: float = np.nan
    note: str | None = None


def with_loops(signals: Signals, found: LoopEvidence) -> Signals:
    """The signals of one retrieval with its loop columns filled in."""
    names = ("n_loops", "n_minor_loops", "loop_life", "loop_ratio", "loop_p_value")
    return signals.with_values({name: getattr(found, name) for name in names})


def loop_evidence(gram: FloatArray, test: LoopTest, *, seed: int) -> LoopEvidence:
    """Loops of the distinct passages, judged by ratio or by rotation surrogates.

    Parameters
    ----------
    gram : ndarray, shape (n, n)
        Mutual cosines of distinct passages.
    test : {"off", "ratio", "surrogate"}
    seed : int
        Of the surrogates.

    Returns
    -------
    LoopEvidence
        Not assessed outside 4 <= n <= 50, and without ripser.
    """
    if test == "off":
        return LoopEvidence()
    if not MIN_POINTS <= len(gram) <= MAX_POINTS:
        return LoopEvidence(
            note=f"loops not assessed: they need {MIN_POINTS} to {MAX_POINTS} distinct passages"
        )
    if test == "ratio":
        return _guarded(lambda: _judged_by_ratio(gram))
    return _guarded(lambda: _judged_by_rotation(gram, seed))


def seed_loop_evidence(unit: FloatArray, life: float) -> LoopEvidence:
    """Loops of `unit` passages (n, d) as the source counts: of at least `life` among the longest five."""
    if not MIN_POINTS <= len(unit) <= MAX_POINTS_SEED:
        note = f"loops not assessed: they need {MIN_POINTS} to {MAX_POINTS_SEED} passages"
        return LoopEvidence(note=note)
    return _guarded(lambda: _judged_by_life(np.clip(unit @ unit.T, -1.0, 1.0), life))


def _judged_by_ratio(gram: FloatArray) -> LoopEvidence:
    loops = rips_loops(chords(gram))
    return _evidence(loops, ratio_loops(loops), len(loops.bars))


def _judged_by_rotation(gram: FloatArray, seed: int) -> LoopEvidence:
    test = rotation_test(gram, seed=seed)
    return replace(_evidence(test.loops, test.n_longer, len(test.loops.bars)), loop_p_value=test.p_value)


def _judged_by_life(gram: FloatArray, life: float) -> LoopEvidence:
    loops = rips_loops(chords(gram))
    return _evidence(loops, loops.count_long(life, _AMONG), min(len(loops.bars), _AMONG))


def _evidence(loops: Loops, real: int, counted: int) -> LoopEvidence:
    return LoopEvidence(
        n_loops=float(real),
        n_minor_loops=float(counted - real),
        loop_life=loops.longest_life,
        loop_ratio=float(loops.ratios.max()) if len(loops.bars) else np.nan,
    )


def _guarded(judge: Callable[[], LoopEvidence]) -> LoopEvidence:
    """Without ripser the loops are not assessed, and the record says what to install."""
    try:
        return judge()
    except ImportError as error:
        return LoopEvidence(note=f"loops not assessed: {error}")
