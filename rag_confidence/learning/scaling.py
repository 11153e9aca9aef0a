"""Signals on a common scale: centred and divided by the deviation of the labelled rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rag_confidence._types import FloatArray, IntArray, Mask

# What APIs return for the same text differs by about this much: a signal that varies less varies by noise.
_ROUNDING = 1e-4


@dataclass(frozen=True, eq=False)
class Standardised:
    """Signals (n, p) as they came and on a common scale.

    Attributes
    ----------
    design : ndarray, shape (n, p)
        Standardised; 0, an average value, where nothing was assessed and in columns that do not vary.
    centre, scale : ndarray, shape (p,)
        Mean and standard deviation of the assessed entries; scale 1 where they do not vary.
    low, high : ndarray, shape (p,)
        Range of the assessed entries; 0 where there are none.
    counts : ndarray of int, shape (p,)
        Assessed entries.
    usable : ndarray of bool, shape (p,)
        Columns that vary.
    """

    design: FloatArray
    centre: FloatArray
    scale: FloatArray
    low: FloatArray
    high: FloatArray
    counts: IntArray
    usable: Mask


def standardised(values: FloatArray) -> Standardised:
    """Columns of `values` (n, p) on a common scale; nan marks what was not assessed."""
    known = ~np.isnan(values)
    counts = known.sum(axis=0)
    filled = np.where(known, values, 0.0)
    used = np.maximum(counts, 1)
    centre = filled.sum(axis=0) / used
    away = np.where(known, values - centre, 0.0)
    deviation = np.sqrt((away * away).sum(axis=0) / used)
    largest = np.abs(filled).max(axis=0, initial=0.0)
    usable = deviation > _ROUNDING * largest
    scale = np.where(usable, deviation, 1.0)
    any_known = counts > 0
    low = np.where(any_known, np.where(known, values, np.inf).min(axis=0, initial=np.inf), 0.0)
    high = np.where(any_known, np.where(known, values, -np.inf).max(axis=0, initial=-np.inf), 0.0)
    return Standardised(np.where(usable, away / scale, 0.0), centre, scale, low, high, counts, usable)
