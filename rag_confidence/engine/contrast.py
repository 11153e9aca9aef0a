"""What a retrieval shows against the background of its corpus: signals that need a profile."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Protocol

import numpy as np

from rag_confidence._types import FloatArray
from rag_confidence.engine.profile.background import background_of
from rag_confidence.engine.profile.columns import LEAST_BACKGROUND
from rag_confidence.engine.profile.corpus_profile import CorpusProfile
from rag_confidence.engine.profile.left_out import LeftOut
from rag_confidence.engine.profile.one_query import levels_of_one, typicality_of_one, unit_query
from rag_confidence.engine.profile.reference import (
    contrast_of_one,
    contrast_to,
    reference_of,
    saturated,
    saturated_of_one,
)


class Columns(Protocol):
    """Signals by name: a `Signals` table, or a dictionary of one retrieval."""

    def __getitem__(self, name: str, /) -> FloatArray | float: ...


def against_background(
    measured: Columns,
    queries: FloatArray,
    passages: FloatArray,
    *,
    profile: CorpusProfile,
    deeper: FloatArray | None = None,
    same: FloatArray | None = None,
    left_out: LeftOut | None = None,
) -> dict[str, FloatArray]:
    """Signals of Q retrievals of equal length relative to what is usual in the corpus.

    Parameters
    ----------
    measured : Signals or mapping
        Supplies ``max_cosine`` and ``mean_top3_cosine``, shape (Q,).
    queries : ndarray, shape (Q, d)
    passages : ndarray, shape (Q, k, d)
        Finite, no zero row, of any length.
    profile : CorpusProfile
        Of the same embedder.
    deeper, same, left_out
        See `profile.background.background_of`.

    Returns
    -------
    dict of str to ndarray, shape (Q,)
        - ``contrast``: logarithm of how many times farther the reference is than the best passage, in squared
          distance; 0 for a best passage that is no better than the reference;
        - ``saturated_contrast``: the same, levelling off towards `contrast_cap`;
        - ``best_excess``, ``head_excess``: best cosine, and mean of the three best, minus
          ``background_tail``;
        - ``level_excess``: best cosine minus what is usual for that tail in this corpus, in units of
          ``profile.background_scale``;
        - ``background_mean``, ``background_std``, ``background_tail``: of the cosines of this query to the
          corpus sample, the last being the mean of the largest 5 %;
        - ``typicality``: cosine to the mean query; nan without a query sample.

    Notes
    -----
    See `profile.reference` for the contrast. Cost O(k d + m d) a query.
    """
    cosines = _cosines(queries, passages)
    found = background_of(profile, queries, passages, cosines, deeper=deeper, same=same, left_out=left_out)
    best, head = (np.atleast_1d(measured[name]) for name in ("max_cosine", "mean_top3_cosine"))
    _refuse_small(np.isnan(found.tail).any(), profile)
    contrast = contrast_to(best, reference_of(found.tail, cosines, deeper))
    return {
        "contrast": contrast,
        "saturated_contrast": saturated(contrast, profile.contrast_cap),
        "best_excess": best - found.tail,
        "head_excess": head - found.tail,
        "level_excess": (best - profile.background_level) / profile.background_scale,
        "background_mean": found.mean,
        "background_std": found.std,
        "background_tail": found.tail,
        "typicality": found.typicality,
    }


def against_background_of_list(
    measured: Mapping[str, float],
    query: FloatArray,
    passages: FloatArray,
    *,
    cosines: list[float],
    profile: CorpusProfile,
) -> dict[str, float]:
    """`against_background` of one query (d,) and its served passages (k, d) in plain Python.

    `cosines` are those of the passages, as served.
    """
    sample, unit = profile.sample, unit_query(query)
    mean, std, tail = levels_of_one(sample, unit, passages, np.array(cosines))
    _refuse_small(math.isnan(tail), profile)
    best = measured["max_cosine"]
    contrast = contrast_of_one(best, tail, cosines)
    return {
        "contrast": contrast,
        "saturated_contrast": saturated_of_one(contrast, profile.contrast_cap),
        "best_excess": best - tail,
        "head_excess": measured["mean_top3_cosine"] - tail,
        "level_excess": (best - profile.background_level) / profile.background_scale,
        "background_mean": mean,
        "background_std": std,
        "background_tail": tail,
        "typicality": typicality_of_one(unit, sample),
    }


def _refuse_small(missing: bool | np.bool_, profile: CorpusProfile) -> None:
    """Refuse a background of which next to nothing is left once the retrieved passages are taken out."""
    if missing:
        raise ValueError(
            f"`profile` must hold at least {LEAST_BACKGROUND} vectors beside those that were retrieved; got "
            f"one of {profile.size}. Fit it on a larger sample of the corpus."
        )


def _cosines(queries: FloatArray, passages: FloatArray) -> FloatArray:
    """Cosines (Q, k) in float64 of vectors of any length."""
    wide, rows = queries.astype(np.float64), passages.astype(np.float64)
    lengths = np.einsum("qd,qd->q", wide, wide)[:, None] * np.einsum("qkd,qkd->qk", rows, rows)
    return np.asarray(np.einsum("qd,qkd->qk", wide, rows) / np.sqrt(lengths))
