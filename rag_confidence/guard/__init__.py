"""Guarded tool calls: a calibrated threshold decides whether a call may run, and says what it guarantees."""
