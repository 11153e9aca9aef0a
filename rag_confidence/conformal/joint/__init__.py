"""Several checks of one call under one bound."""
