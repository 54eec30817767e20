"""Energy of nodes and jobs: what agents told of it, counted and shown."""
