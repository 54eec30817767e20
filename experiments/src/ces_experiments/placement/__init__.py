"""Single jobs: solvers compared with proven optima, and on networks of thousands of nodes."""
