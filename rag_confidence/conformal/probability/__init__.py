"""Probability maps that stand beside the gate."""
