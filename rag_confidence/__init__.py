"""Confidence in a retrieval, read from the geometry of its embeddings."""

__version__ = "0.1.0"
