"""Scores in, decisions out: thresholds with a guarantee. Knows no embeddings."""
