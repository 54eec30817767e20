"""A day of a mobile user's job among links, nodes and rates that change, under ways to adjust it."""
