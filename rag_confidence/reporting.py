"""report_from_embeddings(): the engine alone, without a policy or a verdict."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from rag_confidence._assess import measure_batch
from rag_confidence._inputs import Block, check_retrieval
from rag_confidence._settings import Asked, Settings
from rag_confidence._types import IntArray, InvalidRows, LoopTest
from rag_confidence.engine.barcode import joint_barcode, tree_barcode
from rag_confidence.engine.lockstep import block_geometry
from rag_confidence.engine.relevance import DUPLICATE_COSINE, distinct, unit_rows
from rag_confidence.engine.report import EngineReport
from rag_confidence.engine.signals import Signals


def report_from_embeddings(
    query_embedding: ArrayLike,
    passage_embeddings: ArrayLike,
    parents: Sequence[int | None] | None = None,
    *,
    perturb: bool = True,
    invalid_rows: InvalidRows = "raise",
    duplicate_cosine: float = DUPLICATE_COSINE,
    loops: LoopTest = "off",
    seed: int = 0,
) -> EngineReport:
    """Everything the engine measures on one retrieval, with its barcode and graph.

    For notebooks, plots and research; `score` measures the same signals without building these objects.

    Parameters
    ----------
    query_embedding : array_like, shape (d,)
    passage_embeddings : array_like, shape (n, d)
        At least one row.
    parents, perturb, invalid_rows, duplicate_cosine, loops, seed
        As in `score`.

    Returns
    -------
    EngineReport

    Raises
    ------
    TypeError, ValueError
        As `score`, and for a zero query or no passages, of which there is nothing to measure.

    Examples
    --------
    >>> report = report_from_embeddings([1.0, 0.0], [[1.0, 1.0], [1.0, -1.0]])
    >>> report.barcode.bars.round(3).tolist()
    [[0.707, 0.0], [0.707, 0.0]]
    """
    settings = Settings(
        perturb=perturb,
        invalid_rows=invalid_rows,
        duplicate_cosine=duplicate_cosine,
        loops=loops,
        seed=seed,
    )
    batch = check_retrieval(query_embedding, passage_embeddings, invalid_rows)
    asked = Asked.of_one(batch, None, parents, None, None, None)
    if not batch.blocks:
        raise ValueError(
            f"`passage_embeddings` must have a valid row and `query_embedding` a direction; "
            f"got {batch.k_returned[0]} passages. score() gives a verdict in these cases too."
        )
    signals = measure_batch(batch, asked, settings, defaultdict(list)).signals
    block, served = batch.blocks[0], batch.served.get(0)
    if 0 in asked.parents:
        return _tree_report(block, asked.parents[0], signals)
    return _flat_report(block, served, signals, settings.duplicate_cosine)


def _flat_report(
    block: Block, served: IntArray | None, signals: Signals, duplicate_cosine: float
) -> EngineReport:
    geometry = block_geometry(block.queries, block.passages)[0]
    keep = np.flatnonzero(distinct(geometry.gram, duplicate_cosine)[0])
    one = geometry.take(np.zeros(1, dtype=np.intp), keep[None])
    cosines, gram, nodes = one.cosines[0], one.gram[0], one.order[0]
    nodes = nodes if served is None else served[nodes]
    return EngineReport(
        nodes, cosines, gram, joint_barcode(cosines, gram), None, signals, block.queries.shape[1]
    )


def _tree_report(block: Block, parents: IntArray, signals: Signals) -> EngineReport:
    unit, _ = unit_rows(block.passages[0])
    cosines = np.clip(unit @ unit_rows(block.queries)[0][0], -1.0, 1.0)
    gram = np.clip(unit @ unit.T, -1.0, 1.0)
    return EngineReport(
        np.arange(len(unit)),
        cosines,
        gram,
        tree_barcode(cosines, parents),
        parents,
        signals,
        block.queries.shape[1],
    )
