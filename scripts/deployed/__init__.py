"""Profile, KPI and gates as they would be deployed, on labelled retrieval sets."""
