"""Numbers become words: drivers, KPI, bands and verdict."""
