"""``ces bench network``: is what was allocated what flows? Measured on namespaces, with the agent's data plane."""
