"""A certified bound on the share of insufficient evidence among what is accepted."""
