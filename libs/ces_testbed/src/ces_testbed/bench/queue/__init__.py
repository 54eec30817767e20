"""Many jobs at once on simulated agents: real services, and an audit of all that they did."""
