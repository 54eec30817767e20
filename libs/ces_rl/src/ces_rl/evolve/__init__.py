"""``ces evolve``: the versions of a policy that evolves, from logged decisions to promotion."""
