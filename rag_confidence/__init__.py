"""How far to trust what a retriever has just returned: a score, its reasons, a verdict, and a guarantee."""

from rag_confidence._predictions import GatePrediction, GatePredictions
from rag_confidence._types import Decision, Guarantee, Provenance, ReasonCode, Signal, Verdict
from rag_confidence._version import __version__ as __version__
from rag_confidence.conformal.audit.risk_coverage import RiskCoverage, risk_coverage
from rag_confidence.conformal.audit.scores import ScoreAudit, audit_scores
from rag_confidence.conformal.audit.traps import LexicalTraps, find_lexical_traps
from rag_confidence.conformal.gate.attempts import alpha_for_attempt
from rag_confidence.conformal.gate.demo import DemoReport, run_demo
from rag_confidence.conformal.gate.evaluation import GateEvaluation, evaluate_conformal_gate
from rag_confidence.conformal.gate.fit import apply_conformal_gate, fit_conformal_gate, predict_one
from rag_confidence.conformal.gate.fitted import ConformalGate
from rag_confidence.conformal.gate.loose import Thresholds
from rag_confidence.conformal.gate.planning import CalibrationPlan, plan
from rag_confidence.conformal.joint.checks import PerCheckGate, fit_bonferroni_checks, fit_naive_checks
from rag_confidence.conformal.joint.fit import JointGate, fit_joint_gate
from rag_confidence.conformal.monitor.drift import DriftMonitor, DriftState
from rag_confidence.conformal.monitor.risk_monitor import RiskMonitor, RiskState
from rag_confidence.conformal.probability.isotonic import IsotonicMap, fit_isotonic
from rag_confidence.conformal.probability.platt import PlattMap, fit_platt
from rag_confidence.conformal.probability.venn_abers import VennAbersMap, fit_venn_abers
from rag_confidence.conformal.quantile import conformal_quantile, conformal_rank, pac_rank
from rag_confidence.conformal.risk.fit import fit_risk_gate
from rag_confidence.conformal.risk.fitted import RiskGate
from rag_confidence.conformal.rows import HistorySplit, split_history
from rag_confidence.conformal.separation import auroc
from rag_confidence.engine.distances import bottleneck_distance, wasserstein_distance
from rag_confidence.engine.profile.corpus_profile import CorpusProfile
from rag_confidence.engine.report import EngineReport
from rag_confidence.errors import (
    ArtefactError,
    CalibrationMismatch,
    CalibrationRefused,
    OutOfRangeWarning,
    RowsReused,
    SmallCalibrationWarning,
    WeakSeparationWarning,
)
from rag_confidence.learning.diagnose import diagnose
from rag_confidence.learning.diagnosis import Diagnosis
from rag_confidence.learning.model import ConfidenceModel
from rag_confidence.product.batch import MetricsBatch
from rag_confidence.product.constants import DriverValues
from rag_confidence.product.metrics import RagConfidenceMetrics
from rag_confidence.product.policy import MetricPolicy
from rag_confidence.product.record import json_schema
from rag_confidence.reporting import report_from_embeddings
from rag_confidence.scoring import score, score_many

__all__ = [
    "ArtefactError",
    "CalibrationMismatch",
    "CalibrationPlan",
    "CalibrationRefused",
    "ConfidenceModel",
    "ConformalGate",
    "CorpusProfile",
    "Decision",
    "DemoReport",
    "Diagnosis",
    "DriftMonitor",
    "DriftState",
    "DriverValues",
    "EngineReport",
    "GateEvaluation",
    "GatePrediction",
    "GatePredictions",
    "Guarantee",
    "HistorySplit",
    "IsotonicMap",
    "JointGate",
    "LexicalTraps",
    "MetricPolicy",
    "MetricsBatch",
    "OutOfRangeWarning",
    "PerCheckGate",
    "PlattMap",
    "Provenance",
    "RagConfidenceMetrics",
    "ReasonCode",
    "RiskCoverage",
    "RiskGate",
    "RiskMonitor",
    "RiskState",
    "RowsReused",
    "ScoreAudit",
    "Signal",
    "SmallCalibrationWarning",
    "Thresholds",
    "VennAbersMap",
    "Verdict",
    "WeakSeparationWarning",
    "alpha_for_attempt",
    "apply_conformal_gate",
    "audit_scores",
    "auroc",
    "bottleneck_distance",
    "conformal_quantile",
    "conformal_rank",
    "diagnose",
    "evaluate_conformal_gate",
    "find_lexical_traps",
    "fit_bonferroni_checks",
    "fit_conformal_gate",
    "fit_isotonic",
    "fit_joint_gate",
    "fit_naive_checks",
    "fit_platt",
    "fit_risk_gate",
    "fit_venn_abers",
    "json_schema",
    "pac_rank",
    "plan",
    "predict_one",
    "report_from_embeddings",
    "risk_coverage",
    "run_demo",
    "score",
    "score_many",
    "split_history",
    "wasserstein_distance",
]
