"""The learned model on real lists, from vectors to a gate that refuses its rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import quiet, refuse
from retrieval_pools import arrays

from rag_confidence import MetricsBatch, fit_conformal_gate, score_many
from rag_confidence.conformal.separation import auroc
from rag_confidence.engine.profile.corpus_profile import CorpusProfile
from rag_confidence.errors import RowsReused
from rag_confidence.learning.model import ConfidenceModel


@pytest.mark.needs_data
def test_a_hundred_labels_beat_the_label_free_score_where_it_is_weak(data_dir: Path) -> None:
    """Ranking failures under static vectors: +.05 AUROC on other rows, predictions that calibrate a gate."""
    vectors = arrays(data_dir / "pubmedqa" / "emb_wordllama.npz")
    lists = arrays(data_dir / "pubmedqa" / "topk_wordllama.npz")
    queries, corpus = vectors["queries"].astype(np.float32), vectors["corpus"].astype(np.float32)
    labels = lists["sufficient"][:, 1].astype(int)
    order = np.random.default_rng(0).permutation(len(queries))
    sampled, train, rest = order[:200], order[200:300], order[300:600]
    profile = CorpusProfile.fit(corpus[::6], queries[sampled])

    def scored(rows: Any, **more: Any) -> MetricsBatch:
        return score_many(
            queries[rows],
            corpus[lists["idx"][rows, :10]],
            candidates=lists["cos"][rows].astype(float),
            profile=profile,
            perturb=False,
            **more,
        )

    model = ConfidenceModel.fit(scored(train), labels[train], row_ids=train)
    found = scored(rest, model=model)
    np.testing.assert_array_equal(found.p_sufficient, model.predict(found))
    learned, free = auroc(found.p_sufficient, labels[rest]), auroc(found.kpi, labels[rest])
    assert learned is not None
    assert free is not None
    assert learned > free + 0.05
    with quiet():
        gate = fit_conformal_gate(
            found.p_sufficient, labels[rest], provenance=model.provenance, row_ids=rest, disjoint_from=[model]
        )
        own = model.predict(scored(train))
        refuse(RowsReused, "100 rows", lambda: fit_conformal_gate(own, labels[train], disjoint_from=[model]))
    assert scored(rest[:3], model=model, gate=gate)[0].record["score_used"] == "model"
