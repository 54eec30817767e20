"""The anytime local search, the greedy construction beside it, and the reason where neither finds a place."""
