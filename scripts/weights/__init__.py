"""How the weights of the KPI with a profile, and the constant of its contrast cap, are chosen."""
