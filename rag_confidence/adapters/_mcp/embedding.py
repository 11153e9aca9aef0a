"""Texts to vectors without a network, for clients that hold no embeddings."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from rag_confidence._optional import require
from rag_confidence._types import FloatArray
from rag_confidence.product.policy import MetricPolicy

EMBEDDER = "wordllama l2_supercat, 256 dimensions"

# The median of the gates fitted to this embedder on five public sets, each on its own corpus.
WORDLLAMA_POLICY = MetricPolicy(grounding_center=0.408, grounding_scale=0.041, grounding_top=1)

_LOADING = Lock()


def embed(texts: list[str]) -> FloatArray:
    """Vectors of the texts, shape (n, 256).

    Raises
    ------
    ImportError
        If the extra `demo`, which holds the model, is not installed.
    """
    with _LOADING:
        model = _model()
    # Small batches: every text of a batch is padded to its longest one.
    return np.asarray(model.embed(texts, batch_size=8), dtype=np.float64)


@cache
def _model() -> Any:
    wordllama = require("wordllama", extra="demo")
    # Without a cache_dir it looks for its tokenizer where the package has none, then downloads it.
    return wordllama.WordLlama.load(cache_dir=Path(wordllama.__path__[0]), disable_download=True)
