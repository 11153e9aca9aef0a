"""Tests of the store run on both databases."""

from __future__ import annotations

from store_places import place

__all__ = ["place"]
