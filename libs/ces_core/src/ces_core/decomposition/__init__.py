"""Decomposition: which vertices of an application's graph become one task each, so that little traffic crosses between them."""
