"""Wrap a tool, so that a calibrator decides whether a call of it may run."""

from __future__ import annotations

from typing import Any

from rag_confidence.guard.guarding import Guard


def guard_of(wrapped: Any) -> Guard:
    """The guard in a function that `wrap` made, bound to its object where that is a method."""
    raise NotImplementedError
