"""How far to trust what a retriever has just returned: one score, its reasons, and a verdict."""

from rag_confidence._types import ReasonCode, Signal, Verdict
from rag_confidence._version import __version__ as __version__
from rag_confidence.engine.distances import bottleneck_distance, wasserstein_distance
from rag_confidence.engine.report import EngineReport
from rag_confidence.product.batch import MetricsBatch
from rag_confidence.product.constants import DriverValues
from rag_confidence.product.metrics import RagConfidenceMetrics
from rag_confidence.product.policy import MetricPolicy
from rag_confidence.product.record import json_schema
from rag_confidence.reporting import report_from_embeddings
from rag_confidence.scoring import score, score_many

__all__ = [
    "DriverValues",
    "EngineReport",
    "MetricPolicy",
    "MetricsBatch",
    "RagConfidenceMetrics",
    "ReasonCode",
    "Signal",
    "Verdict",
    "bottleneck_distance",
    "json_schema",
    "report_from_embeddings",
    "score",
    "score_many",
    "wasserstein_distance",
]
