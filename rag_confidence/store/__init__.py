"""Recorded calls and retrievals with their scores and outcomes: what guards and gates are calibrated on."""

from rag_confidence.store.calibration_store import CalibrationStore
from rag_confidence.store.importing import ImportReport
from rag_confidence.store.stored_history import StoredHistory
from rag_confidence.store.summary import StoreSummary

__all__ = ["CalibrationStore", "ImportReport", "StoreSummary", "StoredHistory"]
