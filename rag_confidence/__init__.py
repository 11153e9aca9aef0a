"""How far to trust what a retriever has just returned: one score, its reasons, and a verdict."""

from rag_confidence._types import ReasonCode, Signal, Verdict
from rag_confidence.product.batch import MetricsBatch
from rag_confidence.product.metrics import RagConfidenceMetrics
from rag_confidence.product.policy import DriverValues, MetricPolicy
from rag_confidence.product.record import json_schema
from rag_confidence.scoring import score, score_many

__version__ = "0.1.0"

__all__ = [
    "DriverValues",
    "MetricPolicy",
    "MetricsBatch",
    "RagConfidenceMetrics",
    "ReasonCode",
    "Signal",
    "Verdict",
    "json_schema",
    "score",
    "score_many",
]
