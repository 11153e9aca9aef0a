"""Words and array types that every layer shares."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.floating[Any]]
IntArray: TypeAlias = NDArray[np.integer[Any]]
Mask: TypeAlias = NDArray[np.bool_]

InvalidRows: TypeAlias = Literal["raise", "drop"]
LoopTest: TypeAlias = Literal["off", "ratio", "surrogate"]
Backend: TypeAlias = Literal["precomputed", "lexical"]


class Verdict(StrEnum):
    """What serving code should do with a retrieval."""

    ANSWER = "ANSWER"
    REVIEW = "REVIEW"
    ABSTAIN = "ABSTAIN"
    ESCALATE = "ESCALATE"


class ReasonCode(StrEnum):
    """The row of the verdict table that decided."""

    NO_PASSAGES = "no_passages"
    DEGENERATE_QUERY = "degenerate_query"
    OFF_TOPIC = "off_topic"
    CONFLICTING = "conflicting"
    WEAK = "weak"
    AMBIGUOUS = "ambiguous"
    DRIVER_FLOOR = "driver_floor"
    SHAPE_ONLY = "shape_only"
    HEALTHY = "healthy"


class Signal(StrEnum):
    """The five signals that make up the KPI."""

    TOPICAL_GROUNDING = "topical_grounding"
    ANSWER_LOCALIZATION = "answer_localization"
    SUPPORT_COHESION = "support_cohesion"
    EVIDENCE_CONSISTENCY = "evidence_consistency"
    QUERY_ROBUSTNESS = "query_robustness"
