"""Guarded tool calls: a calibrated threshold decides whether a call may run, and says what it guarantees."""

from rag_confidence._calls import CallRecord, LabelingSource, ToolCallContext
from rag_confidence._types import Decision, Guarantee
from rag_confidence.errors import (
    AbstainedError,
    CalibrationMismatch,
    CalibrationRefused,
    MixedScorersWarning,
    NoToolCallProducedError,
    SelectedCallsWarning,
    SessionExhausted,
    SmallCalibrationWarning,
    StaleCalibrationWarning,
    StoreError,
    TiedScoresWarning,
)
from rag_confidence.guard.calibration import (
    acalibrate,
    calibrate,
    calibrate_multi_check,
    decide_multi_check,
)
from rag_confidence.guard.calibrator import Calibrator, decide
from rag_confidence.guard.comparison import CheckComparison, compare_checks
from rag_confidence.guard.contexts import ResponseFacts
from rag_confidence.guard.coverage import CoverageCheck, coverage_check
from rag_confidence.guard.groups import GroupedCalibrator, calibrate_groups
from rag_confidence.guard.guarding import Guard, guard_of
from rag_confidence.guard.handled import CallStatus, HandledCall, HandledCalls
from rag_confidence.guard.logprobs import (
    judge_score,
    length_normalised_logprob,
    logprob_score,
    mean_logprob,
    min_logprob,
    tail_mean_logprob,
)
from rag_confidence.guard.openai_shapes import openai_token_logprobs
from rag_confidence.guard.recording import UnrecordedCall
from rag_confidence.guard.registry import ToolRegistry
from rag_confidence.guard.result import Decider, GuardReason, GuardResult
from rag_confidence.guard.schema import schema_validity_score
from rag_confidence.guard.scorers import Scored, Scorer, ScoreUnavailable
from rag_confidence.guard.session import Session
from rag_confidence.guard.wrapping import guarded, wrap
from rag_confidence.store import CalibrationStore

__all__ = [
    "AbstainedError",
    "CalibrationMismatch",
    "CalibrationRefused",
    "CalibrationStore",
    "Calibrator",
    "CallRecord",
    "CallStatus",
    "CheckComparison",
    "CoverageCheck",
    "Decider",
    "Decision",
    "GroupedCalibrator",
    "Guarantee",
    "Guard",
    "GuardReason",
    "GuardResult",
    "HandledCall",
    "HandledCalls",
    "LabelingSource",
    "MixedScorersWarning",
    "NoToolCallProducedError",
    "ResponseFacts",
    "ScoreUnavailable",
    "Scored",
    "Scorer",
    "SelectedCallsWarning",
    "Session",
    "SessionExhausted",
    "SmallCalibrationWarning",
    "StaleCalibrationWarning",
    "StoreError",
    "TiedScoresWarning",
    "ToolCallContext",
    "ToolRegistry",
    "UnrecordedCall",
    "acalibrate",
    "calibrate",
    "calibrate_groups",
    "calibrate_multi_check",
    "compare_checks",
    "coverage_check",
    "decide",
    "decide_multi_check",
    "guard_of",
    "guarded",
    "judge_score",
    "length_normalised_logprob",
    "logprob_score",
    "mean_logprob",
    "min_logprob",
    "openai_token_logprobs",
    "schema_validity_score",
    "tail_mean_logprob",
    "wrap",
]
