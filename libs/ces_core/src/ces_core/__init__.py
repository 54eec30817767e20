"""CES scheduling core: problem, objective, paths, solvers."""
