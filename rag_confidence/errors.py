"""Exceptions and warning categories that a caller may branch on."""

from __future__ import annotations

import sys
import warnings
from typing import Any


class CalibrationMismatch(ValueError):
    """A score was made in another way than those a gate was fitted on."""


class CalibrationRefused(ValueError):
    """A fit with ``strict=True`` found too few labels, or classes that do not separate."""


class RowsReused(ValueError):
    """Rows that trained a score or a probability map were handed to the calibration of a gate."""


class ArtefactError(ValueError):
    """A saved artefact is damaged, was changed, or is of another kind or version."""


class SmallCalibrationWarning(UserWarning):
    """Too few labels for the level asked for: what they cannot support is not decided."""


class WeakSeparationWarning(UserWarning):
    """The score hardly tells the classes apart: the guarantee holds, but few decisions are made."""


class AbstainedError(RuntimeError):
    """A guarded tool was not run, or its output withheld, and ``on_abstain="raise"`` was asked for.

    ``result`` is the `GuardResult`.
    """

    def __init__(self, message: str, result: Any = None) -> None:
        super().__init__(message)
        self.result = result


class NoToolCallProducedError(RuntimeError):
    """A model made no tool call where one was required; there was nothing to judge.

    ``finish_reason`` and ``content`` are what the model said instead.
    """

    def __init__(self, message: str, *, finish_reason: str | None = None, content: str | None = None) -> None:
        super().__init__(message)
        self.finish_reason = finish_reason
        self.content = content


class SessionExhausted(RuntimeError):
    """More calls were asked of a session than its error budget was planned for."""


class StoreError(RuntimeError):
    """A calibration store cannot be opened, read or written; what was committed before is untouched."""


class StaleCalibrationWarning(UserWarning):
    """The newest calibration call is old: calls may have changed since."""


class MixedScorersWarning(UserWarning):
    """Scores of a calibration set were made by other scorers than those in use, or by several."""


class SelectedCallsWarning(UserWarning):
    """The calibration calls are those that a guard accepted: recalibrating on them shuts out ever more."""


class TiedScoresWarning(UserWarning):
    """So many good calls share the largest score that the guard stops nothing."""


class OutOfRangeWarning(UserWarning):
    """A raw score lies far outside the range of those a gate was fitted on."""


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn at the line outside this package that led here, however deep the call."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("rag_confidence"):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level + 1)
