"""Embeddings in, numbers out: no thresholds, no verdicts."""
