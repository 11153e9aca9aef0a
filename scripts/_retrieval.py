"""Embed texts offline with wordllama and find the passages nearest to a question."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rag_confidence._optional import require

FloatArray: TypeAlias = NDArray[np.float64]
Embedder: TypeAlias = Callable[[list[str]], FloatArray]

EMBEDDER_NAME = "wordllama l2_supercat, 256 dimensions"


@dataclass(frozen=True)
class Hits:
    """Rows of the k nearest passages, nearest first, and their cosines."""

    rows: NDArray[np.intp]
    cosines: FloatArray

    def first(self, k: int) -> Hits:
        """The k nearest of these."""
        return Hits(self.rows[:k], self.cosines[:k])


def load_embedder() -> Embedder:
    """Embedder with the weights inside the wordllama package; it never opens a connection.

    Raises
    ------
    ImportError
        If wordllama is not installed.
    """
    wordllama = require("wordllama", extra="demo")
    # Without a cache_dir it looks for its tokenizer where the package has none, then downloads it.
    model = wordllama.WordLlama.load(cache_dir=Path(wordllama.__path__[0]), disable_download=True)

    def embed(texts: list[str]) -> FloatArray:
        return unit_rows(np.asarray(model.embed(texts), dtype=np.float64))

    return embed


def unit_rows(vectors: FloatArray) -> FloatArray:
    """Rows (n, d) scaled to length one; a zero row stays zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1)


def nearest(question: FloatArray, passages: FloatArray, k: int) -> Hits:
    """The k passages (n, d) of highest cosine to the question (d,), exactly; ties by row."""
    cosines = passages @ question
    rows = np.argsort(-cosines, kind="stable")[:k]
    return Hits(rows, cosines[rows])
