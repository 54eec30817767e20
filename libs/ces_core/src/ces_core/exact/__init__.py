"""Branch and bound: the best plan with a proof, or the best found and an upper bound on every plan."""
