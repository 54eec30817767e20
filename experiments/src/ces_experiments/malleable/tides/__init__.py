"""A day on devices whose owners lend them while they do not need them, in two minutes."""
