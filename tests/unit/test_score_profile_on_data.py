"""The label-free KPI with a profile on real lists."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from retrieval_pools import arrays

from rag_confidence import CorpusProfile, MetricPolicy, score_many
from rag_confidence.conformal.separation import auroc


@pytest.mark.needs_data
@pytest.mark.parametrize(("name", "model"), [("pubmedqa", "minilm"), ("clapnq", "wordllama")])
def test_the_kpi_with_a_profile_keeps_up_with_the_best_cosine(data_dir: Path, name: str, model: str) -> None:
    """On 600 questions its AUROC is above that of the best cosine minus .015, and above the seed's."""
    vectors = arrays(data_dir / name / f"emb_{model}.npz")
    lists = arrays(data_dir / name / f"topk_{model}.npz")
    queries, corpus = vectors["queries"].astype(np.float32), vectors["corpus"].astype(np.float32)
    at = lists["ks"].tolist().index(10)
    known = np.flatnonzero(lists["sufficient_known"][:, at])
    order = np.random.default_rng([3, 1]).permutation(known)
    sampled, tested = order[:200], order[200:800]
    labels = lists["sufficient"][tested, at].astype(int)
    rows = np.random.default_rng([3, 2]).choice(len(corpus), 600, replace=False)
    profile = CorpusProfile.fit(
        corpus[rows], queries[sampled], query_passages=corpus[lists["idx"][sampled, :10]], embedder=model
    )
    served = corpus[lists["idx"][tested, :10]]
    batch = score_many(
        queries[tested], served, profile=profile, candidates=lists["cos"][tested].astype(float), perturb=False
    )
    seed = score_many(queries[tested], served, policy=MetricPolicy.seed(), perturb=False)
    found, cosine, old = (
        auroc(values, labels) for values in (batch.kpi, batch.signals["max_cosine"], seed.kpi)
    )
    assert found is not None
    assert cosine is not None
    assert old is not None
    assert found > max(cosine - 0.015, old)
