"""What labels and logs teach: a learned KPI, and a diagnosis of what the scores carry."""
