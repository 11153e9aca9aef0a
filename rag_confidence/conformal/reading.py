"""Parts of saved objects that several kinds share, each checked for what a fit could have written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from rag_confidence._options import check_flag, check_text
from rag_confidence._types import FloatArray
from rag_confidence.conformal.history import History, check_collected, check_negatives
from rag_confidence.conformal.new_scores import Scale, rounded
from rag_confidence.conformal.provenance import check_provenance
from rag_confidence.conformal.rows import Rows

# Levels that were divided among many attempts, and rates of monitors, are smaller than a user may ask for.
_LEAST = Fraction(1, 10**300)
_LONGEST = 4000
_FRACTION = re.compile(r"[0-9]+/[0-9]+")


def read_level(name: str, text: Any) -> Fraction:
    """The level in (0, 1) that was written as numerator / denominator."""
    if not isinstance(text, str) or len(text) > _LONGEST or not _FRACTION.fullmatch(text):
        raise ValueError(f"{name} that is no fraction: {text!r:.80}")
    level = Fraction(text)
    if not _LEAST <= level < 1:
        raise ValueError(f"{name} outside (0, 1): {text!r:.80}")
    return level


def read_ids(ids: Any) -> frozenset[str] | None:
    """The hashes of row ids."""
    if ids is None:
        return None
    if not isinstance(ids, list) or not all(isinstance(entry, str) for entry in ids):
        raise ValueError("ids that are no strings")
    return frozenset(ids)


def read_rows(plain: Mapping[str, Any]) -> Rows:
    """The rows that something was fitted on."""
    read_ids(plain["ids"])
    check_provenance(plain["provenance"])
    rows = Rows.from_dict(plain)
    check_precision(rows.scores0, rows.precision)
    check_precision(rows.scores1, rows.precision)
    return rows


def check_precision(scores: FloatArray, precision: str) -> None:
    """Refuse finite scores that a float of this precision cannot hold."""
    if (rounded(scores, np.dtype(precision)).astype(np.float64) != scores).any():
        raise ValueError(f"scores that are not in {precision}")


def read_scale(plain: Mapping[str, Any], rows: Rows) -> Scale:
    """The scale of these rows: another range or kind would let through scores of another kind."""
    scale = Scale(plain["kind"], float(plain["low"]), float(plain["high"]), plain["precision"]).checked()
    scores = np.concatenate([rows.scores0, rows.scores1])
    if (scale.low, scale.high, scale.precision) != (scores.min(), scores.max(), rows.precision):
        raise ValueError("a scale that is not that of the rows")
    if scale.kind == "fraction" and not 0.0 <= scale.low <= scale.high <= 1.0:
        raise ValueError("fractions outside [0, 1]")
    return scale


def read_history(plain: Mapping[str, Any], rows: Rows | None) -> History:
    """What is known beside the numbers; the kinds of negatives count the insufficient rows."""
    collected, source = check_collected(plain["collected"]), plain["labeling_source"]
    check_text("labeling_source", source)
    clustered = check_flag("clustered", plain["clustered"])
    if rows is None:
        return History(collected, source, (), clustered)
    labels = np.zeros(len(rows.scores0), dtype=bool)
    return History(collected, source, check_negatives(dict(plain["negatives"]), labels), clustered)
