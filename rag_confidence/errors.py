"""Exceptions and warning categories that a caller may branch on."""

from __future__ import annotations

import sys
import warnings


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


class OutOfRangeWarning(UserWarning):
    """A raw score lies far outside the range of those a gate was fitted on."""


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn at the line outside this package that led here, however deep the call."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("rag_confidence"):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level + 1)
