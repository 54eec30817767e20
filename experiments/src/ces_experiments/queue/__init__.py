"""Many jobs over time in simulated clusters: queue policies, admission, and decisions with later jobs in mind."""
