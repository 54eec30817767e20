"""How much energy the node uses, and which allocation uses it."""
