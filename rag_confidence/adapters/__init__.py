"""Edges of the library: each parses, calls public functions, and formats; no mathematics."""
