"""Parts of guard_validation.py."""
