"""More jobs than there is room for, on real services with simulated agents, and an audit of what they did."""
