"""The class-conditional gate: two thresholds, a decision, and what it guarantees."""
