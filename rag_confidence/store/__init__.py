"""Recorded calls and retrievals with their scores and outcomes: what guards and gates are calibrated on."""
