"""CES network controller: routes and shaping on every node."""
