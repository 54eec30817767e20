"""Decomposition: which vertices of an application's graph become one task, with little traffic between tasks."""
