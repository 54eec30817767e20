"""Links and flows: topology, link states, probes, rates."""
