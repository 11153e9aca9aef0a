"""Parts of scripts/evaluate.py: what predicts that a retrieval is sufficient, measured on labelled sets."""
