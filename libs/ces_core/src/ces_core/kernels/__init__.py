"""The hot loops, compiled where numba is installed and plain Python over numpy arrays where it is not.

They know nothing of names or objects: a problem reaches them as the flat arrays of
:class:`~ces_core.kernels.compact.Compact`.
"""
