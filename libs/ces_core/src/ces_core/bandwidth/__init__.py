"""Rates and paths for a given placement: by composite, linear programming or max-min fairness, and bounds on plans."""
