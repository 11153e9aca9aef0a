"""Exceptions and warning categories that a caller may branch on."""

from __future__ import annotations


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
