"""What a score is worth, measured on labelled rows."""
