"""Bootstrap rounds as text: single precision in base 64, a twentieth of what their digits would take."""

from __future__ import annotations

import base64
from collections.abc import Mapping

import numpy as np
from _data import FloatArray


def packed(rounds: Mapping[str, FloatArray]) -> dict[str, str]:
    """Each array of shape (rounds,) as text."""
    return {
        name: base64.b64encode(values.astype("<f4").tobytes()).decode() for name, values in rounds.items()
    }


def unpacked(text: str) -> FloatArray:
    """The array that `packed` wrote, in double precision."""
    return np.frombuffer(base64.b64decode(text), dtype="<f4").astype(np.float64)
