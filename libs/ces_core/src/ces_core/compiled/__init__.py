"""Compilation of the hot loops: by numba where it is installed, plain Python elsewhere."""
